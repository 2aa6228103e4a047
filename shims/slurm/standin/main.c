/** @file
 * musterrun: srun and slurmstepd played on one machine, for those who write programs with PMIx.
 *
 *     musterrun ── srun.c, events.c: the plugin's client side; input, output, signals; the end
 *        │  └─ threads ── slurmd.c: messages between nodes, and faults
 *        ├─ node0 ── stepd.c: the plugin's prefork and fini ──► muster-server
 *        │    └─ tasks ── task.c: the plugin's hook, exec
 *        └─ node1 …
 *
 * The plugin file is the one that Slurm loads. What it and muster-server call of Slurm's library is
 * in libslurm_standin.so (standin.h). Every process here has an owner that ends it: tasks die with
 * their node, a node's process ends when the first one does, and the server when its node's does.
 */
#include "shims/slurm/standin/run.h"

#include <fcntl.h>
#include <unistd.h>

int main(int argc, char **argv)
{
    static struct run run;
    int status, fd;

    do { /* 0 to 2 are taken from here on, whoever started us */
        fd = open("/dev/null", O_RDWR);
    } while (fd >= 0 && fd <= STDERR_FILENO);
    if (fd >= 0)
        close(fd);
    status = options_read(&run, argc, argv);
    return status >= 0 ? status : srun_run(&run);
}
