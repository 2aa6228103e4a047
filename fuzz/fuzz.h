/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * Fuzzing: what every target shares.
 *
 * A target is one reader of bytes that somebody else chooses. It reads an input, checks what the
 * reader promises, and aborts when that does not hold; the sanitizers see the rest. libFuzzer has
 * main(): it makes inputs up, guided by the code that they reach, from the seeds that the target
 * writes of good inputs. `ci/fuzz --help` tells how to run one.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** What must hold for every input. */
#define FUZZ_CHECK(condition) ((condition) ? (void)0 : fuzz_fail(#condition, __FILE__, __LINE__))

/** Says what does not hold, and aborts. */
_Noreturn void fuzz_fail(const char *what, const char *file, int line);

/** Called by the target's fuzz_seeds() with each good input, which is written as a file. */
void fuzz_seed(const void *data, size_t len);

/** Checks that a text fits on one line of an administrator's terminal. */
void fuzz_check_text(const char *text);

/** The bytes of an input as small numbers; zeros when there are no more. */
struct fuzz_bytes {
    const uint8_t *p, *end;
};

uint8_t fuzz_byte(struct fuzz_bytes *in);

/** @return a number in 0..n-1; @p n is at least 1 */
uint32_t fuzz_below(struct fuzz_bytes *in, uint32_t n);

/** @return the next @p want bytes, or as many as there are, with their number in @p len */
const uint8_t *fuzz_take(struct fuzz_bytes *in, size_t want, size_t *len);

/** The target's: gives its good inputs to fuzz_seed(). */
void fuzz_seeds(void);

/** The target's, named by libFuzzer: reads one input. @return 0 */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);
