/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * cmocka, and what has to be included before it.
 */
#ifndef MUSTER_UTIL_TEST_CMOCKA_H
#define MUSTER_UTIL_TEST_CMOCKA_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

/* Behind the others. */
#include <cmocka.h>

#endif
