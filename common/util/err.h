/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * An error with its text. The first one wins: what comes later is usually its consequence.
 */
#pragma once

#include <stdbool.h>

/** Owned by the caller, usually on its stack; all zero means no error. */
struct err {
    char text[512]; /**< what failed, who, and what to do; empty: no error */
    bool alike;     /**< it is the same on all nodes of the step, and one of them tells the user */
};

/** Sets the text unless one is set already. @return -1, so that callers can return it */
int err_set(struct err *err, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
