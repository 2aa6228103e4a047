/** @file
 * One run of musterrun: what its command line says, and the parts that its processes share.
 */
#ifndef MUSTER_SLURM_STANDIN_RUN_H
#define MUSTER_SLURM_STANDIN_RUN_H

#include "shims/slurm/standin/faults.h"
#include "shims/slurm/standin/io.h"
#include "shims/slurm/standin/plugin.h"
#include "shims/slurm/standin/slurmd.h"
#include "shims/slurm/standin/standin.h"

#include <signal.h>
#include <stdbool.h>
#include <sys/resource.h>

struct run {
    /* options.c */
    struct standin_step step;
    struct faults faults;
    const char *plugin_path;
    char **argv; /**< the program's */
    long input;  /**< as io_open() has it */
    bool label, kill_on_bad_exit;

    /* srun.c, before it forks */
    struct plugin plugin;
    struct slurmd *slurmd;
    struct io *io;
    char **env;          /**< for the tasks; it and its strings are malloc()ed */
    sigset_t mask;       /**< as we found it */
    struct rlimit files; /**< as we found it */
};

/** What a node's process tells srun's; one record each. */
struct report {
    enum { REPORT_ENDED, REPORT_FAILED, REPORT_DONE } what;
    uint32_t rank;  /**< ENDED: of the task */
    int32_t status; /**< ENDED: as of wait(2) */
};

/** Reads the command line and lays out the step. @return -1: go on, else the exit status */
int options_read(struct run *run, int argc, char **argv);

/** All of a run, from srun's process. @return the exit status */
int srun_run(struct run *run);

/** slurmstepd's part, in a process of its own. @param control SOCK_SEQPACKET: signals for the tasks
 * come as int32_t, reports go; its end of file is srun's end */
_Noreturn void stepd_run(struct run *run, uint32_t node, int control);

/** Becomes a task, with the plugin's hook as the last thing before exec.
 * @thread the only one of a forked child */
_Noreturn void task_run(struct run *run, uint32_t node, uint32_t slot);

#endif
