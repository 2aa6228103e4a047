/* SPDX-License-Identifier: BSD-3-Clause */
/* session: starts the steps of one session, waits for all, and ends with the highest status. */
#include "ci/session/session.h"
#include "common/util/clock.h"
#include "common/util/empty_dir.h"

#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { POLL_MS = 20, LEAVE_MS = 15000 };

static void usage(int status)
{
    fprintf(
        status ? stderr : stdout,
        "usage: session SERVER NODES:TASKS PROGRAM [ARG]... [+ NODES:TASKS PROGRAM [ARG]...]...\n"
        "\n"
        "Starts the steps of one session on this machine, each with so many servers, which\n"
        "load rm_session.so, and tasks, placed cyclically. Ends with the highest status of a\n"
        "task; 128 and the signal; 100: a server has died; 99: something did not start.\n");
    exit(status);
}

/* Takes the steps out of the arguments, which it cuts at each "+". */
static void read_steps(struct session *session, char **argv)
{
    while (*argv != NULL) {
        unsigned nnodes, ntasks;
        struct step *steps = realloc(session->steps, (session->nsteps + 1) * sizeof *steps);
        if (steps == NULL || sscanf(argv[0], "%u:%u", &nnodes, &ntasks) != 2 || nnodes == 0 ||
            ntasks == 0 || nnodes > 99 || ntasks > 999 || argv[1] == NULL)
            usage(2);
        session->steps = steps;
        struct step *step = &steps[session->nsteps];
        *step = (struct step){.argv = argv + 1};
        if (!step_describe(session, step, session->nsteps++, nnodes, ntasks))
            usage(99);
        while (*argv != NULL && strcmp(*argv, "+") != 0)
            argv++;
        if (*argv != NULL)
            *argv++ = NULL;
    }
}

static bool is_over(const struct session *session)
{
    for (uint32_t i = 0; i < session->nsteps; i++)
        for (uint32_t n = 0; n < session->steps[i].boot.nnodes; n++)
            if (session->steps[i].servers[n] > 0)
                return false;
    return true;
}

static void reap(struct session *session)
{
    int status;
    pid_t pid;
    while ((pid = waitpid(-1, &status, WNOHANG)) > 0)
        for (uint32_t i = 0; i < session->nsteps; i++)
            if (step_ended(&session->steps[i], pid, status))
                break;
    for (uint32_t i = 0; i < session->nsteps; i++) {
        char path[512];
        snprintf(path, sizeof path, SESSION_ABORT, session->dir, session->steps[i].boot.nspace);
        if (unlink(path) == 0)
            step_kill(&session->steps[i], false);
    }
}

/* Until all servers have left; those that do not once the last task has ended are killed. */
static void run(struct session *session)
{
    int64_t last = 0;
    while (!is_over(session)) {
        bool tasks = false;
        reap(session);
        for (uint32_t i = 0; i < session->nsteps; i++)
            tasks = tasks || session->steps[i].left > 0;
        if (!tasks && last == 0)
            last = now_ms();
        if (!tasks && now_ms() > last + LEAVE_MS)
            for (uint32_t i = 0; i < session->nsteps; i++)
                step_kill(&session->steps[i], true);
        poll(NULL, 0, POLL_MS);
    }
}

int main(int argc, char **argv)
{
    struct session session = {.dir = "/tmp/session.XXXXXX"};
    struct err err = {0};
    int status = 0;
    if (argc == 2 && strcmp(argv[1], "--help") == 0)
        usage(0);
    if (argc < 4 || mkdtemp(session.dir) == NULL)
        usage(2);
    session.server = argv[1];
    read_steps(&session, argv + 2);
    for (uint32_t i = 0; i < session.nsteps && status == 0; i++)
        if (step_start(&session, &session.steps[i], &err) != 0) {
            fprintf(stderr, "session: %s\n", err.text);
            status = 99;
        }
    for (uint32_t i = 0; i < session.nsteps && status != 0; i++)
        step_kill(&session.steps[i], true);
    run(&session);
    for (uint32_t i = 0; i < session.nsteps; i++) {
        if (session.steps[i].status > status)
            status = session.steps[i].status;
        step_free(&session.steps[i]);
    }
    free(session.steps);
    int fd = open(session.dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd >= 0)
        empty_dir(fd);
    rmdir(session.dir);
    return status;
}
