/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * slurmstepd's part: one process for each node.
 *
 *     own listening socket → plugin: prefork → fork the tasks → signals and ends → plugin: fini
 */
#include "shims/slurm/standin/joined.h"
#include "shims/slurm/standin/slurm.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

/* By its name the plugin knows where it is. */
static int make_socket(const struct node *node)
{
    struct sockaddr_un addr = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (!stepd_path(&node->run->step, node->here, addr.sun_path, sizeof(addr.sun_path))) {
        errno = ENAMETOOLONG;
        return -1;
    }
    return fd < 0 || bind(fd, (struct sockaddr *)&addr, sizeof(addr)) < 0 ? -1 : listen(fd, 16);
}

/* All that comes before the tasks. The step record is not ours to make: its layout is Slurm's
 * secret, and muster's plugin does not look at it. */
static int prepare(struct node *node)
{
    struct run *run = node->run;
    struct slurm_run *slurm = run->state;
    char path[sizeof(((struct sockaddr_un *)0)->sun_path)];
    void *options = NULL;
    int noptions = 0;
    slurmd_path(&run->step, node->here, path, sizeof(path));
    /* The server that the plugin starts inherits it. */
    if (make_socket(node) < 0 || setenv("SLURM_CONF", path, 1) < 0 ||
        !faults_direct_write(run->faults, node->index, path)) {
        say_error("cannot make its socket: %s", strerror(errno));
        return -1;
    }
    slurm_abi_init(NULL);
    slurm->plugin.conf_options(&options, &noptions);
    slurm->plugin.conf_set(NULL);
    if (slurm->plugin.prefork(NULL, &run->env) != SLURM_ABI_SUCCESS) {
        say_error("MPI plugin: prefork failed");
        return -1;
    }
    node_keep_children(node);
    return 0;
}

/* Forks the tasks, and waits until each has become its program or has ended: slurmstepd signals no
 * task that it still launches. A hook of the plugin would be cut short else, with what it says. */
static int launch_tasks(struct node *node)
{
    int launched[2]; /* pipe: its end of file comes when the last task calls exec */
    char none;
    if (pipe2(launched, O_CLOEXEC) < 0) {
        say_error("cannot make a pipe: %s", strerror(errno));
        return -1;
    }
    for (uint32_t slot = 0; slot < node->here->ntasks; slot++)
        if (node_fork(node, slot) == 0)
            task_run(node, slot);
    close(launched[1]);
    while (read(launched[0], &none, 1) < 0 && errno == EINTR)
        ;
    close(launched[0]);
    return 0;
}

static void serve(struct node *node)
{
    while (node->running > 0) {
        struct pollfd fds[] = {{node->control, POLLIN, 0}, {node->children, POLLIN, 0}};
        if (poll(fds, 2, -1) < 0)
            continue;
        if (fds[1].revents)
            node_children_ready(node);
        if (fds[0].revents)
            node_control_ready(node);
    }
}

void stepd_run(struct run *run, uint32_t index, int control)
{
    struct slurm_run *slurm = run->state;
    struct node node;
    char path[sizeof(((struct sockaddr_un *)0)->sun_path)];
    int status = 1;
    setpgid(0, 0);
    standin_describe(&run->step, &run->step.nodes[index]);
    if (slurm->slurmd)
        slurmd_leave(slurm->slurmd);
    else
        joined_leave();
    if (node_open(&node, run, index, control) == 0 && prepare(&node) == 0 &&
        launch_tasks(&node) == 0) {
        serve(&node);
        node_kill_strays(&node);
        status = 0;
    }
    slurm->plugin.fini();
    slurmd_path(&run->step, node.here, path, sizeof(path));
    faults_direct_read(run->faults, path);
    node_end(&node, status);
}
