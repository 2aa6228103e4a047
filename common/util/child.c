/* SPDX-License-Identifier: BSD-3-Clause */
/* What a process sheds that was forked from a launcher. */
#include "common/util/child.h"

#include <signal.h>
#include <stddef.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

void child_default_signals(void)
{
    struct sigaction action = {.sa_handler = SIG_DFL};
    sigset_t none;
    for (int sig = 1; sig < NSIG; sig++)
        sigaction(sig, &action, NULL);
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
}

void child_close_from(unsigned first)
{
    struct rlimit files = {.rlim_cur = 65536};
#ifdef SYS_close_range
    if (syscall(SYS_close_range, first, ~0U, 0) == 0)
        return;
#endif
    getrlimit(RLIMIT_NOFILE, &files);
    for (rlim_t fd = first; fd < files.rlim_cur; fd++)
        close((int)fd);
}
