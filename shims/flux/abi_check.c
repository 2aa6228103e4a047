/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * Compares flux_abi.h with Flux's own headers. Compiled, never run, and only where there are
 * headers; a declaration that differs does not compile.
 */
#include <flux/core.h>
#include <jansson.h>

#define FLUX_ABI_REAL_HEADERS
#include "shims/flux/flux_abi.h"
