/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * The settings of muster, read from `muster.json`.
 *
 * A step is not started on a guess: whatever is wrong with the file is an error that gives file,
 * line, key and remedy. The keys stand in one table (conf_schema.c) that drives parsing, defaults,
 * ranges and help; a new key is one row there and one field here.
 * @thread any
 */
#pragma once

#include "common/util/err.h"
#include "common/util/log.h"
#include <stddef.h>
#include <stdio.h>
#include <sys/types.h>

/** The largest `muster.json` that is read, in bytes. */
#define CONF_FILE_MAX (1024 * 1024)

/** What happens when a task ends between PMIx_Init and PMIx_Finalize. */
enum conf_task_loss {
    CONF_TASK_LOSS_END_STEP, /**< the step is ended with a message */
    CONF_TASK_LOSS_CONTINUE, /**< the survivors go on; operations with the lost task fail */
};

/** Where the messages of a server go. */
enum conf_log_sink {
    CONF_LOG_STDERR, /**< to its standard error, which the launcher's plugin carries on */
    CONF_LOG_SYSLOG, /**< to the node's syslog; errors to standard error as well */
};

/** Whether the first operation of a step that waits for long is shown to its user. */
enum conf_stall_terminal { CONF_STALL_ONCE, CONF_STALL_NEVER };

/** What a step leaves of what was counted of its operations; each has what those before have. */
enum conf_stats {
    CONF_STATS_NONE, /**< nothing */
    CONF_STATS_LINE, /**< a line at its end says how long they have waited */
    CONF_STATS_KEEP, /**< its user's home keeps the counts */
};

/** Whether spawned steps may have more tasks than the job has processors. */
enum conf_spawn_overcommit { CONF_SPAWN_OVERCOMMIT_REFUSE, CONF_SPAWN_OVERCOMMIT_ALLOW };

/** Whether a user may give settings for his own step (conf_step.h). */
enum conf_step_settings { CONF_STEP_ALLOW, CONF_STEP_FORBID };

/** Whether servers make direct connections to each other. */
enum conf_direct_mode {
    CONF_DIRECT_ON,
    CONF_DIRECT_OFF,
    CONF_DIRECT_REQUIRE, /**< nothing that is between servers goes another way */
};

/** Room for a path. */
#define CONF_PATH_SIZE 256

/** Direct connections between servers, over TCP. */
struct conf_direct {
    enum conf_direct_mode mode;
    /** where: an interface, an address or a network; "": at any address. The rest of the array is
     * zero. */
    char where[CONF_PATH_SIZE];
    int port;  /**< the first one that a server may listen on; 0: any */
    int ports; /**< how many, from direct.port on */
};

/** How long an operation may wait, in seconds; 0: for ever. PMIX_TIMEOUT of the caller wins. */
struct conf_timeouts {
    int construct; /**< group construct */
    int destruct;  /**< group destruct */
    int fence;     /**< fence */
    int connect;   /**< connect and disconnect */
    int get;       /**< direct modex */
    int query;     /**< query */
    int spawn;     /**< until all processes of a spawn have to have been started; never 0 */
    int peer; /**< how long a peer server may be unreachable until it counts as lost; never 0 */
};

/** All settings. Plain values: nothing to free, copies are independent. */
struct conf {
    enum log_level log_level; /**< the least severe message that is logged */
    enum conf_log_sink log_sink;
    struct conf_timeouts timeouts;
    int stall_report; /**< seconds until an operation that waits is reported; 0: never */
    enum conf_stall_terminal stall_terminal; /**< whether the first report goes to the user, too */
    enum conf_stats stats;
    int tree_arity; /**< children of a server in the tree of a collective */
    struct conf_direct direct;
    int memory_max; /**< MiB that a server may use beyond its start; 0: a share of the node's */
    enum conf_task_loss on_task_loss;
    enum conf_spawn_overcommit spawn_overcommit;
    int spawn_linger; /**< seconds that spawned steps may go on after their parent's; 0: for ever */
    enum conf_step_settings step_settings;
    /** where servers' temporary directories are made; "": where the launcher says. The launcher's
     * plugin alone uses it: see conf_file.h. The rest of the array is zero. */
    char tmpdir[CONF_PATH_SIZE];
};

/** Where a value is from; a later one wins. */
enum conf_source {
    CONF_DEFAULT,
    CONF_FILE, /**< muster.json */
    CONF_RM,   /**< the resource manager's own configuration */
    CONF_STEP, /**< what the user has given for the step */
};

/** There are at most so many keys; conf_schema.c checks it when it is compiled. */
#define CONF_KEYS_MAX 64

/** Where each value is from. All zero: all are defaults. */
struct conf_sources {
    unsigned char of[CONF_KEYS_MAX];
};

/** Takes a value that is no default. @param key "timeouts.fence" @param value as a file has it,
 * without quotes; both borrowed */
typedef void conf_value_fn(void *arg, const char *key, const char *value, enum conf_source from);

/** Takes one mistake: one line with its place and the remedy. @param arg as given */
typedef void conf_report_fn(void *arg, const char *mistake);

/** Takes the first one into the struct err @p arg. */
conf_report_fn conf_keep_first;

/** Sets every field to its default. */
void conf_defaults(struct conf *conf);

/**
 * Reads a settings file: the defaults, and over them what the file gives.
 *
 * No file at @p path is no error when @p trusted_uid is 0, for the installed one need not be there:
 * the defaults stand. Symbolic links are followed, but one that leads nowhere is an error, as is
 * every file that is not regular, not readable or that others than root and @p trusted_uid could
 * have written.
 *
 * @param conf        set on success, else untouched
 * @param path        the file
 * @param trusted_uid who may own the file, besides root; 0: root only
 * @param report      takes what is wrong and what to do, led by @p path and the line: see
 *                    conf_parse()
 * @return 0, or -1 when there was any mistake
 */
int conf_load(struct conf *conf, const char *path, uid_t trusted_uid, conf_report_fn *report,
              void *arg);

/**
 * Reads settings from text: JSON in UTF-8, one object, with comments as in C.
 *
 * Keys that the text does not give keep their value in @p conf, so that one source can be laid
 * over another.
 *
 * @param conf  initialised by the caller; untouched on failure
 * @param name  what to call the text in messages, as a file name
 * @param text  borrowed for the call; needs no NUL at its end
 * @param len   of @p text in bytes, at most CONF_FILE_MAX
 * @param report takes every mistake: the first of syntax; else all of keys, and if no key stands
 *               twice, all of values
 * @return 0, or -1 when there was any mistake
 */
int conf_parse(struct conf *conf, const char *name, const char *text, size_t len,
               conf_report_fn *report, void *arg);

/** Notes that all values in which @p after differs from @p before are from @p from. */
void conf_mark(struct conf_sources *sources, const struct conf *before, const struct conf *after,
               enum conf_source from);

/** Gives all values that are marked, in the order of the keys. */
void conf_walk(const struct conf *conf, const struct conf_sources *sources, conf_value_fn *fn,
               void *arg);

/** What to call a source in messages: "muster.json". */
const char *conf_source_name(enum conf_source source);

/** Writes the settings in the form that conf_parse() reads, with a comment for each key. The caller
 * checks @p out by ferror(). docs/muster.json.example is what this writes for the defaults.
 * @param sources NULL, or where the values are from: a comment says it of what is no default */
void conf_dump(const struct conf *conf, const struct conf_sources *sources, FILE *out);
