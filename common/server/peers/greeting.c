/* SPDX-License-Identifier: BSD-3-Clause */
/* What servers that talk to each other must have alike.
 *
 * A greeting is a u32 count and as many pairs of a name and a value, both str, in the order of the
 * table below. Values are texts, so that a server can show what it does not understand. */
#include "common/server/peers/greeting.h"

#include "common/nspace/library.h"
#include "common/server/ending.h"
#include "common/server/server.h"
#include "common/server/steps/steps.h"
#include "common/util/log.h"
#include "common/util/version.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { VALUE_SIZE = 64, PAIRS_MAX = 16 };

static const char *protocol(const struct server *server, char *value)
{
    (void)server;
    snprintf(value, VALUE_SIZE, "%d", FRAME_PROTOCOL);
    return value;
}

static const char *version(const struct server *server, char *value)
{
    (void)server, (void)value;
    return muster_version;
}

static const char *library(const struct server *server, char *value)
{
    return library_text(server->library, value);
}

static const char *tree_arity(const struct server *server, char *value)
{
    snprintf(value, VALUE_SIZE, "%d", server->conf.tree_arity);
    return value;
}

static const char *task_loss(const struct server *server, char *value)
{
    (void)value;
    return server->conf.on_task_loss == CONF_TASK_LOSS_END_STEP ? "end-step" : "continue";
}

static const char *direct_mode(const struct server *server, char *value)
{
    (void)value;
    return server->conf.direct.mode == CONF_DIRECT_REQUIRE ? "\"require\"" : "not \"require\"";
}

/* What the back end has told of how servers are to hang together. */
static const char *tree(const struct server *server, char *value)
{
    snprintf(value, VALUE_SIZE, "%016" PRIx64, server->tree);
    return value;
}

/* The facts that must be alike, by their names in messages; the most telling first. Of other steps'
 * servers, the engine looks at libpmix and tree_arity, as it can fail the operation for all. */
static const struct fact {
    const char *name;
    const char *(*value)(const struct server *server, char *room); /* of VALUE_SIZE bytes */
    bool step;                                                     /* within a step only */
    const char *remedy;
} facts[] = {
    {"muster", version, false, "install one version of muster on all nodes"},
    {"muster's protocol", protocol, false, "install one build of muster on all nodes"},
    {"libpmix", library, true, "install one release of libpmix on all nodes"},
    {"tree_arity", tree_arity, true, "set it to one value in muster.json on all nodes"},
    {"on_task_loss", task_loss, true, "set it to one value in muster.json on all nodes"},
    {"direct.mode", direct_mode, true, "set it to one value in muster.json on all nodes"},
    {"the tree of brokers", tree, true, "reload muster's module in all brokers"},
};
enum { FACTS = sizeof facts / sizeof *facts };

static bool is_own(const struct server *server, uint32_t node)
{
    return node < server->boot.nnodes;
}

void greeting_write(void *arg, uint32_t node, struct wire_out *greeting)
{
    const struct server *server = arg;
    size_t at = greeting->len;
    uint32_t n = 0;
    wire_put_u32(greeting, 0);
    for (size_t i = 0; i < FACTS; i++) {
        char room[VALUE_SIZE];
        if (facts[i].step && !is_own(server, node))
            continue;
        wire_put_str(greeting, facts[i].name);
        wire_put_str(greeting, facts[i].value(server, room));
        n++;
    }
    wire_set_u32(greeting, at, n);
}

/* Looks a name up in a greeting. @param value VALUE_SIZE bytes; what is not there or cannot be read
 * is "not told" */
static void find(const void *greeting, size_t len, const char *wanted, char *value)
{
    char name[VALUE_SIZE];
    struct wire_in in;
    wire_in_init(&in, greeting, len);
    uint32_t n = wire_get_u32(&in);
    for (uint32_t i = 0; i < n && i < PAIRS_MAX && !in.bad; i++) {
        wire_get_str(&in, name, sizeof name);
        wire_get_str(&in, value, VALUE_SIZE);
        if (!in.bad && strcmp(name, wanted) == 0)
            return;
    }
    snprintf(value, VALUE_SIZE, "not told");
}

/* Within a step both nodes say the same sentence. */
static void describe(const struct server *server, uint32_t from, const struct fact *fact,
                     const char *ours, const char *theirs, char *text, size_t cap)
{
    uint32_t self = server->boot.node;
    const char *here = nspace_name(server->nspace, self),
               *there = nspace_name(server->nspace, from);
    bool first = self < from;
    snprintf(text, cap, "%s is %s on node %s and %s on node %s: %s", fact->name,
             first ? ours : theirs, first ? here : there, first ? theirs : ours,
             first ? there : here, fact->remedy);
}

static void refuse(struct server *server, uint32_t from, const char *why)
{
    char text[512];
    if (!is_own(server, from)) {
        log_error("a group with members of another %s cannot be served: %s", log_unit(), why);
        steps_refuse(server, from);
        return;
    }
    snprintf(text, sizeof text, "the servers of this %s do not fit together: %s; ending the %s",
             log_unit(), why, log_unit());
    struct rm_ending ending = ending_of_host(text);
    server_end_step(server, &ending, server->boot.node);
}

bool greeting_fits(void *arg, uint32_t from, const void *greeting, size_t len)
{
    struct server *server = arg;
    for (size_t i = 0; i < FACTS; i++) {
        char room[VALUE_SIZE], theirs[VALUE_SIZE], why[400];
        if (facts[i].step && !is_own(server, from))
            continue;
        const char *ours = facts[i].value(server, room);
        find(greeting, len, facts[i].name, theirs);
        if (strcmp(ours, theirs) == 0)
            continue;
        describe(server, from, &facts[i], ours, theirs, why, sizeof why);
        refuse(server, from, why);
        return false;
    }
    return true;
}
