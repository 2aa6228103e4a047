/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * A task between fork and exec.
 */
#include "shims/standin/node.h"

#include "shims/standin/habits.h"

#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

void task_setenv(char ***env, const char *name, const char *fmt, ...)
{
    size_t len = strlen(name), n = 0;
    char *value, *entry, **more;
    va_list ap;
    va_start(ap, fmt);
    if (vasprintf(&value, fmt, ap) < 0 || asprintf(&entry, "%s=%s", name, value) < 0)
        _exit(ENOMEM);
    va_end(ap);
    free(value);
    while ((*env)[n] && (strncmp((*env)[n], name, len) != 0 || (*env)[n][len] != '='))
        n++;
    if ((*env)[n]) {
        free((*env)[n]);
        (*env)[n] = entry;
        return;
    }
    more = realloc(*env, (n + 2) * sizeof(*more));
    if (!more)
        _exit(ENOMEM);
    more[n] = entry;
    more[n + 1] = NULL;
    *env = more;
}

void task_open(struct node *node, uint32_t slot)
{
    if (io_become(node->run->io, node->here->ranks[slot]) < 0)
        _exit(1);
    signal(SIGPIPE, SIG_DFL);
    setrlimit(RLIMIT_NOFILE, &node->run->files);
}

void task_exec(struct run *run, uint32_t rank)
{
    char **argv = program_of(run, rank);
    int err;
    if (run->wdir && chdir(run->wdir) < 0) {
        err = errno;
        say_error("--wdir: %s: %s", run->wdir, strerror(err));
        _exit(err);
    }
    sigprocmask(SIG_SETMASK, &run->mask, NULL);
    execvpe(argv[0], argv, run->env);
    err = errno;
    say_error("execve(): %s: %s", argv[0], strerror(err));
    _exit(err); /* as Slurm does */
}
