/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * One run of musterrun: what its command line says, and the parts that its processes share.
 */
#pragma once

#include "shims/standin/faults.h"
#include "shims/standin/io.h"
#include "shims/standin/say.h"
#include "shims/standin/standin.h"

#include <signal.h>
#include <stdbool.h>
#include <sys/resource.h>

enum { RUN_OPTIONS_MAX = 64, RUN_PROGRAMS_MAX = 64 };

/** What some ranks in a row run. */
struct program {
    char **argv;
    uint32_t count; /**< of ranks; 0: all that are left */
};

struct run {
    /* options.c */
    struct standin_step step;
    const struct standin_rm *rm; /**< which resource manager is played */
    struct faults *faults;       /**< in memory that all processes of the run share */
    const char *plugin_path;
    struct program programs[RUN_PROGRAMS_MAX]; /**< by rank; see program_of() */
    unsigned nprograms;
    const char *wdir;       /**< of the tasks; NULL: ours */
    const char *outputs[2]; /**< of standard output and error, %t is the rank; NULL: ours */
    int64_t timeout;        /**< ms until the run is ended; 0: never */
    const char *options[RUN_OPTIONS_MAX]; /**< of the job shell: "muster.KEY=VALUE" */
    unsigned noptions;
    long input; /**< as io_open() has it */
    bool label, kill_on_bad_exit;

    /* launcher.c, before it forks */
    void *state; /**< the resource manager's part's own */
    struct io *io;
    char **env;          /**< for the tasks; it and its strings are malloc()ed */
    sigset_t mask;       /**< as we found it */
    struct rlimit files; /**< as we found it */
};

/** The part of musterrun that plays one resource manager. */
struct standin_rm {
    const char *name;
    const char *plugin_path; /**< the file that it loads, unless an option names another */
    const char *about;       /**< for --version: "as ..." */

    /** Whether we are started as this resource manager's launcher by muster itself, for a step that
     * a task has spawned; then join() is called instead of all other reading of options. NULL: it
     * never is */
    bool (*joins)(char **argv);
    /** @return as options_read() */
    int (*join)(struct run *run, int argc, char **argv);

    /** Before the nodes are forked. @param events write end of a pipe, for struct run_event
     * @return 0, or -1 with @p err; then nothing of this is called any more */
    int (*open)(struct run *run, int events, struct err *err);

    /** After the nodes were forked, if they were. @return 0, or -1 with @p err */
    int (*start)(struct run *run, struct err *err);

    /** All tasks have ended, and then, with @p nodes, all nodes' plugins: what is left may go. */
    void (*ended)(struct run *run, bool nodes);

    /** All processes of the run have ended but this one. @return with what exit status the run
     * ends; 0: as its tasks did */
    int (*close)(struct run *run);

    /** A node's process, from its fork to its end. @param control SOCK_SEQPACKET: signals for the
     * tasks come as int32_t, struct report goes; its end of file is the first process's end */
    void (*node)(struct run *run, uint32_t node, int control);
};

extern const struct standin_rm rm_slurm, rm_flux;

/** What the carriers of messages tell the first process, each in one write to a pipe. */
struct run_event {
    enum { EVENT_SIGNAL, EVENT_DIE, EVENT_STATUS } what;
    /** SIGNAL: for the tasks; DIE: the fault's index; STATUS: what the step ends with, whatever its
     * tasks do; the first one counts */
    int32_t value;
};

/** What a node's process tells the first one; one record each. */
struct report {
    enum { REPORT_STARTED, REPORT_ENDED, REPORT_FAILED, REPORT_DONE } what;
    uint32_t rank;  /**< STARTED, with which io_ends() go, and ENDED: of the task */
    int32_t status; /**< ENDED: as of wait(2) */
};

/** Reads the command line and lays out the step. @return -1: go on, else the exit status */
int options_read(struct run *run, int argc, char **argv);

/** All of a run, from the first process. @return the exit status */
int launcher_run(struct run *run);
