/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * The part that is linked into every target: seeds, checks, a log that looks at each line, and the
 * taking apart of the input.
 */
#include "fuzz/fuzz.h"

#include "common/util/log.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/** libFuzzer's, called once before all else. */
int LLVMFuzzerInitialize(int *argc, char ***argv);

static const char *seed_dir;
static unsigned seed_number;

void fuzz_fail(const char *what, const char *file, int line)
{
    fprintf(stderr, "%s:%d: does not hold: %s\n", file, line, what);
    abort();
}

void fuzz_seed(const void *data, size_t len)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/seed-%u", seed_dir, seed_number++);
    FILE *file = fopen(path, "w");
    FUZZ_CHECK(file != NULL);
    FUZZ_CHECK(fwrite(data, 1, len, file) == len);
    FUZZ_CHECK(fclose(file) == 0);
}

void fuzz_check_text(const char *text)
{
    for (const unsigned char *p = (const unsigned char *)text; *p != '\0'; p++)
        FUZZ_CHECK(*p >= 0x20 && *p != 0x7f);
}

static void check_line(void *arg, enum log_level level, const char *text)
{
    (void)arg;
    (void)level;
    fuzz_check_text(text);
}

uint8_t fuzz_byte(struct fuzz_bytes *in)
{
    return in->p < in->end ? *in->p++ : 0;
}

uint32_t fuzz_below(struct fuzz_bytes *in, uint32_t n)
{
    return fuzz_byte(in) % n;
}

const uint8_t *fuzz_take(struct fuzz_bytes *in, size_t want, size_t *len)
{
    const uint8_t *p = in->p;
    size_t have = (size_t)(in->end - p);
    *len = want < have ? want : have;
    in->p += *len;
    return p;
}

/* TARGET --seeds=DIR writes the seeds and ends. Else all that is logged is checked. */
int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    static const char option[] = "--seeds=";
    if (*argc == 2 && strncmp((*argv)[1], option, sizeof option - 1) == 0) {
        seed_dir = (*argv)[1] + sizeof option - 1;
        fuzz_seeds();
        exit(0);
    }
    log_open(check_line, NULL, LOG_LEVEL_INFO, NULL);
    return 0;
}
