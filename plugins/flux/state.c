/* SPDX-License-Identifier: BSD-3-Clause */
/* What is taken over of what a server says of its operations. */
#include "plugins/flux/state.h"

#include "common/util/log.h"
#include "plugins/flux/packet.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { DEPTH_MAX = 8 /* of JSON: servers make 5 */ };

/* So that sums of many servers stay numbers. */
static const int64_t COUNT_MAX = (int64_t)1 << 40;
static const double SECONDS_MAX = 1e9;

enum kind { FIELD_TEXT, FIELD_COUNT, FIELD_SECONDS, FIELD_YES, FIELD_OBJECT, FIELD_LIST };

struct field {
    const char *name;
    enum kind kind;
    size_t max;             /* bytes of a text, elements of a list */
    const struct field *of; /* an object, or an element; it ends with a name that is NULL */
};

static const struct field missing[] = {
    {"node", FIELD_TEXT, 255, NULL},
    {"nspace", FIELD_TEXT, 255, NULL},
    {"ranks", FIELD_TEXT, 255, NULL},
    {NULL, 0, 0, NULL},
};
static const struct field trackers[] = {
    {"operation", FIELD_TEXT, 511, NULL},
    {"kind", FIELD_TEXT, 31, NULL},
    {"id", FIELD_TEXT, 31, NULL},
    {"state", FIELD_TEXT, 31, NULL},
    {"age", FIELD_SECONDS, 0, NULL},
    {"in_state", FIELD_SECONDS, 0, NULL},
    {"left", FIELD_SECONDS, 0, NULL},
    {"called", FIELD_YES, 0, NULL},
    {"queued", FIELD_COUNT, 0, NULL},
    {"nodes", FIELD_COUNT, 0, NULL},
    {"root", FIELD_TEXT, 255, NULL},
    {"decides", FIELD_YES, 0, NULL},
    {"missing", FIELD_LIST, 32, missing},
    {"missing_omitted", FIELD_COUNT, 0, NULL},
    {NULL, 0, 0, NULL},
};
static const struct field waits[] = {
    {"about", FIELD_TEXT, 1023, NULL},
    {"age", FIELD_SECONDS, 0, NULL},
    {"left", FIELD_SECONDS, 0, NULL},
    {NULL, 0, 0, NULL},
};
static const struct field states[] = {
    {"early", FIELD_COUNT, 0, NULL},
    {"gather", FIELD_COUNT, 0, NULL},
    {"sent", FIELD_COUNT, 0, NULL},
    {"doubt", FIELD_COUNT, 0, NULL},
    {NULL, 0, 0, NULL},
};
static const struct field under_way[] = {
    {"fence", FIELD_OBJECT, 0, states},
    {"construct", FIELD_OBJECT, 0, states},
    {"destruct", FIELD_OBJECT, 0, states},
    {"connect", FIELD_OBJECT, 0, states},
    {"disconnect", FIELD_OBJECT, 0, states},
    {"waits", FIELD_COUNT, 0, NULL},
    {NULL, 0, 0, NULL},
};
static const struct field kinds[] = {
    {"fence", FIELD_COUNT, 0, NULL},      {"construct", FIELD_COUNT, 0, NULL},
    {"destruct", FIELD_COUNT, 0, NULL},   {"connect", FIELD_COUNT, 0, NULL},
    {"disconnect", FIELD_COUNT, 0, NULL}, {NULL, 0, 0, NULL},
};
static const struct field whole[] = {
    {"under_way", FIELD_OBJECT, 0, under_way}, /* first: state_add() adds these three */
    {"done", FIELD_OBJECT, 0, kinds},
    {"failed", FIELD_OBJECT, 0, kinds},
    {"trackers", FIELD_LIST, 64, trackers},
    {"trackers_omitted", FIELD_COUNT, 0, NULL},
    {"waits", FIELD_LIST, 64, waits},
    {"waits_omitted", FIELD_COUNT, 0, NULL},
    {NULL, 0, 0, NULL},
};
enum { SUMMED = 3 };

