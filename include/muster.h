/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * What programs may build upon: the numbers that muster's tools and steps have.
 *
 * PMIx itself is libpmix's; muster adds no function, and of keys only those of RFC 0003 in
 * muster/pmix.h. CHANGELOG.md says what a version
 * promises of this file. It is installed as muster.h, with muster.pc for pkg-config, whose
 * variables name the installed files.
 */
#ifndef MUSTER_H
#define MUSTER_H

/** The member "version" of what `muster-status --json` and `muster-check --json` print. It grows
 * when a member is removed, renamed, or gets another type or unit; not when one is added. */
#define MUSTER_JSON_VERSION 1

/** A step ends with this when a muster-server of it was lost. Other ends have the status of their
 * cause: see "EXIT STATUS OF A STEP" in muster(7). */
#define MUSTER_EXIT_SERVER_LOST 137

/** Variables of the environment of srun, flux run and musterrun that begin so set a key of
 * muster.json for one step; see muster.json(5). */
#define MUSTER_SETTING_PREFIX "MUSTER_"

#endif
