/* SPDX-License-Identifier: BSD-3-Clause */
/* Servers of other jobs. A job is named by its namespace, "flux." and its id; the module says which
 * brokers it has, in the order of its nodes, and where all servers of the user meet. */
#include "plugins/flux/jobid.h"
#include "plugins/flux/rm_flux.h"

#include "common/util/clock.h"
#include "common/util/log.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static const char prefix[] = "flux.";
enum { PREFIX = sizeof prefix - 1, NAME_SIZE = PREFIX + JOBID_SIZE };

static void name_job(uint64_t job, char name[NAME_SIZE])
{
    strcpy(name, prefix);
    jobid_write(job, name + PREFIX);
}

/* @return 0 for a name that is not what we call a job */
static uint64_t job_of(const char *nspace)
{
    char name[NAME_SIZE];
    uint64_t job = 0;
    if (strncmp(nspace, prefix, PREFIX) != 0 || !jobid_parse(nspace + PREFIX, &job))
        return 0;
    name_job(job, name);
    return strcmp(name, nspace) == 0 ? job : 0;
}

void others_attach(struct rm *rm, const char *nspace, uint64_t run, uint32_t base, uint32_t nnodes,
                   const struct boot_node *nodes)
{
    (void)run;   /* Flux never gives a number twice */
    (void)nodes; /* the module says where they are */
    if (base != rm->npeers)
        return;
    struct other *other = calloc(1, sizeof *other);
    rm->peers = realloc(rm->peers, ((size_t)base + nnodes) * sizeof *rm->peers);
    other->nspace = strdup(nspace);
    other->peers = calloc(nnodes, sizeof *other->peers);
    other->job = job_of(nspace);
    other->base = base;
    other->nnodes = nnodes;
    other->next = rm->others;
    rm->others = other;
    for (uint32_t node = 0; node < nnodes; node++) {
        struct peer *peer = rm->peers[base + node] = &other->peers[node];
        *peer =
            (struct peer){.job = other->job, .node = node, .name = other->nspace, .other = other};
        peer->end = &peer->sent;
    }
    rm->npeers = base + nnodes;
}

/* ---- questions ---- */

static struct question *open_question(struct rm *rm)
{
    struct question *q = calloc(1, sizeof *q);
    q->give_up = now_ms() + rm->peer_ms;
    q->retry_ms = RM_RETRY_FIRST_MS;
    q->next = rm->questions;
    rm->questions = q;
    rm_wake(rm);
    return q;
}

static void close_question(struct rm *rm, struct question *q)
{
    struct question **at = &rm->questions;
    while (*at != q)
        at = &(*at)->next;
    *at = q->next;
    free(q);
}

static void lose_job(struct rm *rm, const struct other *other, const char *why)
{
    for (uint32_t node = 0; node < other->nnodes; node++)
        peer_lose(rm, other->base + node, why);
}

/* Ends a question for where to meet; the server may ask the next one at once. */
static void say_home(struct rm *rm, struct question *q, const struct rm_server *home,
                     const char *why)
{
    rm_rendezvous_fn *done = q->done;
    void *arg = q->arg;
    close_question(rm, q);
    if (!rm->closing)
        done(arg, home, why);
}

static void fail(struct rm *rm, struct question *q, const char *why)
{
    if (q->other != NULL) {
        lose_job(rm, q->other, why);
        close_question(rm, q);
    } else {
        say_home(rm, q, NULL, why);
    }
}

static void ask(struct rm *rm, struct question *q)
{
    struct wire_out out = {0};
    wire_put_u64(&out, rm->job);
    uint64_t job = q->other != NULL ? q->other->job : q->job;
    if (job != 0)
        wire_put_u64(&out, job);
    q->tag = broker_tag(rm);
    broker_ask(rm, job != 0 ? "muster.find" : "muster.meet", &out, q->tag);
}

/* Asks for the brokers of a job, once. */
static void find(struct rm *rm, struct other *other)
{
    other->asked = true;
    if (other->job != 0)
        open_question(rm)->other = other;
    else
        lose_job(rm, other, "it is no job of Flux");
}

