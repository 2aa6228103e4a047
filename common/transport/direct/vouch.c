/* SPDX-License-Identifier: BSD-3-Clause */
/* Orders for a worker of their own: see handoff/worker.h. */
#include "common/transport/direct/vouch.h"

#include "common/handoff/worker.h"
#include "common/util/clock.h"

#include <stdlib.h>
#include <string.h>

enum { END_MS = 50 /* for an order under way; one that hangs is left alone */ };

struct order {
    struct work work;
    struct voucher *voucher; /* the loop's */
    const struct vouch_ops *ops;
    enum vouch_order what;
    uint32_t node;
    bool good;
    struct wire_out out;
    size_t len;
    unsigned char data[];
};

struct voucher {
    const struct vouch_ops *ops;
    vouch_done_fn *done;
    void *arg;
    struct handoff *handoff;
    struct worker *worker;
    bool closing;
};

/* @thread the worker's */
static void make(struct work *work)
{
    struct order *o = (struct order *)work;
    o->good = (o->what == VOUCH_SEAL ? o->ops->seal : o->ops->open)(o->data, o->len, &o->out) &&
              !o->out.failed;
}

static void drop(struct work *work)
{
    struct order *o = (struct order *)work;
    wire_out_free(&o->out);
    free(o);
}

static void made(struct handoff_item *item)
{
    struct order *o = (struct order *)item;
    const struct voucher *v = o->voucher;
    if (!v->closing)
        v->done(v->arg, o->what, o->node, o->good ? o->out.data : NULL, o->good ? o->out.len : 0);
    drop(&o->work);
}

static const struct work_ops orders = {make, made, drop};

struct voucher *voucher_new(const struct vouch_ops *ops, struct event_base *base,
                            vouch_done_fn *done, void *arg)
{
    struct voucher *v = calloc(1, sizeof *v);
    if (v == NULL)
        return NULL;
    v->ops = ops;
    v->done = done;
    v->arg = arg;
    v->handoff = handoff_new(base);
    v->worker = worker_new(&orders, v->handoff);
    if (v->handoff != NULL && v->worker != NULL)
        return v;
    voucher_free(v);
    return NULL;
}

bool voucher_order(struct voucher *v, enum vouch_order order, uint32_t node, const void *data,
                   size_t len)
{
    struct order *o = malloc(sizeof *o + len);
    if (o == NULL)
        return false;
    *o = (struct order){.voucher = v, .ops = v->ops, .what = order, .node = node, .len = len};
    memcpy(o->data, data, len);
    if (worker_do(v->worker, &o->work))
        return true;
    free(o);
    return false;
}

int64_t voucher_waits_since(const struct voucher *v)
{
    return worker_since(v->worker);
}

void voucher_free(struct voucher *v)
{
    if (v == NULL)
        return;
    v->closing = true;
    worker_close(v->worker, now_ms() + END_MS);
    if (v->handoff != NULL)
        handoff_run(v->handoff);
    handoff_free(v->handoff);
    free(v);
}
