/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * By which names users of Slurm know a step, for muster-status.
 */
#pragma once

#include "common/status/place.h"

extern const struct place slurm_place;
