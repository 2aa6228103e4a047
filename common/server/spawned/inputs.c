/* SPDX-License-Identifier: BSD-3-Clause */
/* Pieces of input on their way into the pipes of spawned processes. */
#include "common/server/spawned/inputs.h"

#include "common/transport/wire.h"
#include "common/util/log.h"

#include <errno.h>
#include <pmix_common.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct input {
    struct input *next;
    struct inputs *inputs;
    uint32_t rank;
    int fd; /* -1: it takes no more */
    struct event *writable;
    bool owes; /* it has not taken all of the piece */
    size_t at; /* bytes of the piece that it has taken */
};

struct inputs {
    struct inputs_env env;
    struct input *list;
    /* the piece that is under way, or was the last one: */
    uint32_t from;
    uint64_t id;
    unsigned left; /* inputs that owe; 0: it was answered */
    int32_t status;
    bool all; /* it is for every process */
    size_t len;
    unsigned char piece[INPUTS_PIECE];
};

/* One input owes no more. */
static void settle(struct inputs *all)
{
    if (--all->left == 0)
        all->env.reply(all->env.arg, all->from, all->id, all->status);
}

static void close_input(struct input *i)
{
    if (i->fd < 0)
        return;
    event_free(i->writable);
    i->writable = NULL;
    close(i->fd);
    i->fd = -1;
    if (!i->owes)
        return;
    i->owes = false;
    if (!i->inputs->all)
        i->inputs->status = PMIX_ERR_NOT_AVAILABLE;
    settle(i->inputs);
}

static void write_more(struct input *i)
{
    struct inputs *all = i->inputs;
    while (i->at < all->len) {
        ssize_t n = write(i->fd, all->piece + i->at, all->len - i->at);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0 && errno == EAGAIN) {
            event_add(i->writable, NULL);
            return;
        }
        if (n < 0) { /* it has ended, or has closed its standard input */
            log_debug("rank %u takes no more input: %s", i->rank, strerror(errno));
            close_input(i);
            return;
        }
        i->at += (size_t)n;
    }
    i->owes = false;
    settle(all);
}

static void on_writable(evutil_socket_t fd, short what, void *arg)
{
    (void)fd, (void)what;
    write_more(arg);
}

struct inputs *inputs_new(const struct inputs_env *env)
{
    struct inputs *all = calloc(1, sizeof *all);
    all->env = *env;
    return all;
}

void inputs_add(struct inputs *inputs, uint32_t rank, int fd)
{
    struct input *i = calloc(1, sizeof *i);
    evutil_make_socket_nonblocking(fd);
    i->writable = event_new(inputs->env.base, fd, EV_WRITE, on_writable, i);
    i->next = inputs->list;
    i->inputs = inputs;
    i->rank = rank;
    i->fd = fd;
    inputs->list = i;
}

/* @return how many processes take what comes */
static unsigned begin(struct inputs *all, uint32_t rank)
{
    unsigned n = 0;
    for (struct input *i = all->list; i != NULL; i = i->next) {
        i->owes = i->fd >= 0 && (rank == INPUTS_ALL || i->rank == rank);
        i->at = 0;
        n += i->owes;
    }
    return n;
}

/* The end comes even while a piece is under way, whose rest is thrown away then: the process that
 * has pushed it does not wait for it any more. */
static void end_some(struct inputs *all, uint32_t rank)
{
    for (struct input *i = all->list; i != NULL; i = i->next)
        if (rank == INPUTS_ALL || i->rank == rank)
            close_input(i);
}

void inputs_serve(struct inputs *inputs, uint32_t from, uint64_t id, const void *body, size_t len)
{
    struct inputs *all = inputs;
    struct wire_in in;
    size_t n;
    wire_in_init(&in, body, len);
    uint32_t rank = wire_get_u32(&in);
    const void *data = wire_get_block(&in, &n);
    if (!all->env.is_home(all->env.arg, from)) {
        all->env.reply(all->env.arg, from, id, PMIX_ERR_NO_PERMISSIONS);
        return;
    }
    if (!wire_end(&in) || n > INPUTS_PIECE || (n > 0 && all->left > 0)) {
        all->env.reply(all->env.arg, from, id, PMIX_ERR_BAD_PARAM);
        return;
    }
    if (n == 0) { /* a piece that others have not taken yet stays as it is */
        end_some(all, rank);
        all->env.reply(all->env.arg, from, id, PMIX_SUCCESS);
        return;
    }
    all->from = from;
    all->id = id;
    all->all = rank == INPUTS_ALL;
    all->len = n;
    memcpy(all->piece, data, n);
    unsigned takers = begin(all, rank);
    all->status = takers == 0 && !all->all ? PMIX_ERR_NOT_AVAILABLE : PMIX_SUCCESS;
    all->left = takers + 1; /* until all have begun */
    for (struct input *i = all->list; i != NULL && takers > 0; i = i->next)
        if (i->owes)
            write_more(i);
    settle(all);
}

void inputs_end(struct inputs *inputs)
{
    end_some(inputs, INPUTS_ALL);
}

void inputs_free(struct inputs *inputs)
{
    if (inputs == NULL)
        return;
    inputs_end(inputs);
    while (inputs->list != NULL) {
        struct input *i = inputs->list;
        inputs->list = i->next;
        free(i);
    }
    free(inputs);
}
