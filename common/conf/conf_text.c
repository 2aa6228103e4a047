/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * The text of a settings file: where things stand in it.
 */
#include "common/conf/conf_text.h"
#include "common/conf/conf.h"
#include <arpa/inet.h>
#include <ctype.h>
#include <net/if.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *conf_text_short_name(const char *name)
{
    size_t len = strlen(name), most = 160;
    return len > most ? name + len - most : name;
}

void conf_text_show(char out[static CONF_SHOWN], const char *s, size_t len)
{
    size_t most = CONF_SHOWN - 4, n = len < most ? len : most;
    while (n < len && n > 0 && (s[n] & 0xc0) == 0x80) /* not through a character */
        n--;
    for (size_t i = 0; i < n; i++)
        out[i] = s[i];
    for (size_t i = 0; i < n; i++)
        if (out[i] == '\0')
            out[i] = '?';
    out[n] = '\0';
    log_mask(out);
    strcpy(out + n, len > most ? "..." : "");
}

bool conf_text_is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

unsigned conf_text_line(const struct conf_text *t, size_t at)
{
    unsigned line = 1;
    for (size_t i = 0; i < at; i++)
        line += t->buf[i] == '\n';
    return line;
}

/* Columns count characters from 1: what continues a character in UTF-8 does not count. */
static unsigned column_of(const struct conf_text *t, size_t at)
{
    unsigned column = 1;
    for (size_t i = at; i > 0 && t->text[i - 1] != '\n'; i--)
        column += (t->text[i - 1] & 0xc0) != 0x80;
    return column;
}

int conf_text_fail_at(const struct conf_text *t, size_t at, struct err *err, const char *fmt, ...)
{
    char what[320];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(what, sizeof(what), fmt, ap);
    va_end(ap);
    return err_set(err, "%s line %u column %u: %s", conf_text_short_name(t->name),
                   conf_text_line(t, at), column_of(t, at), what);
}

int conf_text_fail_key(const struct conf_text *t, size_t at, const char *key, struct err *err,
                       const char *fmt, ...)
{
    char what[320];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(what, sizeof(what), fmt, ap);
    va_end(ap);
    return err_set(err, "%s line %u: key \"%s\": %s", conf_text_short_name(t->name),
                   conf_text_line(t, at), key, what);
}

/* The length of the character at s, 0 if it is no UTF-8: overlong, a surrogate, cut or too large */
static size_t utf8_len(const unsigned char *s, size_t left)
{
    size_t n = s[0] < 0x80 ? 1 : s[0] < 0xc2 ? 0 : s[0] < 0xe0 ? 2 : s[0] < 0xf0 ? 3 : 4;
    if (s[0] > 0xf4 || n > left)
        return 0;
    for (size_t i = 1; i < n; i++) {
        if ((s[i] & 0xc0) != 0x80)
            return 0;
    }
    if ((s[0] == 0xe0 && s[1] < 0xa0) || (s[0] == 0xed && s[1] > 0x9f) ||
        (s[0] == 0xf0 && s[1] < 0x90) || (s[0] == 0xf4 && s[1] > 0x8f))
        return 0;
    return n;
}

static int check_bytes(const struct conf_text *t, struct err *err)
{
    const unsigned char *s = (const unsigned char *)t->buf;
    for (size_t i = 0, n; i < t->len; i += n) {
        n = utf8_len(s + i, t->len - i);
        if (n == 0)
            return conf_text_fail_at(t, i, err, "byte 0x%02x is not UTF-8; save the file as UTF-8",
                                     s[i]);
        if (s[i] == 0)
            return conf_text_fail_at(t, i, err, "NUL byte; save the file as UTF-8 text");
    }
    if (t->len >= 3 && !memcmp(t->buf, "\xef\xbb\xbf", 3))
        return conf_text_fail_at(t, 0, err, "byte order mark; save the file as UTF-8 without one");
    return 0;
}

size_t conf_text_string_end(const struct conf_text *t, size_t at)
{
    for (at++; at < t->len && t->buf[at] != '"'; at++) {
        if (t->buf[at] == '\\' && at + 1 < t->len)
            at++;
    }
    return at < t->len ? at + 1 : t->len;
}

/* A text without escapes. */
static bool take_plain(const struct conf_text *t, size_t at, char *out)
{
    size_t len = conf_text_string_end(t, at) - at;
    if (at >= t->len || t->buf[at] != '"' || len < 2 || t->buf[at + len - 1] != '"')
        return false;
    len -= 2; /* the quotes */
    if (len >= CONF_PATH_SIZE)
        return false;
    memset(out, 0, CONF_PATH_SIZE);
    memcpy(out, t->buf + at + 1, len);
    for (size_t i = 0; i < len; i++) {
        if (out[i] == '\\' || (unsigned char)out[i] < ' ' || out[i] == 0x7f)
            return false;
    }
    return true;
}

