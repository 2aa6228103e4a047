/* SPDX-License-Identifier: BSD-3-Clause */
/* A back end without a resource manager: the server of one node whose other nodes are not there.
 * What it sends is dropped. */
#include "common/transport/rm.h"

#include <stdlib.h>

struct rm {
    struct rm_host host;
};

static struct rm *alone_open(const struct boot *boot, const struct conf *conf,
                             struct event_base *base, const struct rm_host *host, struct err *err)
{
    struct rm *rm = calloc(1, sizeof *rm);
    (void)boot, (void)conf, (void)base, (void)err;
    if (rm != NULL)
        rm->host = *host;
    return rm;
}

static void alone_ready(struct rm *rm, uint32_t node)
{
    struct wire_out out = {0};
    rm->host.arrived(rm->host.arg, node, rm->host.next(rm->host.arg, node, SIZE_MAX, &out));
    wire_out_free(&out);
}

static struct rm_peer alone_peer(struct rm *rm, uint32_t node)
{
    (void)rm, (void)node;
    return (struct rm_peer){.state = RM_PEER_OPEN};
}

static void alone_abort(struct rm *rm, const struct rm_ending *ending)
{
    (void)rm, (void)ending;
}

static void alone_close(struct rm *rm, unsigned ms)
{
    (void)ms;
    free(rm);
}

extern const struct rm_ops muster_rm;
__attribute__((visibility("default"))) const struct rm_ops muster_rm = {
    .name = "alone",
    .native = "nothing",
    .open = alone_open,
    .ready = alone_ready,
    .peer = alone_peer,
    .abort = alone_abort,
    .close = alone_close,
};
