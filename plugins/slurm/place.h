/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * By which names users of Slurm know a step, for muster-status.
 */
#ifndef MUSTER_SLURM_PLACE_H
#define MUSTER_SLURM_PLACE_H

#include "common/status/place.h"

extern const struct place slurm_place;

#endif
