/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * The version of muster, as programs tell it to each other.
 */
#pragma once

/** A string that lies once in each object: a compiler that knew what is in it would compare numbers
 * instead, and a copy of the object with another version could not be had by its bytes. */
extern const char muster_version[];
