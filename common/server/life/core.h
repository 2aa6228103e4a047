/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * The parts of a server that know neither PMIx nor the RM, and what they ask of it.
 */
#pragma once

#include "common/server/server.h"

/** Makes the engine, the questions, the link and the messages for all, and what they look into.
 * @return 0, or -1 with the reason in @p err; server_close() frees them either way
 * @thread the loop's */
int core_open(struct server *server, struct err *err);
