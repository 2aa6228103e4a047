/* SPDX-License-Identifier: BSD-3-Clause */
/* Names of nodes as one text. */
#include "plugins/slurm/node_names.h"

#include "common/util/text.h"

#include <ctype.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { DIGITS_MAX = 9 /* of the number at a name's end; what is before belongs to the prefix */ };

struct name {
    size_t prefix; /* its length */
    size_t digits;
    uint32_t number;
};

bool node_names_is_one(const char *name, size_t max)
{
    size_t n = 0;
    while (isascii(name[n]) && (isalnum(name[n]) || (name[n] != '\0' && strchr("._-", name[n]))))
        n++;
    return n > 0 && n <= max && name[n] == '\0';
}

static struct name parse(const char *text)
{
    struct name name = {.prefix = strlen(text)};
    while (name.prefix > 0 && name.digits < DIGITS_MAX && isdigit(text[name.prefix - 1])) {
        name.prefix--;
        name.digits++;
    }
    name.number = (uint32_t)strtoul(text + name.prefix, NULL, 10);
    return name;
}

static int compare(const void *left, const void *right)
{
    const char *a = *(char *const *)left, *b = *(char *const *)right;
    struct name x = parse(a), y = parse(b);
    int order = strncmp(a, b, x.prefix < y.prefix ? x.prefix : y.prefix);
    if (order != 0)
        return order;
    if (x.prefix != y.prefix)
        return x.prefix < y.prefix ? -1 : 1;
    if (x.number != y.number)
        return x.number < y.number ? -1 : 1;
    return strcmp(a, b);
}

/* Whether @p b is the name after @p a: "c9" and "c10", "c09" and "c10", but not "c9" and "c010". */
static bool follows(const char *a, const char *b)
{
    struct name x = parse(a), y = parse(b);
    bool alike = x.digits == y.digits || (x.digits + 1 == y.digits && b[y.prefix] != '0');
    return x.digits > 0 && alike && x.prefix == y.prefix && strncmp(a, b, x.prefix) == 0 &&
           x.number + 1 == y.number;
}

void node_names_text(char **names, size_t n, char *buf, size_t cap)
{
    buf[0] = '\0';
    qsort(names, n, sizeof *names, compare);
    for (size_t i = 0, last; i < n; i = last + 1) {
        for (last = i; last + 1 < n && follows(names[last], names[last + 1]);)
            last++;
        char *part = text_format("%s%s%s%s", i > 0 ? ", " : "", names[i], last > i ? "-" : "",
                                 last > i ? names[last] : "");
        if (part == NULL || !text_fit(buf, cap, part))
            i = last = n;
        free(part);
    }
}
