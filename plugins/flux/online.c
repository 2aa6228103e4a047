/* SPDX-License-Identifier: BSD-3-Clause */
/* Brokers that are lost: rank 0 is told by Flux's groups which are online, and publishes the ranks
 * that are not any more. An event, since every module has to know; it says nothing of any job. */
#include "plugins/flux/module.h"

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

static void on_change(flux_future_t *f, void *arg)
{
    struct module *module = arg;
    struct idset now = {0};
    const char *members;
    if (flux_rpc_get_unpack(f, "{s:s}", "members", &members) < 0 ||
        idset_parse(&now, members, module->size) != 0) {
        flux_log(module->h, LOG_ERR, "lost brokers will not be noticed: groups.get: %s",
                 flux_future_error_string(f));
        idset_free(&now);
        return;
    }
    char *lost = idset_minus(&module->online, &now);
    if (lost != NULL && lost[0] != '\0')
        publish(module, lost);
    free(lost);
    idset_free(&module->online);
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
    struct idset lost = {0};
    if (flux_event_unpack(msg, NULL, "{s:s}", "ranks", &ranks) == 0 &&
        idset_parse(&lost, ranks, module->size) == 0)
        for (uint32_t rank = 0; rank < lost.size; rank++)
            if (idset_has(&lost, rank))
                directory_offline(module->dir, rank);
    idset_free(&lost);
}

void online_close(struct module *module)
{
    flux_future_destroy(module->watch);
    idset_free(&module->online);
}
