/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * How a process ended that is no child of ours, and why a server may have died.
 *
 * A server that dies tells by itself what it can: its own errors, and the signal that it crashed
 * by. This file puts together what only other processes can see, soon after the death.
 */
#include "common/launch/death.h"

#include "common/launch/launch.h"
#include "common/launch/scratch.h"
#include "common/util/clock.h"
#include "common/util/log.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/wait.h>

/* PIDFD_GET_INFO of Linux 6.15, which headers of today mostly lack. */
struct pidfd_exit {
    uint64_t mask;
    uint64_t cgroupid;
    uint32_t ids[11];
    int32_t status; /* as of wait(2) */
};
#define PIDFD_EXIT_GET _IOWR(0xff, 11, struct pidfd_exit)
#define PIDFD_EXIT_MASK (UINT64_C(1) << 3)

#ifndef P_PIDFD
#define P_PIDFD 3
#endif

enum {
    END_MS = 100,   /* for the kernel to have done with a process */
    WORDS_MS = 2000 /* what a library wrote so shortly before has to do with the end */
};

bool death_status(int pidfd, int *status)
{
    struct pidfd_exit info = {.mask = PIDFD_EXIT_MASK};
    if (ioctl(pidfd, PIDFD_EXIT_GET, &info) < 0)
        return false;
    *status = info.status;
    errno = ESRCH;
    return (info.mask & PIDFD_EXIT_MASK) != 0;
}

int64_t death_oom_kills(void)
{
    FILE *in = fopen("/proc/vmstat", "re");
    char key[64];
    int64_t value, found = -1;
    while (in && found < 0 && fscanf(in, "%63s %" SCNd64, key, &value) == 2) {
        if (strcmp(key, "oom_kill") == 0)
            found = value;
    }
    if (in)
        fclose(in);
    return found;
}

/* Appends a part, with what joins it to the one before. */
static void __attribute__((format(printf, 3, 4)))
append(char *buf, size_t cap, const char *fmt, ...)
{
    size_t used = strlen(buf);
    va_list ap;
    snprintf(buf + used, cap - used, "%s", used > 0 ? "; " : " (");
    used = strlen(buf);
    va_start(ap, fmt);
    vsnprintf(buf + used, cap - used, fmt, ap);
    va_end(ap);
}

/* @return whether it is known how the server ended. It may be our child after all, where we are
 * given what others leave (PR_SET_CHILD_SUBREAPER). Else its parent has to reap it first, which
 * POLLHUP tells. */
static bool find_status(int pidfd, int *sig, int *code)
{
    struct pollfd reaped = {pidfd, 0, 0};
    siginfo_t info = {0};
    int status;
    if (waitid((idtype_t)P_PIDFD, (id_t)pidfd, &info, WEXITED | WNOWAIT | WNOHANG) == 0 &&
        info.si_pid != 0) {
        *sig = info.si_code == CLD_EXITED ? 0 : info.si_status;
        *code = info.si_code == CLD_EXITED ? info.si_status : 0;
        return true;
    }
    if (!death_status(pidfd, &status) &&
        (errno != ESRCH || poll(&reaped, 1, END_MS) != 1 || !death_status(pidfd, &status)))
        return false;
    *sig = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
    *code = WIFEXITED(status) ? WEXITSTATUS(status) : 0;
    return true;
}

static void append_status(const struct launch *launch, char *buf, size_t cap)
{
    int sig, code;
    if (launch->pidfd < 0 || !find_status(launch->pidfd, &sig, &code))
        return;
    if (sig != 0 && !launch->forced)
        append(buf, cap, "it was ended by signal %d, %s", sig, strsignal(sig));
    else if (sig == 0)
        append(buf, cap, "its exit status is %d", code);
}

void launch_death(const struct launch *launch, char *buf, size_t cap)
{
    const struct relay *relay = &launch->relay;
    int64_t kills = death_oom_kills();
    char room[256] = "";
    buf[0] = '\0';
    append_status(launch, buf, cap);
    if (launch->scratch && scratch_lacks_room(launch->scratch, room, sizeof(room)))
        append(buf, cap, "%s", room);
    if (launch->oom_kills >= 0 && kills > launch->oom_kills)
        append(buf, cap,
               "memory was used up: the kernel has killed %" PRId64
               " processes of this node since the %s began, see its log",
               kills - launch->oom_kills, log_unit());
    if (relay->last_error[0] == '\0' && relay->last_words[0] != '\0' &&
        now_ms() - relay->said < WORDS_MS)
        append(buf, cap, "its last words were: %s", relay->last_words);
    if (buf[0] != '\0' && strlen(buf) + 1 < cap)
        strcat(buf, ")");
}
