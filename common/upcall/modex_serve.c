/* SPDX-License-Identifier: BSD-3-Clause */
/* Serves what other servers ask for by direct modex: the data of a process of this node. And what
 * this one asks for itself, about a process that was named by its connection.
 *
 * libpmix gives what a process has committed, and waits for its first commit. The key that is asked
 * for may come with a later one, of which a host is not told. So it is looked for, again and again,
 * until it is there, the process has gone or the asker's time is over, and only then is libpmix
 * asked for the answer. A key of local scope, which is not for others, counts as there; libpmix 4.2
 * does not show such keys.
 *
 *     looks ── not there, nothing seen yet ──► primes (libpmix waits for a commit) ──► looks
 *     looks ── not there ──► waits ──► looks
 *     looks ── there, or it is to wait no more ──► asked ──► (libpmix's answer is passed on)
 *     primes, asked ── the process has gone and put nothing ──► answered
 *
 * Of a key that is there libpmix is asked from its own thread.
 */
#include "common/upcall/upcall.h"
#include "common/util/clock.h"
#include "common/util/log.h"

#include <pmix.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

enum {
    LOOK_FIRST_MS = 10, /* until a key is looked for again; then twice that, and so on */
    LOOK_MAX_MS = 500,
};

enum served_state {
    SERVED_LOOKS,       /* libpmix is asked for the key */
    SERVED_LOOKS_LOCAL, /* the same, among keys of local scope */
    SERVED_PRIMES,      /* libpmix is asked for the data, so as to learn of a commit */
    SERVED_WAITS,       /* the timer runs */
    SERVED_ASKED,       /* libpmix is asked for the answer */
    SERVED_ANSWERED,    /* answered without libpmix, which is still to call back */
};

/* Another server's question. It lives until libpmix calls back, which it may never do, or we end.
 */
struct served {
    struct handoff_item item;
    struct handoff_item noted; /* libpmix was asked for the answer */
    LIST_ENTRY(served) entry;  /* server->served */
    enum served_state state;
    uint32_t from;
    uint64_t id;
    ask_done_fn *done; /* of our own question, in place of both; NULL: another server's */
    void *arg;         /* of that */
    uint64_t order;    /* of such questions, as libpmix was asked for data */
    uint32_t rank;
    char *key;         /* owned; "": none */
    pmix_info_t local; /* the directive to look for keys of local scope */
    bool primed;       /* the process has committed something */
    struct timer again;
    unsigned wait;     /* the last one, ms */
    uint32_t patience; /* how long the key is waited for, s */
    int64_t until;     /* that long after it was first found missing, now_ms() */
    pmix_status_t status;
    char *data;
    size_t len;
};

static void look(struct served *s, enum served_state state);

static void free_served(struct served *s)
{
    timer_stop(&s->again);
    free(s->data);
    free(s->key);
    free(s);
}

static void say(const struct served *s, pmix_status_t status, const void *data, size_t len)
{
    if (s->done != NULL)
        s->done(s->arg, status, data, len);
    else
        asks_reply(upcall_server()->asks, s->from, s->id, status, data, len);
}

static void reply(struct served *s)
{
    if (s->state != SERVED_ANSWERED)
        say(s, s->status, s->data, s->len);
    LIST_REMOVE(s, entry);
    free_served(s);
}

static const struct task *task_of(const struct served *s)
{
    const struct server *server = upcall_server();
    return &server->tasks[server->nspace->local_of[s->rank]];
}

static bool is_gone(const struct served *s)
{
    return task_of(s)->state >= TASK_FINALIZED;
}

/* The answer about one that libpmix does not know any more: see forget.c. */
static void reply_kept(struct served *s)
{
    const struct task *task = task_of(s);
    s->status = task->data != NULL ? PMIX_SUCCESS : PMIX_ERR_NOT_FOUND;
    free(s->data);
    s->data = task->len > 0 ? malloc(task->len) : NULL;
    s->len = task->len;
    if (s->len > 0)
        memcpy(s->data, task->data, s->len);
    reply(s);
}

/* @thread the loop's */
static void run_data(struct handoff_item *item)
{
    struct served *s = (struct served *)item;
    if (s->state != SERVED_ANSWERED && s->status != PMIX_SUCCESS &&
        task_of(s)->client == CLIENT_FORGOTTEN) {
        reply_kept(s); /* it was asked for just after libpmix had forgotten it */
        return;
    }
    if (s->state >= SERVED_ASKED || s->status != PMIX_SUCCESS) {
        reply(s);
        return;
    }
    s->primed = true;
    free(s->data); /* the key may have come after it */
    s->data = NULL;
    s->len = 0;
    look(s, SERVED_LOOKS);
}

