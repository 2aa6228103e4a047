/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * Looks several times after a tool was killed: what it had started may live a little longer, and a
 * process that it holds is stopped only when its debugger has ended.
 */
#include "common/server/status/guard.h"

#include "common/server/server.h"
#include "common/util/log.h"
#include "common/util/proctab.h"

#include <signal.h>
#include <stdlib.h>
#include <sys/queue.h>

enum {
    GUARDS_MAX = 6,   /* at a time: fewer than connections, so that muster-status can still ask */
    LOOKS = 25,       /* after a tool was killed */
    LOOKS_SURE = 5,   /* of these: more only while a debugger holds a process */
    LOOK_MS = 200,    /* between two */
    STOPPED_MAX = 256 /* that a guard remembers; of more it lets all be */
};

struct guard {
    TAILQ_ENTRY(guard) entry;
    struct guards *guards;
    pid_t stopped[STOPPED_MAX]; /* before the tool came */
    size_t nstopped;
    unsigned looks; /* that are left */
    struct timer look;
};

struct guards {
    struct server *server;
    TAILQ_HEAD(, guard) open;
    unsigned n;
};

static void forget(struct guard *guard)
{
    TAILQ_REMOVE(&guard->guards->open, guard, entry);
    guard->guards->n--;
    timer_stop(&guard->look);
    free(guard);
}

/* One that is paused (tasks/signals.h) is stopped by others, and stays that. */
static bool is_a_tasks(const struct server *server, const struct proctab *tab, pid_t pid)
{
    const struct boot_node *here = boot_here(&server->boot);
    for (uint32_t k = 0; k < here->ntasks; k++) {
        const struct task *task = &server->tasks[k];
        if (!task_has_ended(task) && task->pid > 0 && proctab_is_below(tab, pid, task->pid))
            return !procset_has(&server->paused, server->boot.nspace, here->ranks[k]);
    }
    return false;
}

static bool was_stopped(const struct guard *guard, pid_t pid)
{
    for (size_t i = 0; i < guard->nstopped; i++)
        if (guard->stopped[i] == pid)
            return true;
    return false;
}

static void go_on(const struct guard *guard, pid_t pid)
{
    if (was_stopped(guard, pid) || kill(pid, SIGCONT) != 0)
        return;
    log_warning("process %d was left stopped by a tool that was killed, and goes on", (int)pid);
}

/* Calls @p take for each process of a task that is stopped.
 * @return whether a debugger holds one */
static bool each_stopped(struct guard *guard, void (*take)(struct guard *guard, pid_t pid))
{
    struct proctab tab;
    bool held = false;
    if (proctab_read(&tab) != 0)
        return true;
    for (size_t i = 0; i < tab.n; i++) {
        char state = tab.v[i].state;
        if ((state != 'T' && state != 't') ||
            !is_a_tasks(guard->guards->server, &tab, tab.v[i].pid))
            continue;
        held |= state == 't';
        if (state == 'T')
            take(guard, tab.v[i].pid);
    }
    proctab_free(&tab);
    return held;
}

static void take_stopped(struct guard *guard, pid_t pid)
{
    if (guard->nstopped < STOPPED_MAX)
        guard->stopped[guard->nstopped++] = pid;
}

static void take_left(struct guard *guard, pid_t pid)
{
    go_on(guard, pid);
}

static void on_look(void *arg, struct timer *timer)
{
    struct guard *guard = arg;
    bool held = each_stopped(guard, take_left);
    if (--guard->looks == 0 || (guard->looks <= LOOKS - LOOKS_SURE && !held))
        forget(guard);
    else
        timer_after(timer, LOOK_MS);
}

struct guards *guards_open(struct server *server)
{
    struct guards *guards = calloc(1, sizeof *guards);
    guards->server = server;
    TAILQ_INIT(&guards->open);
    return guards;
}

void guards_close(struct guards *guards)
{
    struct guard *guard;
    while (guards != NULL && (guard = TAILQ_FIRST(&guards->open)) != NULL) {
        each_stopped(guard, take_left);
        forget(guard);
    }
    free(guards);
}

struct guard *guard_begin(struct guards *guards)
{
    if (guards->n >= GUARDS_MAX)
        return NULL;
    struct guard *guard = calloc(1, sizeof *guard);
    guard->guards = guards;
    guard->looks = LOOKS;
    guards->n++;
    TAILQ_INSERT_TAIL(&guards->open, guard, entry);
    timer_init(&guard->look, &guards->server->timers, on_look, guard);
    each_stopped(guard, take_stopped);
    return guard;
}

void guard_end(struct guard *guard, bool well)
{
    if (well)
        forget(guard);
    else
        timer_after(&guard->look, 1);
}
