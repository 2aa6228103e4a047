/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * Reads what eu-stack or gdb say of a process, and says it in one line.
 * @thread any
 */
#pragma once

#include <json-c/json.h>
#include <stdbool.h>
#include <stddef.h>

/** Reads the first thread's stack out of what `eu-stack` or gdb's `backtrace` print.
 * @param text changed
 * @return names of functions, that which was called first at the beginning, without arguments,
 * addresses and versions of symbols; "??" where a name is not known. NULL: there is no stack. The
 * caller puts it. */
json_object *stack_read(char *text);

/** Writes "main > solve > MPI_Bcast". What is before main is left out. So is what is called by a
 * function of MPI, SHMEM or PMIx, as that differs from one moment to the next, unless @p full.
 * @param stack as of stack_read(), of which nothing is taken for granted
 * @return malloc()ed, harmless on a terminal; NULL: there is no stack, or no memory. */
char *stack_line(json_object *stack, bool full);
