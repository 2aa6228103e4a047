/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * The part of flux run: makes what brokers are joined by, and lets them end.
 */
#include "shims/flux/standin/play.h"

#include "common/util/clock.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { BROKERS_MS = 5000 /* for brokers to end, once nothing is left to do */ };

/* Each broker and each shell would say it for itself. */
static int find_files(const struct run *run, struct err *err)
{
    const char *files[] = {MUSTER_FLUX_MODULE, run->plugin_path};
    for (size_t i = 0; i < sizeof files / sizeof *files; i++)
        if (access(files[i], R_OK) != 0)
            return err_set(err,
                           "cannot load the plugin: %s: %s; the package muster-flux has muster's "
                           "files for Flux",
                           files[i], strerror(errno));
    return 0;
}

static int play_open(struct run *run, int events, struct err *err)
{
    if (find_files(run, err) < 0)
        return -1;
    uint32_t n = run->step.nnodes;
    struct flux_run *flux = calloc(1, sizeof(*flux));
    if (flux) {
        flux->tree = calloc(n, sizeof(*flux->tree));
        flux->life = calloc(n, sizeof(*flux->life));
        flux->events = events;
    }
    if (!flux || !flux->tree || !flux->life)
        return err_set(err, "out of memory");
    bool good = pipe2(flux->done, O_CLOEXEC) == 0;
    for (uint32_t rank = 0; good && rank < n; rank++)
        good = pipe2(flux->life[rank], O_CLOEXEC) == 0 &&
               (rank == 0 ||
                socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, flux->tree[rank]) == 0);
    run->state = flux;
    return good ? 0 : err_set(err, "cannot join %u brokers: %s", n, strerror(errno));
}

static int play_start(struct run *run, struct err *err)
{
    struct flux_run *flux = run->state;
    (void)err;
    close(flux->done[1]);
    flux->done[1] = -1;
    for (uint32_t rank = 0; rank < run->step.nnodes; rank++) {
        close(flux->life[rank][0]);
        if (rank > 0) {
            close(flux->tree[rank][0]);
            close(flux->tree[rank][1]);
        }
    }
    return 0;
}

/* The leaves first: a broker must not take the orderly end of its parent for a loss. */
static void play_ended(struct run *run, bool nodes)
{
    struct flux_run *flux = run->state;
    int64_t deadline = now_ms() + BROKERS_MS;
    struct pollfd done = {flux->done[0], POLLIN, 0};
    if (!nodes)
        return;
    if (flux->done[1] >= 0) /* not all could be started */
        close(flux->done[1]);
    for (uint32_t rank = run->step.nnodes; rank-- > 0;)
        close(flux->life[rank][1]);
    while (deadline_left(deadline) > 0 && poll(&done, 1, deadline_left(deadline)) < 0)
        ;
    if (done.revents == 0)
        say_error("a broker does not end");
}

static int play_close(struct run *run)
{
    struct flux_run *flux = run->state;
    close(flux->done[0]);
    free(flux->tree);
    free(flux->life);
    free(flux);
    return 0;
}

const struct standin_rm rm_flux = {
    .name = "flux",
    .plugin_path = MUSTER_FLUX_SHELL_PLUGIN,
    .about = "Flux",
    .open = play_open,
    .start = play_start,
    .ended = play_ended,
    .close = play_close,
    .node = broker_run,
};
