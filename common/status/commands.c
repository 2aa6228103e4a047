/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * Signals come by a descriptor, as what commands say does, so one poll() waits for all.
 *
 * The kernel sends a command its signal when we are killed, but not what the command has started.
 * So another process of ours, the keeper, reads which commands run from a socket, and ends their
 * sessions when the socket ends. One that is to end by another signal than SIGKILL gets some time
 * for it: an srun that is killed leaves its step.
 */
#include "common/status/commands.h"

#include "common/status/lines.h"
#include "common/status/program.h"
#include "common/util/child.h"
#include "common/util/clock.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    GRACE_MS = 3000, /* from SIGTERM to SIGKILL */
    LOOK_MS = 20,    /* between looks whether a session has ended */
    CLOSE_MS = 1000, /* for what has escaped from the session and keeps a pipe open */
    TAG_MAX = 80,
};

struct command {
    char tag[TAG_MAX];
    struct program program;
    struct lines out, errors;
    bool runs, exited;
    bool let_be; /* what it has started has its pipes open, and is not waited for */
};

struct commands {
    struct command *list;
    size_t n;
    int keeper; /* our end of its socket */
    pid_t keeper_pid;
    struct pollfd *fds;
    int signals;      /* signalfd */
    sigset_t before;  /* the signals that were blocked */
    int stopped;      /* the signal that has ended them; 0: none */
    bool late;        /* the first deadline has passed */
    int worst;        /* of the statuses */
    bool well;        /* all have ended by themselves */
    int64_t deadline; /* to be ended at, or killed; 0: they are not to end */
    int sent;         /* the last signal; 0: none */
};

/* What the keeper reads: a command has begun, or is about to be gone, when its number stands for it
 * no more. */
struct kept {
    pid_t pid; /* 0: none */
    int death; /* 0: it is gone */
};

/* The command itself has its signal by now. */
static void end_sessions(struct kept *list, size_t most)
{
    int64_t until = now_ms() + GRACE_MS;
    for (size_t i = 0; i < most; i++) {
        bool there = list[i].pid > 0;
        while (there && list[i].death != SIGKILL && now_ms() < until) {
            poll(NULL, 0, LOOK_MS);
            there = kill(-list[i].pid, 0) == 0;
        }
        if (there)
            kill(-list[i].pid, SIGKILL);
    }
}

/* A process of its own, of which nobody knows: it has none of our descriptors, and no signal comes
 * to it. */
static _Noreturn void keep(int fd, struct kept *list, size_t most)
{
    struct kept kept;
    setsid();
    dup2(fd, STDIN_FILENO);
    child_close_from(STDIN_FILENO + 1);
    while (read(STDIN_FILENO, &kept, sizeof kept) == sizeof kept)
        for (size_t i = 0; i < most; i++)
            if (list[i].pid == (kept.death != 0 ? 0 : kept.pid)) {
                list[i] = kept.death != 0 ? kept : (struct kept){0};
                break;
            }
    end_sessions(list, most);
    _exit(0);
}

/* @return whether there is one */
static bool start_keeper(struct commands *commands, size_t most)
{
    int ends[2];
    struct kept *list = calloc(most + 1, sizeof *list);
    if (list == NULL || socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) {
        free(list);
        return false;
    }
    commands->keeper_pid = fork();
    if (commands->keeper_pid == 0)
        keep(ends[0], list, most);
    free(list);
    close(ends[0]);
    commands->keeper = ends[1];
    return commands->keeper_pid > 0;
}

/* @param death 0: it is gone */
static void tell_keeper(const struct commands *commands, pid_t pid, int death)
{
    const struct kept kept = {pid, death};
    /* a keeper that was killed is not missed: the kernel kills the commands themselves */
    (void)send(commands->keeper, &kept, sizeof kept, MSG_NOSIGNAL);
}

struct commands *commands_new(size_t most)
{
    struct commands *commands = calloc(1, sizeof *commands);
    sigset_t set;
    if (commands == NULL)
        return NULL;
    commands->keeper = -1;
    sigemptyset(&set);
    sigaddset(&set, SIGCHLD);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGHUP);
    sigprocmask(SIG_BLOCK, &set, &commands->before);
    commands->well = true;
    commands->signals = signalfd(-1, &set, SFD_CLOEXEC);
    commands->list = calloc(most + 1, sizeof *commands->list);
    commands->fds = calloc(2 * most + 1, sizeof *commands->fds);
    if (commands->signals >= 0 && commands->list != NULL && commands->fds != NULL &&
        start_keeper(commands, most))
        return commands;
    commands_free(commands);
    return NULL;
}

void commands_free(struct commands *commands)
{
    if (commands->signals >= 0)
        close(commands->signals);
    if (commands->keeper >= 0)
        close(commands->keeper);
    if (commands->keeper_pid > 0)
        waitpid(commands->keeper_pid, NULL, 0);
    sigprocmask(SIG_SETMASK, &commands->before, NULL);
    free(commands->list);
    free(commands->fds);
    free(commands);
}

/* In the new process: it tells of itself, since what it starts may be there before program_start()
 * returns. */
struct start {
    const struct commands *commands;
    int death;
};

static void begins(void *arg, bool does)
{
    const struct start *start = arg;
    tell_keeper(start->commands, getpid(), does ? start->death : 0);
}

