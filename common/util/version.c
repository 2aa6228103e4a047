/* SPDX-License-Identifier: BSD-3-Clause */
/* The version of muster. */
#include "common/util/version.h"
#include "muster_version.h"

const char muster_version[] = MUSTER_VERSION;
