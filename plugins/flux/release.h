/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * Which releases of Flux muster knows. flux_abi.h says why no older one will do.
 */
#pragma once

#include "common/util/err.h"

/** Whether the Flux that has loaded us is new enough. @return 0, or -1 with the reason */
int release_check(struct err *err);
