/* SPDX-License-Identifier: BSD-3-Clause */
/* groups_wildcard: a construct over all processes, given by the wildcard rank and without a context
 * id, ends for no rank before all have called. The last rank is late.
 *
 * libpmix 4.2 makes such a group on each node by itself and asks no host, so there only what a
 * node's own processes see is looked at; when the group is destructed, muster says so.
 */
#include "group.h"

static long late_ms = 500;

int main(int argc, char **argv)
{
    const struct option_number options[] = {
        {"late", &late_ms, "ms by which the last rank is late", NULL}, {0}};
    pmix_info_t *results = NULL;
    size_t nresults = 0;
    client_init("groups_wildcard", options, argc, argv);
    pmix_rank_t last = client.size - 1;
    step("first fence");
    fence_all(false);
    if (client.me.rank == last)
        sleep_ms(late_ms);
    uint64_t called = now_ns();
    step("construct");
    CHECK_OK(PMIx_Group_construct("everybody", &client.all, 1, NULL, 0, &results, &nresults),
             "PMIx_Group_construct");
    uint64_t made = now_ns();
    if (results != NULL)
        PMIX_INFO_FREE(results, nresults);
    put_u64(PMIX_GLOBAL, called, "wildcard.called");
    commit();
    step("fence");
    fence_all(true);
    bool same_node = nodes_of_ranks()[client.me.rank] == nodes_of_ranks()[last];
    if (LIBPMIX >= 50000 || same_node)
        CHECK(made >= get_u64(last, "wildcard.called"),
              "construct: expected to wait for rank %u, found that it ended before", last);
    step("destruct");
    group_destruct("everybody");
    return client_pass("%u ranks%s", client.size,
                       LIBPMIX >= 50000 ? " wait for each other"
                                        : " wait for those of their node, as libpmix 4.2 does");
}
