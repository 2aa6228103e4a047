/* SPDX-License-Identifier: BSD-3-Clause */
/* monitored: PMIx_Process_monitor. The last rank has its server await its heartbeats, sends some,
 * and then none; and has it look at a file that does not grow. libpmix's server on its node raises
 * the alerts, and all other processes get them, on all nodes, once, with that rank as the source.
 */
#include "event.h"

#include <unistd.h>

enum { BEATS = 4, BEAT_MS = 500 };

static struct listener *listener;

static void monitor(const char *key, const char *file, pmix_info_t *info, size_t n)
{
    pmix_info_t what, *results = NULL;
    size_t nresults = 0;
    bool yes = true;
    if (file != NULL)
        PMIX_INFO_LOAD(&what, key, file, PMIX_STRING);
    else
        PMIX_INFO_LOAD(&what, key, &yes, PMIX_BOOL);
    pmix_status_t status = PMIx_Process_monitor(&what, PMIX_SUCCESS, info, n, &results, &nresults);
    CHECK(status == PMIX_SUCCESS || status == PMIX_OPERATION_SUCCEEDED, "%s: %s", key,
          PMIx_Error_string(status));
}

static void beats(void)
{
    const uint32_t s = 1;
    pmix_info_t info;
    step("heartbeats");
    if (client.me.rank == client.size - 1) {
        PMIX_INFO_LOAD(&info, PMIX_MONITOR_HEARTBEAT_TIME, &s, PMIX_UINT32);
        monitor(PMIX_MONITOR_HEARTBEAT, NULL, &info, 1);
        for (int i = 0; i < BEATS; i++) {
            PMIx_Heartbeat();
            sleep_ms(BEAT_MS);
        }
        CHECK_EQ(listen_count(listener, PMIX_MONITOR_HEARTBEAT_ALERT, PMIX_RANK_WILDCARD), 0,
                 "alerts while the heart beats");
    } else
        listen_wait(listener, PMIX_MONITOR_HEARTBEAT_ALERT, client.size - 1, 1);
    fence_all(false);
}

static void file(void)
{
    const uint32_t s = 1, drops = 1;
    const bool yes = true;
    char path[] = "/tmp/monitored.XXXXXX";
    pmix_info_t info[3];
    bool last = client.me.rank == client.size - 1;
    step("a file");
    int fd = last ? mkstemp(path) : -1;
    if (last) {
        PMIX_INFO_LOAD(&info[0], PMIX_MONITOR_FILE_SIZE, &yes, PMIX_BOOL);
        PMIX_INFO_LOAD(&info[1], PMIX_MONITOR_FILE_CHECK_TIME, &s, PMIX_UINT32);
        PMIX_INFO_LOAD(&info[2], PMIX_MONITOR_FILE_DROPS, &drops, PMIX_UINT32);
        monitor(PMIX_MONITOR_FILE, path, info, 3);
    } else
        listen_wait(listener, PMIX_MONITOR_FILE_ALERT, client.size - 1, 1);
    fence_all(false);
    if (last) {
        close(fd);
        unlink(path);
    }
}

#ifdef PMIX_MONITOR_PROC_RESOURCE_USAGE
/* @return what all of @p targets use of @p field, to be freed; libpmix asks its host for that of
 * other nodes */
static pmix_info_t *use_of(const char *key, const char *field, const char *target,
                           pmix_data_array_t *targets, size_t *n)
{
    const bool yes = true;
    pmix_info_t what, fields, directive, *results = NULL;
    PMIX_INFO_LOAD(&fields, field, &yes, PMIX_BOOL);
    pmix_data_array_t array = {.type = PMIX_INFO, .size = 1, .array = &fields};
    PMIX_INFO_LOAD(&what, key, &array, PMIX_DATA_ARRAY);
    PMIX_INFO_LOAD(&directive, target, targets, PMIX_DATA_ARRAY);
    *n = 0;
    CHECK_OK(PMIx_Process_monitor(&what, PMIX_SUCCESS, &directive, 1, &results, n), key);
    PMIX_INFO_DESTRUCT(&what);
    PMIX_INFO_DESTRUCT(&directive);
    return results;
}

