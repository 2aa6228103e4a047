/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * From text to JSON values, with syntax errors that say what was expected.
 *
 * json-c parses strictly, so no release's leniency is relied upon. Its releases differ in where
 * inside a bad word they stop and with which code; so the message is made from the text: the whole
 * word is what was found, and what stands before it tells what was expected.
 */
#include "common/conf/conf_json.h"
#include <ctype.h>
#include <json-c/json.h>
#include <string.h>

#define A_KEY "a key in double quotes"
#define A_VALUE "a value: a number, a text in double quotes or an object"

static bool is_word(char c)
{
    return isalnum((unsigned char)c) || c == '_' || c == '.' || c == '+' || c == '-';
}

static size_t skip_blanks(const struct conf_text *t, size_t at)
{
    while (at < t->len && conf_text_is_blank(t->buf[at]))
        at++;
    return at;
}

/* What was expected at `at`, where a word or sign stands that does not fit. */
static const char *expected_at(const struct conf_text *t, enum json_tokener_error code, size_t at)
{
    size_t before = at;
    while (before > 0 && conf_text_is_blank(t->buf[before - 1]))
        before--;
    if (isdigit((unsigned char)t->buf[at]) || (t->buf[at] && strchr("+-.", t->buf[at])))
        return "a whole number such as 60";
    switch (before > 0 ? t->buf[before - 1] : '\0') {
    case '{':
        return A_KEY " or '}'";
    case '[':
        return A_VALUE ", or ']'";
    case ',':
        if (t->buf[at] == '}' || t->buf[at] == ']')
            return "no comma before it";
        return code == json_tokener_error_parse_object_key_name ? A_KEY : A_VALUE;
    default:
        return A_VALUE;
    }
}

static int fail_found(const struct conf_text *t, size_t at, const char *expected, struct err *err)
{
    unsigned char c = (unsigned char)t->buf[at];
    size_t end = at;
    char found[CONF_SHOWN];
    if (c >= 0x80)
        return conf_text_fail_at(t, at, err, "found a character that is not ASCII, expected %s",
                                 expected);
    if (c < ' ' || c == 0x7f)
        return conf_text_fail_at(t, at, err, "found byte 0x%02x, expected %s", c, expected);
    while (end < t->len && is_word(t->buf[end]))
        end++;
    conf_text_show(found, t->buf + at, end > at ? end - at : 1);
    return conf_text_fail_at(t, at, err, "found '%s', expected %s", found, expected);
}

static int fail_end(const struct conf_text *t, struct err *err)
{
    return conf_text_fail_at(t, t->len, err, "the file ends too early; a closing '}' is missing");
}

static int explain(const struct conf_text *t, enum json_tokener_error code, size_t at,
                   struct err *err)
{
    switch (code) {
    case json_tokener_error_parse_string:
        return conf_text_fail_at(t, at, err,
                                 "wrong escape in a text; write \\\\ for a backslash itself");
    case json_tokener_error_depth:
        return conf_text_fail_at(
            t, at, err, "objects and arrays are nested too deep; settings need two levels");
    case json_tokener_error_parse_object_key_sep:
        return fail_found(t, skip_blanks(t, at), "':' after the key", err);
    case json_tokener_error_parse_object_value_sep:
        return fail_found(t, skip_blanks(t, at), "',' or '}'", err);
    case json_tokener_error_parse_array:
        return fail_found(t, skip_blanks(t, at), "',' or ']'", err);
    default:
        if (at == 0 || !is_word(t->buf[at - 1]))
            at = skip_blanks(t, at);
        while (at > 0 && is_word(t->buf[at - 1]))
            at--;
        return fail_found(t, at, expected_at(t, code, at), err);
    }
}

struct json_object *conf_json_parse(const struct conf_text *t, struct err *err)
{
    size_t start = skip_blanks(t, 0), end;
    if (start == t->len) {
        err_set(err, "%s: holds no settings; write {} for the defaults, or remove the file",
                conf_text_short_name(t->name));
        return NULL;
    }
    if (t->buf[start] != '{') {
        conf_text_fail_at(t, start, err,
                          "the settings are not an object; put them between '{' and '}'");
        return NULL;
    }
    struct json_tokener *tok = json_tokener_new();
    if (!tok) {
        err_set(err, "%s: out of memory", conf_text_short_name(t->name));
        return NULL;
    }
    json_tokener_set_flags(tok, JSON_TOKENER_STRICT | JSON_TOKENER_ALLOW_TRAILING_CHARS);
    struct json_object *root = json_tokener_parse_ex(tok, t->buf, (int)t->len);
    enum json_tokener_error code = json_tokener_get_error(tok);
    end = json_tokener_get_parse_end(tok);
    json_tokener_free(tok);
    if (code == json_tokener_continue || (code != json_tokener_success && end >= t->len)) {
        fail_end(t, err);
    } else if (code != json_tokener_success) {
        explain(t, code, end, err);
    } else if ((end = skip_blanks(t, end)) < t->len) {
        conf_text_fail_at(t, end, err, "something follows the closing '}'; remove it");
    } else {
        return root;
    }
    json_object_put(root);
    return NULL;
}
