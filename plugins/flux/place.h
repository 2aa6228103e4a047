/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * Where Flux's job shells make directories, for muster-status.
 */
#ifndef MUSTER_FLUX_PLACE_H
#define MUSTER_FLUX_PLACE_H

#include "common/status/place.h"

extern const struct place flux_place;

#endif
