/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * Settings from text, or a file: each key of the text has its row, each value is checked against
 * it.
 *
 * Order: the text is checked and parsed; then its keys, in the order in which they stand, are
 * looked up in the table (unknown, escaped and second ones are errors, which json-c would not
 * tell); only then values are taken, so that a value is surely that of the key's only place.
 */
#include "common/conf/conf.h"
#include "common/conf/conf_file.h"
#include "common/conf/conf_json.h"
#include "common/conf/conf_schema.h"
#include "common/conf/conf_text.h"
#include <json-c/json.h>
#include <stdlib.h>
#include <string.h>

/** The keys that the text gives, in its order. */
struct given {
    size_t n;
    bool twice; /* a key stands twice, so json-c has one value for two places */
    struct {
        const struct conf_row *row;     /**< borrowed from the table */
        const struct conf_row *section; /**< whose key it is; NULL: top level */
        size_t at, value;               /**< where the key and its value are in the text */
    } keys[CONF_ROWS_MAX];
};

static int fail_unknown(const struct conf_text *t, const struct conf_key *key,
                        const struct conf_row *section, struct err *err)
{
    char shown[CONF_SHOWN], full[2 * CONF_SHOWN], known[256] = "";
    conf_text_show(shown, key->name, key->len);
    snprintf(full, sizeof(full), "%s%s%s", section ? section->key : "", section ? "." : "", shown);
    if (memchr(key->name, '\\', key->len))
        return conf_text_fail_key(t, key->at, full, err, "unknown; keys are written without \\");
    const struct conf_row *row = conf_row_nearest(section, key->name, key->len);
    if (row)
        return conf_text_fail_key(t, key->at, full, err, "unknown; did you mean \"%s\"?", row->key);
    row = conf_row_elsewhere(key->name, key->len);
    if (row && conf_row_in(row, NULL))
        return conf_text_fail_key(t, key->at, full, err,
                                  "unknown here; \"%s\" belongs to the top level", row->key);
    if (row)
        return conf_text_fail_key(
            t, key->at, full, err, "unknown here; write \"%.*s\": {\"%s\": ...}",
            (int)(conf_row_leaf(row) - row->key - 1), row->key, conf_row_leaf(row));
    for (row = conf_rows; row->key; row++) {
        size_t used = strlen(known);
        if (conf_row_in(row, section))
            snprintf(known + used, sizeof(known) - used, "%s%s", used ? ", " : "",
                     conf_row_leaf(row));
    }
    return conf_text_fail_key(t, key->at, full, err, "unknown; known here: %s", known);
}

static const struct conf_row *take_key(const struct conf_text *t, const struct conf_key *key,
                                       const struct conf_row *section, struct given *given,
                                       struct err *err)
{
    const struct conf_row *row = conf_row_find(section, key->name, key->len);
    if (!row) {
        fail_unknown(t, key, section, err);
        return NULL;
    }
    for (size_t i = 0; i < given->n; i++) {
        if (given->keys[i].row != row)
            continue;
        given->twice = true;
        conf_text_fail_key(t, key->at, row->key, err,
                           "given twice, first on line %u; remove one of the two",
                           conf_text_line(t, given->keys[i].at));
        return NULL;
    }
    given->keys[given->n].row = row;
    given->keys[given->n].section = section;
    given->keys[given->n].at = key->at;
    given->keys[given->n].value = key->value;
    given->n++;
    return row;
}

/* Where mistakes go. */
struct report {
    conf_report_fn *fn;
    void *arg;
    bool any;
};

static void report(struct report *to, const struct err *err)
{
    to->any = true;
    to->fn(to->arg, err->text);
}

/* Keys inside what should be a plain value are passed over: that value's type is the mistake. */
static void take_keys(const struct conf_text *t, struct given *given, struct report *to)
{
    struct conf_key key = {0};
    const struct conf_row *top = NULL, *row;
    while (conf_text_next_key(t, &key)) {
        struct err err = {0};
        if (key.depth == 1)
            row = top = take_key(t, &key, NULL, given, &err);
        else if (key.depth == 2 && top && top->kind == CONF_SECTION)
            row = take_key(t, &key, top, given, &err);
        else
            continue;
        if (!row)
            report(to, &err);
    }
}

