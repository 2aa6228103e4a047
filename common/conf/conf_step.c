/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * Settings that a user gives for his own step.
 */
#include "common/conf/conf_step.h"

#include "common/conf/conf_schema.h"
#include "common/conf/conf_text.h"
#include "common/util/log.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

enum { NEAR = 2 /* edits */ };

/* A name of either form, without what stands before the key. */
struct given {
    bool is_option;
    const char *key;
    size_t len;
};

/* How the key is written in that form: "TIMEOUTS_FENCE" or "timeouts.fence". */
static void spell(const struct conf_row *row, bool is_option, char out[static CONF_STEP_NAME_SIZE])
{
    snprintf(out, CONF_STEP_NAME_SIZE, "%s", row->key);
    for (char *p = out; !is_option && *p != '\0'; p++)
        *p = *p == '.' ? '_' : (char)toupper((unsigned char)*p);
}

static const struct conf_row *find(const struct given *given)
{
    char spelt[CONF_STEP_NAME_SIZE];
    for (const struct conf_row *row = conf_rows; row->key; row++) {
        spell(row, given->is_option, spelt);
        if (strlen(spelt) == given->len && memcmp(spelt, given->key, given->len) == 0)
            return row;
    }
    return NULL;
}

/* Among the keys that a user may set. */
static const struct conf_row *find_near(const struct given *given)
{
    const struct conf_row *nearest = NULL;
    size_t least = NEAR + 1;
    for (const struct conf_row *row = conf_rows; row->key; row++) {
        char spelt[CONF_STEP_NAME_SIZE];
        if (row->step == 0)
            continue;
        spell(row, given->is_option, spelt);
        size_t far = conf_row_distance(spelt, given->key, given->len);
        if (far < least) {
            least = far;
            nearest = row;
        }
    }
    return nearest;
}

bool conf_step_concerns(const char *name, size_t len)
{
    const size_t before = strlen(CONF_STEP_ENV);
    struct given given = {false, name + before, len - before};
    if (len <= before || len >= CONF_STEP_NAME_SIZE || memcmp(name, CONF_STEP_ENV, before) != 0)
        return false;
    return find(&given) || find_near(&given);
}

bool conf_step_name(unsigned i, char name[static CONF_STEP_NAME_SIZE])
{
    char spelt[CONF_STEP_NAME_SIZE];
    if (i >= CONF_KEYS_MAX || !conf_rows[i].key)
        return false;
    spell(&conf_rows[i], false, spelt);
    snprintf(name, CONF_STEP_NAME_SIZE, CONF_STEP_ENV "%.48s", spelt);
    return true;
}

static int fail_unknown(const char *name, const struct given *given, struct err *err)
{
    const struct conf_row *near = find_near(given);
    const char *before = given->is_option ? CONF_STEP_OPTION : CONF_STEP_ENV;
    char shown[CONF_SHOWN], spelt[CONF_STEP_NAME_SIZE], known[256] = "";
    conf_text_show(shown, name, strlen(name));
    if (near) {
        spell(near, given->is_option, spelt);
        return err_set(err, "%s: unknown; did you mean %s%s?", shown, before, spelt);
    }
    for (const struct conf_row *row = conf_rows; row->key; row++) {
        size_t used = strlen(known);
        if (row->step != 0)
            snprintf(known + used, sizeof(known) - used, "%s%s", used ? ", " : "", row->key);
    }
    return err_set(err, "%s: unknown; a %s can have its own %s", shown, log_unit(), known);
}

/* @return whether the row takes the text, and then which value it is */
static bool read_value(const struct conf_row *row, const char *text, int *value)
{
    char *end;
    long n;
    if (row->kind == CONF_WORD)
        return conf_row_read_word(row, text, strlen(text), value);
    n = strtol(text, &end, 10); /* of what is too large LONG_MAX, which is out of range, too */
    *value = (int)n;
    return isdigit((unsigned char)text[0]) && *end == '\0' && conf_row_takes(row, n);
}

static int fail_value(const struct conf_row *row, const char *name, const char *text,
                      struct err *err)
{
    char shown[CONF_SHOWN], range[96];
    int example = row->def ? row->def : 60;
    conf_text_show(shown, text, strlen(text));
    conf_row_range(row, range, sizeof(range));
    if (row->kind == CONF_WORD)
        return err_set(err, "%s: found \"%s\"; give %s, for example %s=%s", name, shown, range,
                       name, conf_row_word(row, row->def));
    return err_set(err, "%s: found \"%s\"; give a whole number, %s, for example %s=%d", name, shown,
                   range, name, example);
}

static int set(struct conf *conf, const struct conf_row *row, const char *name, const char *text,
               struct err *err)
{
    int most = row->step, value;
    if (!read_value(row, text, &value))
        return fail_value(row, name, text, err);
    if (most < conf_row_get(row, conf))
        most = conf_row_get(row, conf); /* what the admin gives to all, each may have */
    if (value > most)
        return err_set(err,
                       "%s=%s: only an admin can set that, in muster.json; a %s may have \"%s\" "
                       "at most",
                       name, text, log_unit(), conf_row_word(row, most));
    conf_row_set(row, conf, value);
    return 0;
}

int conf_step_set(struct conf *conf, const char *name, const char *value, struct err *err)
{
    bool is_option = strncmp(name, CONF_STEP_OPTION, strlen(CONF_STEP_OPTION)) == 0;
    const char *key = name + strlen(is_option ? CONF_STEP_OPTION : CONF_STEP_ENV);
    struct given given = {is_option, key, strlen(key)};
    if (!is_option && value[0] == '\0')
        return 0;
    const struct conf_row *row = find(&given);
    if (!row)
        return fail_unknown(name, &given, err);
    if (conf->step_settings == CONF_STEP_FORBID)
        return err_set(err,
                       "%s=%.64s: \"step_settings\": \"forbid\" in muster.json forbids settings of "
                       "a %s's own: start it without, or ask the admin",
                       name, value, log_unit());
    if (row->kind == CONF_SECTION)
        return err_set(err, "%s: this is a group of keys; give one of them, for example %s%s%s=60",
                       name, name, is_option ? "." : "_", is_option ? "fence" : "FENCE");
    if (row->step == 0)
        return err_set(err,
                       "%s: only an admin can set \"%s\", in muster.json; start the %s "
                       "without %s",
                       name, row->key, log_unit(), name);
    return set(conf, row, name, value, err);
}
