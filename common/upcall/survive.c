/* SPDX-License-Identifier: BSD-3-Clause */
/* Group operations that go on without lost participants.
 *
 * With PMIX_GROUP_FT_COLLECTIVE, and in a destruct with PMIX_GROUP_NOTIFY_TERMINATION, a lost
 * participant does not fail an operation. The engine fails it all the same, on all servers, with
 * one list of lost participants. Then every server on which it is to go on tries again without
 * these. So the operation that succeeds is one like any other, and its membership is the same
 * everywhere. libpmix still lists the dead in what it hands up. So a late caller starts with all of
 * them, fails by the loss, and follows.
 */
#include "common/notify/loss.h"
#include "common/notify/refuse.h"
#include "common/server/tasks/tasks.h"
#include "common/tracker/values/retry.h"
#include "common/upcall/collective.h"
#include "common/util/clock.h"
#include "common/util/log.h"

void survive_check(struct collective *c)
{
    char release[LIBRARY_TEXT_SIZE];
    if (library_has(c->server->library, LIBRARY_GROUP_FT) || (!c->survives && !c->notify))
        return;
    pmix_status_t fault =
        refused_aloud(PMIX_ERR_NOT_SUPPORTED, "group \"%s\": %s %s; this one has %s", c->id,
                      c->survives ? "PMIX_GROUP_FT_COLLECTIVE" : "PMIX_GROUP_NOTIFY_TERMINATION",
                      library_advice(LIBRARY_GROUP_FT), library_text(c->server->library, release));
    c->survives = c->notify = false;
    c->call.flags &= ~(uint32_t)ENGINE_WANT_NOTIFY;
    if (c->call.status == PMIX_SUCCESS)
        c->call.status = fault;
}

bool survive_wants(const struct collective *c)
{
    return c->survives || (c->kind == COLL_DESTRUCT && c->notify);
}

static void call_again(struct collective *c, bool over)
{
    /* Others may have failed it before any server knew of the loss that our call told; and what has
     * ended since then is none of the second try, as others may know of it. */
    const struct signature sig = {.kind = c->kind, .members = c->members};
    if (c->lost || c->call.status == PMIX_SUCCESS)
        c->call.status = tasks_status(c->server, &sig);
    c->lost = c->lost || c->call.status != PMIX_SUCCESS;
    if (c->call.status == PMIX_SUCCESS && over)
        c->call.status = PMIX_ERR_TIMEOUT;
    char what[COLL_DESCRIBE_MAX];
    coll_describe(c->kind, c->id, what, sizeof what);
    log_info("%s goes on without %llu lost processes", what,
             (unsigned long long)procset_size(&c->gone));
    c->call.gone = &c->gone;
    engine_call(c->server->engine, &c->call);
}

bool survive_again(struct collective *c, const struct engine_result *result)
{
    bool over;
    /* The shortest deadline counts for all. */
    if (result->status == 0 || result->status == PMIX_ERR_TIMEOUT || !survive_wants(c) ||
        c->state == COLLECTIVE_COVERED || c->role == COLLECTIVE_LEADER)
        return false;
    c->call.timeout = retry_timeout(c->timeout, now_ms() - c->started, &over);
    if (c->role == COLLECTIVE_MEMBER) { /* it knows its leaders only by the id */
        if (result->gone == NULL && result->status != PMIX_ERR_LOST_CONNECTION)
            return false;
        if (result->gone != NULL)
            procset_unite(&c->gone, result->gone);
        if (over)
            c->call.status = PMIX_ERR_TIMEOUT;
        engine_join(c->server->engine, &c->call);
        return true;
    }
    bool again = result->gone != NULL &&
                 retry_without(&c->members, &c->expanded, &c->gone, result->gone) &&
                 collective_prepare(c) == 0;
    if (again)
        call_again(c, over);
    return again;
}

/* Whether members here are to be told: libpmix tells of those whose connection it had itself. A
 * construct is a new group, whose members may know of others that have gone. */
static bool is_news(const struct collective *c, const char *nspace, uint32_t rank, uint32_t node)
{
    return node != c->server->boot.node &&
           (registry_tell(c->server->registry, c->id, nspace, rank) || c->kind == COLL_CONSTRUCT);
}

typedef void teller(const struct collective *c, const struct procset *left, const char *nspace,
                    uint32_t rank, uint32_t node);

static void tell_news(const struct collective *c, const struct procset *left, const char *nspace,
                      uint32_t rank, uint32_t node)
{
    if (is_news(c, nspace, rank, node))
        loss_tell_members(c->server, c->id, left, nspace, rank);
}

/* Calls @p tell for all of @p gone. A peer may name more ranks than there are. */
static void tell_all(const struct collective *c, const struct procset *left,
                     const struct procset *gone, teller *tell)
{
    uint32_t node;
    for (uint32_t i = 0; i < gone->nparts; i++)
        for (uint32_t j = 0; j < gone->parts[i].ranks.n; j++) {
            const struct range *range = &gone->parts[i].ranks.v[j];
            for (uint64_t rank = range->first;
                 rank <= range->last &&
                 nspace_node(c->server->nspace, gone->parts[i].nspace, (uint32_t)rank, &node) == 0;
                 rank++)
                tell(c, left, gone->parts[i].nspace, (uint32_t)rank, node);
        }
}

void survive_tell(const struct collective *c)
{
    tell_all(c, &c->members, &c->gone, tell_news);
}

/* Whether this server speaks to a node that has ended its part of a construct: it has the first
 * participant of another node. */
static bool speaks_to(const struct collective *c, const struct procset *left, uint32_t node)
{
    uint32_t its;
    for (struct procset_at at = {0}; procset_next(left, &at);)
        if (nspace_node(c->server->nspace, at.nspace, at.rank, &its) == 0 && its != node)
            return its == c->server->boot.node;
    return false;
}

static void tell_of_failure(const struct collective *c, const struct procset *left,
                            const char *nspace, uint32_t rank, uint32_t node)
{
    loss_tell_members(c->server, c->id, left, nspace, rank);
    if (node != c->server->boot.node && speaks_to(c, left, node))
        loss_tell_node(c->server, c->id, left, nspace, rank);
}

void survive_failed(const struct collective *c, const struct procset *gone)
{
    struct procset left = {0};
    procset_except(&left, &c->members, gone);
    tell_all(c, &left, gone, tell_of_failure);
    procset_free(&left);
}
