/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * The processors of a job that no step has, from slurmctld.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/** @return whether a step has no processors of its own, but shares those of others */
typedef bool job_cpus_shares_fn(void *arg, uint32_t job, uint32_t step);

/**
 * Takes two round trips to slurmctld.
 * @param shares which steps do not count
 * @return how many; -1: slurmctld does not tell
 * @thread any
 */
int64_t job_cpus_free(uint32_t job, job_cpus_shares_fn *shares, void *arg);
