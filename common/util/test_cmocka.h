/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * cmocka, and what has to be included before it.
 */
#pragma once

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

/* Behind the others. */
#include <cmocka.h>
