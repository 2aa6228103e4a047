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

int main(int argc, char **argv)
{
    pmix_status_t codes[] = {PMIX_MONITOR_HEARTBEAT_ALERT, PMIX_MONITOR_FILE_ALERT};
    client_init("monitored", NULL, argc, argv);
    listener = listen_to(codes, 2, NULL, 0);
    fence_all(false);
    beats();
    file();
    if (client.me.rank != client.size - 1) { /* libpmix tells no process of its own events */
        CHECK_EQ(listen_count(listener, PMIX_MONITOR_HEARTBEAT_ALERT, PMIX_RANK_WILDCARD), 1,
                 "alerts of a heart");
        CHECK_EQ(listen_count(listener, PMIX_MONITOR_FILE_ALERT, PMIX_RANK_WILDCARD), 1,
                 "alerts of a file");
    }
    return client_pass("%u ranks hear of a rank without a heartbeat, and of a file", client.size);
}
