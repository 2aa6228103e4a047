/* SPDX-License-Identifier: BSD-3-Clause */
/* Sets of broker ranks as Flux writes them. */
#include "plugins/flux/idset.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int number(const char **p, uint32_t size, uint32_t *value)
{
    uint64_t n = 0;
    if (!isdigit((unsigned char)**p))
        return -1;
    for (; isdigit((unsigned char)**p); ++*p) {
        n = n * 10 + (uint64_t)(**p - '0');
        if (n >= size)
            return -1;
    }
    *value = (uint32_t)n;
    return 0;
}

int idset_parse(struct idset *set, const char *text, uint32_t size)
{
    bool bracket = text[0] == '[';
    const char *p = text + bracket, *end = text + strlen(text);
    set->size = size;
    set->has = calloc((size_t)size + 1, sizeof *set->has);
    if (set->has == NULL)
        return -1;
    if (bracket && *--end != ']')
        return -1;
    while (p < end) {
        uint32_t first, last;
        if (number(&p, size, &first) != 0)
            return -1;
        last = first;
        if (*p == '-') {
            p++;
            if (number(&p, size, &last) != 0 || last < first)
                return -1;
        }
        for (uint32_t rank = first; rank <= last; rank++)
            set->has[rank] = true;
        if (p < end && (*p != ',' || ++p == end))
            return -1;
    }
    return 0;
}

bool idset_has(const struct idset *set, uint32_t rank)
{
    return rank < set->size && set->has[rank];
}

char *idset_minus(const struct idset *a, const struct idset *b)
{
    char *text = NULL;
    size_t len;
    FILE *out = open_memstream(&text, &len);
    const char *comma = "";
    if (out == NULL)
        return NULL;
    for (uint32_t rank = 0; rank < a->size; rank++) {
        uint32_t last = rank;
        if (!idset_has(a, rank) || idset_has(b, rank))
            continue;
        while (idset_has(a, last + 1) && !idset_has(b, last + 1))
            last++;
        fprintf(out, last > rank ? "%s%u-%u" : "%s%u", comma, rank, last);
        comma = ",";
        rank = last;
    }
    if (fclose(out) != 0) {
        free(text);
        return NULL;
    }
    return text;
}

void idset_free(struct idset *set)
{
    free(set->has);
    set->has = NULL;
    set->size = 0;
}
