/* SPDX-License-Identifier: BSD-3-Clause */
/* A listening socket that stands where no server is. */
#include "common/launch/door.h"

#include "common/util/owner.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
    BACKLOG = 1024,      /* the tasks of a node knock together */
    STRANGERS_MAX = 64,  /* cut at once, so that a flood holds up no task */
    PORT_OF_USERS = 1024 /* a port of the user's choice is no service's */
};

#define URI_SCHEME ";tcp4://127.0.0.1:"

/* By which libpmix's clients look for their server: each release has another list. */
static const char *const uris[] = {"PMIX_SERVER_URI61", "PMIX_SERVER_URI51", "PMIX_SERVER_URI41",
                                   "PMIX_SERVER_URI4",  "PMIX_SERVER_URI3",  "PMIX_SERVER_URI21",
                                   "PMIX_SERVER_URI2"};
/* What a client reads before it connects, and would fail without. */
static const char *const rest[][2] = {{"PMIX_SECURITY_MODE", "native"},
                                      {"PMIX_GDS_MODULE", "hash"},
                                      {"PMIX_BFROP_BUFFER_TYPE", "PMIX_BFROP_BUFFER_NON_DESC"}};

int door_open(struct door *door, uint16_t port, struct err *err)
{
    struct sockaddr_in here = {
        .sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof(here);
    int on = 1, fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

    *door = (struct door)DOOR_NONE;
    /* of a port that a server has had until now there are connections left */
    if (fd >= 0 && setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) == 0 &&
        bind(fd, (struct sockaddr *)&here, sizeof(here)) == 0 && listen(fd, BACKLOG) == 0 &&
        getsockname(fd, (struct sockaddr *)&here, &len) == 0) {
        door->fd = fd;
        door->port = ntohs(here.sin_port);
        return 0;
    }
    err_set(err, "cannot listen on the loopback interface: %s", strerror(errno));
    if (fd >= 0)
        close(fd);
    return -1;
}

/* Where we lack memory or descriptors to find out whose connection it is, it counts as the job's
 * user's: to turn the user away would be worse, as the program would go on alone. */
static bool lacks(int error)
{
    return error == EMFILE || error == ENFILE || error == ENOMEM || error == ENOBUFS;
}

bool door_knocked(struct door *door, uid_t user)
{
    for (int i = 0; i < STRANGERS_MAX && door->fd >= 0 && door->guest < 0; i++) {
        int fd = accept4(door->fd, NULL, NULL, SOCK_CLOEXEC);
        if (fd < 0)
            return lacks(errno);
        enum owner owner = owner_by(fd, user);
        if (owner == OWNER_US || (owner == OWNER_GONE && lacks(errno)))
            door->guest = fd;
        else
            close(fd);
    }
    return door->guest >= 0;
}

void door_tell(const struct door *door, const char *nspace, uint32_t rank,
               void (*set)(void *arg, const char *key, const char *value), void *arg)
{
    char value[512];
    for (size_t i = 0; i < sizeof(rest) / sizeof(rest[0]); i++)
        set(arg, rest[i][0], rest[i][1]);
    snprintf(value, sizeof(value), "muster.%.400s.0" URI_SCHEME "%u", nspace, door->port);
    for (size_t i = 0; i < sizeof(uris) / sizeof(uris[0]); i++)
        set(arg, uris[i], value);
    snprintf(value, sizeof(value), "%.400s", nspace);
    set(arg, "PMIX_NAMESPACE", value);
    snprintf(value, sizeof(value), "%u", rank);
    set(arg, "PMIX_RANK", value);
}

uint16_t door_port_of(char *const *env)
{
    const char *port = NULL;
    for (; env && *env && !port; env++)
        if (strncmp(*env, "PMIX_SERVER_URI", strlen("PMIX_SERVER_URI")) == 0)
            port = strstr(*env, URI_SCHEME);
    unsigned long n = port ? strtoul(port + strlen(URI_SCHEME), NULL, 10) : 0;
    return n >= PORT_OF_USERS && n <= UINT16_MAX ? (uint16_t)n : 0;
}

void door_close(struct door *door)
{
    if (door->guest >= 0)
        close(door->guest);
    if (door->fd >= 0)
        close(door->fd);
    *door = (struct door)DOOR_NONE;
}