int commands_start(struct commands *commands, const struct command_plan *plan)
{
    struct start start = {commands, plan->death};
    struct command *command = &commands->list[commands->n];
    const struct program_plan program = {.argv = plan->argv,
                                         .env = plan->env,
                                         .owner = plan->owner,
                                         .death = plan->death,
                                         .reads_out = true,
                                         .reads_errors = true,
                                         .apart = true,
                                         .no_input = true,
                                         .begins = begins,
                                         .arg = &start,
                                         .memory = plan->memory};
    bool root = geteuid() == 0; /* whose terminal is not the owner's to write to */
    bool taken = plan->take != NULL;
    snprintf(command->tag, sizeof command->tag, "%s", plan->tag != NULL ? plan->tag : "");
    command->out = (struct lines){
        .to = taken ? NULL : stdout, .take = plan->take, .arg = plan->arg, .mask = root && !taken};
    command->errors = (struct lines){.to = stderr, .mask = root || taken};
    if (plan->tag != NULL)
        command->out.tag = command->errors.tag = command->tag;
    if (program_start(&command->program, &program) != 0)
        return -1;
    command->runs = true;
    commands->n++;
    return 0;
}

/* All of a command's session, and itself if it is there. */
static void kill_group(const struct command *command, int sig)
{
    if (command->runs)
        kill(-command->program.pid, sig);
}

/* The command's own process has ended: so does the rest. Its number stays taken until
 * program_end(). */
static void note_exits(struct commands *commands)
{
    for (size_t i = 0; i < commands->n; i++) {
        struct command *command = &commands->list[i];
        siginfo_t info = {0};
        if (!command->runs || command->exited ||
            waitid(P_PID, (id_t)command->program.pid, &info, WEXITED | WNOHANG | WNOWAIT) != 0 ||
            info.si_pid == 0)
            continue;
        command->exited = true;
        kill_group(command, SIGKILL);
    }
}

static void finish(struct commands *commands, struct command *command)
{
    tell_keeper(commands, command->program.pid, 0);
    int status = program_end(&command->program);
    int code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    commands->well &= WIFEXITED(status) && commands->sent == 0;
    commands->worst = code > commands->worst ? code : commands->worst;
    command->runs = false;
}

static void end_all(struct commands *commands, int sig)
{
    commands->deadline = now_ms() + (sig == SIGKILL ? CLOSE_MS : GRACE_MS);
    for (size_t i = 0; i < commands->n; i++)
        if (commands->sent == SIGKILL && commands->list[i].exited)
            commands->list[i].let_be = true;
        else
            kill_group(&commands->list[i], sig);
    commands->sent = sig;
}

static void take_signal(struct commands *commands)
{
    struct signalfd_siginfo info;
    if (read(commands->signals, &info, sizeof info) != sizeof info)
        return;
    if (info.ssi_signo == SIGCHLD)
        note_exits(commands);
    else if (commands->sent == 0) {
        commands->stopped = (int)info.ssi_signo;
        end_all(commands, SIGTERM);
    }
}

/* @return whether all of it was read, and it is gone */
static bool is_over(const struct command *command)
{
    return command->exited &&
           (command->let_be || (command->program.out < 0 && command->program.errors < 0));
}

static void read_all_of(struct command *command, const struct pollfd fds[2])
{
    if (fds[0].revents != 0)
        lines_read(&command->out, &command->program.out);
    if (fds[1].revents != 0)
        lines_read(&command->errors, &command->program.errors);
}

/* @return whether some run */
static bool wait_some(struct commands *commands)
{
    struct pollfd *fds = commands->fds;
    size_t running = 0, last = 2 * commands->n;
    for (size_t i = 0; i < commands->n; i++) {
        const struct command *command = &commands->list[i];
        int out = command->program.out, errors = command->program.errors;
        running += command->runs;
        fds[2 * i] = (struct pollfd){.fd = command->runs ? out : -1, .events = POLLIN};
        fds[2 * i + 1] = (struct pollfd){.fd = command->runs ? errors : -1, .events = POLLIN};
    }
    fds[last] = (struct pollfd){.fd = commands->signals, .events = POLLIN};
    if (running == 0)
        return false;
    int left = commands->deadline == 0 ? -1 : deadline_left(commands->deadline);
    int rc = poll(fds, last + 1, left);
    for (size_t i = 0; i < commands->n && rc > 0; i++)
        read_all_of(&commands->list[i], fds + 2 * i);
    if (rc > 0 && fds[last].revents != 0)
        take_signal(commands);
    if (commands->deadline != 0 && now_ms() >= commands->deadline) {
        commands->late |= commands->sent == 0;
        end_all(commands, commands->sent == 0 ? SIGTERM : SIGKILL);
    }
    for (size_t i = 0; i < commands->n; i++)
        if (commands->list[i].runs && is_over(&commands->list[i]))
            finish(commands, &commands->list[i]);
    return true;
}

int commands_run(struct commands *commands)
{
    note_exits(commands);
    while (wait_some(commands))
        ;
    return commands->worst;
}

bool commands_were_well(const struct commands *commands)
{
    return commands->well;
}

int commands_reach(const struct reach *reach, const struct command_plan *how, int ms,
                   struct err *err)
{
    struct commands *commands = commands_new(reach->n);
    if (commands == NULL)
        return err_set(err, "out of memory");
    commands->deadline = ms > 0 ? now_ms() + ms : 0;
    for (size_t i = 0; i < reach->n && err->text[0] == '\0'; i++) {
        struct command_plan plan = *how;
        plan.argv = reach->lines[i].argv;
        plan.env = reach->lines[i].env;
        plan.owner = reach->owner;
        plan.death = reach->death;
        if (commands_start(commands, &plan) != 0)
            err_set(err, "cannot start %s: %s", plan.argv[0], strerror(errno));
    }
    if (err->text[0] != '\0')
        end_all(commands, SIGTERM);
    int status = commands_run(commands), stopped = commands->stopped;
    if (commands->late)
        status = COMMANDS_LATE;
    commands_free(commands);
    if (stopped != 0 && how->take != NULL)
        raise(stopped);
    return err->text[0] == '\0' ? status : -1;
}
