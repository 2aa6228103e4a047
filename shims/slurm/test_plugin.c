/* SPDX-License-Identifier: BSD-3-Clause */
/* A plugin of Slurm, for test_version.c; PLUGIN_VERSION is set by meson.build. */
#include <stdint.h>

#define EXPORT __attribute__((visibility("default")))

EXPORT const char plugin_type[] = "select/test";
EXPORT const uint32_t plugin_version = PLUGIN_VERSION;
