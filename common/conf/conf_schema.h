/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * The table of settings. Internal to common/conf.
 *
 * A key is written with its section: "timeouts.fence". Its leaf is what stands in the file.
 */
#pragma once

#include "common/conf/conf.h"
#include <stdbool.h>
#include <stdint.h>

/** What a value is. */
enum conf_kind {
    CONF_SECTION, /**< an object of further keys; no field */
    CONF_NUMBER,  /**< a whole number from min to max */
    CONF_WORD,    /**< one of the given words, a number among them; the field has its value */
    CONF_PATH,    /**< an absolute path, or "" */
    CONF_PLACE,   /**< an interface, an IP address or a network of IP, or "" */
};

/** A word that a key may have. */
struct conf_word {
    const char *word; /**< NULL ends the list */
    int value;
};

/** One key. */
struct conf_row {
    const char *key;               /**< with section; NULL ends the table */
    enum conf_kind kind;           /**< what its value is */
    size_t offset;                 /**< of the field in struct conf: an int, an enum, or for a
                                        path or a place char[CONF_PATH_SIZE] */
    int def, min, max;             /**< default (for words: of the field); range, both included */
    int least;                     /**< not 0: values below it are out of range, but for 0 */
    const char *unit;              /**< of the number, "seconds"; NULL for none */
    const struct conf_word *words; /**< CONF_WORD */
    int step; /**< the largest value that a step's user may give; 0: only the file has the key */
    const char *help; /**< what it does; one line of at most 80 bytes */
};

#define CONF_ROWS_MAX CONF_KEYS_MAX

/** The rows. A section stands above its keys, which follow without a gap. */
extern const struct conf_row conf_rows[];

/** The key without its section; points into @p row. */
const char *conf_row_leaf(const struct conf_row *row);

/** Whether @p row is a key of @p section; NULL: of the top level. */
bool conf_row_in(const struct conf_row *row, const struct conf_row *section);

/** The row called @p name in @p section (NULL: top level). @return NULL if there is none */
const struct conf_row *conf_row_find(const struct conf_row *section, const char *name, size_t len);

/** The row of @p section that @p name was probably meant to be: the nearest within two edits, case
 * aside. @return NULL if there is none */
const struct conf_row *conf_row_nearest(const struct conf_row *section, const char *name,
                                        size_t len);

/** The row that is called @p name, with or without its section, but stands at another level.
 * @return NULL if there is none */
const struct conf_row *conf_row_elsewhere(const char *name, size_t len);

/** Writes the value that a key may have, `"error" or "info"` or `2 to 1024`, to @p out. */
void conf_row_range(const struct conf_row *row, char *out, size_t size);

/** Whether a CONF_NUMBER may have the value. */
bool conf_row_takes(const struct conf_row *row, int64_t n);

/** Writes a right setting, `"fence": 60`, to @p out. */
void conf_row_example(const struct conf_row *row, char *out, size_t size);

/** The field's value; not of a path or place. */
int conf_row_get(const struct conf_row *row, const struct conf *conf);

/** Sets the field; not a path's or place's. */
void conf_row_set(const struct conf_row *row, struct conf *conf, int value);

/** The field of a path or place: CONF_PATH_SIZE bytes, all zero behind its end. */
char *conf_row_path(const struct conf_row *row, struct conf *conf);

/** Writes the value as a file has it, without quotes, to @p out. */
void conf_row_show(const struct conf_row *row, const struct conf *conf, char *out, size_t size);

/** How many edits @p name is away from @p known, case aside; 99 for a name that is far longer. */
size_t conf_row_distance(const char *known, const char *name, size_t len);

/** Finds the value that a word of @p len bytes stands for. @return whether there is such a word */
bool conf_row_read_word(const struct conf_row *row, const char *word, size_t len, int *value);

/** What is around a word in a file: "" around a number. */
const char *conf_word_quote(const char *word);

/** The word that stands for @p value; "?" for none, which only a caller's mistake brings. */
const char *conf_row_word(const struct conf_row *row, int value);
