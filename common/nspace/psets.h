/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * Process sets that a namespace has: at its start, which text names them, and which processes are
 * in them.
 *
 *     ocean=0-3:ice=4-7,12    names with their ranks
 *     ocean:ice               a name for each component of the step, in their order
 *
 * Of a step of several components that names none, each is a set of its own, "component0" and so
 * on. Every server of the step makes the same of it. Processes may define more (PMIx_Job_control).
 * Sets are immutable and end with their namespace.
 * @thread any
 */
#pragma once

#include "common/launch/boot.h"
#include "common/tracker/values/procset.h"

enum { PSETS_MAX = 256 /**< sets of one namespace */ };

struct pset {
    char name[PROCSET_NAME_MAX + 1];
    struct procset members; /**< canonical */
};

struct psets {
    uint32_t n;
    struct pset *sets; /**< in the text's order */
};

/** Reads the sets of @p boot's namespace: of its setting BOOT_PSETS, or of its components.
 * @param psets filled in; psets_free() it also after an error
 * @return 0, or -1 with what is wrong and what to do in @p err */
int psets_read(struct psets *psets, const struct boot *boot, struct err *err);

/** Adds a set. @param members canonical; copied
 * @return 0, or -1 with what is wrong and what to do in @p err */
int psets_add(struct psets *psets, const struct boot *boot, const char *name,
              const struct procset *members, struct err *err);

/** Takes the set that was added last out again. */
void psets_take_back(struct psets *psets);

/** @return the set of that name, or NULL; until one is added */
const struct pset *psets_find(const struct psets *psets, const char *name, size_t len);

/** @return whether @p len bytes may be a set's name: printable UTF-8 without blank, comma, colon
 * and equals sign */
bool psets_is_name(const char *text, size_t len);

/** @return the first set that has all processes of the namespace, or NULL; as long as @p psets
 * stands */
const struct pset *psets_whole(const struct psets *psets, const struct boot *boot);

void psets_free(struct psets *psets);
