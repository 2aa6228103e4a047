/* SPDX-License-Identifier: BSD-3-Clause */
/* The text is the user's, and of a foreign namespace that of another process of the user. */
#include "common/nspace/psets.h"

#include "common/util/log.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define EXAMPLE "for example " BOOT_PSETS_ENV "=ocean=0-3:ice=4-7"

/* What is shown of a wrong text. */
enum { SHOWN = 64 };

static struct pset *add(struct psets *psets)
{
    psets->sets = realloc(psets->sets, (psets->n + 1) * sizeof *psets->sets);
    psets->sets[psets->n] = (struct pset){0};
    return &psets->sets[psets->n++];
}

/* "," separates names in answers to queries, and the other two are the text's own. */
bool psets_is_name(const char *text, size_t len)
{
    for (size_t i = 0; i < len; i++)
        if (strchr(",=: ", text[i]) != NULL) /* NUL, too */
            return false;
    return len > 0 && len <= PROCSET_NAME_MAX && log_is_text(text, len);
}

const struct pset *psets_find(const struct psets *psets, const char *name, size_t len)
{
    for (uint32_t i = 0; i < psets->n; i++)
        if (strlen(psets->sets[i].name) == len && memcmp(psets->sets[i].name, name, len) == 0)
            return &psets->sets[i];
    return NULL;
}

static int name_set(struct psets *psets, const struct boot *boot, const char *text, size_t len,
                    struct err *err)
{
    if (!psets_is_name(text, len))
        return err_set(
            err,
            "process sets: \"%.*s\" is no name of a set; give up to %d bytes of printable "
            "text without blank, comma, colon and equals sign, " EXAMPLE,
            (int)(len < SHOWN ? len : SHOWN), text, (int)PROCSET_NAME_MAX);
    if (psets_find(psets, text, len) != NULL)
        return err_set(err,
                       "process sets: there are two of the name \"%.*s\"; give each another one",
                       (int)(len < SHOWN ? len : SHOWN), text);
    if (strlen(boot->nspace) == len && memcmp(boot->nspace, text, len) == 0)
        return err_set(err, "process sets: \"%s\" is the name of the namespace; give another one",
                       boot->nspace);
    if (psets->n >= PSETS_MAX)
        return err_set(err, "process sets: there are more than %d; give fewer", (int)PSETS_MAX);
    memcpy(add(psets)->name, text, len);
    return 0;
}

int psets_add(struct psets *psets, const struct boot *boot, const char *name,
              const struct procset *members, struct err *err)
{
    if (name_set(psets, boot, name, strlen(name), err) != 0)
        return -1;
    procset_unite(&psets->sets[psets->n - 1].members, members);
    return 0;
}

void psets_take_back(struct psets *psets)
{
    procset_free(&psets->sets[--psets->n].members);
}

/* "0-3,8" */
static int read_ranks(struct pset *set, const struct boot *boot, const char *text, size_t len,
                      struct err *err)
{
    struct ranges ranks = {0};
    int rc = ranges_parse(&ranks, text, len, UINT32_MAX);
    uint32_t last = ranks.n > 0 ? ranks.v[ranks.n - 1].last : 0;
    if (rc != 0 || ranks.n == 0)
        rc = err_set(
            err,
            "process sets: \"%.*s\" is no list of ranks for \"%.64s\"; give ranks and ranges "
            "from the lower to the higher one, " EXAMPLE,
            (int)(len < SHOWN ? len : SHOWN), text, set->name);
    else if (last >= boot->ntasks)
        rc = err_set(err,
                     "process sets: \"%.64s\" has rank %u, and the last rank of the %s is %u; give "
                     "ranks that there are",
                     set->name, last, log_unit(), boot->ntasks - 1);
    for (uint32_t i = 0; i < ranks.n && rc == 0; i++)
        procset_add(&set->members, boot->nspace, ranks.v[i].first, ranks.v[i].last);
    ranges_free(&ranks);
    procset_canonical(&set->members);
    return rc;
}

static void take_component(struct pset *set, const struct boot *boot, uint32_t number)
{
    struct boot_app app = boot_app(boot, number);
    procset_add(&set->members, boot->nspace, app.first, app.first + app.ntasks - 1);
    procset_canonical(&set->members);
}

/* Sets that the components make by themselves. */
static int name_components(struct psets *psets, const struct boot *boot, struct err *err)
{
    uint32_t napps = boot_napps(boot);
    for (uint32_t i = 0; i < napps && napps > 1 && i < PSETS_MAX; i++) {
        char name[32];
        snprintf(name, sizeof name, "component%u", i);
        if (name_set(psets, boot, name, strlen(name), err) != 0)
            return -1;
        take_component(&psets->sets[psets->n - 1], boot, i);
    }
    return 0;
}

static int count_mismatch(uint32_t bare, const struct boot *boot, const struct psets *psets,
                          struct err *err)
{
    uint32_t napps = boot_napps(boot);
    if (bare != psets->n)
        return err_set(err, "process sets: some have ranks and some have not; give ranks to each, "
                            "or to none, " EXAMPLE);
    return err_set(err,
                   "process sets: the %s has %u component%s, and %u name%s without ranks; give a "
                   "name for each component, or ranks, " EXAMPLE,
                   log_unit(), napps, napps == 1 ? "" : "s", bare, bare == 1 ? "" : "s");
}

int psets_read(struct psets *psets, const struct boot *boot, struct err *err)
{
    const char *text = boot_setting(boot, BOOT_PSETS);
    uint32_t bare = 0;
    *psets = (struct psets){0};
    if (text == NULL)
        return name_components(psets, boot, err);
    if (strlen(text) > BOOT_PSETS_MAX)
        return err_set(err, "process sets: the text is longer than %d bytes; give shorter names",
                       (int)BOOT_PSETS_MAX);
    for (const char *p = text; p != NULL; p = *p == ':' ? p + 1 : NULL) {
        size_t len = strcspn(p, ":"), name = strcspn(p, ":=");
        if (name_set(psets, boot, p, name, err) != 0)
            return -1;
        struct pset *set = &psets->sets[psets->n - 1];
        if (name < len) {
            if (read_ranks(set, boot, p + name + 1, len - name - 1, err) != 0)
                return -1;
        } else if (bare++ < boot_napps(boot)) {
            take_component(set, boot, bare - 1);
        }
        p += len;
    }
    return bare == 0 || (bare == psets->n && bare == boot_napps(boot))
               ? 0
               : count_mismatch(bare, boot, psets, err);
}

const struct pset *psets_whole(const struct psets *psets, const struct boot *boot)
{
    for (uint32_t i = 0; i < psets->n; i++)
        if (procset_size(&psets->sets[i].members) == boot->ntasks)
            return &psets->sets[i];
    return NULL;
}

void psets_free(struct psets *psets)
{
    for (uint32_t i = 0; i < psets->n; i++)
        procset_free(&psets->sets[i].members);
    free(psets->sets);
    *psets = (struct psets){0};
}