/* @thread PMIx's */
static void on_data(pmix_status_t status, char *data, size_t len, void *cbdata)
{
    struct served *s = cbdata;
    s->status = status;
    if (status == PMIX_SUCCESS && len > 0) {
        s->data = malloc(len);
        memcpy(s->data, data, len);
        s->len = len;
    }
    upcall_post(&s->item, run_data);
}

/* @thread any */
static pmix_status_t request_data(struct served *s)
{
    pmix_proc_t proc;
    PMIX_LOAD_PROCID(&proc, upcall_server()->boot.nspace, s->rank);
    return PMIx_server_dmodex_request(&proc, on_data, s);
}

/* libpmix was asked for the data. It answers when the process has committed something. */
static void asked(struct served *s, enum served_state state)
{
    struct server *server = upcall_server();
    s->state = state;
    s->order = ++server->nserved;
    if (is_gone(s))
        upcall_task_gone(server, s->rank);
}

static void ask_library(struct served *s, enum served_state state)
{
    if (task_of(s)->client == CLIENT_FORGOTTEN) {
        reply_kept(s);
        return;
    }
    pmix_status_t rc = request_data(s);
    if (rc == PMIX_SUCCESS) {
        asked(s, state);
        return;
    }
    s->status = rc;
    reply(s);
}

static void on_again(void *arg, struct timer *timer)
{
    (void)timer;
    look(arg, SERVED_LOOKS);
}

static void wait_for_commit(struct served *s)
{
    if (s->wait == 0) {
        log_debug("upcall: direct modex of rank %u, which has not put \"%s\" yet", s->rank, s->key);
        s->until = now_ms() + (int64_t)s->patience * 1000;
    }
    s->state = SERVED_WAITS;
    s->wait = s->wait == 0 ? LOOK_FIRST_MS : s->wait < LOOK_MAX_MS / 2 ? s->wait * 2 : LOOK_MAX_MS;
    timer_init(&s->again, &upcall_server()->timers, on_again, s);
    timer_after(&s->again, s->wait);
}

/* @thread the loop's */
static void run_looked(struct handoff_item *item)
{
    struct served *s = (struct served *)item;
    if (s->status == PMIX_SUCCESS || is_gone(s) || (s->wait > 0 && s->until <= now_ms()))
        ask_library(s, SERVED_ASKED);
    else if (s->state == SERVED_LOOKS)
        look(s, SERVED_LOOKS_LOCAL);
    else if (!s->primed)
        ask_library(s, SERVED_PRIMES);
    else
        wait_for_commit(s);
}

/* @thread the loop's, before any answer */
static void run_noted(struct handoff_item *item)
{
    asked((struct served *)((char *)item - offsetof(struct served, noted)), SERVED_ASKED);
}

/* @thread PMIx's. A key that is there is asked for at once: the loop is told, and not waited for.
 */
static void on_looked(pmix_status_t status, pmix_value_t *value, void *cbdata)
{
    struct served *s = cbdata;
    (void)value;
    pmix_status_t rc = status == PMIX_SUCCESS ? request_data(s) : status;
    if (rc == PMIX_SUCCESS) {
        upcall_post(&s->noted, run_noted);
        return;
    }
    s->status = rc;
    upcall_post(&s->item, run_looked);
}

/* Looks for the key in what libpmix has here for other nodes, or for this one. */
static void look(struct served *s, enum served_state state)
{
    pmix_proc_t proc;
    s->state = state;
    PMIX_LOAD_PROCID(&proc, upcall_server()->boot.nspace, s->rank);
    pmix_status_t rc =
        PMIx_Get_nb(&proc, s->key, &s->local, state == SERVED_LOOKS_LOCAL, on_looked, s);
    if (rc != PMIX_SUCCESS)
        on_looked(rc, NULL, s);
}

/* A question about a process that has finalized or ended. libpmix waits for what that process would
 * commit, for ever; but what it has it gives in the order that it was asked. So another question is
 * put behind, which it can always answer: that of the job's own data. Questions that come after it
 * may still have their answer on the way. */
struct behind {
    struct handoff_item item;
    uint64_t order; /* of the last question before it */
    uint32_t rank;
};

