/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * musterrun: a resource manager played on one machine, for programmers who use PMIx.
 *
 *     musterrun ── launcher.c, events.c: input, output, signals; the end
 *        ├─ node0 ── node.c and the resource manager's part: the plugin ──► muster-server
 *        │    └─ tasks ── task.c: exec
 *        └─ node1 …
 *
 * Which one: struct standin_rm. The plugin files are those that it loads itself; what they and
 * muster-server call of its library is in a library of ours. Every process here has an owner that
 * ends it: tasks die with their node, a node's process ends when the first one does, and the server
 * when its node's does.
 */
#include "shims/standin/io.h"
#include "shims/standin/run.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

int main(int argc, char **argv)
{
    static struct run run;
    int status, fd;
    do { /* 0 to 2 are taken from here on, also if the caller had closed them */
        fd = open("/dev/null", O_RDWR);
    } while (fd >= 0 && fd <= STDERR_FILENO);
    if (fd >= 0)
        close(fd);
    if (argc == 3 && strcmp(argv[1], "--printer") == 0)
        return io_print(argv[2]);
    run.faults =
        mmap(NULL, sizeof(*run.faults), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (run.faults == MAP_FAILED) {
        perror("musterrun: mmap");
        return 1;
    }
    status = options_read(&run, argc, argv);
    return status >= 0 ? status : launcher_run(&run);
}
