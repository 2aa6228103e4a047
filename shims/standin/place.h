/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * Where musterrun makes directories, for muster-status.
 */
#ifndef MUSTER_STANDIN_PLACE_H
#define MUSTER_STANDIN_PLACE_H

#include "common/status/place.h"

extern const struct place standin_place;

#endif