/* @return whether libpmix owes an answer about @p rank that it was asked for by then */
static bool owes(const struct served *s, uint32_t rank, uint64_t order)
{
    return s->rank == rank && (s->state == SERVED_ASKED || s->state == SERVED_PRIMES) &&
           s->order <= order;
}

/* @thread the loop's */
static void run_behind(struct handoff_item *item)
{
    struct behind *behind = (struct behind *)item;
    struct server *server = upcall_server();
    struct served *s;
    LIST_FOREACH (s, &server->served, entry)
        if (owes(s, behind->rank, behind->order)) {
            log_debug("upcall: direct modex of rank %u, which has put nothing and is gone",
                      s->rank);
            const struct task *task = task_of(s); /* perhaps libpmix forgot it just before */
            s->state = SERVED_ANSWERED;
            say(s, task->data != NULL ? PMIX_SUCCESS : PMIX_ERR_NOT_FOUND, task->data, task->len);
        }
    free(behind);
}

/* @thread PMIx's */
static void on_behind(pmix_status_t status, char *data, size_t len, void *cbdata)
{
    struct behind *behind = cbdata;
    (void)status, (void)data, (void)len;
    upcall_post(&behind->item, run_behind);
}

void upcall_task_gone(struct server *server, uint32_t rank)
{
    pmix_proc_t job;
    bool asked = false;
    struct served *s;
    LIST_FOREACH (s, &server->served, entry) {
        asked |= owes(s, rank, server->nserved);
        if (s->rank == rank && s->state == SERVED_WAITS)
            timer_after(&s->again, 0); /* it will not get its key */
    }
    if (!asked)
        return;
    struct behind *behind = calloc(1, sizeof *behind);
    behind->rank = rank;
    behind->order = server->nserved;
    PMIX_LOAD_PROCID(&job, server->boot.nspace, PMIX_RANK_WILDCARD);
    if (PMIx_server_dmodex_request(&job, on_behind, behind) != PMIX_SUCCESS)
        run_behind(&behind->item); /* libpmix does not answer */
}

void upcall_free_served(struct server *server)
{
    struct served *s;
    while ((s = LIST_FIRST(&server->served)) != NULL) {
        LIST_REMOVE(s, entry);
        if (s->done != NULL && s->state != SERVED_ANSWERED)
            s->done(s->arg, PMIX_ERR_UNREACH, NULL, 0); /* it frees what has asked */
        free_served(s);
    }
}

/* @return the question, or NULL when it is malformed or about no process here */
static struct served *read_question(const struct server *server, const void *body, size_t len)
{
    struct wire_in in;
    char name[PROCSET_NAME_MAX + 1];
    uint32_t node;
    struct served *s = calloc(1, sizeof *s);
    wire_in_init(&in, body, len);
    wire_get_str(&in, name, sizeof name);
    s->rank = wire_get_u32(&in);
    s->key = wire_get_strdup(&in, PMIX_MAX_KEYLEN);
    s->patience = wire_get_u32(&in);
    PMIX_INFO_LOAD(&s->local, PMIX_DATA_SCOPE, &(pmix_scope_t){PMIX_LOCAL}, PMIX_SCOPE);
    if (wire_end(&in) && nspace_node(server->nspace, name, s->rank, &node) == 0 &&
        node == server->boot.node)
        return s;
    free_served(s);
    return NULL;
}

static void begin(struct server *server, struct served *s)
{
    LIST_INSERT_HEAD(&server->served, s, entry);
    if (s->key[0] != '\0' && !is_gone(s))
        look(s, SERVED_LOOKS);
    else
        ask_library(s, SERVED_ASKED);
}

void upcall_serve_modex(void *arg, uint32_t from, uint64_t id, const void *body, size_t len)
{
    struct server *server = arg;
    struct served *s = read_question(server, body, len);
    if (s == NULL) {
        asks_reply(server->asks, from, id, PMIX_ERR_NOT_FOUND, NULL, 0);
        return;
    }
    s->from = from;
    s->id = id;
    begin(server, s);
}

void upcall_serve_own(struct server *server, const void *body, size_t len, ask_done_fn *done,
                      void *arg)
{
    struct served *s = read_question(server, body, len);
    if (s == NULL) {
        done(arg, PMIX_ERR_NOT_FOUND, NULL, 0);
        return;
    }
    s->done = done;
    s->arg = arg;
    begin(server, s);
}
