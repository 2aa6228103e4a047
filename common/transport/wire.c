/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * Bytes that leave or enter the process: one growing writer, one bounded reader.
 */
#include "common/transport/wire.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

/* Has a capacity of that many bytes. */
static void grow(struct wire_out *out, size_t cap)
{
    unsigned char *data = realloc(out->data, cap);
    if (data == NULL) {
        out->failed = true;
        return;
    }
    out->data = data;
    out->cap = cap;
}

void wire_reserve(struct wire_out *out, size_t len)
{
    if (!out->failed && len > out->cap - out->len && len <= SIZE_MAX / 2 - out->len)
        grow(out, out->len + len);
}

/* Room for len more bytes, or NULL. */
static unsigned char *reserve(struct wire_out *out, size_t len)
{
    unsigned char *at;
    if (!out->failed && len > out->cap - out->len) {
        size_t cap = out->cap ? out->cap : 256;
        while (cap - out->len < len && cap <= SIZE_MAX / 2)
            cap *= 2;
        if (cap - out->len < len)
            out->failed = true;
        else
            grow(out, cap);
    }
    if (out->failed)
        return NULL;
    at = out->data + out->len;
    out->len += len;
    return at;
}

static void store_u32(unsigned char *p, uint32_t v)
{
    p[0] = (unsigned char)(v >> 24);
    p[1] = (unsigned char)(v >> 16);
    p[2] = (unsigned char)(v >> 8);
    p[3] = (unsigned char)v;
}

void wire_put_u8(struct wire_out *out, uint8_t v)
{
    wire_put_raw(out, &v, 1);
}

void wire_put_u32(struct wire_out *out, uint32_t v)
{
    unsigned char *p = reserve(out, 4);
    if (p != NULL)
        store_u32(p, v);
}

void wire_put_i32(struct wire_out *out, int32_t v)
{
    wire_put_u32(out, (uint32_t)v);
}

void wire_put_u64(struct wire_out *out, uint64_t v)
{
    wire_put_u32(out, (uint32_t)(v >> 32));
    wire_put_u32(out, (uint32_t)v);
}

void wire_put_raw(struct wire_out *out, const void *data, size_t len)
{
    unsigned char *p = len > 0 ? reserve(out, len) : NULL;
    if (p != NULL)
        memcpy(p, data, len);
}

void wire_put_block(struct wire_out *out, const void *data, size_t len)
{
    if (len > UINT32_MAX) {
        out->failed = true;
        return;
    }
    wire_put_u32(out, (uint32_t)len);
    wire_put_raw(out, data, len);
}

void wire_put_str(struct wire_out *out, const char *s)
{
    wire_put_block(out, s, s != NULL ? strlen(s) : 0);
}

void wire_set_u32(struct wire_out *out, size_t at, uint32_t v)
{
    if (out->failed)
        return;
    assert(at <= out->len && out->len - at >= 4);
    store_u32(out->data + at, v);
}

void *wire_out_take(struct wire_out *out, size_t *len)
{
    void *data = out->data;
    *len = out->len;
    *out = (struct wire_out){0};
    return data;
}

void wire_out_free(struct wire_out *out)
{
    free(out->data);
    *out = (struct wire_out){0};
}

void wire_in_init(struct wire_in *in, const void *data, size_t len)
{
    static const unsigned char none[1];
    in->p = len > 0 ? data : none;
    in->end = in->p + len;
    in->bad = false;
}

const void *wire_get_raw(struct wire_in *in, size_t len)
{
    const unsigned char *p = in->p;
    if (in->bad || len > (size_t)(in->end - p)) {
        in->bad = true;
        return NULL;
    }
    in->p += len;
    return p;
}

uint8_t wire_get_u8(struct wire_in *in)
{
    const unsigned char *p = wire_get_raw(in, 1);
    return p != NULL ? p[0] : 0;
}

uint32_t wire_get_u32(struct wire_in *in)
{
    const unsigned char *p = wire_get_raw(in, 4);
    if (p == NULL)
        return 0;
    return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | (uint32_t)p[3];
}

int32_t wire_get_i32(struct wire_in *in)
{
    return (int32_t)wire_get_u32(in);
}

uint64_t wire_get_u64(struct wire_in *in)
{
    uint64_t high = wire_get_u32(in);
    uint64_t low = wire_get_u32(in);
    return in->bad ? 0 : high << 32 | low;
}

const void *wire_get_block(struct wire_in *in, size_t *len)
{
    uint32_t n = wire_get_u32(in);
    const unsigned char *p = wire_get_raw(in, n);
    *len = p != NULL ? n : 0;
    return p;
}

void wire_get_str(struct wire_in *in, char *buf, size_t cap)
{
    size_t len;
    const void *p = wire_get_block(in, &len);
    if (cap == 0) {
        in->bad = true;
        return;
    }
    if (p != NULL && (len >= cap || memchr(p, '\0', len))) {
        in->bad = true;
        p = NULL;
    }
    if (p != NULL && len > 0)
        memcpy(buf, p, len);
    buf[p != NULL ? len : 0] = '\0';
}

char *wire_get_strdup(struct wire_in *in, size_t max)
{
    size_t len;
    const void *p = wire_get_block(in, &len);
    char *s;
    if (p == NULL || len > max || memchr(p, '\0', len) != NULL || (s = malloc(len + 1)) == NULL) {
        in->bad = true;
        return NULL;
    }
    memcpy(s, p, len);
    s[len] = '\0';
    return s;
}

uint32_t wire_get_count(struct wire_in *in, size_t min_size)
{
    uint32_t n = wire_get_u32(in);
    if (in->bad || n > (size_t)(in->end - in->p) / (min_size ? min_size : 1)) {
        in->bad = true;
        return 0;
    }
    return n;
}

bool wire_end(const struct wire_in *in)
{
    return !in->bad && in->p == in->end;
}
