/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * musterrun's own messages, to standard error. @thread any
 */
#pragma once

#include "shims/standin/standin.h"

#include <stdarg.h>

/** SAY_NOTE: no error, and never left out. */
enum { SAY_ERROR = 0, SAY_INFO = 1, SAY_DEBUG = 2, SAY_NOTE = 3 };

/** Says of which step and node messages are from now on. @param step,here borrowed for good; NULL
 * @p here: musterrun's first process. Without a step nothing is left out. @thread before others */
void say_describe(const struct standin_step *step, const struct standin_node *here);

/** A line with the node's name, unless the step is less verbose than that. @param level SAY_ */
void say_list(int level, const char *fmt, va_list ap) __attribute__((format(printf, 2, 0)));

void say(int level, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
#define say_error(...) say(SAY_ERROR, __VA_ARGS__)
#define say_info(...) say(SAY_INFO, __VA_ARGS__)
#define say_debug(...) say(SAY_DEBUG, __VA_ARGS__)
