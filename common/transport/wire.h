/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * Bytes that leave or enter the process: one growing writer, one bounded reader.
 *
 * Integers are big-endian; a string or a block is a u32 length and its bytes. The reader never
 * moves past its end: the first short or oversized field makes it bad, every later field reads as
 * zero or empty, and wire_end() tells once whether all was well. Needs nothing but the C library,
 * because the launcher's plugin and the server both use it.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** A growing buffer; all zero is an empty one. */
struct wire_out {
    unsigned char *data; /**< owned; wire_out_free() or wire_out_take() */
    size_t len, cap;     /**< bytes */
    bool failed;         /**< memory ran out or a block was over 4 GiB: the content is not whole */
};

void wire_put_u8(struct wire_out *out, uint8_t v);
void wire_put_u32(struct wire_out *out, uint32_t v);
void wire_put_i32(struct wire_out *out, int32_t v);
void wire_put_u64(struct wire_out *out, uint64_t v);
/** Appends raw bytes without a length. */
void wire_put_raw(struct wire_out *out, const void *data, size_t len);
/** Appends a length and @p len bytes (@p data may be NULL when @p len is 0). */
void wire_put_block(struct wire_out *out, const void *data, size_t len);
/** Appends a block; NULL is written as an empty one. */
void wire_put_str(struct wire_out *out, const char *s);
/** Makes room for @p len more bytes at once, so that what follows moves nothing. */
void wire_reserve(struct wire_out *out, size_t len);
/** Overwrites the u32 at byte @p at, which must have been written. */
void wire_set_u32(struct wire_out *out, size_t at, uint32_t v);
/** Hands the buffer to the caller, who frees it with free(); @p out is empty afterwards. */
void *wire_out_take(struct wire_out *out, size_t *len);
void wire_out_free(struct wire_out *out);

/** A cursor over borrowed bytes. */
struct wire_in {
    const unsigned char *p, *end;
    bool bad; /**< a field did not fit */
};

void wire_in_init(struct wire_in *in, const void *data, size_t len);
uint8_t wire_get_u8(struct wire_in *in);
uint32_t wire_get_u32(struct wire_in *in);
int32_t wire_get_i32(struct wire_in *in);
uint64_t wire_get_u64(struct wire_in *in);
/** @return the next @p len bytes, borrowed, or NULL when bad */
const void *wire_get_raw(struct wire_in *in, size_t len);
/** @return a pointer into the borrowed bytes and the length in @p len; NULL and 0 when bad */
const void *wire_get_block(struct wire_in *in, size_t *len);
/** Copies a string of at most @p cap - 1 bytes without NUL inside; longer ones make it bad. */
void wire_get_str(struct wire_in *in, char *buf, size_t cap);
/** @return a copy that the caller frees, at most @p max bytes long, or NULL when bad */
char *wire_get_strdup(struct wire_in *in, size_t max);
/** A count of things that take at least @p min_size bytes each: makes the cursor bad when so many
 * cannot follow, so that no allocation is larger than what was received. */
uint32_t wire_get_count(struct wire_in *in, size_t min_size);
/** @return true when every field fitted and nothing is left over */
bool wire_end(const struct wire_in *in);
