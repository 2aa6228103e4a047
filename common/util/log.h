/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * Messages, by the sink of the process that we live in.
 *
 * The core does not know its host: the owner of the process gives a sink, and until then messages
 * go to standard error. Every line is one message, prefixed by the sink's owner with the step and
 * node that it speaks of.
 * @thread any, unless said
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/** Levels, with the numbers of syslog(3), so that they mean the same to every sink. */
enum log_level {
    LOG_LEVEL_CAUSE = 2,   /**< an error that many nodes of a step may have alike: where there is a
                                way, the user reads it once */
    LOG_LEVEL_ERROR = 3,   /**< an operation or the step fails; the user must see it */
    LOG_LEVEL_WARNING = 4, /**< something is odd, nothing failed */
    LOG_LEVEL_INFO = 6,    /**< what an admin wants to see of a healthy step */
    LOG_LEVEL_DEBUG = 7,   /**< a line a transition */
};

/** Takes one message.
 * @param arg as given to log_open()
 * @param level severity
 * @param text one line, no newline; borrowed
 * @thread any: a sink locks for itself */
typedef void log_sink_fn(void *arg, enum log_level level, const char *text);

/** Sends messages of at most @p level to @p sink; a NULL sink means standard error, each line with
 * the `<N>` prefix of sd-daemon(3).
 * @param prefix copied; stands before each message ("4711.0 c07"), NULL for none
 * @thread call before any other thread logs */
void log_open(log_sink_fn *sink, void *arg, enum log_level level, const char *prefix);

/** Changes what stands before each message, once that is known. A message that begins with it
 * already, as one that another process has written, does not get it again.
 * @param prefix as of log_open()
 * @thread as log_open() */
void log_prefix(const char *prefix);

/** Sets what users of our RM call what muster calls a step: until now "step".
 * @param unit copied, 15 bytes at most @thread as log_open() */
void log_set_unit(const char *unit);

/** @return the same, for messages: "step" or "job" */
const char *log_unit(void);

/** The sink that a NULL sink means. */
void log_stderr(void *arg, enum log_level level, const char *text);

/** Whether a message of @p level would be written. */
int log_wants(enum log_level level);

/** Makes text harmless for terminals and logs, in place: bytes that are no printable ASCII or UTF-8
 * text become '?', a newline too. */
void log_mask(char *text);

/** @return whether @p len bytes are printable UTF-8 text, of which log_mask() changes nothing: what
 * a name may be. */
bool log_is_text(const char *text, size_t len);

/** Writes one message, cut to 1,000 bytes; bytes that are no printable ASCII or UTF-8 text become
 * '?', because peers and users choose parts of it. */
void log_write(enum log_level level, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

#define log_cause(...) log_write(LOG_LEVEL_CAUSE, __VA_ARGS__)
#define log_error(...) log_write(LOG_LEVEL_ERROR, __VA_ARGS__)
#define log_warning(...) log_write(LOG_LEVEL_WARNING, __VA_ARGS__)
#define log_info(...) log_write(LOG_LEVEL_INFO, __VA_ARGS__)
#define log_debug(...)                                                                             \
    do {                                                                                           \
        if (log_wants(LOG_LEVEL_DEBUG))                                                            \
            log_write(LOG_LEVEL_DEBUG, __VA_ARGS__);                                               \
    } while (0)
