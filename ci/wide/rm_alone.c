/* SPDX-License-Identifier: BSD-3-Clause */
/* A back end without a resource manager: the server of one node whose other nodes are not there.
 * What it sends is dropped. */
#include "common/transport/rm.h"

#include <stdlib.h>

struct rm {
    int nothing;
};

static struct rm *alone_open(const struct boot *boot, const struct conf *conf,
                             struct event_base *base, const struct rm_host *host, struct err *err)
{
    (void)boot, (void)conf, (void)base, (void)host, (void)err;
    return calloc(1, sizeof(struct rm));
}

static void alone_send(struct rm *rm, uint32_t node, void *data, size_t len, enum frame_care care)
{
    (void)rm, (void)node, (void)len, (void)care;
    free(data);
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
    .send = alone_send,
    .peer = alone_peer,
    .abort = alone_abort,
    .close = alone_close,
};
