/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * Writes, checks and compares signatures as bytes; the names in messages are made here as well.
 */
#include "common/tracker/values/signature.h"

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

bool signature_names(const void *data, size_t len, const char *nspace)
{
    struct signature sig;
    bool names = signature_read(&sig, data, len) == 0 && procset_has_of(&sig.members, nspace);
    signature_free(&sig);
    return names;
}

static const struct coll_traits traits[COLL_KIND_END] = {
    [COLL_FENCE] = {.name = "fence"},
    [COLL_CONSTRUCT] = {"construct", .is_group = true, .is_recoverable = true, .adds = true},
    [COLL_DESTRUCT] = {"destruct", .is_group = true, .is_recoverable = true},
    [COLL_CONNECT] = {"connect", .is_recoverable = true},
    [COLL_DISCONNECT] = {"disconnect", .is_recoverable = true},
};

const struct coll_traits *coll_traits(enum coll_kind kind)
{
    return &traits[kind];
}

void coll_describe(enum coll_kind kind, const char *id, char *buf, size_t cap)
{
    if (traits[kind].is_group)
        snprintf(buf, cap, "group \"%s\" %s", id, traits[kind].name);
    else if (*id != '\0')
        snprintf(buf, cap, "%s \"%s\"", traits[kind].name, id);
    else
        snprintf(buf, cap, "a %s", traits[kind].name);
}

void signature_describe(const void *data, size_t len, char *buf, size_t cap)
{
    struct signature sig;
    if (signature_read(&sig, data, len) != 0)
        snprintf(buf, cap, "an operation that makes no sense");
    else if (traits[sig.kind].is_group)
        coll_describe(sig.kind, sig.id, buf, cap);
    else
        snprintf(buf, cap, "%s%s%s%s of %" PRIu64 " processes", traits[sig.kind].name,
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