/* @return the value of @p key in an answer */
static const pmix_value_t *part_of(const pmix_info_t *info, const char *key)
{
    CHECK(info->value.type == PMIX_DATA_ARRAY && info->value.data.darray->type == PMIX_INFO,
          "%s is no array of infos", info->key);
    const pmix_info_t *part = info->value.data.darray->array;
    for (size_t i = 0; i < info->value.data.darray->size; i++)
        if (PMIX_CHECK_KEY(&part[i], key))
            return &part[i].value;
    CHECK(false, "%s lacks %s", info->key, key);
    return NULL;
}

/* Each process once, and each of the first two nodes. */
static void usage(void)
{
    size_t n;
    uint64_t ranks = 0;
    uint32_t nodes[] = {0, 1}, seen = 0;
    pmix_value_t *value = NULL;
    pmix_proc_t *all = calloc(client.size, sizeof *all); /* libpmix takes one for a wildcard */
    for (pmix_rank_t rank = 0; rank < client.size; rank++)
        all[rank] = proc_of(rank);
    pmix_data_array_t procs = {.type = PMIX_PROC, .size = client.size, .array = all},
                      ids = {.type = PMIX_UINT32, .size = 2, .array = nodes};
    step("what processes use");
    pmix_info_t *found = use_of(PMIX_MONITOR_PROC_RESOURCE_USAGE, PMIX_PROC_PSS,
                                PMIX_MONITOR_TARGET_PROCS, &procs, &n);
    free(all);
    CHECK_EQ(n, client.size, "processes");
    for (size_t i = 0; i < n; i++) {
        ranks |= UINT64_C(1) << part_of(&found[i], PMIX_PROCID)->data.proc->rank;
        CHECK(part_of(&found[i], PMIX_PROC_PSS)->data.fval > 0, "a process without memory");
    }
    CHECK_EQ(ranks, (UINT64_C(1) << client.size) - 1, "ranks");
    PMIX_INFO_FREE(found, n);
    step("what nodes use");
    found = use_of(PMIX_MONITOR_NODE_RESOURCE_USAGE, PMIX_NODE_MEM_TOTAL,
                   PMIX_MONITOR_TARGET_NODEIDS, &ids, &n);
    CHECK_OK(PMIx_Get(&client.all, PMIX_NUM_NODES, NULL, 0, &value), "PMIX_NUM_NODES");
    CHECK_EQ(n, number_in(value, "nodes") < 2 ? 1 : 2, "nodes");
    PMIX_VALUE_RELEASE(value);
    for (size_t i = 0; i < n; i++)
        seen |= 1u << part_of(&found[i], PMIX_NODEID)->data.uint32;
    CHECK_EQ(seen, n == 1 ? 1 : 3, "node ids");
    PMIX_INFO_FREE(found, n);
}
#endif

int main(int argc, char **argv)
{
    pmix_status_t codes[] = {PMIX_MONITOR_HEARTBEAT_ALERT, PMIX_MONITOR_FILE_ALERT};
    client_init("monitored", NULL, argc, argv);
    listener = listen_to(codes, 2, NULL, 0);
    fence_all(false);
    beats();
    file();
#ifdef PMIX_MONITOR_PROC_RESOURCE_USAGE
    if (client.me.rank == client.size - 1)
        usage();
    fence_all(false);
#endif
    if (client.me.rank != client.size - 1) { /* libpmix tells no process of its own events */
        CHECK_EQ(listen_count(listener, PMIX_MONITOR_HEARTBEAT_ALERT, PMIX_RANK_WILDCARD), 1,
                 "alerts of a heart");
        CHECK_EQ(listen_count(listener, PMIX_MONITOR_FILE_ALERT, PMIX_RANK_WILDCARD), 1,
                 "alerts of a file");
    }
    return client_pass("%u ranks hear of a rank without a heartbeat, and of a file", client.size);
}
