/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * Watches the server and the tasks while the step runs.
 *
 * One thread, woken by what happens and, but for a moment in task_end_of() and to ask the server
 * whether it still answers (silence.h), by nothing else:
 *
 *     eventfd         watch_stop()
 *     control socket  end of file: the server is dead; writable: what it has not taken yet; a byte:
 *                     it knows all tasks' processes, and where they are bound
 *     relay           the server's standard error
 *     task pipe       a task says its pid, from the hook that runs in it before it execs; the first
 *                     one also where it is, for slurmstepd has gone there to fork
 *     pidfds          a task ended
 *     doors           a task asks for PMIx, and no server serves it (door.h); not looked at before
 *                     a task was sent there
 *     herald          srun's agent has taken a line for the user, or has not (herald.h); the watch
 *                     does not end the step before that
 *
 * A program that never calls PMIx runs on without a server:
 *
 *     SERVES     --the server has died, and no task has used it-->  STANDS_IN
 *     STANDS_IN  no server was started, or it has died; a door stands in its place
 *     either one --a task knocks at a door, a task is refused, or the server that tasks have used
 *                  dies-->  ENDS: slurmctld is asked, as soon as there is a task
 *
 * slurmstepd changes the effective uid of all its threads while it launches tasks, so this thread
 * may be the user for a while. The killer (killer.h), which asks slurmctld with root's rights,
 * tries again then.
 */
#include "plugins/slurm/watch.h"

#include "common/launch/boot.h"
#include "common/util/clock.h"
#include "common/util/log.h"
#include "common/util/thread.h"
#include "plugins/slurm/killer.h"
#include "plugins/slurm/notes.h"
#include "plugins/slurm/task_end.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <unistd.h>

enum {
    POLL_STOP,
    POLL_CONTROL,
    POLL_RELAY,
    POLL_TASKS,
    POLL_DOOR,
    POLL_PLACE,
    POLL_HERALD,
    POLL_FIRST_TASK, /* from here on a pidfd each */
};

enum {
    SAY_MS = 1000, /* from one look whether the herald is done to the next, before the step ends */
    KILL_S = 6,    /* for the killer to have slurmctld's answer, once the last task has ended */
};

enum watch_state {
    SERVES,
    STANDS_IN,
    ENDS,
};

static const char *const state_names[] = {
    [SERVES] = "a server serves",
    [STANDS_IN] = "runs without a server",
    [ENDS] = "ends",
};

struct watch {
    struct watched of;
    const struct facts *facts; /* of.facts */
    struct launch *launch;     /* of.launch */
    struct door place;         /* at the port of a server that has died */
    uid_t guest; /* the job's user, as far as is known: facts may have failed before */
    enum watch_state state;
    pthread_t thread;
    int stop; /* eventfd */
    struct notes notes;
    uint32_t ntasks; /* on this node */
    bool *noted;     /* by slot: its note came */
    uint32_t *slots; /* by poll index less POLL_FIRST_TASK */
    struct pollfd *fds;
    nfds_t nfds;
    bool any;              /* a task was noted */
    int64_t ask_at;        /* when the server is asked whether it still answers, of now_ms() */
    struct killer *killer; /* in ENDS, once a task was noted */
};

/* Without a server the layout may be unknown too, and any one note is enough. */
static uint32_t local_tasks(const struct facts *facts, const struct launch *launch)
{
    return launch ? boot_here(&facts->boot)->ntasks : 1;
}

static void report_end(struct watch *watch, uint32_t slot, uint32_t sig, uint32_t code)
{
    log_debug("task slot %u of %s ended on node %s: signal %u, exit code %d", slot,
              watch->facts->boot.label, watch->facts->node, sig, (int)code);
    launch_tell(watch->launch, slot, sig, code);
}

static void task_ended(struct watch *watch, uint32_t slot, int pidfd)
{
    struct task_end end = task_end_of(pidfd);
    report_end(watch, slot, end.sig, end.code);
    close(pidfd);
}

