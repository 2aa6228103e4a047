/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * Changes of the job's allocation, between muster-server and srun's agent.
 * @thread any
 */
#pragma once

#include "common/transport/rm_alloc.h"
#include "common/transport/wire.h"

enum {
    ALLOC_TEXT_MAX = 512,      /**< bytes of the answer's text, with NUL */
    ALLOC_NODES_MAX = 1 << 20, /**< bytes of a list of nodes */
    ALLOC_QUEUE_MAX = 256,
};

/** A request off the wire. */
struct alloc_order {
    struct rm_alloc what; /**< its strings are the ones below */
    char *nodes, *queue;  /**< owned; or NULL */
};

void alloc_put(struct wire_out *out, const struct rm_alloc *what);
/** @param order all zero; alloc_order_free() it either way @return whether it is one */
bool alloc_get(struct wire_in *in, struct alloc_order *order);
void alloc_order_free(struct alloc_order *order);

void alloc_put_news(struct wire_out *out, const struct rm_alloc_news *news);
/** @param text ALLOC_TEXT_MAX bytes, to which news->text points afterwards
 * @param nodes becomes the list of nodes, malloc()ed, to which news->nodes points; or NULL
 * @return whether it is one */
bool alloc_get_news(struct wire_in *in, struct rm_alloc_news *news, char *text, char **nodes);
