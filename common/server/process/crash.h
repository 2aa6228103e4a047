/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * The last words of a server that crashes.
 */
#pragma once

/** From now on a signal that ends the server for a fault of its own is told on standard error,
 * which the launcher carries on.
 * @param who step and node
 * @thread main, before others begin */
void crash_open(const char *who);
