/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * Filters the loopback's frames, so that chosen releases and outcomes never arrive, and then kills
 * the server that was silent.
 */
#include "common/tracker/test_silence.h"

#include <string.h>

enum { HEADER = 4 + 8 + 4 + 8 /* of the link */ };

static const struct loopback_conf seven = {
    .nnodes = N, .arity = 2, .seed = 7, .delay_max = 20, .reorder = true};

struct silence silence;

static bool silent(void *arg, uint32_t from, uint32_t to, const void *data, size_t len)
{
    const unsigned char *body = (const unsigned char *)data + HEADER + 1;
    uint8_t type = body[-1];
    (void)arg;
    bool lost = (type == FRAME_RELEASE && silence.release[from][to]) ||
                (type == FRAME_OUTCOME && silence.outcome[from][to]);
    if ((lost && type == FRAME_RELEASE && to == silence.held_to) ||
        (type == FRAME_CONTRIB && silence.keep[from]))
        memcpy(silence.held, body, silence.len = len - HEADER - 1);
    return !lost;
}

struct loopback_conf silent_net(void)
{
    struct loopback_conf conf = seven;
    memset(&silence, 0, sizeof silence);
    conf.filter = silent;
    return conf;
}

struct kit *silent_kit(void)
{
    struct loopback_conf conf = silent_net();
    return kit_new(&conf);
}

void end_silence(struct loopback *net)
{
    loopback_run(net, 300);
    loopback_kill(net, silence.by, 0, 500);
    loopback_run(net, 3000);
}

struct kit *silent_between(struct kit_op **op)
{
    struct kit *kit = silent_kit();
    *op = kit_op(kit, COLL_CONSTRUCT, "between", NULL, N);
    struct tree tree = kit_tree(*op, 2);
    silence.by = tree_child(&tree, tree.root, 0);
    memset(silence.release[silence.by], 1, N);
    return kit;
}
