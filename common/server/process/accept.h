/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * What listen() does besides, which is accept.c's in this process.
 */
#pragma once

#include <stdbool.h>

/** Whether a socket that listens from now on leaves each connection to the kernel until its client
 * has said something. @thread any */
void accept_defer(bool on);
