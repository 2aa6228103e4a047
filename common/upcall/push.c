/* SPDX-License-Identifier: BSD-3-Clause */
/* Pieces of input on their way from libpmix to other servers. */
#include "common/upcall/push.h"

#include "common/notify/refuse.h"
#include "common/server/spawned/inputs.h"
#include "common/upcall/directives.h"
#include "common/upcall/upcall.h"
#include "common/util/log.h"

#include <stdlib.h>
#include <string.h>

/* One call of PMIx_IOF_push; or the end of file of a process that is gone, for which no caller
 * waits.
 */
struct push {
    struct request request; /* first */
    struct push *next;
    struct inlet *inlet; /* once it is there */
    pmix_nspace_t child;
    pmix_rank_t ranks[PUSH_TARGETS_MAX]; /* without those that have turned out to take no more */
    size_t nranks;
    uint32_t timeout; /* s for each piece; 0: none */
    bool last;        /* the parent is gone: the inlet is freed behind it */
    bool ends;        /* the end of file is still to be sent */
    bool gone;        /* the process that was asked takes no more */
    size_t at;        /* which of the ranks takes the piece */
    size_t sent;      /* bytes that all have taken */
    size_t piece;     /* bytes of the piece that is under way */
    uint32_t left;    /* servers that have not taken it */
    pmix_status_t status;
    size_t len;
    unsigned char data[]; /* none if it is more than PUSH_BYTES */
};

/* One spawn. */
struct inlet {
    LIST_ENTRY(inlet) entry;
    struct server *server;
    pmix_nspace_t child; /* "" until the call was answered */
    pmix_proc_t parent;
    uint32_t rank;        /* or PMIX_RANK_WILDCARD */
    struct push *first;   /* those that wait; the first one is under way */
    struct push **behind; /* where the next one goes */
    size_t waiting;       /* bytes of these */
    pmix_status_t cut;    /* why no more is taken, or PMIX_SUCCESS */
    bool closing;         /* the parent is gone: `last` is queued, or follows the spawn's answer */
};

static void free_inlet(struct inlet *inlet)
{
    LIST_REMOVE(inlet, entry);
    free(inlet);
}

static size_t weight(const struct push *p)
{
    return p->len + PUSH_OVERHEAD;
}

static void give(struct push *p, pmix_status_t status)
{
    answer_status(&p->request.answer, status);
    free(p);
}

/* ---- pieces ---- */

static void send_piece(struct push *p);

static void take_first(struct inlet *inlet)
{
    struct push *p = inlet->first;
    inlet->first = p->next;
    inlet->waiting -= weight(p);
    if (inlet->first == NULL)
        inlet->behind = &inlet->first;
}

/* Answers all that wait; what is pushed from now on is refused with the same status. */
static void cut(struct inlet *inlet, pmix_status_t why)
{
    inlet->cut = why;
    while (inlet->first != NULL && !inlet->first->last) {
        struct push *p = inlet->first;
        take_first(inlet);
        give(p, why);
    }
}

/* The first one has been taken, or has failed. */
static void finish(struct push *p)
{
    struct inlet *inlet = p->inlet;
    pmix_status_t status = p->status;
    bool last = p->last;
    take_first(inlet);
    give(p, status);
    if (last) {
        free_inlet(inlet);
        return;
    }
    /* A process that has ended, or has closed its input, may be one of several. */
    if (status != PMIX_SUCCESS && status != PMIX_ERR_NOT_AVAILABLE)
        cut(inlet, status);
    if (inlet->first != NULL)
        send_piece(inlet->first);
}

/* All servers have answered. */
static void go_on(struct push *p)
{
    bool failed = p->status != PMIX_SUCCESS && p->status != PMIX_ERR_NOT_AVAILABLE;
    if (p->gone)
        p->ranks[p->at] = p->ranks[--p->nranks];
    else
        p->at++;
    if (!failed && p->at < p->nranks) {
        send_piece(p);
        return;
    }
    p->at = 0;
    p->sent += p->piece;
    p->ends = p->ends && p->piece > 0;
    if (!failed && p->nranks > 0 && (p->sent < p->len || p->ends))
        send_piece(p);
    else
        finish(p);
}

/* ask_done_fn */
static void on_taken(void *arg, int32_t status, const void *data, size_t len)
{
    struct push *p = arg;
    (void)data, (void)len;
    p->gone |= status == PMIX_ERR_NOT_AVAILABLE;
    if (status != PMIX_SUCCESS &&
        (p->status == PMIX_SUCCESS || p->status == PMIX_ERR_NOT_AVAILABLE))
        p->status = status;
    if (--p->left == 0)
        go_on(p);
}

