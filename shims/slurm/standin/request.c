/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * The functions of Slurm that ask a slurmd or slurmctld to do something: a request to the socket
 * that SLURM_CONF names, where musterrun plays the slurmd of this node (slurmd.c).
 */
#include "common/util/io_all.h"
#include "common/util/local.h"
#include "shims/slurm/slurm_raw.h"
#include "shims/slurm/standin/slurm_standin.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

enum {
    TIMEOUT_S = 10,    /* Slurm's default MessageTimeout */
    RUN_TIMEOUT_S = 2, /* of another run, which may be stopped */
};

/* Where requests go. Only read after slurm_init() or in musterrun, so without a lock. */
static struct sockaddr_un slurmd = {.sun_family = AF_UNIX};

void slurm_abi_init(const char *conf)
{
    const char *path = conf ? conf : getenv("SLURM_CONF");
    snprintf(slurmd.sun_path, sizeof(slurmd.sun_path), "%s", path ? path : "");
}

static bool is_ours(int fd)
{
    return local_peer(fd) == geteuid();
}

/* @param other path of another run's socket, or NULL */
static int connect_slurmd(const char *other)
{
    const struct timeval timeout = {.tv_sec = other ? RUN_TIMEOUT_S : TIMEOUT_S};
    struct sockaddr_un addr = slurmd;
    if (other &&
        snprintf(addr.sun_path, sizeof(addr.sun_path), "%s", other) >= (int)sizeof(addr.sun_path))
        return -1;
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd >= 0 &&
        (setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof(timeout)) < 0 ||
         setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &timeout, sizeof(timeout)) < 0 ||
         connect(fd, (struct sockaddr *)&addr, sizeof(addr)) < 0 || (other && !is_ours(fd)))) {
        close(fd);
        fd = -1;
    }
    return fd;
}

/* @param other as above @param more what follows an answer of 0: so many bytes @return 0 or an
 * error number */
static int ask(const char *other, const struct standin_head *head, const char *name,
               const char *address, const char *data, void *more, size_t len)
{
    int fd = connect_slurmd(other);
    int32_t answer = STANDIN_CONNECTION_ERROR;
    if (fd < 0)
        return STANDIN_CONNECTION_ERROR;
    errno = 0;
    bool sent = send_all(fd, head, sizeof(*head));
    if (sent && head->kind == STANDIN_FORWARD)
        sent = send_all(fd, name, head->forward.name_len) &&
               send_all(fd, address, head->forward.address_len) &&
               send_all(fd, data, head->forward.data_len);
    if (sent && head->kind == STANDIN_TOKEN_NEW)
        sent = send_all(fd, data, head->make.len);
    if (!sent || recv(fd, &answer, sizeof(answer), MSG_WAITALL) != sizeof(answer) ||
        (answer == 0 && len > 0 && recv(fd, more, len, MSG_WAITALL) != (ssize_t)len))
        answer = errno == EAGAIN ? ETIMEDOUT : STANDIN_CONNECTION_ERROR;
    close(fd);
    return answer;
}

int slurm_abi_forward_data(char **nodelist, char *address, uint32_t len, const char *data)
{
    struct standin_head head = {
        .kind = STANDIN_FORWARD,
        .forward = {(uint32_t)strlen(*nodelist), (uint32_t)strlen(address), len}};

    return ask(NULL, &head, *nodelist, address, data, NULL, 0);
}

int standin_ask_record(uint32_t job, uint32_t step, int64_t times[2])
{
    struct standin_head head = {.kind = STANDIN_RECORD, .record = {job, step}};
    int rc = ask(NULL, &head, NULL, NULL, NULL, times, 2 * sizeof(*times));
    return rc == STANDIN_CONNECTION_ERROR ? SLURM_ABI_INVALID_JOB_ID : rc;
}

int standin_ask_steps(const char *other, char **text)
{
    const struct standin_head head = {.kind = other ? STANDIN_RUN_STEPS : STANDIN_STEPS};
    int32_t len = 0;
    int fd = connect_slurmd(other), rc = STANDIN_CONNECTION_ERROR;
    *text = NULL;
    if (fd < 0)
        return rc;
    if (send_all(fd, &head, sizeof(head)) &&
        recv(fd, &len, sizeof(len), MSG_WAITALL) == sizeof(len) && len > 0 &&
        (*text = calloc(1, (size_t)len + 1)) != NULL &&
        recv(fd, *text, (size_t)len, MSG_WAITALL) == (ssize_t)len)
        rc = 0;
    close(fd);
    if (rc != 0) {
        free(*text);
        *text = NULL;
    }
    return rc;
}

int standin_ask_token(uint32_t reader, const void *data, uint32_t len, unsigned char *token)
{
    struct standin_head head = {.kind = STANDIN_TOKEN_NEW, .make = {reader, len}};
    return ask(NULL, &head, NULL, NULL, data, token, STANDIN_TOKEN);
}

int standin_ask_credential(const unsigned char *token, uint32_t *uid, void *data, uint32_t *len)
{
    struct standin_head head = {.kind = STANDIN_TOKEN_READ};
    struct standin_credential found;
    memcpy(head.read.token, token, STANDIN_TOKEN);
    int rc = ask(NULL, &head, NULL, NULL, NULL, &found, sizeof(found));
    if (rc == 0) {
        *uid = found.uid;
        *len = found.len <= STANDIN_CREDENTIAL_MAX ? found.len : 0;
        memcpy(data, found.data, *len);
    }
    return rc;
}

int standin_ask_run_credential(const char *other, uint32_t node, const unsigned char *token,
                               struct standin_credential *found)
{
    struct standin_head head = {.kind = STANDIN_RUN_TOKEN, .read.node = node};
    memcpy(head.read.token, token, STANDIN_TOKEN);
    return ask(other, &head, NULL, NULL, NULL, found, sizeof(*found));
}

/* When musterrun's first process is gone, the nodes end the step by themselves. */
static int kill_tasks(uint32_t job, uint32_t step, uint16_t sig)
{
    struct standin_head head = {.kind = STANDIN_KILL, .kill = {job, step, sig}};
    int rc = ask(NULL, &head, NULL, NULL, NULL, NULL, 0);
    if (rc == 0)
        return SLURM_ABI_SUCCESS;
    errno = rc == STANDIN_CONNECTION_ERROR ? SLURM_ABI_ALREADY_DONE : rc;
    return SLURM_ABI_ERROR;
}

int slurm_raw_kill(struct slurm_raw_step_id *id, uint16_t sig, uint16_t flags)
{
    (void)flags;
    return kill_tasks(id->job_id, id->step_id, sig);
}
