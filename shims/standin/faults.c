/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * What musterrun does wrong when it is told to, for tests.
 */
#include "shims/standin/faults.h"

#include <ctype.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

static const struct kind {
    const char *name, *keys;
    long percent;
} kinds[FAULT_KINDS] = {
    [FAULT_LATE] = {"late", "percent ms node", 20},
    [FAULT_DUPLICATE] = {"duplicate", "percent ms node", 20},
    [FAULT_LOST] = {"lost", "percent node", 20},
    [FAULT_REFUSED] = {"refused", "percent node", 20},
    [FAULT_UID] = {"uid", "percent node", 20},
    [FAULT_DIE] = {"die", "node after message notice", 0},
    [FAULT_CUT] = {"cut", "percent", 5},
    [FAULT_FLIPPED] = {"flipped", "percent", 5},
    [FAULT_SILENT] = {"silent", "percent", 1},
    [FAULT_UNREACHABLE] = {"unreachable", "percent", 50},
    [FAULT_REPEATED] = {"repeated", "percent", 5},
    [FAULT_SWAPPED] = {"swapped", "percent", 5},
    [FAULT_INSERTED] = {"inserted", "percent", 5},
    [FAULT_READ] = {"read", "", 100},
};

static const struct key {
    const char *name;
    size_t offset;
    long min, max;
} keys[] = {
    {"percent", offsetof(struct fault, percent), 0, 100},
    {"ms", offsetof(struct fault, ms), 1, 60000},
    {"node", offsetof(struct fault, node), 0, 9999},
    {"after", offsetof(struct fault, after), 0, 3600000},
    {"message", offsetof(struct fault, message), 1, 1000000000},
    {"notice", offsetof(struct fault, notice), 0, 3600000},
    {0},
};

/* Whether word is one of the words in list. */
static bool has_word(const char *list, const char *word, size_t len)
{
    for (const char *p = list; *p != '\0'; p += strspn(p, " ")) {
        size_t n = strcspn(p, " ");
        if (n == len && strncmp(p, word, len) == 0)
            return true;
        p += n;
    }
    return false;
}

static int set_key(struct fault *fault, const char *text, size_t len, struct err *err)
{
    const struct kind *kind = &kinds[fault->kind];
    size_t name_len = strcspn(text, "=,");
    const struct key *key = keys;
    char *end;
    while (key->name && (strlen(key->name) != name_len || strncmp(key->name, text, name_len) != 0))
        key++;
    if (!key->name || !has_word(kind->keys, text, name_len) || name_len >= len)
        return err_set(err, "--fault=%s: \"%.*s\" is none of: %s, each with =NUMBER", kind->name,
                       (int)len, text, kind->keys);
    long value = strtol(text + name_len + 1, &end, 10);
    if (!isdigit((unsigned char)text[name_len + 1]) || end != text + len || value < key->min ||
        value > key->max)
        return err_set(err, "--fault=%s: %s has to be %ld to %ld", kind->name, key->name, key->min,
                       key->max);
    *(long *)(void *)((char *)fault + key->offset) = value;
    return 0;
}

int faults_add(struct faults *faults, const char *text, struct err *err)
{
    size_t len = strcspn(text, ":");
    struct fault fault = {
        .ms = 100, .node = FAULT_ANY, .after = FAULT_ANY, .message = FAULT_ANY, .notice = 1000};

    while (fault.kind < FAULT_KINDS && (strlen(kinds[fault.kind].name) != len ||
                                        strncmp(kinds[fault.kind].name, text, len) != 0))
        fault.kind++;
    if (fault.kind == FAULT_KINDS)
        return err_set(
            err,
            "--fault=%s: there are late, duplicate, lost, refused, uid, die, and of direct "
            "connections cut, flipped, silent, unreachable, repeated, swapped, inserted, read",
            text);
    fault.percent = kinds[fault.kind].percent;
    for (text += len; *text != '\0'; text += len) {
        text++;
        len = strcspn(text, ",");
        if (set_key(&fault, text, len, err) < 0)
            return -1;
    }
    if (fault.kind == FAULT_DIE && fault.after < 0 && fault.message < 0)
        return err_set(err, "--fault=die: give after=MILLISECONDS or message=NUMBER");
    if (faults->n == FAULTS_MAX)
        return err_set(err, "--fault: at most %d", FAULTS_MAX);
    faults->list[faults->n++] = fault;
    return 0;
}

