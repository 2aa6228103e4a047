/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * Threads: how one begins, and how its end is waited for.
 * @thread any
 */
#pragma once

#include "common/util/clock.h"

#include <dlfcn.h>
#include <link.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>

enum { THREAD_NAP_MS = 10 /* between looks for its end, at most */ };

/** Starts a thread that no signal of the process reaches, because handlers are the launcher's and
 * expect its own threads. Signals by which the thread's own fault is told are not blocked: a server
 * that crashes has last words (server/process/crash.h).
 * @return 0 or an error number */
static inline int thread_start(pthread_t *thread, void *(*run)(void *arg), void *arg)
{
    sigset_t signals, before;
    sigfillset(&signals);
    sigdelset(&signals, SIGSEGV);
    sigdelset(&signals, SIGBUS);
    sigdelset(&signals, SIGFPE);
    sigdelset(&signals, SIGILL);
    pthread_sigmask(SIG_BLOCK, &signals, &before);
    int rc = pthread_create(thread, NULL, run, arg);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return rc;
}

/** Before a thread is left behind: its code is not to be unloaded with the plugin that has it.
 * @return whether that cannot happen any more */
static inline bool thread_stay_loaded(void)
{
    Dl_info info;
    struct link_map *map = NULL;
    if (dladdr1((void *)(uintptr_t)thread_stay_loaded, &info, (void **)&map, RTLD_DL_LINKMAP) == 0)
        return false;
    return map->l_name[0] == '\0' || /* the program itself */
           dlopen(map->l_name, RTLD_LAZY | RTLD_NOLOAD | RTLD_NODELETE) != NULL;
}

/** Joins @p thread if it ends until @p deadline, a value of now_ms(), so by the monotonic clock.
 * pthread_clockjoin_np() does that, too. But ThreadSanitizer does not know that function, and
 * reports what follows it as a race.
 * @return whether it ended */
static inline bool thread_join_until(pthread_t thread, int64_t deadline)
{
    for (int ms = 1; pthread_tryjoin_np(thread, NULL) != 0;
         ms = 2 * ms < THREAD_NAP_MS ? 2 * ms : THREAD_NAP_MS) {
        if (deadline_left(deadline) == 0)
            return false;
        poll(NULL, 0, ms);
    }
    return true;
}
