/* SPDX-License-Identifier: BSD-3-Clause */
/* Fields of JSON, as far as they are there. */
#include "common/status/fields.h"

#include "common/util/log.h"

#include <stdlib.h>
#include <string.h>

enum { DEPTH_MAX = 16 };

json_object *field_parse(const char *text)
{
    json_tokener *tokener = json_tokener_new_ex(DEPTH_MAX);
    json_object *o =
        tokener != NULL ? json_tokener_parse_ex(tokener, text, (int)strlen(text)) : NULL;
    json_tokener_free(tokener);
    return o;
}

json_object *field(json_object *o, const char *key, enum json_type type)
{
    json_object *value = NULL;
    return json_object_is_type(o, json_type_object) && json_object_object_get_ex(o, key, &value) &&
                   json_object_is_type(value, type)
               ? value
               : NULL;
}

json_object *field_list(json_object *o, const char *key)
{
    return field(o, key, json_type_array);
}

size_t field_length(json_object *array)
{
    return json_object_is_type(array, json_type_array) ? json_object_array_length(array) : 0;
}

json_object *field_at(json_object *array, size_t i)
{
    return i < field_length(array) ? json_object_array_get_idx(array, i) : NULL;
}

const char *field_text(json_object *o, const char *key)
{
    json_object *value = field(o, key, json_type_string);
    return value != NULL ? json_object_get_string(value) : NULL;
}

int64_t field_number(json_object *o, const char *key, int64_t none)
{
    json_object *value = field(o, key, json_type_int);
    return value != NULL ? json_object_get_int64(value) : none;
}

void field_put_text(json_object *o, const char *key, const char *text)
{
    char *copy = strdup(text);
    if (copy == NULL)
        return;
    log_mask(copy);
    json_object_object_add(o, key, json_object_new_string(copy));
    free(copy);
}

void field_put_number(json_object *o, const char *key, uint64_t n)
{
    json_object_object_add(o, key, json_object_new_int64((int64_t)n));
}

json_object *field_add(json_object *array)
{
    json_object *o = json_object_new_object();
    json_object_array_add(array, o);
    return o;
}

const char *field_line(json_object *o)
{
    return json_object_to_json_string_ext(o,
                                          JSON_C_TO_STRING_PLAIN | JSON_C_TO_STRING_NOSLASHESCAPE);
}
