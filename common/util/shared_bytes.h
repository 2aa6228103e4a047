/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * Bytes that several owners hold, and that no owner changes: written once, sent to many servers,
 * freed by the last owner.
 * @thread the owners of one object share a thread: the count of them is not atomic
 */
#ifndef MUSTER_UTIL_SHARED_BYTES_H
#define MUSTER_UTIL_SHARED_BYTES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct shared_bytes {
    uint32_t owners;
    size_t len;            /**< bytes */
    unsigned char *data;   /**< malloc()ed */
    bool tagged;           /**< whether there is a tag */
    unsigned char tag[16]; /**< the hash of the bytes, which their sender makes once */
};

/** Takes over malloc()ed bytes. @return an object with one owner, or NULL when @p data is NULL or
 * memory is out; then the bytes are freed */
struct shared_bytes *shared_bytes_take(void *data, size_t len);

/** Copies bytes. @return an object with one owner, or NULL when memory is out */
struct shared_bytes *shared_bytes_copy(const void *data, size_t len);

/** Adds an owner. @param bytes may be NULL @return @p bytes */
struct shared_bytes *shared_bytes_hold(struct shared_bytes *bytes);

/** Appends bytes to malloc()ed ones. @param data taken over @param len of @p data, and then of all
 * @param bytes may be NULL @return all of them, malloc()ed, or NULL when memory is out */
void *shared_bytes_join(void *data, size_t *len, const struct shared_bytes *bytes);

/** Removes an owner; the last one's removal frees the bytes. @param bytes may be NULL */
void shared_bytes_drop(struct shared_bytes *bytes);

#endif