static void ask(struct push *p, uint32_t node, uint32_t rank)
{
    struct wire_out body = {0};
    wire_put_u32(&body, rank);
    wire_put_block(&body, p->data + p->sent, p->piece);
    p->left++;
    asks_send(p->inlet->server->asks, node, ASK_INPUT, body.data, body.len, p->timeout, on_taken,
              p);
    wire_out_free(&body);
}

/* Sends the next piece to a server, or to all servers of the spawned step. */
static void send_piece(struct push *p)
{
    const struct inlet *inlet = p->inlet;
    const struct nspace *ns = nspace_find(inlet->server->nspace, inlet->child);
    uint32_t rank = p->ranks[p->at], node;
    if (rank == PMIX_RANK_WILDCARD)
        rank = inlet->rank;
    p->piece = p->len - p->sent < INPUTS_PIECE ? p->len - p->sent : INPUTS_PIECE;
    p->left = 1; /* until all were asked */
    p->gone = false;
    if (ns == NULL)
        p->status = PMIX_ERR_UNREACH;
    else if (rank == PMIX_RANK_WILDCARD)
        for (uint32_t i = 0; i < ns->nnodes; i++)
            ask(p, ns->base + i, INPUTS_ALL);
    else if (nspace_node(inlet->server->nspace, inlet->child, rank, &node) == 0)
        ask(p, node, rank);
    else
        p->status = PMIX_ERR_UNREACH;
    on_taken(p, PMIX_SUCCESS, NULL, 0);
}

static void append(struct inlet *inlet, struct push *p)
{
    bool idle = inlet->first == NULL;
    p->inlet = inlet;
    *inlet->behind = p;
    inlet->behind = &p->next;
    inlet->waiting += weight(p);
    if (idle)
        send_piece(p);
}

/* ---- calls ---- */

/* @return where all targets of a push take input, or NULL */
static struct inlet *find_inlet(const struct server *server, const struct push *p)
{
    struct inlet *inlet;
    LIST_FOREACH (inlet, &server->inlets, entry)
        if (!inlet->closing && inlet->child[0] != '\0' && strcmp(inlet->child, p->child) == 0)
            break;
    for (size_t i = 0; i < p->nranks && inlet != NULL; i++) {
        uint32_t rank = p->ranks[i], node;
        bool takes = rank == inlet->rank || inlet->rank == PMIX_RANK_WILDCARD;
        if (rank != PMIX_RANK_WILDCARD &&
            (!takes || nspace_node(server->nspace, inlet->child, rank, &node) != 0))
            return NULL;
    }
    return inlet;
}

/* @thread the loop's */
static void run_push(struct handoff_item *item)
{
    struct push *p = (struct push *)item;
    struct server *server = upcall_server();
    struct inlet *inlet = find_inlet(server, p);
    if (server->leaving) {
        give(p, PMIX_ERR_UNREACH);
    } else if (inlet == NULL) {
        give(p, refused(PMIX_ERR_NOT_SUPPORTED,
                        "PMIx_IOF_push: %s rank %u takes no input: only a process does that a "
                        "running process of this node has spawned with PMIX_FWD_STDIN",
                        p->child, p->ranks[0]));
    } else if (inlet->cut != PMIX_SUCCESS) {
        give(p, inlet->cut);
    } else if (p->len > PUSH_BYTES || inlet->waiting + weight(p) > PUSH_BYTES + PUSH_OVERHEAD) {
        log_error("input for %s is cut: it comes faster than it is read, and more than %d bytes "
                  "would wait here; what was pushed before arrives, and the end of file only when "
                  "the process that has spawned ends",
                  inlet->child, PUSH_BYTES);
        inlet->cut = PMIX_ERR_OUT_OF_RESOURCE;
        give(p, inlet->cut);
    } else {
        append(inlet, p);
    }
}

static void read_directives(struct push *p, const pmix_info_t directives[], size_t ndirs)
{
    for (size_t i = 0; i < ndirs; i++) {
        p->ends |= directive_is_on(&directives[i], PMIX_IOF_COMPLETE);
        if (PMIX_CHECK_KEY(&directives[i], PMIX_TIMEOUT))
            directive_number(&directives[i].value, &p->timeout);
    }
}

