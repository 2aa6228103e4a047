/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * Slurm's mpi.conf, in which muster takes no settings.
 *
 * Slurm would read keys for us that we declare to it, but by structures that are in no public
 * header and differ between releases. Keys that no plugin declares it passes over in silence. So we
 * look ourselves for keys that an admin may have put there in good faith.
 */
#pragma once

#include "common/util/err.h"

/**
 * Looks whether mpi.conf beside slurm.conf has a key that begins with "muster", in any case; files
 * that it includes are not looked at.
 * @return 0, or -1 with file, line, key and remedy in @p err
 * @thread any; in slurmctld, slurmd and slurmstepd
 */
int mpi_conf_check(struct err *err);
