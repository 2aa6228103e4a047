/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * Upcalls that muster does not serve: each answers PMIX_ERR_NOT_SUPPORTED, through its callback
 * where there is no other word.
 * @thread PMIx's
 */
#pragma once

#include "common/nspace/built.h"
#include "common/upcall/upcall.h"

/** What was refused; at most 32. */
enum refused_what {
    REFUSED_MONITOR,
    REFUSED_FABRIC,
    REFUSED_SESSION_CONTROL,
    REFUSED_RESOURCE_BLOCK,
    REFUSED_QUERY,      /**< a key that is not known */
    REFUSED_LOG,        /**< a channel that is not known */
    REFUSED_SPAWN_HINT, /**< a directive that need not be done */
};

/** Logs that something is not served. @param of which key of it, or NULL @param why a sentence, or
 * NULL
 * @thread the loop's */
void refused_tell(enum refused_what what, const char *of, const char *why);

/** Has no callback: libpmix listens itself. */
UPCALL(refused_listener, listener);
UPCALL(refused_monitor, monitor);
UPCALL(refused_fabric, fabric);
#if BUILT_WITH(SESSION_CONTROL)
UPCALL(refused_session_control, session_control);
#endif
#if BUILT_WITH(RESOURCE_BLOCK)
UPCALL(refused_resource_block, resource_block);
#endif
