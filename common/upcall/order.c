/* SPDX-License-Identifier: BSD-3-Clause */
/* Group ranks: the order in which the members of a construct come.
 *
 * It is that of the array that the leaders gave, and then that of the members that they add.
 * Leaders may give the array in different orders, so one of them counts on all servers: the one
 * that libpmix hands up on the node of the first leader, by namespace and rank. That server puts
 * the array into its contribution, and only if it is not sorted. A server whose leaders add members
 * puts these in. So all servers read the same and make the same order of it, whichever called
 * first. The signature of the operation has no order.
 */
#include "common/nspace/infos.h"
#include "common/upcall/collective.h"

#include <pmix.h>
#include <stdlib.h>
#include <string.h>

/* Of a contribution: PMIX_BYTE_OBJECT of two lists, the leaders' array and whom they add. */
#define MUSTER_GROUP_ORDER "muster.grp.order"

/* Appends what an array names, as far as it is not in @p but. */
static int list_procs(const struct collective *c, struct proclist *list, const pmix_proc_t procs[],
                      size_t n, struct procset *but)
{
    struct proclist all = {0};
    int rc = 0;
    for (size_t i = 0; i < n && rc == 0; i++) {
        struct procset one = {0};
        rc = collective_add_proc(c->server, &one, &procs[i]);
        procset_canonical(&one);
        proclist_add_set(&all, &one);
        procset_free(&one);
    }
    proclist_add_new(list, &all, but);
    proclist_free(&all);
    return rc;
}

/* Whether a list is as the set of its processes has them. */
static bool is_sorted(const struct proclist *list, const struct procset *set)
{
    struct proclist plain = {0};
    proclist_add_set(&plain, set);
    bool sorted = proclist_compare(list, &plain) == 0;
    proclist_free(&plain);
    return sorted;
}

static bool has_first_leader(const struct collective *c)
{
    struct procset_at at = {0};
    uint32_t node;
    return c->role == COLLECTIVE_PARTICIPANTS && procset_next(&c->members, &at) &&
           nspace_node(c->server->nspace, at.nspace, at.rank, &node) == 0 &&
           node == c->server->boot.node;
}

static int make_lists(const struct collective *c, struct proclist *leaders, struct proclist *added)
{
    struct procset but = {0};
    int rc = 0;
    if (has_first_leader(c)) {
        procset_unite(&but, &c->gone);
        rc = list_procs(c, leaders, c->procs, c->nprocs, &but);
        if (rc == 0 && is_sorted(leaders, &c->members))
            proclist_free(leaders);
        procset_free(&but);
    }
    if (rc == 0 && c->nadded > 0) {
        procset_unite(&but, &c->gone);
        procset_unite(&but, &c->all);
        rc = list_procs(c, added, c->added, c->nadded, &but);
    }
    procset_free(&but);
    return rc;
}

/* Appends the lists to what the contribution has. */
static int put(struct collective *c, const struct wire_out *lists)
{
    pmix_byte_object_t bytes = {0}, object = {.bytes = (char *)lists->data, .size = lists->len};
    pmix_info_t info;
    PMIX_INFO_LOAD(&info, MUSTER_GROUP_ORDER, &object, PMIX_BYTE_OBJECT);
    pmix_status_t rc = infos_pack(&info, 1, &bytes);
    PMIX_INFO_DESTRUCT(&info);
    if (rc == PMIX_SUCCESS) {
        c->payload = realloc(c->payload, c->len + bytes.size);
        memcpy(c->payload + c->len, bytes.bytes, bytes.size);
        c->len += bytes.size;
    }
    free(bytes.bytes);
    return rc == PMIX_SUCCESS ? 0 : -1;
}

int order_say(struct collective *c)
{
    struct proclist leaders = {0}, added = {0};
    struct wire_out lists = {0};
    c->len = c->own_len;
    if (c->kind != COLL_CONSTRUCT || c->role == COLLECTIVE_MEMBER ||
        !library_has(c->server->library, LIBRARY_GROUP_ORDER))
        return 0;
    int rc = make_lists(c, &leaders, &added);
    if (rc == 0 && leaders.n + added.n > 0) {
        proclist_write(&leaders, &lists);
        proclist_write(&added, &lists);
        rc = put(c, &lists);
    }
    wire_out_free(&lists);
    proclist_free(&leaders);
    proclist_free(&added);
    return rc;
}

bool order_take(struct order *order, const pmix_info_t *info)
{
    struct proclist leaders = {0};
    struct wire_in in;
    if (!PMIX_CHECK_KEY(info, MUSTER_GROUP_ORDER) || info->value.type != PMIX_BYTE_OBJECT)
        return false;
    order->added = realloc(order->added, (order->nadded + 1) * sizeof *order->added);
    struct proclist *added = &order->added[order->nadded++];
    *added = (struct proclist){0};
    wire_in_init(&in, info->value.data.bo.bytes, info->value.data.bo.size);
    proclist_read(&leaders, &in);
    proclist_read(added, &in);
    order->failed |= !wire_end(&in);
    if (leaders.n > 0 && order->leaders.n == 0) {
        order->leaders = leaders;
        leaders = (struct proclist){0};
    }
    proclist_free(&leaders);
    return true;
}

/* Whether a list is of members, each once: what another server says is not walked before. */
static bool is_of_members(const struct proclist *list, const struct procset *members)
{
    struct procset set = {0};
    proclist_to_set(list, &set);
    bool is = procset_size(&set) == proclist_size(list) && procset_within(&set, members);
    procset_free(&set);
    return is;
}

static int by_first(const void *a, const void *b)
{
    return proclist_compare(a, b);
}

/* Members that no list has: leaders in sorted order. */
static void add_leaders(const struct order *order, struct proclist *list, struct procset *have,
                        const struct procset *members)
{
    struct procset added = {0}, rest = {0};
    struct proclist sorted = {0};
    proclist_add_new(list, &order->leaders, have);
    for (uint32_t i = 0; i < order->nadded; i++)
        proclist_to_set(&order->added[i], &added);
    procset_except(&rest, members, &added);
    proclist_add_set(&sorted, &rest);
    proclist_add_new(list, &sorted, have);
    proclist_free(&sorted);
    procset_free(&rest);
    procset_free(&added);
}

int order_make(struct order *order, const struct procset *members, struct proclist *list)
{
    struct procset have = {0};
    if (order->nadded == 0 && !order->failed)
        return 0;
    bool good = !order->failed && is_of_members(&order->leaders, members);
    for (uint32_t i = 0; i < order->nadded; i++)
        good = good && is_of_members(&order->added[i], members);
    if (!good)
        return -1;
    add_leaders(order, list, &have, members);
    if (order->nadded > 1)
        qsort(order->added, order->nadded, sizeof *order->added, by_first);
    for (uint32_t i = 0; i < order->nadded; i++)
        proclist_add_new(list, &order->added[i], &have);
    if (is_sorted(list, members))
        proclist_free(list);
    procset_free(&have);
    return 0;
}

void order_free(struct order *order)
{
    for (uint32_t i = 0; i < order->nadded; i++)
        proclist_free(&order->added[i]);
    free(order->added);
    proclist_free(&order->leaders);
    *order = (struct order){0};
}
