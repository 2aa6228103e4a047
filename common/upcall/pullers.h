/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * Which processes of the node may have called PMIx_IOF_pull: libpmix tells no host. A process may
 * have done so if it was connected when a pull came.
 * @thread PMIx's, unless said
 */
#pragma once

#include <pmix_common.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct puller;

struct pullers {
    _Atomic uint64_t pulls; /**< how many there were; PMIx's thread's, and the loop reads it */
    struct puller *list;    /**< all processes that are connected; the loop's */
};

/** A pull has come. */
void pullers_pull(struct pullers *all);

/** @return what pullers_came() is to be told of a process that has just connected */
uint64_t pullers_now(const struct pullers *all);

/** A process has connected. One whose child connects by the same name has two connections.
 * @param since of pullers_now() @thread the loop's */
void pullers_came(struct pullers *all, const char *nspace, uint32_t rank, uint64_t since);

/** A connection of a process is gone, or the process is, which may never have been connected.
 * libpmix drops all pulls of that name with the first connection that goes.
 * @return whether a pull may have been its own @thread the loop's */
bool pullers_gone(struct pullers *all, const char *nspace, uint32_t rank);

void pullers_free(struct pullers *all);
