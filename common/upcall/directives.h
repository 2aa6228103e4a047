/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * Directives of all calls: which values each may have, in which calls muster heeds it, and why it
 * is refused elsewhere. One table has them; docs/calls.md shows it.
 *
 * An upcall has its directives looked at once, by directives_check(), and takes their values then
 * by the functions below, which need not look at types again.
 * @thread any
 */
#pragma once

#include <pmix_common.h>

/** Calls that have directives; a query's are its qualifiers. */
enum directives_call {
    CALL_FENCE = 1 << 0,
    CALL_CONSTRUCT = 1 << 1,
    CALL_DESTRUCT = 1 << 2,
    CALL_CONNECT = 1 << 3,
    CALL_DISCONNECT = 1 << 4,
    CALL_PUBLISH = 1 << 5,
    CALL_LOOKUP = 1 << 6,
    CALL_UNPUBLISH = 1 << 7,
    CALL_SPAWN = 1 << 8,
    CALL_PULL = 1 << 9,
    CALL_PUSH = 1 << 10,
    CALL_EVENT = 1 << 11,
    CALL_LOG = 1 << 12,
    CALL_CONTROL = 1 << 13,
    CALL_GET = 1 << 14,
    CALL_QUERY = 1 << 15,
    CALL_GET_CREDENTIAL = 1 << 16,
    CALL_VALIDATE = 1 << 17,
    CALL_ALLOCATE = 1 << 18,
};

/** Looks at the directives of a call. Each fault is logged, as refused() does it.
 * @param of what the call is about, such as a group's id; or ""
 * @return PMIX_SUCCESS; or the first fault: PMIX_ERR_BAD_PARAM for a value that a directive cannot
 * have, PMIX_ERR_NOT_SUPPORTED for one that has PMIX_INFO_REQD and is not served in this call */
pmix_status_t directives_check(enum directives_call call, const char *of, const pmix_info_t info[],
                               size_t ninfo);

/** The same of one directive, where the caller says it: a clause is written to @p why. */
pmix_status_t directive_fault(enum directives_call call, const pmix_info_t *info, char *why,
                              size_t cap);

/** The call's name, "PMIx_Fence". */
const char *directives_call_name(enum directives_call call);

struct directive_name {
    const char *name, *key; /**< "PMIX_TIMEOUT", "pmix.timeout" */
};

/** @return the directive that is number @p i, from 0, of those that are heeded in the call named
 * @p call, static; or NULL: there are no more */
const struct directive_name *directives_name(const char *call, size_t i);

/** @return whether muster has a row for the key in this call */
bool directive_known(enum directives_call call, const pmix_info_t *info);

/** @return whether it is this directive, with a value that is not false */
bool directive_is_on(const pmix_info_t *info, const char *key);

/** Reads a number of any type; fractions count up, and what is too large is UINT32_MAX.
 * @return whether the value is one, and not negative */
bool directive_number(const pmix_value_t *value, uint32_t *number);

/** The same of a rank, which may be PMIX_RANK_WILDCARD or the like as an int, and negative. */
bool directive_rank(const pmix_value_t *value, uint32_t *rank);

/** @return the text, borrowed, or NULL: it is none */
const char *directive_text(const pmix_info_t *info);

/** @return the processes of a PMIX_PROC or an array of them, borrowed, and how many in @p n */
const pmix_proc_t *directive_procs(const pmix_value_t *value, size_t *n);
