/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * Reads a job id in each of Flux's forms (F58 with either f, dotted hexadecimal, KVS path,
 * hexadecimal, decimal), and writes it as F58.
 */
#include "plugins/flux/jobid.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Base 58, without the digits that look alike; the first digit weighs most. */
static const char digits[] = "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz";
enum { BASE = sizeof digits - 1 };

static bool parse_f58(const char *text, uint64_t *id)
{
    if (*text == '\0')
        return false;
    for (*id = 0; *text != '\0'; text++) {
        const char *digit = strchr(digits, *text);
        if (digit == NULL || __builtin_mul_overflow(*id, (uint64_t)BASE, id) ||
            __builtin_add_overflow(*id, (uint64_t)(digit - digits), id))
            return false;
    }
    return true;
}

/* Four groups of four hexadecimal digits. */
static bool parse_dothex(const char *text, uint64_t *id)
{
    if (strlen(text) != 19)
        return false;
    *id = 0;
    for (int i = 0; i < 19; i++) {
        char digit[2] = {text[i]};
        if (i % 5 == 4 ? text[i] != '.' : strspn(digit, "0123456789abcdefABCDEF") != 1)
            return false;
        if (i % 5 != 4)
            *id = *id << 4 | strtoul(digit, NULL, 16);
    }
    return true;
}

static bool parse_number(const char *text, int base, const char *allowed, uint64_t *id)
{
    char *end;
    if (*text == '\0' || strspn(text, allowed) != strlen(text))
        return false;
    errno = 0;
    *id = strtoull(text, &end, base);
    return errno == 0 && *end == '\0';
}

bool jobid_parse(const char *text, uint64_t *id)
{
    static const char florin[] = "\xc6\x92", kvs[] = "job.";
    if (strncmp(text, florin, sizeof florin - 1) == 0)
        return parse_f58(text + sizeof florin - 1, id);
    if (parse_dothex(text, id)) /* it may begin with an f, too */
        return true;
    if (text[0] == 'f')
        return parse_f58(text + 1, id);
    if (strncmp(text, kvs, sizeof kvs - 1) == 0)
        return parse_dothex(text + sizeof kvs - 1, id);
    if (strncmp(text, "0x", 2) == 0)
        return parse_number(text + 2, 16, "0123456789abcdefABCDEF", id);
    return parse_number(text, 10, "0123456789", id);
}

void jobid_write(uint64_t id, char text[static JOBID_SIZE])
{
    char reversed[JOBID_SIZE];
    size_t n = 0;
    do {
        reversed[n++] = digits[id % BASE];
        id /= BASE;
    } while (id > 0);
    text[0] = 'f';
    for (size_t i = 0; i < n; i++)
        text[1 + i] = reversed[n - 1 - i];
    text[1 + n] = '\0';
}
