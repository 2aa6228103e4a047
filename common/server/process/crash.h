/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * The last words of a server that crashes.
 */
#ifndef MUSTER_SERVER_CRASH_H
#define MUSTER_SERVER_CRASH_H

#include <stdbool.h>

/** From now on a signal that ends the server for a fault of its own is told on standard error,
 * which the launcher carries on.
 * @param who step and node
 * @param after_loss whether libpmix may crash now because it has lost clients; called with @p arg
 *        in the signal's handler
 * @thread main, before others begin */
void crash_open(const char *who, bool (*after_loss)(const void *arg), const void *arg);

#endif
