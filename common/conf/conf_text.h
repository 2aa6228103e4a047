/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * The text of a settings file: where things stand in it. Internal to common/conf.
 *
 * json-c tells values but not positions, so the keys are found again in the text. Comments are
 * made blanks first, byte for byte, so that all that comes later sees plain JSON at the places
 * where the file has it.
 */
#pragma once

#include "common/util/err.h"
#include <stdbool.h>
#include <stddef.h>

/** A text that is valid UTF-8, holds no NUL and has blanks for comments. */
struct conf_text {
    const char *name; /**< borrowed: the file's name in messages */
    const char *text; /**< borrowed: what was given, comments and all */
    char *buf;        /**< owned: the text without its comments; ends with a NUL */
    size_t len;       /**< in bytes, without the NUL */
};

/** A key in the text; all zero before the first. */
struct conf_key {
    const char *name; /**< as written, escapes and all; borrowed from the text, no NUL */
    size_t len;       /**< of name in bytes */
    size_t at;        /**< offset of its opening quote */
    size_t value;     /**< offset of its value */
    unsigned depth;   /**< 1: a key of the outermost object; arrays count as well */
    size_t next;      /**< where the search goes on */
};

/** Copies @p text, checks its bytes, strings and comments, and blanks the comments.
 * @param name, text borrowed until conf_text_close()
 * @return 0, or -1 with @p err set and nothing to close */
int conf_text_open(struct conf_text *t, const char *name, const char *text, size_t len,
                   struct err *err);

/** Releases what conf_text_open() took. */
void conf_text_close(struct conf_text *t);

/** The line of the byte at offset @p at, counted from 1. */
unsigned conf_text_line(const struct conf_text *t, size_t at);

/** Goes to the next key of a text that json-c has parsed without error. @return whether any */
bool conf_text_next_key(const struct conf_text *t, struct conf_key *key);

/** The offset behind the string whose quote is at @p at; the end of the text if it has no end. */
size_t conf_text_string_end(const struct conf_text *t, size_t at);

/** Takes the path whose quote is at @p at: absolute, or empty; no escapes, so that each reader
 * reads the same; no control characters.
 * @param out CONF_PATH_SIZE bytes, all of them written
 * @return whether it was one */
bool conf_text_path(const struct conf_text *t, size_t at, char *out);

/** The same for a place: an interface's name, an IP address, or a network of IP. */
bool conf_text_place(const struct conf_text *t, size_t at, char *out);

/** Whether JSON takes @p c for a blank. */
bool conf_text_is_blank(char c);

/** Sets an error that begins "name line L column C: ". @return -1 */
int conf_text_fail_at(const struct conf_text *t, size_t at, struct err *err, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));

/** Sets an error that begins "name line L: key "KEY": ". @return -1 */
int conf_text_fail_key(const struct conf_text *t, size_t at, const char *key, struct err *err,
                       const char *fmt, ...) __attribute__((format(printf, 5, 6)));

/** Room for what conf_text_show() writes. */
#define CONF_SHOWN 48

/** Makes bytes fit to be quoted in a message: '?' for all but printable ASCII; cut with "...". */
void conf_text_show(char out[static CONF_SHOWN], const char *s, size_t len);

/** The end of a file name that is too long for a message, else the name. */
const char *conf_text_short_name(const char *name);