int64_t others_tick(struct rm *rm, int64_t now)
{
    int64_t when = INT64_MAX;
    for (struct other *other = rm->others; other != NULL; other = other->next)
        if (other->wanted && !other->asked)
            find(rm, other);
    for (struct question *q = rm->questions; q != NULL;) {
        int64_t due = q->give_up;
        bool gone = rm->broker == BROKER_GONE, knows = rm->broker == BROKER_KNOWS;
        if (now >= q->give_up || gone) {
            fail(rm, q,
                 gone ? "the connection to our own broker was lost"
                      : "the broker's module does not answer");
            when = INT64_MAX;
            q = rm->questions; /* others may have come, or gone */
            continue;
        }
        if (q->tag == 0 && knows && now >= q->not_before)
            ask(rm, q);
        if (q->tag == 0 && knows)
            due = q->not_before;
        when = due < when ? due : when;
        q = q->next;
    }
    return when;
}

/* @param job 0: where to meet */
static void open_server(struct rm *rm, uint64_t job, rm_rendezvous_fn *done, void *arg)
{
    struct question *q = open_question(rm);
    q->job = job;
    q->done = done;
    q->arg = arg;
}

void others_rendezvous(struct rm *rm, rm_rendezvous_fn *done, void *arg)
{
    open_server(rm, 0, done, arg);
}

void others_resolve(struct rm *rm, const char *nspace, rm_rendezvous_fn *done, void *arg)
{
    uint64_t job = job_of(nspace);
    if (job != 0)
        open_server(rm, job, done, arg);
    else
        done(arg, NULL, "it is no job of Flux");
}

void others_find_again(struct rm *rm)
{
    for (struct other *other = rm->others; other != NULL; other = other->next) {
        const struct question *open = rm->questions;
        while (open != NULL && open->other != other)
            open = open->next;
        if (other->job != 0 && other->asked && open == NULL)
            open_question(rm)->other = other;
    }
}

/* ---- answers ---- */

static void take_brokers(struct rm *rm, struct question *q, struct wire_in *in)
{
    struct other *other = q->other;
    for (uint32_t node = 0; node < other->nnodes; node++)
        other->peers[node].broker = wire_get_u32(in);
    if (!wire_end(in)) {
        fail(rm, q, "the job has another number of nodes");
        return;
    }
    close_question(rm, q);
    for (uint32_t node = 0; node < other->nnodes; node++) {
        other->peers[node].placed = true;
        peer_push(rm, other->base + node);
    }
}

static void take_home(struct rm *rm, struct question *q, struct wire_in *in)
{
    char name[NAME_SIZE];
    uint64_t job = wire_get_u64(in);
    struct rm_server home = {.nspace = name};
    home.node = wire_get_u32(in);
    home.nnodes = wire_get_u32(in);
    name_job(job, name);
    if (!wire_end(in))
        fail(rm, q, "the broker's module names no server");
    else
        say_home(rm, q, &home, NULL);
}

/* The module has said which brokers a job has: one for each node. */
static void take_job(struct rm *rm, struct question *q, size_t len)
{
    char name[NAME_SIZE];
    struct rm_server found = {.nspace = name, .nnodes = (uint32_t)(len / 4)};
    name_job(q->job, name);
    if (len == 0 || len % 4 != 0)
        fail(rm, q, "the broker's module names no server");
    else
        say_home(rm, q, &found, NULL);
}

bool others_answer(struct rm *rm, uint32_t tag, const flux_msg_t *msg)
{
    struct question *q = rm->questions;
    struct wire_in in;
    const void *data;
    size_t len;
    while (q != NULL && q->tag != tag)
        q = q->next;
    if (q == NULL)
        return false;
    if (flux_response_decode_raw(msg, NULL, &data, &len) < 0) {
        int rc = errno;
        const char *why = NULL;
        if (flux_response_decode_error(msg, &why) < 0 || why == NULL)
            why = strerror(rc);
        q->tag = 0;
        if (rc == ENOSYS || rc == ENOTCONN || rc == EAGAIN) { /* loaded anew, or too many at once */
            q->not_before = now_ms() + q->retry_ms;
            q->retry_ms = q->retry_ms * 2 > RM_RETRY_MAX_MS ? RM_RETRY_MAX_MS : q->retry_ms * 2;
        } else {
            fail(rm, q, why);
        }
        return true;
    }
    wire_in_init(&in, data, len);
    if (q->other != NULL)
        take_brokers(rm, q, &in);
    else if (q->job != 0)
        take_job(rm, q, len);
    else
        take_home(rm, q, &in);
    return true;
}

void others_free(struct rm *rm)
{
    while (rm->questions != NULL)
        close_question(rm, rm->questions);
    while (rm->others != NULL) {
        struct other *other = rm->others;
        rm->others = other->next;
        free(other->nspace);
        free(other->peers);
        free(other);
    }
}
