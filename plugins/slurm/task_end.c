/* SPDX-License-Identifier: BSD-3-Clause */
/* How a task ended: by waitid(), or, when slurmstepd has been faster, by what the kernel remembers.
 */
#include "plugins/slurm/task_end.h"

#include "common/launch/boot.h"
#include "common/launch/death.h"

#include <errno.h>
#include <poll.h>
#include <sys/wait.h>

#ifndef P_PIDFD
#define P_PIDFD 3
#endif

enum { REAP_MS = 100 /* for the kernel to have done with a process */ };

static struct task_end exited(int code)
{
    return (struct task_end){.code = (uint32_t)code};
}

static struct task_end killed(int sig)
{
    return (struct task_end){.sig = (uint32_t)sig};
}

/* The end of a task that slurmstepd has reaped already, or is reaping. Between the moment when
 * waitid() no longer knows the task and the kernel's record of its end some time passes; POLLHUP
 * marks the end of that time. */
static struct task_end reaped(int pidfd, bool reaping)
{
    struct pollfd reap = {pidfd, 0, 0};
    int status;
    if (!death_status(pidfd, &status) &&
        (!reaping || errno != ESRCH || poll(&reap, 1, REAP_MS) != 1 ||
         !death_status(pidfd, &status)))
        return (struct task_end){.code = BOOT_CODE_UNKNOWN};
    return WIFSIGNALED(status) ? killed(WTERMSIG(status)) : exited(WEXITSTATUS(status));
}

struct task_end task_end_of(int pidfd)
{
    siginfo_t info = {0};
    int rc = waitid((idtype_t)P_PIDFD, (id_t)pidfd, &info, WEXITED | WNOWAIT | WNOHANG);
    if (rc < 0 || info.si_pid == 0)
        return reaped(pidfd, rc < 0 && errno == ECHILD);
    return info.si_code == CLD_EXITED ? exited(info.si_status) : killed(info.si_status);
}
