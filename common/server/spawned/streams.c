/* SPDX-License-Identifier: BSD-3-Clause */
/* Streams of spawned processes, and the server of the process that has spawned them. */
#include "common/server/spawned/streams.h"

#include "common/server/spawned/inputs.h"
#include "common/server/spawned/outputs.h"
#include "common/server/tasks/cause.h"
#include "common/util/clock.h"
#include "common/util/log.h"

#include <pmix_common.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct streams {
    struct server *server;
    struct outputs *outputs;
    struct inputs *inputs;
    struct outputs_home home; /* nspace "": no process has named it yet */
};

/* outputs_env.find */
static bool find_home(void *arg, const struct outputs_home *home, uint32_t *node)
{
    const struct server *server = arg;
    const struct nspace *ns = nspace_find(server->nspace, home->nspace);
    if (ns == NULL || ns->boot == NULL || home->node >= ns->nnodes)
        return false;
    *node = ns->base + home->node;
    return true;
}

/* outputs_env.ends: the RM kills processes of a spawn that its caller does not wait for any more.
 */
static bool step_ends(void *arg)
{
    const struct server *server = arg;
    uint32_t n = boot_here(&server->boot)->ntasks;
    for (uint32_t k = 0; k < n && !server->ending; k++)
        if (!cause_may_be_of_rm(server->tasks[k].sig))
            return false;
    return true;
}

/* outputs_env.ask */
static void ask_home(void *arg, uint32_t node, const void *body, size_t len, ask_done_fn *answer,
                     void *answer_arg)
{
    const struct server *server = arg;
    asks_send(server->asks, node, ASK_OUTPUT, body, len, 0, answer, answer_arg);
}

/* inputs_env.is_home */
static bool is_home(void *arg, uint32_t from)
{
    const struct server *server = arg;
    uint32_t home;
    if (find_home(arg, &server->streams->home, &home) && home == from)
        return true;
    log_warning(
        "input that %s sends for processes here was dropped: these take it from the process "
        "that has spawned them, which is not there",
        nspace_name(server->nspace, from));
    return false;
}

/* inputs_env.reply */
static void reply(void *arg, uint32_t from, uint64_t id, int32_t status)
{
    const struct server *server = arg;
    asks_reply(server->asks, from, id, status, NULL, 0);
}

struct streams *streams_new(struct server *server)
{
    struct streams *streams = calloc(1, sizeof *streams);
    streams->server = server;
    streams->outputs = outputs_new(&(struct outputs_env){.arg = server,
                                                         .base = server->base,
                                                         .timers = &server->timers,
                                                         .find = find_home,
                                                         .ends = step_ends,
                                                         .ask = ask_home});
    streams->inputs = inputs_new(&(struct inputs_env){
        .arg = server, .base = server->base, .is_home = is_home, .reply = reply});
    if (streams->outputs != NULL)
        return streams;
    streams_free(streams);
    return NULL;
}

bool streams_add(struct streams *streams, uint32_t rank, const char *home, bool input,
                 const int *fds, unsigned nfds)
{
    unsigned noutputs = nfds - (input && nfds > 0);
    struct outputs_home to = {0};
    if ((*home != '\0' && !outputs_read_home(home, &to)) || (input && nfds == 0)) {
        for (unsigned i = 0; i < nfds; i++)
            close(fds[i]);
        return false;
    }
    streams->home = to;
    if (input)
        inputs_add(streams->inputs, rank, fds[noutputs]);
    return outputs_add(streams->outputs, rank, &to, fds, noutputs);
}

void streams_server_gone(struct server *server, uint32_t node)
{
    const struct streams *streams = server->streams;
    uint32_t home;
    if (streams == NULL || !find_home(server, &streams->home, &home) || home != node)
        return;
    outputs_home_gone(streams->outputs);
    inputs_end(streams->inputs);
}

void streams_serve_input(void *arg, uint32_t from, uint64_t id, const void *body, size_t len)
{
    const struct server *server = arg;
    if (server->streams != NULL)
        inputs_serve(server->streams->inputs, from, id, body, len);
    else
        asks_reply(server->asks, from, id, PMIX_ERR_NOT_AVAILABLE, NULL, 0);
}

bool streams_print(const struct server *server, bool home)
{
    return server->streams != NULL && outputs_busy(server->streams->outputs, home);
}

bool streams_join(const struct server *server, const char *nspace)
{
    return server->streams != NULL && strcmp(server->streams->home.nspace, nspace) == 0;
}

void streams_free(struct streams *streams)
{
    if (streams == NULL)
        return;
    outputs_free(streams->outputs);
    inputs_free(streams->inputs);
    free(streams);
}