pmix_status_t upcall_push_stdin(const pmix_proc_t *source, const pmix_proc_t targets[],
                                size_t ntargets, const pmix_info_t directives[], size_t ndirs,
                                const pmix_byte_object_t *bo, pmix_op_cbfunc_t cbfunc, void *cbdata)
{
    size_t len = bo != NULL && bo->bytes != NULL ? bo->size : 0;
    (void)source;
    pmix_status_t fault = directives_check(CALL_PUSH, "", directives, ndirs);
    if (fault != PMIX_SUCCESS)
        return fault;
    if (targets == NULL || ntargets == 0 || ntargets > PUSH_TARGETS_MAX)
        return refused(PMIX_ERR_BAD_PARAM,
                       "PMIx_IOF_push: it names %zu processes; name 1 to %d, or all of them by "
                       "PMIX_RANK_WILDCARD",
                       ntargets, PUSH_TARGETS_MAX);
    size_t copied = len <= PUSH_BYTES ? len : 0; /* else it is refused, behind the others */
    struct push *p = calloc(1, sizeof *p + copied);
    p->ends = len == 0;
    PMIX_LOAD_NSPACE(p->child, targets[0].nspace);
    for (; p->nranks < ntargets; p->nranks++) {
        if (!PMIX_CHECK_NSPACE(targets[p->nranks].nspace, p->child))
            break;
        p->ranks[p->nranks] = targets[p->nranks].rank;
    }
    if (p->nranks < ntargets) {
        free(p);
        return refused(PMIX_ERR_NOT_SUPPORTED,
                       "PMIx_IOF_push: its targets are of several namespaces; name those of one");
    }
    read_directives(p, directives, ndirs);
    p->len = len;
    if (copied > 0)
        memcpy(p->data, bo->bytes, copied);
    p->request.answer = answer_op(cbfunc, cbdata);
    return upcall_post(&p->request.item, run_push);
}

/* ---- spawns, and what ends ---- */

struct inlet *inlet_new(struct server *server, const pmix_proc_t *parent, uint32_t rank)
{
    struct inlet *inlet = calloc(1, sizeof *inlet);
    inlet->server = server;
    inlet->parent = *parent;
    inlet->rank = rank;
    inlet->behind = &inlet->first;
    inlet->cut = PMIX_SUCCESS;
    LIST_INSERT_HEAD(&server->inlets, inlet, entry);
    return inlet;
}

/* The process that has spawned is gone: the end of file goes behind what it has pushed. */
static void close_inlet(struct inlet *inlet)
{
    struct push *p = calloc(1, sizeof *p);
    inlet->closing = true;
    p->request.answer = answer_op(NULL, NULL);
    p->ranks[0] = PMIX_RANK_WILDCARD;
    p->nranks = 1;
    p->ends = p->last = true;
    append(inlet, p);
}

void inlet_open(struct inlet *inlet, const char *nspace)
{
    PMIX_LOAD_NSPACE(inlet->child, nspace);
    if (inlet->closing)
        close_inlet(inlet);
}

void inlet_drop(struct inlet *inlet)
{
    free_inlet(inlet);
}

void pushes_parent_gone(struct server *server, const char *nspace, uint32_t rank)
{
    for (struct inlet *inlet = LIST_FIRST(&server->inlets), *next; inlet != NULL; inlet = next) {
        next = LIST_NEXT(inlet, entry);
        if (inlet->closing || inlet->parent.rank != rank ||
            strcmp(inlet->parent.nspace, nspace) != 0)
            continue;
        if (inlet->child[0] == '\0')
            inlet->closing = true;
        else
            close_inlet(inlet);
    }
}

void pushes_nspace_ended(struct server *server, const char *nspace)
{
    for (struct inlet *inlet = LIST_FIRST(&server->inlets), *next; inlet != NULL; inlet = next) {
        next = LIST_NEXT(inlet, entry);
        if (strcmp(inlet->child, nspace) != 0)
            continue;
        if (inlet->first == NULL) /* else it is freed when the parent is gone */
            free_inlet(inlet);
    }
}

bool pushes_wait(const struct server *server, bool tell)
{
    const struct inlet *inlet;
    bool found = false;
    LIST_FOREACH (inlet, &server->inlets, entry) {
        found = found || inlet->first != NULL;
        if (tell && inlet->first != NULL)
            log_error("input for %s is cut: it was not read in time", inlet->child);
    }
    return found;
}

void pushes_free(struct server *server)
{
    struct inlet *inlet;
    while ((inlet = LIST_FIRST(&server->inlets)) != NULL) {
        cut(inlet, PMIX_ERR_UNREACH);
        free(inlet->first); /* `last`, for which no caller waits */
        free_inlet(inlet);
    }
}
