/* SPDX-License-Identifier: BSD-3-Clause */
/* Where the holder is: a request of this server's own, which the holder itself answers. */
#include "common/holder/private.h"

#include <stdlib.h>

struct where {
    struct holder *holder;
    holder_where_fn *done;
    void *arg;
};

uint32_t where_named(const struct holder *holder, const void *data, size_t len)
{
    const struct holder_env *env = &holder->env;
    char nspace[PROCSET_NAME_MAX + 1];
    struct wire_in in;
    uint32_t node;
    wire_in_init(&in, data, len);
    wire_get_str(&in, nspace, sizeof nspace);
    uint32_t index = wire_get_u32(&in);
    /* The head has introduced it: one that is not known here has ended, and was forgotten. */
    return wire_end(&in) && env->server(env->arg, nspace, index, &node) == 0 &&
                   !env->is_lost(env->arg, node)
               ? node
               : HOLDER_NONE;
}

static void where_came(void *arg, int32_t status, const void *data, size_t len)
{
    struct where *w = arg;
    bool good = status == w->holder->env.codes.success;
    uint32_t node = good ? where_named(w->holder, data, len) : HOLDER_NONE;
    w->done(w->arg, node, node == HOLDER_NONE ? "no holder of the session is found" : NULL);
    free(w);
}

void holder_where(struct holder *holder, holder_where_fn *done, void *arg)
{
    const unsigned char op = HOLDER_WHERE;
    struct where *w = malloc(sizeof *w);
    *w = (struct where){holder, done, arg};
    holder_request(holder, &op, sizeof op, VAIN_MS, where_came, w);
}
