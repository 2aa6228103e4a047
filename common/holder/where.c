/* SPDX-License-Identifier: BSD-3-Clause */
/* Where the holder is: a request of this server's own, which the holder itself answers. */
#include "common/holder/private.h"

#include <stdlib.h>

struct where {
    struct holder *holder;
    holder_where_fn *done;
    void *arg;
};

static void where_came(void *arg, int32_t status, const void *data, size_t len)
{
    struct where *w = arg;
    bool good = status == w->holder->env.codes.success;
    uint32_t node = good ? serve_where(w->holder, data, len) : HOLDER_NONE;
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