/* Flux takes no answer whose text is not UTF-8. */
static struct json_object *take_text(struct json_object *from, size_t max)
{
    char *copy = strndup(json_object_get_string(from), max);
    if (copy == NULL)
        return NULL;
    log_mask(copy);
    struct json_object *text = json_object_new_string(copy);
    free(copy);
    return text;
}

static struct json_object *take_seconds(struct json_object *from)
{
    double s = json_object_get_double(from);
    char text[32];
    if (!(s >= 0 && s <= SECONDS_MAX)) /* nor what is no number */
        return NULL;
    long long ms = (long long)(s * 1000 + 0.5); /* a broker's locale may have a decimal comma */
    snprintf(text, sizeof text, "%lld.%03lld", ms / 1000, ms % 1000);
    return json_object_new_double_s(s, text);
}

static struct json_object *take_count(struct json_object *from)
{
    int64_t n = json_object_get_int64(from);
    return n >= 0 && n <= COUNT_MAX ? json_object_new_int64(n) : NULL;
}

static struct json_object *take_object(const struct field *fields, struct json_object *from);

static struct json_object *take_list(const struct field *field, struct json_object *from)
{
    struct json_object *list = json_object_new_array();
    size_t n = json_object_array_length(from);
    for (size_t i = 0; i < n && i < field->max; i++) {
        struct json_object *element = json_object_array_get_idx(from, i);
        if (json_object_is_type(element, json_type_object))
            json_object_array_add(list, take_object(field->of, element));
    }
    return list;
}

/* @return NULL: it is not what it should be */
static struct json_object *take(const struct field *field, struct json_object *from)
{
    enum json_type type = json_object_get_type(from);
    switch (field->kind) {
    case FIELD_TEXT:
        return type == json_type_string ? take_text(from, field->max) : NULL;
    case FIELD_COUNT:
        return type == json_type_int ? take_count(from) : NULL;
    case FIELD_SECONDS:
        return type == json_type_int || type == json_type_double ? take_seconds(from) : NULL;
    case FIELD_YES:
        return type == json_type_boolean ? json_object_new_boolean(json_object_get_boolean(from))
                                         : NULL;
    case FIELD_OBJECT:
        return type == json_type_object ? take_object(field->of, from) : NULL;
    case FIELD_LIST:
        return type == json_type_array ? take_list(field, from) : NULL;
    }
    return NULL;
}

static struct json_object *take_object(const struct field *fields, struct json_object *from)
{
    struct json_object *object = json_object_new_object(), *value;
    for (const struct field *field = fields; field->name != NULL; field++) {
        if (!json_object_object_get_ex(from, field->name, &value))
            continue;
        struct json_object *taken = take(field, value);
        if (taken != NULL)
            json_object_object_add(object, field->name, taken);
    }
    return object;
}

struct json_object *state_read(const char *text, size_t len, const char **why)
{
    struct json_object *state = NULL;
    if (len > PACKET_STATE_MAX) {
        *why = "its answer is too long";
        return NULL;
    }
    json_tokener *tokener = json_tokener_new_ex(DEPTH_MAX);
    struct json_object *said =
        tokener != NULL && len > 0 ? json_tokener_parse_ex(tokener, text, (int)len) : NULL;
    if (json_object_is_type(said, json_type_object) && json_tokener_get_parse_end(tokener) == len)
        state = take_object(whole, said);
    else
        *why = "its answer makes no sense";
    json_object_put(said);
    if (tokener != NULL)
        json_tokener_free(tokener);
    return state;
}

static void add_numbers(struct json_object *sum, const char *key, struct json_object *from)
{
    struct json_object *to = NULL;
    json_object_object_get_ex(sum, key, &to);
    if (json_object_is_type(from, json_type_int)) {
        int64_t n = json_object_get_int64(to) + json_object_get_int64(from);
        json_object_object_add(sum, key, json_object_new_int64(n));
        return;
    }
    if (to == NULL) {
        to = json_object_new_object();
        json_object_object_add(sum, key, to);
    }
    json_object_object_foreach(from, name, value) add_numbers(to, name, value);
}

void state_add(struct json_object *sum, struct json_object *state)
{
    struct json_object *value;
    for (int i = 0; i < SUMMED; i++)
        if (json_object_object_get_ex(state, whole[i].name, &value))
            add_numbers(sum, whole[i].name, value);
}
