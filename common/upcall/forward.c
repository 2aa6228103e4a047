/* SPDX-License-Identifier: BSD-3-Clause */
/* Pieces of output on their way from other servers to libpmix. */
#include "common/upcall/forward_private.h"

#include "common/launch/plan.h"
#include "common/server/process/rounds.h"
#include "common/server/spawned/outputs.h"
#include "common/upcall/upcall.h"
#include "common/util/clock.h"
#include "common/util/log.h"

#include <pmix_server.h>
#include <stdlib.h>
#include <string.h>

enum piece_state {
    PIECE_HELD,      /* its forward is held, or connections are congested */
    PIECE_DELIVERED, /* libpmix has it, and has not confirmed it */
};

struct piece {
    struct handoff_item item;
    LIST_ENTRY(piece) entry;
    enum piece_state state;
    uint32_t from; /* the server that asks */
    uint64_t question, number;
    pmix_proc_t source;
    pmix_iof_channel_t channel;
    pmix_byte_object_t bytes; /* of data */
    char data[];
};

/* ---- spawns ---- */

static struct forward *find(const struct forwards *all, uint64_t number)
{
    struct forward *f;
    LIST_FOREACH (f, &all->list, entry)
        if (f->number == number)
            break;
    return f;
}

static bool is_pulled(struct forwards *all, const struct forward *f, const struct piece *p)
{
    pthread_mutex_lock(&all->lock);
    pmix_iof_channel_t channels = f->pulled;
    if (f->pulled_of != NULL)
        channels |= f->pulled_of[p->source.rank];
    pthread_mutex_unlock(&all->lock);
    return (channels & p->channel) != 0;
}

/* @return whether libpmix has a reader for it */
static bool is_wanted(struct forwards *all, const struct forward *f, const struct piece *p)
{
    return f->state == FORWARD_OPEN && answer_wanted() && (f->tool || is_pulled(all, f, p));
}

static void free_forward(struct forward *f)
{
    timer_stop(&f->over);
    free(f->pulled_of);
    free(f);
}

static void reply(struct forwards *all, uint32_t from, uint64_t question, pmix_status_t status)
{
    asks_reply(all->server->asks, from, question, status, NULL, 0);
}

/* Frees the piece: the server that has sent it now sends the next one. */
static void answer(struct forwards *all, struct piece *p, pmix_status_t status)
{
    bool own = all->own != NULL && p->number == all->own->number;
    LIST_REMOVE(p, entry);
    if (!own)
        reply(all, p->from, p->question, status);
    free(p);
    if (own)
        all->printed(all->server);
}

/* Frees the forward; pieces that are held for it are refused. */
static void end(struct forwards *all, struct forward *f)
{
    pthread_mutex_lock(&all->lock);
    LIST_REMOVE(f, entry);
    pthread_mutex_unlock(&all->lock);
    for (struct piece *p = LIST_FIRST(&all->pieces), *next; p != NULL; p = next) {
        next = LIST_NEXT(p, entry);
        if (p->number == f->number && p->state == PIECE_HELD)
            answer(all, p, PMIX_ERR_NOT_FOUND);
    }
    if (f->then != NULL)
        f->then(f->arg);
    free_forward(f);
}

/* ---- pieces ---- */

/* A piece has gone its way. @return the forward, if all of its streams have ended */
static struct forward *count(struct forward *f, const struct piece *p)
{
    return p->bytes.size == 0 && --f->nopen == 0 ? f : NULL;
}

/* @thread the loop's */
static void run_delivered(struct handoff_item *item)
{
    struct piece *p = (struct piece *)item;
    struct forwards *all = upcall_server()->forwards;
    struct forward *f = find(all, p->number), *ended = f != NULL ? count(f, p) : NULL;
    answer(all, p, PMIX_SUCCESS);
    if (ended != NULL)
        end(all, ended);
}

/* @thread PMIx's */
static void on_delivered(pmix_status_t status, void *arg)
{
    struct piece *p = arg;
    (void)status;
    upcall_post(&p->item, run_delivered);
}

/* Looks whether connections are congested, and notes since when. The timer looks again. */
static bool congested(struct forwards *all)
{
    bool is = rounds_congested();
    if (!is)
        all->pass_from = 0;
    else if (all->pass_from == 0)
        all->pass_from = now_ms() + FORWARD_HOLD_MS;
    if (is)
        timer_after(&all->look, FORWARD_LOOK_MS);
    return is;
}

/* Hands a piece to libpmix, or has the server that sent it write it to the terminal. May end the
 * forward. */