static void task_started(struct watch *watch, const struct task_note *note)
{
    int pidfd = -1;
    if (note->slot >= watch->ntasks || watch->noted[note->slot] || note->pid <= 0)
        return;
    watch->noted[note->slot] = true;
    if (note->text[0] == '/')
        launch_tell_text(watch->launch, BOOT_WDIR, note->text);
    launch_tell(watch->launch, note->slot | BOOT_TASK_STARTED, (uint32_t)note->pid, BOOT_PID_OWN);
    errno = ENOSYS;
#ifdef SYS_pidfd_open
    pidfd = (int)syscall(SYS_pidfd_open, note->pid, 0);
#endif
    if (pidfd >= 0) {
        fcntl(pidfd, F_SETFD, FD_CLOEXEC);
        watch->slots[watch->nfds - POLL_FIRST_TASK] = note->slot;
        watch->fds[watch->nfds++] = (struct pollfd){pidfd, POLLIN, 0};
    } else if (errno == ESRCH) {
        report_end(watch, note->slot, 0, BOOT_CODE_UNKNOWN);
    } else {
        /* Without it the server still sees its client's connection close. */
        log_debug("cannot watch task slot %u of %s: %s", note->slot, watch->facts->boot.label,
                  strerror(errno));
    }
}

/* Not before there is a task: until then what is logged does not reach the user. And not before
 * srun's agent has heard why: then srun may be gone. */
static void end_step(struct watch *watch)
{
    if (watch->state == ENDS && watch->any && !watch->killer && herald_is_idle(watch->of.herald))
        watch->killer =
            killer_start(watch->facts, watch->fds + POLL_FIRST_TASK, watch->nfds - POLL_FIRST_TASK);
}

static void move(struct watch *watch, enum watch_state state)
{
    if (state != watch->state)
        log_debug("the step on this node: %s, then %s", state_names[watch->state],
                  state_names[state]);
    watch->state = state;
    end_step(watch);
}

static void has_task(struct watch *watch)
{
    if (!watch->any && watch->of.herald)
        herald_has_task(watch->of.herald);
    watch->any = true;
}

/* Whatever connects to the door before a task was sent there is no task: the user may look for a
 * free port. */
static void task_unserved(struct watch *watch, const struct task_note *note)
{
    watch->guest = note->uid;
    if (watch->state != ENDS)
        watch->fds[POLL_DOOR].fd = watch->of.door->fd;
}

static void take_note(struct watch *watch, const struct task_note *note)
{
    has_task(watch);
    if (note->slot != SLOT_REFUSED && note->slot != SLOT_UNSERVED) {
        if (watch->launch)
            task_started(watch, note);
        return;
    }
    if (note->text[0] != '\0')
        log_cause("%s", note->text);
    if (note->slot == SLOT_REFUSED)
        move(watch, ENDS);
    else
        task_unserved(watch, note);
}

static void read_notes(struct watch *watch)
{
    struct task_note note;
    while (notes_read(&watch->notes, &note)) {
        take_note(watch, &note);
        end_step(watch);
    }
}

/* Opens a door at the port of a server that has died, and that no task had used. A task that
 * connected before has told the server so, and the server us. A task that connects before the door
 * is open is refused, and its libpmix tries again. */
static bool take_its_place(struct watch *watch)
{
    uint16_t port = watch->of.env->nslots > 0 ? door_port_of(watch->of.env->strings[0]) : 0;
    struct err err = {0};
    if (port != 0 && door_open(&watch->place, port, &err) == 0) {
        watch->fds[POLL_PLACE].fd = watch->place.fd;
        return true;
    }
    log_debug("nothing can stand in for the server at port %u: %s", port, err.text);
    return false;
}

static void say_death(const struct watch *watch, char *buf, size_t cap)
{
    snprintf(buf, cap, "muster-server of step %s died on node %s%s", watch->facts->boot.label,
             watch->facts->node, watch->launch->death);
}