bool conf_text_path(const struct conf_text *t, size_t at, char *out)
{
    return take_plain(t, at, out) && (out[0] == '\0' || out[0] == '/');
}

/* What can only be meant for an address has to be one. */
bool conf_text_place(const struct conf_text *t, size_t at, char *out)
{
    char base[CONF_PATH_SIZE], *slash, *end;
    struct in6_addr room;
    if (!take_plain(t, at, out))
        return false;
    if (strpbrk(out, ":/") == NULL && out[strspn(out, "0123456789.")] != '\0')
        return strlen(out) < IFNAMSIZ && strpbrk(out, " \t") == NULL;
    strcpy(base, out);
    slash = strchr(base, '/');
    if (slash)
        *slash = '\0';
    bool four = inet_pton(AF_INET, base, &room) == 1;
    if (!four && inet_pton(AF_INET6, base, &room) != 1)
        return out[0] == '\0';
    if (!slash)
        return true;
    long bits = strtol(slash + 1, &end, 10);
    return isdigit((unsigned char)slash[1]) && *end == '\0' && bits <= (four ? 32 : 128);
}

static int check_string(const struct conf_text *t, size_t at, size_t end, struct err *err)
{
    for (size_t i = at + 1; i < end; i++) {
        unsigned char c = (unsigned char)t->buf[i];
        if (c == '\n' || c == '\r')
            break;
        if (c < ' ')
            return conf_text_fail_at(t, i, err, "control character 0x%02x in a text; remove it", c);
        if (c == '\\')
            i++;
        else if (c == '"')
            return 0;
    }
    return conf_text_fail_at(
        t, at, err, "the text that begins here does not end on its line; close it by '\"'");
}

/* Blanks the comment at *at, and moves *at behind it. */
static int blank_comment(const struct conf_text *t, size_t *at, struct err *err)
{
    bool block = t->buf[*at + 1] == '*';
    const char *last = strstr(t->buf + *at + 2, block ? "*/" : "\n");
    size_t end = last ? (size_t)(last - t->buf) : t->len;
    if (block && !last)
        return conf_text_fail_at(t, *at, err,
                                 "the comment that begins here does not end; close it by '*/'");
    for (end += block ? 2 : 0; *at < end; ++*at) {
        if (t->buf[*at] != '\n')
            t->buf[*at] = ' ';
    }
    return 0;
}

static int blank_comments(const struct conf_text *t, struct err *err)
{
    for (size_t at = 0; at < t->len;) {
        if (t->buf[at] == '"') {
            size_t end = conf_text_string_end(t, at);
            if (check_string(t, at, end, err) < 0)
                return -1;
            at = end;
        } else if (t->buf[at] == '/' && (t->buf[at + 1] == '/' || t->buf[at + 1] == '*')) {
            if (blank_comment(t, &at, err) < 0)
                return -1;
        } else if (t->buf[at] == '\'') { /* json-c 0.16 takes it for a key even when strict */
            return conf_text_fail_at(t, at, err, "found ', expected double quotes");
        } else {
            at++;
        }
    }
    return 0;
}

int conf_text_open(struct conf_text *t, const char *name, const char *text, size_t len,
                   struct err *err)
{
    *t = (struct conf_text){.name = name, .text = text, .len = len};
    if (len > CONF_FILE_MAX)
        return err_set(err,
                       "%s: larger than %d bytes, the most that settings may take; "
                       "is it the right file?",
                       conf_text_short_name(name), CONF_FILE_MAX);
    t->buf = malloc(len + 1);
    if (!t->buf)
        return err_set(err, "%s: out of memory", conf_text_short_name(name));
    if (len)
        memcpy(t->buf, text, len);
    t->buf[len] = '\0';
    if (check_bytes(t, err) < 0 || blank_comments(t, err) < 0) {
        conf_text_close(t);
        return -1;
    }
    return 0;
}

void conf_text_close(struct conf_text *t)
{
    free(t->buf);
    t->buf = NULL;
}

bool conf_text_next_key(const struct conf_text *t, struct conf_key *key)
{
    while (key->next < t->len) {
        size_t at = key->next, end = at + 1, colon;
        if (t->buf[at] == '{' || t->buf[at] == '[')
            key->depth++;
        else if (t->buf[at] == '}' || t->buf[at] == ']')
            key->depth--;
        else if (t->buf[at] == '"')
            end = conf_text_string_end(t, at);
        key->next = end;
        if (t->buf[at] != '"')
            continue;
        for (colon = end; conf_text_is_blank(t->buf[colon]); colon++)
            ;
        if (t->buf[colon] == ':') { /* in JSON only a key has one behind it */
            key->name = t->buf + at + 1;
            key->len = end - at - 2;
            key->at = at;
            for (colon++; conf_text_is_blank(t->buf[colon]); colon++)
                ;
            key->value = colon;
            return true;
        }
    }
    return false;
}
