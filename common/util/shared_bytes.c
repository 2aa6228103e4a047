/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * Counts the owners of bytes.
 */
#include "common/util/shared_bytes.h"

#include <stdlib.h>
#include <string.h>

struct shared_bytes *shared_bytes_take(void *data, size_t len)
{
    struct shared_bytes *bytes = data != NULL ? malloc(sizeof *bytes) : NULL;
    if (bytes == NULL) {
        free(data);
        return NULL;
    }
    *bytes = (struct shared_bytes){.owners = 1, .len = len, .data = data};
    return bytes;
}

struct shared_bytes *shared_bytes_copy(const void *data, size_t len)
{
    void *copy = malloc(len + 1);
    if (copy != NULL && len > 0)
        memcpy(copy, data, len);
    return shared_bytes_take(copy, len);
}

struct shared_bytes *shared_bytes_part(struct shared_bytes *whole, const void *data, size_t len)
{
    if (whole != NULL && whole->whole != NULL)
        whole = whole->whole;
    if (whole == NULL || len < whole->len / 2)
        return shared_bytes_copy(data, len);
    struct shared_bytes *part = malloc(sizeof *part);
    if (part != NULL)
        *part = (struct shared_bytes){.owners = 1,
                                      .len = len,
                                      .data = (unsigned char *)data,
                                      .whole = shared_bytes_hold(whole)};
    return part;
}

struct shared_bytes *shared_bytes_hold(struct shared_bytes *bytes)
{
    if (bytes != NULL)
        atomic_fetch_add(&bytes->owners, 1);
    return bytes;
}

void shared_bytes_drop(struct shared_bytes *bytes)
{
    if (bytes == NULL || atomic_fetch_sub(&bytes->owners, 1) > 1)
        return;
    if (bytes->whole != NULL)
        shared_bytes_drop(bytes->whole);
    else
        free(bytes->data);
    free(bytes->sealed.data);
    free(bytes);
}
