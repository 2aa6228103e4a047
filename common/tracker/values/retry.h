/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * What a call that goes on without lost participants changes before its second try.
 *
 * The engine fails an operation for all with one list of the lost. A caller whose directives say
 * so (common/upcall/survive.c, the fault campaign) takes those out and calls again, in the time
 * that is left; as all got the same list, all try the same.
 * @thread any: nothing here is shared
 */
#pragma once

#include "common/tracker/values/procset.h"

#include <stdbool.h>

/** Takes @p lost out of both sets, and adds it to @p gone.
 * @param members participants @param added processes that they add
 * @return whether some of @p members are left, and fewer than before; out of memory
 * counts as no */
bool retry_without(struct procset *members, struct procset *added, struct procset *gone,
                   const struct procset *lost);

/** @param timeout of the whole, seconds; 0: none @param spent ms since the first try
 * @param over set when that time is over: the second try is made all the same, as a failure, since
 * the others would wait for it
 * @return the second try's timeout, seconds, rounded up; 0: none */
uint32_t retry_timeout(uint32_t timeout, int64_t spent, bool *over);
