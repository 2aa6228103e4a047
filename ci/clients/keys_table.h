/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * The reserved keys that the host is to provide, and what each should be.
 *
 * docs/keys.md names the same keys; ci/check-keys sees to it.
 */
#pragma once

#include "keys_known.h"

/** What a key is about. */
enum realm { SESSION, JOB, APP, NODE, PROC, REALMS };

/** What is expected of a value. */
enum kind {
    UNKNOWN, /* nothing to compare with: it is not asked for */
    NUMBER,
    FLAG,
    TEXT,
    SOME,    /* a text that is not empty */
    FOLDER,  /* a directory of ours alone */
    RANKS,   /* an array of the processes of a node */
    LAYOUT,  /* PMIX_ANL_MAP */
    COMMAND, /* what a task of the application was started with, on our node */
    ABSENT,  /* that there is none */
};

struct want {
    enum kind kind;
    uint64_t number;
    const char *text;
};

/** One key. `want` says what it should be about a subject: an application, a node of
 * the step, a rank, or nothing. */
struct row {
    const char *name, *key;
    enum realm realm;
    struct want (*want)(uint32_t about);
};

extern const struct row rows[];
enum { ROWS_MAX = 100 };
/** How many there are. */
extern const size_t nrows;

/** Whether a node is the one that we are on. */
bool is_here(uint32_t node);
