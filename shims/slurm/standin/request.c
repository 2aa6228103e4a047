/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * The functions of Slurm that ask a slurmd or slurmctld to do something: a request to the socket
 * that SLURM_CONF names, where musterrun plays the slurmd of this node (slurmd.c).
 */
#include "common/util/send_all.h"
#include "shims/slurm/slurm_raw.h"
#include "shims/slurm/standin/slurm_standin.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

enum { TIMEOUT_S = 10 /* Slurm's default MessageTimeout */ };

/* Where requests go. Only read after slurm_init() or in musterrun, so without a lock. */
static struct sockaddr_un slurmd = {.sun_family = AF_UNIX};

void slurm_abi_init(const char *conf)
{
    const char *path = conf ? conf : getenv("SLURM_CONF");

    snprintf(slurmd.sun_path, sizeof(slurmd.sun_path), "%s", path ? path : "");
}

static int connect_slurmd(void)
{
    const struct timeval timeout = {.tv_sec = TIMEOUT_S};
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

    if (fd >= 0 && (setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof(timeout)) < 0 ||
                    setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &timeout, sizeof(timeout)) < 0 ||
                    connect(fd, (struct sockaddr *)&slurmd, sizeof(slurmd)) < 0)) {
        close(fd);
        fd = -1;
    }
    return fd;
}

/* @param more what follows an answer of 0: so many bytes @return 0 or an error number */
static int ask(const struct standin_head *head, const char *name, const char *address,
               const char *data, void *more, size_t len)
{
    int fd = connect_slurmd();
    int32_t answer = STANDIN_CONNECTION_ERROR;
    bool sent;

    if (fd < 0)
        return STANDIN_CONNECTION_ERROR;
    errno = 0;
    sent = send_all(fd, head, sizeof(*head));
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

    return ask(&head, *nodelist, address, data, NULL, 0);
}

int standin_ask_record(uint32_t job, uint32_t step, int64_t *start)
{
    struct standin_head head = {.kind = STANDIN_RECORD, .record = {job, step}};
    int rc = ask(&head, NULL, NULL, NULL, start, sizeof(*start));

    return rc == STANDIN_CONNECTION_ERROR ? SLURM_ABI_INVALID_JOB_ID : rc;
}

int standin_ask_token(uint32_t reader, const void *data, uint32_t len, unsigned char *token)
{
    struct standin_head head = {.kind = STANDIN_TOKEN_NEW, .make = {reader, len}};

    return ask(&head, NULL, NULL, data, token, STANDIN_TOKEN);
}

int standin_ask_credential(const unsigned char *token, uint32_t *uid, void *data, uint32_t *len)
{
    struct standin_head head = {.kind = STANDIN_TOKEN_READ};
    struct standin_credential found;
    int rc;

    memcpy(head.token, token, STANDIN_TOKEN);
    rc = ask(&head, NULL, NULL, NULL, &found, sizeof(found));
    if (rc == 0) {
        *uid = found.uid;
        *len = found.len <= STANDIN_CREDENTIAL_MAX ? found.len : 0;
        memcpy(data, found.data, *len);
    }
    return rc;
}

/* When musterrun's first process is gone, the nodes end the step by themselves. */
static int kill_tasks(uint32_t job, uint32_t step, uint16_t sig)
{
    struct standin_head head = {.kind = STANDIN_KILL, .kill = {job, step, sig}};
    int rc = ask(&head, NULL, NULL, NULL, NULL, 0);

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
