/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * A broker: one process for each node, with muster.so in it. It ends when musterrun's first process
 * lets go of it or is gone, and its shell has ended.
 */
#include "shims/flux/standin/broker.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <syslog.h>
#include <unistd.h>

static void to_say(int level, const char *text)
{
    if (level <= LOG_WARNING)
        say_error("%s", text);
    else if (level <= LOG_INFO)
        say_info("%s", text);
    else
        say_debug("%s", text);
}

/* @return the listening socket, or -1 with errno */
static int make_socket(const struct run *run, const struct standin_node *here, char *uri,
                       size_t cap)
{
    struct sockaddr_un addr = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    snprintf(addr.sun_path, sizeof(addr.sun_path), "%s/%s/broker", run->step.dir, here->name);
    snprintf(uri, cap, "local://%s", addr.sun_path);
    if (fd >= 0 && bind(fd, (struct sockaddr *)&addr, sizeof(addr)) == 0 && listen(fd, 64) == 0)
        return fd;
    if (fd >= 0)
        close(fd);
    return -1;
}

/* Of what joins brokers, this one keeps its own. */
static void keep_own(struct run *run, uint32_t rank)
{
    struct flux_run *flux = run->state;
    close(flux->done[0]);
    for (uint32_t i = 0; i < run->step.nnodes; i++) {
        close(flux->life[i][1]);
        if (i != rank)
            close(flux->life[i][0]);
        if (i > 0 && i != rank)
            close(flux->tree[i][1]);
        if (i > 0 && tree_parent(i) != rank)
            close(flux->tree[i][0]);
    }
}

/* The shell holds none of it. */
static void keep_nothing(struct run *run, uint32_t rank, int listener)
{
    struct flux_run *flux = run->state;
    close(listener);
    close(flux->done[1]);
    close(flux->events);
    close(flux->life[rank][0]);
    if (rank > 0)
        close(flux->tree[rank][1]);
    for (uint32_t i = 1; i < run->step.nnodes; i++)
        if (tree_parent(i) == rank)
            close(flux->tree[i][0]);
}

static pid_t fork_shell(struct run *run, uint32_t rank, int control, int listener, const char *uri)
{
    pid_t self = getpid(), pid = fork();
    if (pid != 0)
        return pid;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != self)
        _exit(1);
    keep_nothing(run, rank, listener);
    shell_run(run, rank, control, uri);
}

static void end_if_alone(struct broker *broker)
{
    if (broker->ending && broker->shell == 0)
        event_base_loopbreak(broker->handle.base);
}

static void on_life(evutil_socket_t fd, short what, void *arg)
{
    struct broker *broker = arg;
    (void)fd;
    (void)what;
    broker->ending = true;
    end_if_alone(broker);
}

static void on_child(evutil_socket_t fd, short what, void *arg)
{
    struct broker *broker = arg;
    struct signalfd_siginfo info;
    (void)what;
    if (read(fd, &info, sizeof(info)) > 0 && waitpid(broker->shell, NULL, WNOHANG) > 0)
        broker->shell = 0;
    end_if_alone(broker);
}

static void on_client(evutil_socket_t fd, short what, void *arg)
{
    struct broker *broker = arg;
    int client = accept4(fd, NULL, NULL, SOCK_CLOEXEC);
    (void)what;
    if (client >= 0 && !overlay_join(broker, PORT_CLIENT, client, 0))
        say_error("a client cannot be served");
}

static int watch(struct broker *broker, int fd, short what, event_callback_fn call)
{
    struct event *event = event_new(broker->handle.base, fd, what, call, broker);
    return event ? event_add(event, NULL) : -1;
}

static int open_overlay(struct broker *broker)
{
    struct flux_run *flux = broker->run->state;
    uint32_t n = broker->run->step.nnodes;
    bool good = broker->rank == 0 ||
                overlay_join(broker, PORT_PARENT, flux->tree[broker->rank][1], 0) != NULL;
    for (uint32_t i = 1; good && i < n; i++)
        if (tree_parent(i) == broker->rank)
            good = overlay_join(broker, PORT_CHILD, flux->tree[i][0], i) != NULL;
    return good && watch(broker, broker->listener, EV_READ | EV_PERSIST, on_client) == 0 &&
                   watch(broker, broker->life, EV_READ, on_life) == 0 &&
                   watch(broker, broker->children, EV_READ | EV_PERSIST, on_child) == 0
               ? 0
               : -1;
}

static int open_broker(struct broker *broker, const char *uri)
{
    uint32_t n = broker->run->step.nnodes;
    sigset_t children;
    sigemptyset(&children);
    sigaddset(&children, SIGCHLD);
    broker->children = signalfd(-1, &children, SFD_CLOEXEC | SFD_NONBLOCK);
    broker->module_id = (uint64_t)(broker->rank + 1) << 32;
    broker->last_id = broker->module_id;
    broker->serve = services_request;
    broker->sent_tail = &broker->sent;
    broker->counts = calloc(n, sizeof(*broker->counts));
    broker->offline = calloc(n, sizeof(*broker->offline));
    broker->handle = (struct standin_broker){.arg = broker,
                                             .send = overlay_send,
                                             .base = event_base_new(),
                                             .rank = broker->rank,
                                             .size = n,
                                             .uri = uri};
    if (broker->children < 0 || !broker->counts || !broker->offline || !broker->handle.base)
        return -1;
    broker->drain = evtimer_new(broker->handle.base, overlay_drain, broker);
    broker->module = standin_handle(&broker->handle);
    return broker->drain && broker->module ? open_overlay(broker) : -1;
}

/* @return its exit status */
static int run_module(struct broker *broker)
{
    void *file = dlopen(MUSTER_FLUX_MODULE, RTLD_NOW | RTLD_GLOBAL | RTLD_DEEPBIND);
    int (*entry)(flux_t * h, int argc, char *argv[]);
    char *argv[] = {NULL};
    void *symbol;

    if (!file || !(symbol = dlsym(file, "mod_main"))) {
        say_error("cannot load the broker's module: %s", dlerror());
        return 1;
    }
    memcpy(&entry, &symbol, sizeof(entry));
    if (entry(broker->module, 0, argv) < 0) {
        say_error("the broker's module has failed: %s", strerror(errno));
        return 1;
    }
    return 0;
}

void broker_run(struct run *run, uint32_t rank, int control)
{
    struct broker broker = {
        .run = run, .rank = rank, .life = ((struct flux_run *)run->state)->life[rank][0]};
    const struct standin_node *here = &run->step.nodes[rank];
    char uri[128];
    int status = 1;

    setpgid(0, 0);
    say_describe(&run->step, here);
    standin_log_to(to_say);
    keep_own(run, rank);
    broker.listener = make_socket(run, here, uri, sizeof(uri));
    broker.shell = broker.listener >= 0 ? fork_shell(run, rank, control, broker.listener, uri) : -1;
    close(control);
    io_leave(run->io);
    if (broker.shell < 0 || open_broker(&broker, uri) < 0)
        say_error("the broker cannot start: %s", strerror(errno));
    else
        status = run_module(&broker);
    _exit(broker.orphaned ? 1 : status);
}
