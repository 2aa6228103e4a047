/* SPDX-License-Identifier: BSD-3-Clause */
/* Where the holder is: a request of this server's own. */
#include "common/holder/private.h"

#include <stdlib.h>

struct where {
    struct holder *holder;
    holder_where_fn *done;
    void *arg;
    int64_t until; /* ms */
};

static void where_came(void *arg, int32_t status, const void *data, size_t len);

static void ask_where(struct where *w, const char *gone, uint32_t index)
{
    struct wire_out out = {0};
    int64_t left = w->until - holder_now(w->holder);
    wire_put_u8(&out, HOLDER_WHERE);
    wire_put_str(&out, gone);
    wire_put_u32(&out, index);
    if (out.failed)
        where_came(w, w->holder->env.codes.unreach, NULL, 0);
    else
        holder_request(w->holder, out.data, out.len, left > 1 ? (uint32_t)left : 1, where_came, w);
    wire_out_free(&out);
}

static void where_came(void *arg, int32_t status, const void *data, size_t len)
{
    struct where *w = arg;
    const struct holder_env *env = &w->holder->env;
    char nspace[PROCSET_NAME_MAX + 1];
    struct wire_in in;
    uint32_t node = HOLDER_NONE;
    const char *why = "the first server here does not say which one it is";
    wire_in_init(&in, data, len);
    if (status == env->codes.success) {
        wire_get_str(&in, nspace, sizeof nspace);
        uint32_t index = wire_get_u32(&in);
        bool good = wire_end(&in);
        /* The deputy has introduced it: one that is not known here has ended, and was forgotten. */
        bool gone = good && (env->server(env->arg, nspace, index, &node) != 0 ||
                             env->is_lost(env->arg, node));
        if (gone && holder_now(w->holder) < w->until) {
            ask_where(w, nspace, index);
            return;
        }
        if (!good)
            node = HOLDER_NONE;
    } else {
        why = "no holder of the session is found";
    }
    w->done(w->arg, node, node == HOLDER_NONE ? why : NULL);
    free(w);
}

void holder_where(struct holder *holder, holder_where_fn *done, void *arg)
{
    struct where *w = malloc(sizeof *w);
    if (w == NULL) {
        done(arg, HOLDER_NONE, "out of memory");
        return;
    }
    *w = (struct where){holder, done, arg, holder_now(holder) + VAIN_MS};
    ask_where(w, "", 0);
}
