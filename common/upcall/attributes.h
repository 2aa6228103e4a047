/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * What muster serves, as tools ask for it (PMIX_QUERY_ATTRIBUTE_SUPPORT): each function of PMIx
 * that gets to the host, with the directives and keys that are heeded.
 */
#pragma once

/** Tells libpmix, which answers such queries by itself. What it does not take is logged.
 * @thread the loop's, after PMIx_server_init and before it runs; blocks until libpmix has it */
void attributes_register(void);
