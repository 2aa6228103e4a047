/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * The campaign of jobs that meet, as its program sees it; holders.h has the rest.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/** Runs a seed. @return whether every invariant held */
bool holders_seed(uint64_t seed, bool verbose);
