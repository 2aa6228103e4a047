/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * Bytes that several owners hold, and that no owner changes: received or written once, kept, sent
 * to many servers and read by libpmix, freed by the last owner.
 * @thread the loop's; owners may be on any thread, and end there
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct shared_bytes {
    atomic_uint owners;
    size_t len;                 /**< bytes */
    unsigned char *data;        /**< malloc()ed, or a part of the next */
    struct shared_bytes *whole; /**< held; NULL: the data are its own */
    bool spread;                /**< several servers get them: they are encrypted once for all */
    struct {
        unsigned char *data; /**< owned: the bytes as that makes them; NULL: it was not done */
        size_t len;
        unsigned char key[32];
    } sealed;
};

/** Takes over malloc()ed bytes. @return an object with one owner, or NULL when @p data is NULL or
 * memory is out; then the bytes are freed */
struct shared_bytes *shared_bytes_take(void *data, size_t len);

/** Copies bytes. @return an object with one owner, or NULL when memory is out */
struct shared_bytes *shared_bytes_copy(const void *data, size_t len);

/** Keeps a part of bytes: holds the whole, or copies the part when it is less than half of the
 * whole. So what is kept takes no more than twice its memory.
 * @param whole what @p data is in; NULL: borrowed bytes, which are copied
 * @return an object with one owner, or NULL when memory is out */
struct shared_bytes *shared_bytes_part(struct shared_bytes *whole, const void *data, size_t len);

/** Adds an owner. @param bytes may be NULL @return @p bytes */
struct shared_bytes *shared_bytes_hold(struct shared_bytes *bytes);

/** Removes an owner; the last one's removal frees the bytes. @param bytes may be NULL
 * @thread any */
void shared_bytes_drop(struct shared_bytes *bytes);