static void send_on(struct forwards *all, struct forward *f, struct piece *p, bool to_libpmix)
{
    PMIX_LOAD_NSPACE(p->source.nspace, f->child);
    p->state = PIECE_DELIVERED;
    if (to_libpmix && PMIx_server_IOF_deliver(&p->source, p->channel, &p->bytes, NULL, 0,
                                              on_delivered, p) == PMIX_SUCCESS)
        return;
    pmix_status_t status = answer_wanted() ? (pmix_status_t)OUTPUTS_PASS : PMIX_ERR_NOT_FOUND;
    struct forward *ended = count(f, p);
    answer(all, p, status);
    if (ended != NULL)
        end(all, ended);
}

/* @return whether it went; else connections are congested, and have not been for long */
static bool deliver(struct forwards *all, struct forward *f, struct piece *p)
{
    bool wanted = is_wanted(all, f, p), busy = wanted && congested(all);
    if (busy && now_ms() < all->pass_from)
        return false;
    send_on(all, f, p, wanted && !busy);
    return true;
}

/* @return a piece that is held, though its forward is open, or NULL */
static struct piece *find_held(struct forwards *all, bool wanted_too, struct forward **f)
{
    struct piece *p;
    LIST_FOREACH (p, &all->pieces, entry)
        if (p->state == PIECE_HELD && (*f = find(all, p->number)) != NULL &&
            (*f)->state == FORWARD_OPEN && (wanted_too || !is_wanted(all, *f, p)))
            break;
    return p;
}

static void deliver_held(struct forwards *all)
{
    bool go = true; /* what is wanted, too */
    struct forward *f;
    struct piece *p;
    while ((p = find_held(all, go, &f)) != NULL)
        go = deliver(all, f, p) && go;
}

static struct piece *new_piece(const struct forward *f, uint32_t rank, pmix_iof_channel_t channel,
                               const void *data, size_t n)
{
    struct piece *p = calloc(1, sizeof *p + n + 1);
    p->number = f->number;
    p->channel = channel;
    p->source.rank = rank;
    p->bytes = (pmix_byte_object_t){.bytes = p->data, .size = n};
    if (n > 0)
        memcpy(p->data, data, n);
    return p;
}

/* @return what came, or NULL: it makes no sense */
static struct piece *read_piece(const struct forwards *all, const void *body, size_t len,
                                struct forward **of)
{
    struct wire_in in;
    size_t n;
    wire_in_init(&in, body, len);
    uint64_t number = wire_get_u64(&in);
    uint32_t rank = wire_get_u32(&in);
    uint8_t which = wire_get_u8(&in);
    const void *data = wire_get_block(&in, &n);
    struct forward *f = *of = find(all, number);
    if (!wire_end(&in) || f == NULL || rank >= f->ntasks || n > OUTPUTS_PIECE)
        return NULL;
    pmix_iof_channel_t channel =
        which == PLAN_STDERR ? PMIX_FWD_STDERR_CHANNEL : PMIX_FWD_STDOUT_CHANNEL;
    return f != all->own && (f->channels & channel) != 0 ? new_piece(f, rank, channel, data, n)
                                                         : NULL;
}

void forwards_print(struct server *server, uint32_t rank, pmix_iof_channel_t channel,
                    const void *data, size_t len)
{
    struct forwards *all = server->forwards;
    struct forward *f = all->own;
    struct piece *p = new_piece(f, rank, channel, data, len);
    LIST_INSERT_HEAD(&all->pieces, p, entry);
    deliver(all, f, p);
}

void upcall_serve_output(void *arg, uint32_t from, uint64_t id, const void *body, size_t len)
{
    struct server *server = arg;
    struct forwards *all = server->forwards;
    struct forward *f;
    struct piece *p = read_piece(all, body, len, &f);
    if (p == NULL) {
        reply(all, from, id, PMIX_ERR_NOT_FOUND);
        return;
    }
    p->from = from;
    p->question = id;
    LIST_INSERT_HEAD(&all->pieces, p, entry);
    if (f->state == FORWARD_OPEN)
        deliver(all, f, p);
}

/* ---- the clock ---- */

static void on_look(void *arg, struct timer *timer)
{
    struct forwards *all = arg;
    (void)timer;
    deliver_held(all);
    if (all->pass_from != 0)
        congested(all);
}

static void on_over(void *arg, struct timer *timer)
{
    end(arg, TIMER_OF(timer, struct forward, over));
}

/* ---- what the spawn says, and what ends ---- */

void forwards_new(struct server *server)
{
    struct forwards *all = calloc(1, sizeof *all);
    *all = (struct forwards){.server = server, .lock = PTHREAD_MUTEX_INITIALIZER};
    server->forwards = all;
    timer_init(&all->look, &server->timers, on_look, all);
}

void forwards_free(struct server *server)
{
    struct forwards *all = server->forwards;
    if (all == NULL)
        return;
    while (!LIST_EMPTY(&all->pieces)) {
        struct piece *p = LIST_FIRST(&all->pieces);
        LIST_REMOVE(p, entry);
        free(p);
    }
    while (!LIST_EMPTY(&all->list)) {
        struct forward *f = LIST_FIRST(&all->list);
        LIST_REMOVE(f, entry);
        free_forward(f);
    }
    timer_stop(&all->look);
    pullers_free(&all->pullers);
    free(all);
    server->forwards = NULL;
}

