/* SPDX-License-Identifier: BSD-3-Clause */
/* Changes of the job's allocation as bytes. A text that is not given is an empty one. */
#include "plugins/slurm/alloc_wire.h"

#include <stdlib.h>
#include <string.h>

void alloc_put(struct wire_out *out, const struct rm_alloc *what)
{
    wire_put_u8(out, (uint8_t)what->kind);
    wire_put_u32(out, what->nnodes);
    wire_put_u32(out, what->ncpus);
    wire_put_u32(out, what->seconds);
    wire_put_u32(out, what->timeout);
    wire_put_str(out, what->nodes != NULL ? what->nodes : "");
    wire_put_str(out, what->queue != NULL ? what->queue : "");
}

static const char *given(const char *text)
{
    return text != NULL && text[0] != '\0' ? text : NULL;
}

bool alloc_get(struct wire_in *in, struct alloc_order *order)
{
    struct rm_alloc *what = &order->what;
    uint8_t kind = wire_get_u8(in);
    what->nnodes = wire_get_u32(in);
    what->ncpus = wire_get_u32(in);
    what->seconds = wire_get_u32(in);
    what->timeout = wire_get_u32(in);
    order->nodes = wire_get_strdup(in, ALLOC_NODES_MAX);
    order->queue = wire_get_strdup(in, ALLOC_QUEUE_MAX);
    what->kind = (enum rm_alloc_kind)kind;
    what->nodes = given(order->nodes);
    what->queue = given(order->queue);
    return !in->bad && kind < RM_ALLOC_KINDS;
}

void alloc_order_free(struct alloc_order *order)
{
    free(order->nodes);
    free(order->queue);
    *order = (struct alloc_order){0};
}

void alloc_put_news(struct wire_out *out, const struct rm_alloc_news *news)
{
    const char *text = news->text != NULL ? news->text : "";
    wire_put_u32(out, (uint32_t)news->result);
    wire_put_block(out, text, strnlen(text, ALLOC_TEXT_MAX - 1));
    wire_put_str(out, news->nodes != NULL ? news->nodes : "");
    wire_put_u32(out, news->nnodes);
    wire_put_u32(out, news->ncpus);
}

bool alloc_get_news(struct wire_in *in, struct rm_alloc_news *news, char *text, char **nodes)
{
    uint32_t result = wire_get_u32(in);
    wire_get_str(in, text, ALLOC_TEXT_MAX);
    *nodes = wire_get_strdup(in, ALLOC_NODES_MAX);
    news->nnodes = wire_get_u32(in);
    news->ncpus = wire_get_u32(in);
    news->text = text;
    news->nodes = *nodes;
    news->result = result < RM_ALLOC_RESULTS ? (enum rm_alloc_result)result : RM_ALLOC_FAILED;
    return !in->bad && result < RM_ALLOC_RESULTS;
}
