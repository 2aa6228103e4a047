/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * Has credentials made and read by a worker, because the daemon that does so may take its time.
 */
#pragma once

#include "common/transport/rm.h"
#include "common/transport/wire.h"

#include <event2/event.h>

enum vouch_order { VOUCH_SEAL, VOUCH_OPEN };

/** Takes a result, in the order of the orders. @param out borrowed; NULL: it failed @thread the
 * loop's */
typedef void vouch_done_fn(void *arg, enum vouch_order order, uint32_t node, const void *out,
                           size_t len);

struct voucher;

/** @param ops borrowed for ever @return NULL when out of memory @thread the loop's */
struct voucher *voucher_new(const struct vouch_ops *ops, struct event_base *base,
                            vouch_done_fn *done, void *arg);

/** Gives an order. @param node handed back with the result @param data copied @return false: there
 * is no memory, or no thread @thread the loop's */
bool voucher_order(struct voucher *v, enum vouch_order order, uint32_t node, const void *data,
                   size_t len);

/** @return since when the oldest order waits, now_ms(); 0: none does @thread the loop's */
int64_t voucher_waits_since(const struct voucher *v);

/** Ends it; orders under way have no result any more. A thread that hangs in one is left to end
 * with the process. @thread the loop's */
void voucher_free(struct voucher *v);