void forwards_own(struct server *server, forwards_own_fn *pulled, forwards_own_fn *printed)
{
    struct forwards *all = server->forwards;
    struct forward *f = calloc(1, sizeof *f);
    f->state = FORWARD_OPEN;
    PMIX_LOAD_NSPACE(f->child, server->boot.nspace);
    f->channels = PMIX_FWD_STDOUT_CHANNEL | PMIX_FWD_STDERR_CHANNEL;
    f->ntasks = server->boot.ntasks;
    f->nopen = UINT32_MAX; /* it ends with this server */
    LIST_INSERT_HEAD(&all->list, f, entry);
    all->own = f;
    all->pulled = pulled;
    all->printed = printed;
}

bool forwards_own_is_pulled(struct forwards *all)
{
    pthread_mutex_lock(&all->lock);
    bool is = all->own->pulled != 0;
    for (uint32_t i = 0; all->own->pulled_of != NULL && i < all->own->ntasks && !is; i++)
        is = all->own->pulled_of[i] != 0;
    pthread_mutex_unlock(&all->lock);
    return is;
}

struct pullers *forwards_pullers(struct server *server)
{
    return &server->forwards->pullers;
}

uint64_t forwards_number(struct server *server)
{
    return ++server->forwards->last;
}

void forwards_add(struct server *server, uint64_t number, const pmix_proc_t *parent,
                  const char *streams, uint32_t ntasks)
{
    struct forwards *all = server->forwards;
    struct forward *f = calloc(1, sizeof *f);
    f->number = number;
    f->parent = *parent;
    f->tool = strcmp(parent->nspace, server->boot.nspace) != 0;
    f->ntasks = ntasks;
    f->nopen = ntasks * (uint32_t)strlen(streams);
    if (strchr(streams, PLAN_STDOUT) != NULL || strchr(streams, PLAN_BOTH) != NULL)
        f->channels |= PMIX_FWD_STDOUT_CHANNEL;
    if (strchr(streams, PLAN_BOTH) != NULL)
        f->silent = PMIX_FWD_STDERR_CHANNEL;
    if (strchr(streams, PLAN_STDERR) != NULL)
        f->channels |= PMIX_FWD_STDERR_CHANNEL;
    pthread_mutex_lock(&all->lock);
    LIST_INSERT_HEAD(&all->list, f, entry);
    pthread_mutex_unlock(&all->lock);
}

void forwards_name(struct server *server, uint64_t number, const char *nspace)
{
    struct forwards *all = server->forwards;
    struct forward *f = find(all, number);
    if (f == NULL)
        return;
    pthread_mutex_lock(&all->lock);
    PMIX_LOAD_NSPACE(f->child, nspace);
    pthread_mutex_unlock(&all->lock);
}

void forwards_open(struct server *server, uint64_t number)
{
    struct forward *f = find(server->forwards, number);
    if (f == NULL)
        return;
    f->state = FORWARD_OPEN;
    deliver_held(server->forwards);
}

void forwards_drop(struct server *server, uint64_t number)
{
    struct forward *f = find(server->forwards, number);
    if (f != NULL)
        end(server->forwards, f);
}

bool forwards_await_end(struct server *server, uint64_t number, void (*then)(void *arg), void *arg)
{
    struct forward *f = find(server->forwards, number);
    if (f == NULL)
        return false;
    f->then = then;
    f->arg = arg;
    timer_init(&f->over, &server->timers, on_over, server->forwards);
    timer_after(&f->over, FORWARD_END_MS);
    return true;
}

void forwards_connection_gone(struct server *server, const char *nspace, uint32_t rank)
{
    if (pullers_gone(&server->forwards->pullers, nspace, rank))
        forwards_forget_pulls(server->forwards);
}

void forwards_parent_gone(struct server *server, const char *nspace, uint32_t rank)
{
    struct forwards *all = server->forwards;
    forwards_connection_gone(server, nspace, rank);
    for (struct forward *f = LIST_FIRST(&all->list), *next; f != NULL; f = next) {
        next = LIST_NEXT(f, entry);
        if (f->parent.rank != rank || strcmp(f->parent.nspace, nspace) != 0)
            continue;
        log_debug("%s rank %u, which has spawned %s, takes its output no more", nspace, rank,
                  f->child);
        end(all, f);
    }
}

void forwards_nspace_ended(struct forwards *forwards, const char *nspace)
{
    if (forwards == NULL)
        return;
    for (struct forward *f = LIST_FIRST(&forwards->list), *next; f != NULL; f = next) {
        next = LIST_NEXT(f, entry);
        if (f->state == FORWARD_OPEN && strcmp(f->child, nspace) == 0)
            end(forwards, f);
    }
}
