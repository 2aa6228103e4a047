/* SPDX-License-Identifier: BSD-3-Clause */
/* Jobs that tell each other their names, by files in the directory $CONNECT_MEET alone. */
#ifndef PARTS_H
#define PARTS_H

#include "client.h"

enum { PARTS_MAX = 8 };

/** @return whether so many jobs can tell each other */
bool parts_may_meet(long jobs);

/** Learns the names of all jobs in all ranks of each; a fence with data of the own one.
 * @param whole gets each job's, with wildcard ranks; the own one's, too */
void parts_meet(pmix_proc_t whole[PARTS_MAX], long part, long jobs);

#endif
