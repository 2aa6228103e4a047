/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * Strings of JSON.
 */
#pragma once

#include <stdio.h>

/** Writes @p text as a string of JSON, with its quotes. Bytes that are not UTF-8 stay as they are,
 * and the reader of the whole refuses them. @thread any */
void json_text(FILE *out, const char *text);

/** The same without the quotes; of bytes that may be 0. */
void json_escape(FILE *out, const char *text, size_t len);