static void server_died(struct watch *watch)
{
    char died[sizeof(watch->launch->death) + 256];
    watch->fds[POLL_CONTROL].fd = -1;
    notes_release(&watch->notes, watch->ntasks);
    listener_close(watch->of.listener);
    if (watch->state != SERVES)
        return;
    say_death(watch, died, sizeof(died));
    if (!watch->launch->used && take_its_place(watch)) {
        log_cause("%s: its tasks run on, since none has used PMIx; the step ends when one does",
                  died);
        move(watch, STANDS_IN);
        return;
    }
    log_cause("%s: ending the step, since its tasks would wait for it for ever", died);
    move(watch, ENDS);
}

static void look_at_door(struct watch *watch, int at, struct door *door)
{
    const struct err *told =
        watch->of.why; /* the user has read it, and that the step will end: mpi_muster.c */
    char died[sizeof(watch->launch->death) + 256] = "";
    if (watch->fds[at].revents == 0)
        return;
    read_notes(watch); /* that of the task that knocks is there */
    if (!door_knocked(door, watch->guest))
        return;
    watch->fds[at].fd = -1; /* other tasks that knock wait until they are killed */
    if (watch->state == STANDS_IN && !told)
        say_death(watch, died, sizeof(died));
    log_write(told && told->alike ? LOG_LEVEL_INFO : LOG_LEVEL_CAUSE,
              "a task on node %s asks for PMIx, and cannot have it: ending the step%s%s",
              watch->facts->node, died[0] != '\0' ? ": " : "", died);
    has_task(watch);
    move(watch, ENDS);
}

static void control_ready(struct watch *watch)
{
    switch (launch_attend(watch->launch)) {
    case LAUNCH_SERVES:
        return;
    case LAUNCH_BOUND:
        notes_release(&watch->notes, watch->ntasks);
        return;
    case LAUNCH_DIED:
        server_died(watch);
        return;
    }
}

static void tasks_ready(struct watch *watch)
{
    for (nfds_t i = POLL_FIRST_TASK; i < watch->nfds;) {
        if (watch->fds[i].revents == 0) {
            i++;
            continue;
        }
        task_ended(watch, watch->slots[i - POLL_FIRST_TASK], watch->fds[i].fd);
        /* the last one takes its place */
        watch->nfds--;
        watch->fds[i] = watch->fds[watch->nfds];
        watch->slots[i - POLL_FIRST_TASK] = watch->slots[watch->nfds - POLL_FIRST_TASK];
    }
}

/* Asks the server if it is time to. @return milliseconds until it is time again; -1: never */
static int ask(struct watch *watch)
{
    if (watch->fds[POLL_CONTROL].fd < 0)
        return -1;
    if (deadline_left(watch->ask_at) == 0) {
        launch_ask(watch->launch);
        watch->ask_at = now_ms() + SILENCE_ASK_S * 1000;
    }
    return deadline_left(watch->ask_at);
}

/* Its descriptor is made unreadable by the question. */
static void hear_herald(struct watch *watch)
{
    herald_is_idle(watch->of.herald);
    end_step(watch);
}

/* The thread. */
static void *run(void *arg)
{
    struct watch *watch = arg;
    struct pollfd *fds = watch->fds;
    for (;;) {
        bool says = watch->state == ENDS && watch->any && !watch->killer;
        int wait_ms = shorter(ask(watch), says ? SAY_MS : -1);
        fds[POLL_RELAY].fd = watch->launch ? watch->launch->relay.fd : -1;
        if (fds[POLL_CONTROL].fd >= 0)
            fds[POLL_CONTROL].events = launch_flush(watch->launch) ? POLLIN | POLLOUT : POLLIN;
        if (poll(fds, watch->nfds, wait_ms) < 0)
            continue;
        if (fds[POLL_STOP].revents)
            return NULL;
        /* ends before notes: these append to the array */
        tasks_ready(watch);
        if (fds[POLL_TASKS].revents)
            read_notes(watch);
        look_at_door(watch, POLL_DOOR, watch->of.door);
        look_at_door(watch, POLL_PLACE, &watch->place);
        if (fds[POLL_HERALD].revents || says)
            hear_herald(watch);
        if (fds[POLL_RELAY].revents)
            relay_read(&watch->launch->relay);
        if (fds[POLL_CONTROL].revents && fds[POLL_CONTROL].fd >= 0)
            control_ready(watch);
    }
}

