/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * head  u32 kind, u32 bytes of the frame that begins, u32 of its end
 */
#include "common/transport/direct/record.h"

#include <endian.h>
#include <string.h>

enum { WHOLE_AT = 4, APART_AT = 8 };

size_t record_part(size_t left)
{
    return left > 0 ? (left - 1) % RECORD_PART + 1 : 0;
}

void record_write(const struct record *record, unsigned char head[RECORD_HEAD])
{
    uint32_t kind = htobe32((uint32_t)record->kind);
    uint32_t whole = htobe32(record->whole), apart = htobe32(record->apart);
    memcpy(head, &kind, sizeof kind);
    memcpy(head + WHOLE_AT, &whole, sizeof whole);
    memcpy(head + APART_AT, &apart, sizeof apart);
}

bool record_read(const unsigned char head[RECORD_HEAD], size_t part, size_t left,
                 struct record *record)
{
    uint32_t kind, whole, apart;
    memcpy(&kind, head, sizeof kind);
    memcpy(&whole, head + WHOLE_AT, sizeof whole);
    memcpy(&apart, head + APART_AT, sizeof apart);
    record->kind = (enum record_kind)be32toh(kind);
    record->whole = be32toh(whole);
    record->apart = be32toh(apart);
    if (record->kind != RECORD_DATA && (record->whole > 0 || record->apart > 0))
        return false;
    switch (record->kind) {
    case RECORD_DATA:
        if (left > 0 || record->whole > RECORD_MAX || record->whole <= record->apart)
            return false;
        return part == (record->apart == 0 ? record_part(record->whole)
                                           : SEAL_SECRET + record->whole - record->apart);
    case RECORD_MORE:
        return left > 0 && part == record_part(left);
    case RECORD_BYE:
        return left == 0 && part == 0;
    default:
        return false;
    }
}
