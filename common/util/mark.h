/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * The version in files that other programs load, which muster-check reads without loading them.
 */
#pragma once

#include "muster_version.h"

#define MARK_PREFIX "muster-version:"

/** Once in a file of each object. */
#define MARK_VERSION                                                                               \
    static const char version_mark[] __attribute__((used)) = MARK_PREFIX MUSTER_VERSION
