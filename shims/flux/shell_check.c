/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * Compares shell_abi.h and shell_jobs_abi.h with Flux's own headers. Compiled, never run, and only
 * where there are headers; a declaration that differs does not compile.
 */
#define FLUX_SHELL_PLUGIN_NAME "muster"
#include <flux/core.h>
#include <flux/shell.h>
#include <jansson.h>

#define FLUX_ABI_REAL_HEADERS
#include "shims/flux/shell_jobs_abi.h"
