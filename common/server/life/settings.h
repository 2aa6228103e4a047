/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * The settings that are in force in a server: where each is from, and what is shown of them.
 */
#pragma once

#include "common/server/server.h"

/** Reads the installed file, lays over it what the launcher passes of the resource manager's own
 * configuration, and over that what the user has given for the step.
 * @param server conf and sources are set; boot has been read
 * @return 0, or -1 with the reason in @p err
 * @thread the loop's, before it runs */
int server_settings(struct server *server, struct err *err);
