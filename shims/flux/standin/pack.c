/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * Objects by formats, with json-c. A small part of what jansson's json_pack() and json_unpack()
 * know: all that muster's plugins use.
 */
#include "shims/flux/standin/flux.h"

#include <errno.h>
#include <string.h>

/* Formats may hold spaces, commas and colons anywhere; they mean nothing. */
static char next(const char **fmt)
{
    *fmt += strspn(*fmt, " ,:");
    return **fmt != '\0' ? *(*fmt)++ : '\0';
}

/* va_list may be an array: by pointer it is handed on as one. */
struct args {
    va_list ap;
};

static struct json_object *pack(const char **fmt, struct args *args);

static struct json_object *pack_object(const char **fmt, struct args *args)
{
    struct json_object *object = json_object_new_object(), *value;
    while (object && next(fmt) == 's') {
        const char *key = va_arg(args->ap, const char *);
        value = pack(fmt, args);
        if (!value || json_object_object_add(object, key, value) < 0) {
            json_object_put(object);
            return NULL;
        }
    }
    return object;
}

static struct json_object *pack_array(const char **fmt, struct args *args)
{
    struct json_object *array = json_object_new_array();
    while (array) {
        *fmt += strspn(*fmt, " ,:");
        if (**fmt == ']') {
            ++*fmt;
            return array;
        }
        struct json_object *value = pack(fmt, args);
        if (!value || json_object_array_add(array, value) < 0) {
            json_object_put(array);
            return NULL;
        }
    }
    return NULL;
}

static struct json_object *pack(const char **fmt, struct args *args)
{
    switch (next(fmt)) {
    case '{':
        return pack_object(fmt, args);
    case '[':
        return pack_array(fmt, args);
    case 's':
        return json_object_new_string(va_arg(args->ap, const char *));
    case 'i':
        return json_object_new_int(va_arg(args->ap, int));
    case 'I':
        return json_object_new_int64(va_arg(args->ap, long long));
    default:
        errno = EINVAL;
        return NULL;
    }
}

struct json_object *standin_vpack(const char *fmt, va_list ap)
{
    struct args args;
    va_copy(args.ap, ap);
    struct json_object *json = pack(&fmt, &args);
    va_end(args.ap);
    return json;
}

static bool unpack(struct json_object *json, bool present, const char **fmt, struct args *args);

/* What is not present leaves its arguments as they are, and those of all below it. */
static bool unpack_object(struct json_object *json, bool present, const char **fmt,
                          struct args *args)
{
    bool good = !present || json_object_is_type(json, json_type_object);
    while (next(fmt) == 's') {
        const char *key = va_arg(args->ap, const char *);
        bool optional = **fmt == '?', found;
        struct json_object *value = NULL;
        *fmt += optional;
        found = present && good && json_object_object_get_ex(json, key, &value);
        good &= found || optional || !present;
        good &= unpack(value, found, fmt, args);
    }
    return good;
}

/* As many as the format has; there may be more. */
static bool unpack_array(struct json_object *json, bool present, const char **fmt,
                         struct args *args)
{
    bool good = !present || json_object_is_type(json, json_type_array), found;
    for (size_t i = 0; *fmt += strspn(*fmt, " ,:"), **fmt != ']' && **fmt != '\0'; i++) {
        found = present && good && i < json_object_array_length(json);
        good &= found || !present;
        good &= unpack(found ? json_object_array_get_idx(json, i) : NULL, found, fmt, args);
    }
    *fmt += **fmt == ']';
    return good;
}

static bool unpack(struct json_object *json, bool present, const char **fmt, struct args *args)
{
    char what = next(fmt);
    if (what == '{')
        return unpack_object(json, present, fmt, args);
    if (what == '[')
        return unpack_array(json, present, fmt, args);
    void *to = va_arg(args->ap, void *);
    if (!present)
        return true;
    switch (what) {
    case 's':
        *(const char **)to = json_object_get_string(json);
        return json_object_is_type(json, json_type_string);
    case 'i':
        *(int *)to = json_object_get_int(json);
        return json_object_is_type(json, json_type_int);
    case 'I':
        *(long long *)to = json_object_get_int64(json);
        return json_object_is_type(json, json_type_int);
    case 'F':
        *(double *)to = json_object_get_double(json);
        return json_object_is_type(json, json_type_int) ||
               json_object_is_type(json, json_type_double);
    case 'o':
        *(struct json_object **)to = json;
        return true;
    default:
        return false;
    }
}

int standin_vunpack(struct json_object *json, const char *fmt, va_list ap)
{
    struct args args;
    va_copy(args.ap, ap);
    bool good = unpack(json, true, &fmt, &args);
    va_end(args.ap);
    if (!good)
        errno = EPROTO;
    return good ? 0 : -1;
}
