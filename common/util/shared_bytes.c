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
    *bytes = (struct shared_bytes){1, len, data};
    return bytes;
}

struct shared_bytes *shared_bytes_copy(const void *data, size_t len)
{
    void *copy = malloc(len + 1);
    if (copy != NULL && len > 0)
        memcpy(copy, data, len);
    return shared_bytes_take(copy, len);
}

struct shared_bytes *shared_bytes_hold(struct shared_bytes *bytes)
{
    if (bytes != NULL)
        bytes->owners++;
    return bytes;
}

void shared_bytes_drop(struct shared_bytes *bytes)
{
    if (bytes == NULL || --bytes->owners > 0)
        return;
    free(bytes->data);
    free(bytes);
}
