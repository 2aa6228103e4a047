/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * Builds sets of numbers, looks numbers up, and writes and reads the sets as bytes and as texts.
 */
#include "common/tracker/values/ranges.h"

#include "common/util/text.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>

int ranges_add(struct ranges *set, uint32_t first, uint32_t last)
{
    struct range *end = set->n > 0 ? &set->v[set->n - 1] : NULL;
    /* Callers mostly add numbers in order: grow the last range instead of the array. */
    if (end != NULL && first != 0 && first == end->last + 1) {
        end->last = last;
        return 0;
    }
    if (set->n == set->cap) {
        uint32_t cap = set->cap > 0 ? 2 * set->cap : 4;
        struct range *v = realloc(set->v, cap * sizeof *v);
        if (v == NULL)
            return -1;
        set->v = v;
        set->cap = cap;
    }
    set->v[set->n++] = (struct range){first, last};
    return 0;
}

static int by_first(const void *a, const void *b)
{
    const struct range *x = a, *y = b;
    return (x->first > y->first) - (x->first < y->first);
}

void ranges_canonical(struct ranges *set)
{
    uint32_t n = 0;
    if (set->n == 0)
        return;
    qsort(set->v, set->n, sizeof *set->v, by_first);
    for (uint32_t i = 1; i < set->n; i++) {
        struct range *end = &set->v[n], *next = &set->v[i];
        if (next->first <= end->last || next->first == end->last + 1) {
            if (next->last > end->last)
                end->last = next->last;
        } else {
            set->v[++n] = *next;
        }
    }
    set->n = n + 1;
}

int ranges_unite(struct ranges *set, const struct ranges *more)
{
    int rc = 0;
    for (uint32_t i = 0; i < more->n && rc == 0; i++)
        rc = ranges_add(set, more->v[i].first, more->v[i].last);
    return rc;
}

int ranges_put(struct ranges *set, uint32_t number)
{
    if (ranges_have(set, number))
        return 0;
    int rc = ranges_add(set, number, number);
    ranges_canonical(set);
    return rc;
}

bool ranges_have(const struct ranges *set, uint32_t number)
{
    uint32_t low = 0, high = set->n;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (number > set->v[middle].last)
            low = middle + 1;
        else
            high = middle;
    }
    return low < set->n && number >= set->v[low].first;
}

uint64_t ranges_count(const struct ranges *set)
{
    uint64_t count = 0;
    for (uint32_t i = 0; i < set->n; i++)
        count += (uint64_t)set->v[i].last - set->v[i].first + 1;
    return count;
}

void ranges_write(const struct ranges *set, uint32_t most, struct wire_out *out)
{
    uint32_t n = set->n < most ? set->n : most;
    wire_put_u32(out, n);
    for (uint32_t i = 0; i < n; i++) {
        wire_put_u32(out, set->v[i].first);
        wire_put_u32(out, set->v[i].last);
    }
}

void ranges_read(struct ranges *set, uint32_t most, struct wire_in *in)
{
    uint32_t n = wire_get_count(in, 8);
    uint64_t least = 0;
    for (uint32_t i = 0; i < n && !in->bad; i++) {
        uint32_t first = wire_get_u32(in), last = wire_get_u32(in);
        if (first < least || first > last || last > most || ranges_add(set, first, last) != 0)
            in->bad = true;
        least = last + 2ull;
    }
}

bool ranges_next(const struct ranges *set, struct ranges_at *at)
{
    if (at->range == set->n)
        return false;
    const struct range *range = &set->v[at->range];
    at->number = range->first + at->offset++;
    if (at->number == range->last) {
        at->range++;
        at->offset = 0;
    }
    return true;
}

static bool parse_number(const char **at, const char *end, uint32_t most, uint32_t *number)
{
    const char *p = *at;
    uint64_t n = 0;
    for (; p < end && isdigit((unsigned char)*p) && n <= most; p++)
        n = n * 10 + (uint64_t)(*p - '0');
    bool good = p > *at && n <= most;
    *number = (uint32_t)n;
    *at = p;
    return good;
}

int ranges_parse(struct ranges *set, const char *text, size_t len, uint32_t most)
{
    const char *p = text, *end = text + len;
    bool good = true, more = len > 0;
    while (more && good) {
        uint32_t first, last;
        good = parse_number(&p, end, most, &first);
        last = first;
        if (good && p < end && *p == '-')
            good = (p++, parse_number(&p, end, most, &last));
        more = p < end;
        good = good && first <= last && (!more || *p == ',') && ranges_add(set, first, last) == 0;
        p += more;
    }
    ranges_canonical(set);
    return good ? 0 : -1;
}

void ranges_text(const struct ranges *set, char *buf, size_t cap)
{
    bool room = cap > 0;
    if (room)
        buf[0] = '\0';
    for (uint32_t i = 0; i < set->n && room; i++) {
        char text[32];
        const struct range *r = &set->v[i];
        snprintf(text, sizeof text, r->first == r->last ? "%s%u" : "%s%u-%u", i == 0 ? "" : ",",
                 r->first, r->last);
        room = text_fit(buf, cap, text);
    }
}

void ranges_free(struct ranges *set)
{
    free(set->v);
    *set = (struct ranges){0};
}
