#include "common/server/absent.h"

#include "common/server/departed.h"
#include "common/tracker/tree.h"
#include "common/transport/frame.h"
#include "common/transport/wire.h"
#include "common/util/log.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>

/* Where so many have failed, whoever waits for all of the step knows of one. */
enum { PASSED_ON_MAX = 16 };

/* To the servers below this one in the tree whose root is @p node. */
static void pass_on(struct server *server, uint32_t node, const void *body, size_t len)
{
    const struct tree tree = {
        .n = server->boot.nnodes, .root = node, .arity = (uint32_t)server->conf.tree_arity};
    for (uint32_t i = 0; i < tree.arity; i++) {
        uint32_t child = tree_child(&tree, server->boot.node, i);
        struct wire_out frame = {0};
        if (child == TREE_NONE)
            return;
        wire_put_u8(&frame, FRAME_ABSENT);
        wire_put_raw(&frame, body, len);
        link_send(server->link, child, &frame);
    }
}

/* The RM ends whole steps by SIGKILL and SIGTERM. */
static bool failed_early(const struct task *task)
{
    return task->early &&
           (task->sig != 0 ? task->sig != SIGKILL && task->sig != SIGTERM : task->code != 0);
}

void absent_tell(struct server *server)
{
    const struct boot_node *here = &server->boot.nodes[server->boot.node];
    for (uint32_t k = 0; k < here->ntasks; k++) {
        const struct task *task = &server->tasks[k];
        struct wire_out body = {0};
        if (!failed_early(task))
            continue;
        wire_put_u32(&body, server->boot.node);
        wire_put_u32(&body, here->ranks[k]);
        wire_put_u32(&body, task->sig);
        wire_put_u32(&body, task->code);
        if (!body.failed)
            pass_on(server, server->boot.node, body.data, body.len);
        wire_out_free(&body);
        return;
    }
}

void absent_receive(struct server *server, const void *body, size_t len)
{
    char why[128];
    struct wire_in in;
    wire_in_init(&in, body, len);
    uint32_t node = wire_get_u32(&in), rank = wire_get_u32(&in), at;
    uint32_t sig = wire_get_u32(&in), code = wire_get_u32(&in);
    if (!wire_end(&in) || node == server->boot.node ||
        nspace_node(server->nspace, server->boot.nspace, rank, &at) != 0 || at != node) {
        log_warning("a word of a node without tasks was dropped: it makes no sense");
        return;
    }
    if (engine_is_lost(server->engine, node))
        return;
    if (server->nabsent++ < PASSED_ON_MAX)
        pass_on(server, node, body, len);
    if (sig != 0)
        snprintf(why, sizeof why, "rank %u was killed by signal %u (%s) before PMIx_Init", rank,
                 sig, strsignal((int)sig));
    else if (code == BOOT_CODE_UNKNOWN)
        snprintf(why, sizeof why, "rank %u ended before PMIx_Init", rank);
    else
        snprintf(why, sizeof why, "rank %u ended with exit code %u before PMIx_Init", rank, code);
    departed_absent(server, node, why);
}
