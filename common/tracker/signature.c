/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * Writes, checks and compares signatures as bytes; the names in messages are made here as well.
 */
#include "common/tracker/signature.h"

#include <inttypes.h>
#include <stdio.h>

void signature_write(struct wire_out *out, enum coll_kind kind, const char *id,
                     const struct procset *members)
{
    wire_put_u8(out, (uint8_t)kind);
    wire_put_str(out, id);
    procset_write(members, out);
}

int signature_read(struct signature *sig, const void *data, size_t len)
{
    struct wire_in in;
    *sig = (struct signature){0};
    wire_in_init(&in, data, len);
    uint8_t kind = wire_get_u8(&in);
    wire_get_str(&in, sig->id, sizeof sig->id);
    procset_read(&sig->members, &in);
    if (!wire_end(&in) || kind == 0 || kind >= COLL_KIND_END || sig->members.nparts == 0)
        return -1;
    sig->kind = kind;
    return 0;
}

void signature_free(struct signature *sig)
{
    procset_free(&sig->members);
}

enum coll_kind signature_kind(const void *data, size_t len)
{
    const unsigned char *kind = data;
    return len > 0 && *kind < COLL_KIND_END ? (enum coll_kind) * kind : (enum coll_kind)0;
}

static const char *const kind_names[COLL_KIND_END] = {[COLL_FENCE] = "fence",
                                                      [COLL_CONSTRUCT] = "construct",
                                                      [COLL_DESTRUCT] = "destruct",
                                                      [COLL_CONNECT] = "connect",
                                                      [COLL_DISCONNECT] = "disconnect"};

const char *coll_kind_name(enum coll_kind kind)
{
    return kind_names[kind];
}

bool coll_kind_is_group(enum coll_kind kind)
{
    return kind == COLL_CONSTRUCT || kind == COLL_DESTRUCT;
}

void coll_describe(enum coll_kind kind, const char *id, char *buf, size_t cap)
{
    if (coll_kind_is_group(kind))
        snprintf(buf, cap, "group \"%s\" %s", id, kind_names[kind]);
    else if (*id != '\0')
        snprintf(buf, cap, "%s \"%s\"", kind_names[kind], id);
    else
        snprintf(buf, cap, "a %s", kind_names[kind]);
}

void signature_describe(const void *data, size_t len, char *buf, size_t cap)
{
    struct signature sig;
    if (signature_read(&sig, data, len) != 0)
        snprintf(buf, cap, "an operation that makes no sense");
    else if (coll_kind_is_group(sig.kind))
        coll_describe(sig.kind, sig.id, buf, cap);
    else
        snprintf(buf, cap, "%s%s%s%s of %" PRIu64 " processes", kind_names[sig.kind],
                 *sig.id != '\0' ? " \"" : "", sig.id, *sig.id != '\0' ? "\"" : "",
                 procset_size(&sig.members));
    signature_free(&sig);
}

uint64_t signature_hash(const void *data, size_t len)
{
    const unsigned char *p = data;
    uint64_t h = 0xcbf29ce484222325u;
    for (size_t i = 0; i < len; i++)
        h = (h ^ p[i]) * 0x100000001b3u;
    return h;
}