struct verdict faults_judge(struct faults *faults, uint32_t from, uint32_t to, uint64_t number)
{
    struct verdict verdict = {0};
    for (unsigned i = 0; i < faults->n; i++) {
        struct fault *fault = &faults->list[i];
        uint64_t dice =
            faults_mix(faults_mix(faults_mix(faults_mix(faults->seed + i) + number) + from) +
                       to); /* the same each run */
        unsigned delay = (unsigned)(dice / 100 % (uint64_t)fault->ms) + 1;
        if (fault->kind >= FAULT_CUT || (fault->node != FAULT_ANY && fault->node != (long)to) ||
            (long)(dice % 100) >= fault->percent)
            continue;
        __atomic_fetch_add(&fault->count, 1, __ATOMIC_RELAXED);
        if (fault->kind == FAULT_LATE)
            verdict.late = delay;
        else if (fault->kind == FAULT_DUPLICATE)
            verdict.duplicate = delay;
        else if (fault->kind == FAULT_LOST)
            verdict.lost = true;
        else if (fault->kind == FAULT_REFUSED)
            verdict.refused = true;
        else if (fault->kind == FAULT_UID)
            verdict.forged = true;
    }
    return verdict;
}

int faults_count(struct faults *faults)
{
    uint64_t total = __atomic_add_fetch(&faults->total, 1, __ATOMIC_RELAXED);
    for (unsigned i = 0; i < faults->n; i++)
        if (faults->list[i].kind == FAULT_DIE && faults->list[i].message == (long)total)
            return (int)i;
    return -1;
}

bool faults_direct_any(const struct faults *faults)
{
    for (unsigned i = 0; i < faults->n; i++)
        if (faults->list[i].kind >= FAULT_CUT)
            return true;
    return false;
}

bool faults_direct_write(const struct faults *faults, uint32_t node, const char *beside)
{
    struct faults_direct ask = {.seed = faults_mix(faults->seed + node)};
    char path[4096];
    for (unsigned i = 0; i < faults->n; i++)
        if (faults->list[i].kind >= FAULT_CUT)
            ask.percent[faults->list[i].kind - FAULT_CUT] = faults->list[i].percent;
    if (!faults_direct_any(faults))
        return true;
    if (snprintf(path, sizeof(path), "%s" FAULTS_DIRECT_ASK, beside) >= (int)sizeof(path))
        return false;
    FILE *out = fopen(path, "we");
    if (out == NULL)
        return false;
    bool good = fwrite(&ask, sizeof(ask), 1, out) == 1;
    return fclose(out) == 0 && good;
}

void faults_direct_read(struct faults *faults, const char *beside)
{
    char path[4096];
    if (snprintf(path, sizeof(path), "%s" FAULTS_DIRECT_DONE, beside) >= (int)sizeof(path))
        return;
    FILE *in = fopen(path, "re");
    for (int c; in != NULL && (c = fgetc(in)) != EOF;)
        for (unsigned i = 0; i < faults->n; i++)
            if ((int)faults->list[i].kind == FAULT_CUT + c - 'a')
                __atomic_fetch_add(&faults->list[i].count, 1, __ATOMIC_RELAXED);
    if (in != NULL)
        fclose(in);
}

void faults_report(const struct faults *faults, FILE *out)
{
    for (unsigned i = 0; i < faults->n; i++)
        fprintf(out, "musterrun: fault %s: %u times\n", kinds[faults->list[i].kind].name,
                faults->list[i].count);
}
