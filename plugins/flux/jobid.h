/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * Flux's job ids as people write them. @thread any
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

enum { JOBID_SIZE = 16 /**< of one in the form f58plain, with its end */ };

/**
 * Reads a job id in one of the forms f58 and f58plain ("ƒ2fC5xbh", "f2fC5xbh"), dec, hex (0x...),
 * dothex ("0000.0012.3456.0000") and kvs ("job.0000.0012.3456.0000"). Not the forms "words" and
 * "emoji", which need tables of Flux's own (place.c).
 * @return whether @p text is one
 */
bool jobid_parse(const char *text, uint64_t *id);

/** Writes a job id in the form f58plain, as namespaces have it. */
void jobid_write(uint64_t id, char text[static JOBID_SIZE]);
