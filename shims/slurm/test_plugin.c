/* SPDX-License-Identifier: BSD-3-Clause */
/* A plugin of Slurm, for test_version.c; PLUGIN_TYPE and PLUGIN_VERSION are set by meson.build. */
#include <stdint.h>

#define EXPORT __attribute__((visibility("default")))

EXPORT const char plugin_type[] = PLUGIN_TYPE;
EXPORT const uint32_t plugin_version = PLUGIN_VERSION;