/* As it is written: json-c would tell a number too large by what it made of it. */
static void show_value(const struct conf_text *t, size_t at, char out[static CONF_SHOWN + 16])
{
    char shown[CONF_SHOWN];
    size_t len;
    switch (t->buf[at]) {
    case '{':
        strcpy(out, "an object");
        return;
    case '[':
        strcpy(out, "an array");
        return;
    case '"':
        len = conf_text_string_end(t, at) - at;
        break;
    default:
        len = strcspn(t->buf + at, ",}] \t\r\n");
        break;
    }
    conf_text_show(shown, t->buf + at, len);
    snprintf(out, CONF_SHOWN + 16, "%s%s", t->buf[at] == '"' ? "the text " : "", shown);
}

static int fail_value(const struct conf_text *t, size_t at, size_t value_at,
                      const struct conf_row *row, bool is_int, struct err *err)
{
    char shown[CONF_SHOWN + 16], range[96], example[96];
    bool number = row->kind == CONF_NUMBER;
    show_value(t, value_at, shown);
    conf_row_range(row, range, sizeof(range));
    conf_row_example(row, example, sizeof(example));
    if (number && is_int)
        return conf_text_fail_key(t, at, row->key, err,
                                  "%s is out of range; give %s, for example %s", shown, range,
                                  example);
    return conf_text_fail_key(t, at, row->key, err, "found %s; give %s%s, for example %s", shown,
                              number ? "a whole number, " : "", range, example);
}

static bool take_value(const struct conf_text *t, size_t at, const struct conf_row *row,
                       struct json_object *value, struct conf *conf)
{
    switch (row->kind) {
    case CONF_SECTION:
        return json_object_is_type(value, json_type_object);
    case CONF_NUMBER: {
        int64_t n = json_object_get_int64(value);
        if (!json_object_is_type(value, json_type_int) || !conf_row_takes(row, n))
            return false;
        conf_row_set(row, conf, (int)n);
        return true;
    }
    case CONF_WORD: {
        bool text = json_object_is_type(value, json_type_string);
        const char *word = json_object_get_string(value);
        int n;
        if ((!text && !json_object_is_type(value, json_type_int)) ||
            !conf_row_read_word(
                row, word, text ? (size_t)json_object_get_string_len(value) : strlen(word), &n))
            return false;
        conf_row_set(row, conf, n);
        return true;
    }
    case CONF_PATH:
        return conf_text_path(t, at, conf_row_path(row, conf));
    case CONF_PLACE:
        return conf_text_place(t, at, conf_row_path(row, conf));
    }
    return false;
}

static void take_values(const struct conf_text *t, const struct given *given,
                        struct json_object *root, struct conf *conf, struct report *to)
{
    for (size_t i = 0; i < given->n; i++) {
        const struct conf_row *row = given->keys[i].row, *section = given->keys[i].section;
        struct json_object *in = root, *value = NULL;
        struct err err = {0};
        if (section)
            json_object_object_get_ex(root, section->key, &in);
        json_object_object_get_ex(in, conf_row_leaf(row), &value);
        if (take_value(t, given->keys[i].value, row, value, conf))
            continue;
        fail_value(t, given->keys[i].at, given->keys[i].value, row,
                   json_object_is_type(value, json_type_int), &err);
        report(to, &err);
    }
}

int conf_parse(struct conf *conf, const char *name, const char *text, size_t len,
               conf_report_fn *fn, void *arg)
{
    struct report to = {fn, arg, false};
    struct json_object *root = NULL;
    struct conf parsed = *conf;
    struct given given = {0};
    struct err err = {0};
    struct conf_text t;
    if (conf_text_open(&t, name, text, len, &err) == 0) {
        root = conf_json_parse(&t, &err);
        if (root) {
            take_keys(&t, &given, &to);
            if (!given.twice)
                take_values(&t, &given, root, &parsed, &to);
            json_object_put(root);
        }
        conf_text_close(&t);
    }
    if (!root)
        report(&to, &err);
    if (!to.any)
        *conf = parsed;
    return to.any ? -1 : 0;
}

int conf_load(struct conf *conf, const char *path, uid_t trusted_uid, conf_report_fn *fn, void *arg)
{
    struct err err = {0};
    struct conf loaded;
    size_t len;
    char *text;
    conf_defaults(&loaded);
    int rc = conf_file_read(path, trusted_uid, &text, &len, &err);
    if (rc < 0)
        fn(arg, err.text);
    else if (text)
        rc = conf_parse(&loaded, path, text, len, fn, arg);
    free(text);
    if (rc == 0)
        *conf = loaded;
    return rc;
}

void conf_keep_first(void *arg, const char *mistake)
{
    err_set(arg, "%s", mistake);
}
