/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * Why a call fails that muster refuses: the one way to PMIX_ERR_BAD_PARAM, PMIX_ERR_NOT_FOUND and
 * PMIX_ERR_NOT_SUPPORTED, so that a developer can read the reason of each (ci/check-layers looks).
 */
#pragma once

#include "common/util/log.h"

#include <pmix_common.h>

/** Logs the reason, and the status behind it.
 * @param level LOG_LEVEL_INFO, since a program may try again and again, or only try whether
 * something is served; LOG_LEVEL_CAUSE, which is on the user's terminal, for what surely is a
 * mistake, of all ranks as a rule
 * @param fmt the call, the argument, its value, and what would be right: "PMIx_Lookup: it names no
 * key; name one at least"
 * @return @p status
 * @thread any */
pmix_status_t refused_at(enum log_level level, pmix_status_t status, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

#define refused(...) refused_at(LOG_LEVEL_INFO, __VA_ARGS__)
#define refused_aloud(...) refused_at(LOG_LEVEL_CAUSE, __VA_ARGS__)
