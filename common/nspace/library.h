/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * The releases of libpmix: what each has and gets wrong. No other file compares their numbers; each
 * asks by name. docs/libpmix.md shows the table.
 *
 * A release is one number, 0xMMmmrr, as server.h has it.
 * @thread any
 */
#pragma once

#include "common/util/err.h"

#include <stdbool.h>
#include <stdint.h>

/** What a release of libpmix may have, or get wrong. library.c has releases and reasons. */
enum library_trait {
    /* Has */
    LIBRARY_GROUP_ADDS,
    LIBRARY_GROUP_SHARES,
    LIBRARY_GROUP_ORDER,
    LIBRARY_GROUP_FT,
    LIBRARY_GROUP_COUNTS,
    LIBRARY_GROUP_ABORTS,
    LIBRARY_HOST_STORES,
    LIBRARY_APP_GROWS,
    LIBRARY_LOG2,
    LIBRARY_SESSION_CONTROL,
    LIBRARY_RESOURCE_BLOCK,
    LIBRARY_LOOKUP_PARTIAL,
    LIBRARY_ASKS_FOR_KEYS,
    LIBRARY_SLOTS_CHOSEN,
    LIBRARY_STOPS_RANKS,
    /* Gets wrong */
    LIBRARY_GROUP_TIMER_CRASHES,
    LIBRARY_CONNECT_TIMER_STAYS,
    LIBRARY_CONNECT_TELLS_LOCAL,
    LIBRARY_FENCE_MIXES_JOBS,
    LIBRARY_WILDCARD_IS_LOCAL,
    LIBRARY_LOCAL_DESTRUCT_TOLD,
    LIBRARY_SET_STATUS_UNSET,
    LIBRARY_EVENT_ANSWER_RACES,
    LIBRARY_DATA_ANSWER_RACES,
    LIBRARY_FINALIZE_RACES,
    LIBRARY_CLOSING_LEAVES_ALL,
    LIBRARY_LOSS_ENDS_TWICE,
    LIBRARY_GONE_IS_AWAITED,
    LIBRARY_SILENT_IS_CUT,
    LIBRARY_UNLOADED_LEAKS,
    LIBRARY_ARRAYS_LEAK,
    LIBRARY_TRAITS
};

/** A row of the table. */
struct library_row {
    const char *name;    /**< as in the enum, without LIBRARY_ */
    bool fault;          /**< something that it gets wrong */
    uint32_t from;       /**< the first release with it; 0: all that muster is built with */
    uint32_t before;     /**< the first release without it again; 0: none */
    const char *advice;  /**< for a user who meets it: the end of a sentence; NULL: no user does */
    const char *meaning; /**< what it is, and what muster does about it */
};

enum { LIBRARY_TEXT_SIZE = 36 /**< of library_text()'s buffer, bytes */ };

/** Reads the release that runs, and compares it with the headers.
 * @param version PMIx_Get_version()'s, such as "OpenPMIx 5.0.7, repo rev: …"
 * @param library it, also when -1 is returned
 * @return 0, or -1 with the reason in @p err: muster was built for another major number */
int library_read(const char *version, uint32_t *library, struct err *err);

/** @return whether @p library has @p trait */
bool library_has(uint32_t library, enum library_trait trait);

/** @return bytes that libpmix takes at most while it has a namespace of @p nnodes nodes and
 * @p ntasks processes registered and its @p nclients clients served, as measured (ci/bench wide).
 * @thread any */
uint64_t library_needs(uint32_t library, uint32_t nnodes, uint32_t ntasks, uint32_t nclients);

/** @return "major.minor.release" in @p text, of LIBRARY_TEXT_SIZE bytes */
const char *library_text(uint32_t library, char *text);

/** @return the row's advice, such as "needs libpmix 7 or newer on every node" */
const char *library_advice(enum library_trait trait);

/** @return the table's row, static */
const struct library_row *library_row(enum library_trait trait);
