/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * PMIx_Spawn: which node each rank of an application is to be on, by the hosts that were named.
 * @thread all of it: PMIx's
 */
#include "common/upcall/spawn.h"

#include <errno.h>
#include <fcntl.h>
#include <pmix.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { HOSTFILE_MAX = 1 << 20, NAME_MAX_LEN = 256 };

/* Names that were asked for, in order, with what a file or a list says of their slots. */
struct names {
    char (*list)[NAME_MAX_LEN];
    uint32_t *slots; /* 0: not said */
    uint32_t n;
    bool long_name; /* one of them does not fit */
};

static void add_name(struct names *names, const char *text, size_t len, uint32_t slots)
{
    names->long_name |= len >= NAME_MAX_LEN;
    if (len == 0 || names->long_name)
        return;
    names->list = realloc(names->list, (names->n + 1) * sizeof *names->list);
    names->slots = realloc(names->slots, (names->n + 1) * sizeof *names->slots);
    memcpy(names->list[names->n], text, len);
    names->list[names->n][len] = '\0';
    names->slots[names->n++] = slots;
}

/* "a,b:2,c" */
static void add_list(struct names *names, const char *text)
{
    while (text != NULL && *text != '\0') {
        size_t whole = strcspn(text, ","), len = strcspn(text, ",: ");
        uint32_t slots = text[len] == ':' ? (uint32_t)strtoul(text + len + 1, NULL, 10) : 0;
        add_name(names, text, len, slots);
        text += whole + (text[whole] == ',');
    }
}

/* Of a file only: a pipe or a device may hold PMIx's thread, and with it all tasks of the node. */
static FILE *open_file(const char *path)
{
    struct stat st;
    errno = 0;
    int fd = open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    FILE *in = fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode) ? fdopen(fd, "r") : NULL;
    if (in == NULL && fd >= 0)
        close(fd);
    return in;
}

/* A host a line, with "slots=N" perhaps; # begins a comment. @return whether it could be read */
static bool add_file(struct names *names, const char *path)
{
    FILE *in = open_file(path);
    char line[1024];
    size_t total = 0;
    if (in == NULL)
        return false;
    while (fgets(line, sizeof line, in) != NULL && (total += strlen(line)) <= HOSTFILE_MAX) {
        line[strcspn(line, "#\n")] = '\0';
        const char *begin = line + strspn(line, " \t"), *slots = strstr(begin, "slots=");
        add_name(names, begin, strcspn(begin, " \t:"),
                 slots != NULL ? (uint32_t)strtoul(slots + 6, NULL, 10) : 0);
    }
    fclose(in);
    return true;
}

/* Ranks fill the slots that were said; without, each name has an equal share. */
static void place(const struct names *names, const struct spawn *s, uint32_t ntasks,
                  struct wire_out *out)
{
    uint32_t at = 0, used = 0, share = (ntasks + names->n - 1) / names->n;
    for (uint32_t i = 0; i < ntasks; i++) {
        if (s->what.map == RM_MAP_NODES) {
            at = i % names->n;
        } else if (used >= (names->slots[at] > 0 ? names->slots[at] : share) && at + 1 < names->n) {
            at++;
            used = 0;
        }
        used++;
        if (out->len > 0)
            wire_put_u8(out, ',');
        wire_put_raw(out, names->list[at], strlen(names->list[at]));
    }
}

bool spawn_hosts(struct spawn *s, const struct spawn_wants *wants, uint32_t ntasks,
                 struct wire_out *out)
{
    struct names names = {0};
    const struct boot *boot = &s->server->boot;
    bool wanted = wants->hosts != NULL || wants->hostfile != NULL;
    add_list(&names, wants->hosts);
    if (wants->hostfile != NULL && !add_file(&names, wants->hostfile))
        spawn_refuse(s, PMIX_ERR_NOT_FOUND, "its host file cannot be read: %s: %s",
                     errno != 0 ? strerror(errno) : "it is no regular file", wants->hostfile);
    if (!wanted && boot->allocation.nodes[0] != '\0')
        add_list(&names, boot->allocation.nodes);
    for (uint32_t i = 0; names.n == 0 && i < boot->nnodes; i++)
        add_list(&names, boot->nodes[i].name);
    if (names.long_name)
        spawn_refuse(s, PMIX_ERR_BAD_PARAM, "a host has a name of over %d bytes", NAME_MAX_LEN - 1);
    else if (s->status == PMIX_SUCCESS)
        place(&names, s, ntasks, out);
    free(names.list);
    free(names.slots);
    return wanted;
}
