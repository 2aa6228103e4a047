/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * What a SPANK plugin needs of Slurm's spank.h. abi_check.c compares it with the real one.
 * @thread any
 */
#pragma once

/** Slurm's handle of a plugin; spank.h calls the pointer spank_t. */
struct spank_abi;

/** An option that the plugin adds to the commands. */
struct spank_abi_option {
    const char *name;    /**< without dashes */
    const char *arginfo; /**< of the argument, for the help */
    const char *usage;   /**< for the help */
    int has_arg;         /**< 0: no argument, 1: one */
    int val;             /**< handed to cb() */
    int (*cb)(int val, const char *optarg, int remote);
};

/** Adds an option; to be called in slurm_spank_init(). Slurm copies it. @return 0, or an error of
 * Slurm's, which it has said */
int spank_abi_option_register(
    struct spank_abi *spank,
    const struct spank_abi_option *option) __asm__("spank_option_register");