static void watch_free(struct watch *watch)
{
    for (nfds_t i = POLL_FIRST_TASK; watch->fds && i < watch->nfds; i++)
        close(watch->fds[i].fd);
    notes_close(&watch->notes);
    if (watch->stop >= 0)
        close(watch->stop);
    door_close(&watch->place);
    free(watch->noted);
    free(watch->slots);
    free(watch->fds);
    free(watch);
}

static int prepare(struct watch *watch)
{
    size_t n = watch->ntasks;
    watch->stop = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (watch->stop < 0 || notes_open(&watch->notes, watch->facts->node) < 0)
        return -1;
    watch->noted = calloc(n + 1, sizeof(*watch->noted));
    watch->slots = calloc(n + 1, sizeof(*watch->slots));
    watch->fds = calloc(n + POLL_FIRST_TASK, sizeof(*watch->fds));
    if (!watch->noted || !watch->slots || !watch->fds)
        return -1;
    watch->nfds = POLL_FIRST_TASK;
    watch->fds[POLL_STOP] = (struct pollfd){watch->stop, POLLIN, 0};
    watch->fds[POLL_CONTROL] =
        (struct pollfd){watch->launch ? watch->launch->control : -1, POLLIN, 0};
    watch->fds[POLL_RELAY] = (struct pollfd){-1, POLLIN, 0};
    watch->fds[POLL_TASKS] = (struct pollfd){watch->notes.pipe[0], POLLIN, 0};
    watch->fds[POLL_DOOR] = (struct pollfd){-1, POLLIN, 0};
    watch->fds[POLL_PLACE] = (struct pollfd){-1, POLLIN, 0};
    watch->fds[POLL_HERALD] = (struct pollfd){herald_fd(watch->of.herald), POLLIN, 0};
    return 0;
}

struct watch *watch_start(const struct watched *of, struct err *err)
{
    struct watch *watch = calloc(1, sizeof(*watch));
    if (!watch) {
        err_set(err, "out of memory");
        return NULL;
    }
    *watch = (struct watch){.of = *of,
                            .facts = of->facts,
                            .guest = of->facts->user.uid,
                            .launch = of->launch,
                            .place = DOOR_NONE,
                            .state = of->launch ? SERVES : STANDS_IN,
                            .stop = -1,
                            .notes = NOTES_NONE,
                            .ask_at = now_ms() + SILENCE_ASK_S * 1000,
                            .ntasks = local_tasks(of->facts, of->launch)};
    if (prepare(watch) < 0) {
        err_set(err, "cannot watch the step on node %s: %s", of->facts->node, strerror(errno));
        watch_free(watch);
        return NULL;
    }
    int rc = thread_start(&watch->thread, run, watch);
    if (rc != 0) {
        err_set(err, "cannot start a thread on node %s: %s", of->facts->node, strerror(rc));
        watch_free(watch);
        return NULL;
    }
    return watch;
}

const struct notes *watch_notes(const struct watch *watch)
{
    return &watch->notes;
}

/* slurmstepd reaps the last task and comes here at once. The thread may not have looked since then:
 * the server has to hear of each task's end before it is told to leave. */
static void take_last_ends(struct watch *watch)
{
    read_notes(watch);
    if (watch->launch && poll(watch->fds, watch->nfds, 0) > 0)
        tasks_ready(watch);
}

void watch_stop(struct watch *watch)
{
    uint64_t one = 1;
    if (!watch)
        return;
    if (write(watch->stop, &one, sizeof(one)) < 0)
        log_debug("eventfd: %s", strerror(errno));
    pthread_join(watch->thread, NULL); /* it waits for nothing else for long */
    take_last_ends(watch);
    if (watch->launch && !launch_end(watch->launch) && watch->state == SERVES &&
        watch->launch->used)
        server_died(watch);
    herald_wait(watch->of.herald);
    end_step(watch);
    killer_stop(watch->killer, KILL_S);
    watch_free(watch);
}
