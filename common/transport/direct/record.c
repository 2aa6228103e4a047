/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * head  u32 bytes of the frame that begins, u32 of its end
 */
#include "common/transport/direct/record.h"

#include <endian.h>
#include <string.h>

enum { APART_AT = 4 };

size_t record_part(size_t left)
{
    return left > 0 ? (left - 1) % RECORD_PART + 1 : 0;
}

void record_write(const struct record *record, unsigned char head[RECORD_HEAD])
{
    uint32_t whole = htobe32(record->whole), apart = htobe32(record->apart);
    memcpy(head, &whole, sizeof whole);
    memcpy(head + APART_AT, &apart, sizeof apart);
}

bool record_read(const unsigned char head[RECORD_HEAD], size_t part, struct record *record)
{
    memcpy(&record->whole, head, sizeof record->whole);
    memcpy(&record->apart, head + APART_AT, sizeof record->apart);
    record->whole = be32toh(record->whole);
    record->apart = be32toh(record->apart);
    if (record->apart == 0)
        return record->whole <= RECORD_MAX && part == record_part(record->whole);
    return record->whole <= RECORD_MAX && record->whole > record->apart &&
           part == SEAL_SECRET + record->whole - record->apart;
}
