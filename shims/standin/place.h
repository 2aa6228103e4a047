/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * Where musterrun makes directories, for muster-status.
 */
#pragma once

#include "common/status/place.h"

extern const struct place standin_place;
