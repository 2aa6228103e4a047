/* SPDX-License-Identifier: BSD-3-Clause */
/* The last words of a server that crashes. It is no child of the process that starts it, and older
 * kernels do not tell how others' children end. */
#include "common/server/process/crash.h"

#ifdef MUSTER_SANITIZED

/* The sanitizers have handlers of their own, and say more. */
void crash_open(const char *who)
{
    (void)who;
}

#else

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { STACK_SIZE = 16384, WORDS_SIZE = 384 };

static const struct {
    int sig;
    const char *what;
} faults[] = {
    {SIGBUS, "signal 7 (bus error): most likely the file system of its directory is full"},
    {SIGSEGV, "signal 11 (segmentation fault): a fault in muster or libpmix"},
    {SIGABRT, "signal 6 (aborted): a fault in muster or libpmix"},
    {SIGFPE, "signal 8 (arithmetic exception): a fault in muster or libpmix"},
    {SIGILL, "signal 4 (illegal instruction): a build for another processor, or a fault"},
};

/* Made beforehand: a handler may do little. */
static char words[sizeof faults / sizeof *faults][WORDS_SIZE];
static char stack[STACK_SIZE];

/* The signal has its default action again, and comes once more: it was blocked meanwhile. */
static void on_fault(int sig)
{
    const char *said = "";
    for (size_t i = 0; i < sizeof faults / sizeof *faults; i++)
        if (faults[i].sig == sig)
            said = words[i];
    if (write(STDERR_FILENO, said, strlen(said)) < 0)
        _exit(1);
    raise(sig);
}

void crash_open(const char *who)
{
    stack_t on = {.ss_sp = stack, .ss_size = sizeof stack};
    struct sigaction action = {.sa_handler = on_fault, .sa_flags = SA_RESETHAND | SA_ONSTACK};
    sigaltstack(&on, NULL);
    sigemptyset(&action.sa_mask);
    for (size_t i = 0; i < sizeof faults / sizeof *faults; i++) {
        snprintf(words[i], sizeof words[i], "<3>%.200s: muster-server crashes by %s\n", who,
                 faults[i].what);
        sigaction(faults[i].sig, &action, NULL);
    }
}

#endif
