/* SPDX-License-Identifier: BSD-3-Clause */
/* The agent of a spawned step's srun, and the agent that has started that srun. */
#include "plugins/slurm/agent_parent.h"

#include "common/util/io_all.h"
#include "common/util/log.h"
#include "plugins/slurm/agent_wire.h"
#include "plugins/slurm/spawn_srun.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

/* @param frame freed @param begin of agent_frame_begin() */
static void send_up(int fd, struct wire_out *frame, size_t begin)
{
    agent_frame_end(frame, begin);
    if (frame->failed || !send_all(fd, frame->data, frame->len))
        log_debug("the agent that has started this srun does not listen");
    wire_out_free(frame);
}

int agent_parent_take(const struct slurm_abi_step_id *step)
{
    const char *text = getenv(PLAN_CHANNEL_ENV);
    struct wire_out out = {0};
    int type, domain;
    socklen_t len = sizeof type;
    if (text == NULL || atoi(text) != SPAWN_FD_CHANNEL ||
        getsockopt(SPAWN_FD_CHANNEL, SOL_SOCKET, SO_TYPE, &type, &len) != 0 ||
        getsockopt(SPAWN_FD_CHANNEL, SOL_SOCKET, SO_DOMAIN, &domain, &len) != 0 ||
        type != SOCK_STREAM || domain != AF_UNIX)
        return -1;
    fcntl(SPAWN_FD_CHANNEL, F_SETFD, FD_CLOEXEC);
    dup2(SPAWN_FD_ERRORS, STDERR_FILENO);
    close(SPAWN_FD_ERRORS);
    size_t begin = agent_frame_begin(&out, AGENT_LAUNCHED);
    wire_put_u32(&out, step->job_id);
    wire_put_u32(&out, step->step_id);
    send_up(SPAWN_FD_CHANNEL, &out, begin);
    return SPAWN_FD_CHANNEL;
}

bool agent_parent_tell(int parent, const struct wire_in *body)
{
    struct wire_out out = {0};
    if (parent < 0)
        return false;
    size_t begin = agent_frame_begin(&out, AGENT_STARTED);
    wire_put_raw(&out, body->p, (size_t)(body->end - body->p));
    send_up(parent, &out, begin);
    return true;
}
