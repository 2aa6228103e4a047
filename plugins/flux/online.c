/* SPDX-License-Identifier: BSD-3-Clause */
/* Brokers that are lost: rank 0 is told by Flux's groups which are online, and publishes the ranks
 * that are not any more. An event, since every module has to know; it says nothing of any job. */
#include "plugins/flux/module.h"

#include <stdio.h>
#include <stdlib.h>
#include <syslog.h>

static void publish(struct module *module, const char *ranks)
{
    flux_future_t *f =
        flux_event_publish_pack(module->h, "muster.offline", 0, "{s:s}", "ranks", ranks);
    if (f == NULL)
        flux_log(module->h, LOG_ERR, "the loss of brokers %s cannot be published", ranks);
    flux_future_destroy(f);
}

/* Those that were online, and are not. */
static void publish_lost(struct module *module, const struct ranges *now)
{
    char *lost = NULL;
    size_t len;
    FILE *out = open_memstream(&lost, &len);
    for (struct ranges_at at = {0}; out != NULL && ranges_next(&module->online, &at);)
        if (!ranges_have(now, at.number))
            fprintf(out, ftell(out) > 0 ? ",%u" : "%u", at.number);
    if (out != NULL && fclose(out) == 0 && len > 0)
        publish(module, lost);
    free(lost);
}

static void on_change(flux_future_t *f, void *arg)
{
    struct module *module = arg;
    struct ranges now = {0};
    const char *members;
    if (flux_rpc_get_unpack(f, "{s:s}", "members", &members) < 0 ||
        idset_parse(&now, members, module->size) != 0) {
        flux_log(module->h, LOG_ERR, "lost brokers will not be noticed: groups.get: %s",
                 flux_future_error_string(f));
        ranges_free(&now);
        return;
    }
    publish_lost(module, &now);
    ranges_free(&module->online);
    module->online = now;
    flux_future_reset(f);
}

int online_watch(struct module *module)
{
    if (module->rank != 0)
        return 0;
    module->watch = flux_rpc_pack(module->h, "groups.get", FLUX_NODEID_ANY, FLUX_RPC_STREAMING,
                                  "{s:s}", "name", "broker.online");
    return module->watch == NULL ? -1 : flux_future_then(module->watch, -1, on_change, module);
}

void online_event(struct module *module, const flux_msg_t *msg)
{
    const char *ranks;
    struct ranges lost = {0};
    if (flux_event_unpack(msg, NULL, "{s:s}", "ranks", &ranks) == 0 &&
        idset_parse(&lost, ranks, module->size) == 0)
        for (struct ranges_at at = {0}; ranges_next(&lost, &at);)
            directory_offline(module->dir, at.number);
    ranges_free(&lost);
}

void online_close(struct module *module)
{
    flux_future_destroy(module->watch);
    ranges_free(&module->online);
}
