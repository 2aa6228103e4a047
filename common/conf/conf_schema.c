/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * The table of settings, and what is found by it.
 */
#include "common/conf/conf_schema.h"
#include <ctype.h>
#include <stdarg.h>
#include <string.h>

#define DAY 86400
#define FIELD(name) .offset = offsetof(struct conf, name)
#define SECONDS(lo, hi, value)                                                                     \
    .min = (lo), .max = (hi), .def = (value), .step = (hi), .unit = "seconds"

_Static_assert(sizeof(enum log_level) == sizeof(int), "fields are set as int");
_Static_assert(sizeof(enum conf_task_loss) == sizeof(int), "fields are set as int");
_Static_assert(sizeof(enum conf_log_sink) == sizeof(int), "fields are set as int");
_Static_assert(sizeof(enum conf_stall_terminal) == sizeof(int), "fields are set as int");
_Static_assert(sizeof(enum conf_stats) == sizeof(int), "fields are set as int");
_Static_assert(sizeof(enum conf_direct_mode) == sizeof(int), "fields are set as int");
_Static_assert(sizeof(enum conf_step_settings) == sizeof(int), "fields are set as int");

static const struct conf_word log_levels[] = {
    {"error", LOG_LEVEL_ERROR},
    {"warning", LOG_LEVEL_WARNING},
    {"info", LOG_LEVEL_INFO},
    {"debug", LOG_LEVEL_DEBUG},
    {NULL, 0},
};

static const struct conf_word log_sinks[] = {
    {"stderr", CONF_LOG_STDERR},
    {"syslog", CONF_LOG_SYSLOG},
    {NULL, 0},
};

static const struct conf_word task_losses[] = {
    {"end-step", CONF_TASK_LOSS_END_STEP},
    {"continue", CONF_TASK_LOSS_CONTINUE},
    {NULL, 0},
};

static const struct conf_word stall_terminals[] = {
    {"once", CONF_STALL_ONCE},
    {"never", CONF_STALL_NEVER},
    {NULL, 0},
};

static const struct conf_word stats[] = {
    {"0", CONF_STATS_NONE},
    {"1", CONF_STATS_LINE},
    {"keep", CONF_STATS_KEEP},
    {NULL, 0},
};

static const struct conf_word spawn_overcommits[] = {
    {"refuse", CONF_SPAWN_OVERCOMMIT_REFUSE},
    {"allow", CONF_SPAWN_OVERCOMMIT_ALLOW},
    {NULL, 0},
};

static const struct conf_word direct_modes[] = {
    {"on", CONF_DIRECT_ON},
    {"off", CONF_DIRECT_OFF},
    {"require", CONF_DIRECT_REQUIRE},
    {NULL, 0},
};

static const struct conf_word step_settings[] = {
    {"allow", CONF_STEP_ALLOW},
    {"forbid", CONF_STEP_FORBID},
    {NULL, 0},
};

/* clang-format off */
const struct conf_row conf_rows[] = {
    {"log_level", CONF_WORD, FIELD(log_level), .def = LOG_LEVEL_WARNING, .words = log_levels,
     .step = LOG_LEVEL_DEBUG,
     .help = "The least severe message that is logged."},
    {"log_sink", CONF_WORD, FIELD(log_sink), .def = CONF_LOG_STDERR, .words = log_sinks,
     .help = "Where messages go; with \"syslog\", errors go to standard error as well."},
    {"timeouts", CONF_SECTION,
     .help = "How long an operation may wait; 0: for ever. A caller's PMIX_TIMEOUT wins."},
    {"timeouts.construct", CONF_NUMBER, FIELD(timeouts.construct), SECONDS(0, DAY, 0),
     .help = "Group construct."},
    {"timeouts.destruct", CONF_NUMBER, FIELD(timeouts.destruct), SECONDS(0, DAY, 0),
     .help = "Group destruct."},
    {"timeouts.fence", CONF_NUMBER, FIELD(timeouts.fence), SECONDS(0, DAY, 0),
     .help = "Fence."},
    {"timeouts.connect", CONF_NUMBER, FIELD(timeouts.connect), SECONDS(0, DAY, 0),
     .help = "Connect and disconnect."},
    {"timeouts.get", CONF_NUMBER, FIELD(timeouts.get), SECONDS(0, DAY, 120),
     .help = "Get of what another node's process has put (direct modex)."},
    {"timeouts.query", CONF_NUMBER, FIELD(timeouts.query), SECONDS(0, DAY, 10),
     .help = "Query."},
    {"timeouts.spawn", CONF_NUMBER, FIELD(timeouts.spawn), SECONDS(1, DAY, 60),
     .help = "How long the processes of a spawned step may take to be started."},
    {"timeouts.peer", CONF_NUMBER, FIELD(timeouts.peer), SECONDS(1, 3600, 30),
     .help = "How long another node's server may be unreachable until it counts as lost."},
    {"stall_report", CONF_NUMBER, FIELD(stall_report), SECONDS(0, DAY, 60),
     .help = "An operation that waits so long is logged with the missing ranks; 0: never."},
    {"stall_terminal", CONF_WORD, FIELD(stall_terminal), .def = CONF_STALL_ONCE,
     .words = stall_terminals, .step = CONF_STALL_NEVER,
     .help = "Whether the first such report of a step is shown to its user, too."},
    {"stats", CONF_WORD, FIELD(stats), .def = CONF_STATS_NONE, .words = stats,
     .step = CONF_STATS_KEEP,
     .help = "1: a line at the end says which node was late; keep: the counts stay, too."},
    {"tree_arity", CONF_NUMBER, FIELD(tree_arity), .min = 2, .max = 1024, .def = 16,
     .help = "How many servers each server of a collective gathers from."},
    {"direct", CONF_SECTION,
     .help = "Direct connections between servers, over TCP."},
    {"direct.mode", CONF_WORD, FIELD(direct.mode), .def = CONF_DIRECT_ON, .words = direct_modes,
     .help = "\"off\": messages go by the resource manager; \"require\": they never do."},
    {"direct.address", CONF_PLACE, FIELD(direct.where),
     .help = "Where servers listen; \"\": at all addresses of the node."},
    {"direct.port", CONF_NUMBER, FIELD(direct.port), .min = 0, .max = 65535, .least = 1024,
     .help = "The first port that servers may listen on; 0: any that is free."},
    {"direct.ports", CONF_NUMBER, FIELD(direct.ports), .min = 1, .max = 65535, .def = 1000,
     .help = "How many ports, from direct.port on; a node needs one for each step."},
    {"memory_max", CONF_NUMBER, FIELD(memory_max), .min = 0, .max = 16 << 20, .least = 16,
     .unit = "MiB",
     .help = "Memory that a server may use beyond its start; 0: an eighth of the node's."},
    {"on_task_loss", CONF_WORD, FIELD(on_task_loss), .def = CONF_TASK_LOSS_END_STEP,
     .words = task_losses, .step = CONF_TASK_LOSS_CONTINUE,
     .help = "What happens when a task ends between PMIx_Init and PMIx_Finalize."},
    {"spawn_overcommit", CONF_WORD, FIELD(spawn_overcommit), .def = CONF_SPAWN_OVERCOMMIT_REFUSE,
     .words = spawn_overcommits, .step = CONF_SPAWN_OVERCOMMIT_ALLOW,
     .help = "Whether a program may spawn more processes than the job has processors."},
    {"spawn_linger", CONF_NUMBER, FIELD(spawn_linger), SECONDS(0, DAY, 0),
     .help = "How long spawned processes may go on when the program has ended; 0: for ever."},
    {"step_settings", CONF_WORD, FIELD(step_settings), .def = CONF_STEP_ALLOW,
     .words = step_settings,
     .help = "Whether users may set some keys for their own steps: see muster.json(5)."},
    {"tmpdir", CONF_PATH, FIELD(tmpdir),
     .help = "Where servers' temporary directories are made; \"\": where the launcher says."},
    {.key = NULL},
};
/* clang-format on */

_Static_assert(sizeof(conf_rows) / sizeof(conf_rows[0]) <= CONF_ROWS_MAX, "raise CONF_ROWS_MAX");

const char *conf_row_leaf(const struct conf_row *row)
{
    const char *dot = strrchr(row->key, '.');
    return dot ? dot + 1 : row->key;
}

bool conf_row_in(const struct conf_row *row, const struct conf_row *section)
{
    const char *leaf = conf_row_leaf(row);
    if (!section)
        return leaf == row->key;
    size_t len = strlen(section->key);
    return leaf == row->key + len + 1 && !strncmp(row->key, section->key, len);
}

static bool same(const char *known, const char *name, size_t len)
{
    return strlen(known) == len && !memcmp(known, name, len);
}

const struct conf_row *conf_row_find(const struct conf_row *section, const char *name, size_t len)
{
    for (const struct conf_row *row = conf_rows; row->key; row++) {
        if (conf_row_in(row, section) && same(conf_row_leaf(row), name, len))
            return row;
    }
    return NULL;
}

/* Levenshtein's distance, case aside; a name too long to be a slip of any key is far away. */
size_t conf_row_distance(const char *known, const char *name, size_t len)
{
    size_t cost[33], known_len = strlen(known);
    if (known_len > 32 || len > known_len + 2)
        return 99;
    for (size_t j = 0; j <= known_len; j++)
        cost[j] = j;
    for (size_t i = 1; i <= len; i++) {
        size_t diagonal = cost[0];
        cost[0] = i;
        for (size_t j = 1; j <= known_len; j++) {
            int a = tolower((unsigned char)name[i - 1]), b = tolower((unsigned char)known[j - 1]);
            size_t best = diagonal + (a != b);
            diagonal = cost[j];
            if (best > cost[j] + 1)
                best = cost[j] + 1;
            if (best > cost[j - 1] + 1)
                best = cost[j - 1] + 1;
            cost[j] = best;
        }
    }
    return cost[known_len];
}

const struct conf_row *conf_row_nearest(const struct conf_row *section, const char *name,
                                        size_t len)
{
    const struct conf_row *nearest = NULL;
    size_t least = 3;
    for (const struct conf_row *row = conf_rows; row->key; row++) {
        size_t far =
            conf_row_in(row, section) ? conf_row_distance(conf_row_leaf(row), name, len) : 99;
        if (far < least) {
            least = far;
            nearest = row;
        }
    }
    return nearest;
}

const struct conf_row *conf_row_elsewhere(const char *name, size_t len)
{
    for (const struct conf_row *row = conf_rows; row->key; row++) {
        if (same(row->key, name, len) || same(conf_row_leaf(row), name, len))
            return row;
    }
    return NULL;
}

const char *conf_word_quote(const char *word)
{
    return isdigit((unsigned char)word[0]) ? "" : "\"";
}

/* Appends as far as there is room. */
static void __attribute__((format(printf, 3, 4)))
append(char *out, size_t size, const char *fmt, ...)
{
    size_t used = strlen(out);
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(out + used, size - used, fmt, ap);
    va_end(ap);
}

void conf_row_range(const struct conf_row *row, char *out, size_t size)
{
    out[0] = '\0';
    switch (row->kind) {
    case CONF_SECTION:
        append(out, size, "an object of settings");
        break;
    case CONF_NUMBER:
        if (row->least != 0)
            append(out, size, "0, or %d to %d%s%s", row->least, row->max, row->unit ? " " : "",
                   row->unit ? row->unit : "");
        else
            append(out, size, "%d to %d%s%s", row->min, row->max, row->unit ? " " : "",
                   row->unit ? row->unit : "");
        break;
    case CONF_WORD:
        for (const struct conf_word *w = row->words; w->word; w++) {
            const char *join = w == row->words ? "" : w[1].word ? ", " : " or ";
            append(out, size, "%s%s%s%s", join, conf_word_quote(w->word), w->word,
                   conf_word_quote(w->word));
        }
        break;
    case CONF_PATH:
        append(out, size, "an absolute path of at most %d bytes without backslash",
               CONF_PATH_SIZE - 1);
        break;
    case CONF_PLACE:
        append(out, size, "an interface, an IP address, or a network such as 10.1.0.0/16");
        break;
    }
}

bool conf_row_takes(const struct conf_row *row, int64_t n)
{
    return n >= row->min && n <= row->max && (n == 0 || n >= row->least);
}

static int example_number(const struct conf_row *row)
{
    if (row->def != 0)
        return row->def;
    if (row->least != 0)
        return 16 * row->least;
    return row->max < 60 ? row->max : 60;
}

void conf_row_example(const struct conf_row *row, char *out, size_t size)
{
    const char *word;
    out[0] = '\0';
    append(out, size, "\"%s\": ", conf_row_leaf(row));
    switch (row->kind) {
    case CONF_SECTION:
        append(out, size, "{");
        conf_row_example(row + 1, out + strlen(out), size - strlen(out));
        append(out, size, "}");
        break;
    case CONF_NUMBER:
        append(out, size, "%d", example_number(row));
        break;
    case CONF_WORD:
        word = conf_row_word(row, row->def);
        append(out, size, "%s%s%s", conf_word_quote(word), word, conf_word_quote(word));
        break;
    case CONF_PATH:
        append(out, size, "\"/tmp\"");
        break;
    case CONF_PLACE:
        append(out, size, "\"ib0\"");
        break;
    }
}

int conf_row_get(const struct conf_row *row, const struct conf *conf)
{
    int value;
    memcpy(&value, (const char *)conf + row->offset, sizeof(value));
    return value;
}

void conf_row_set(const struct conf_row *row, struct conf *conf, int value)
{
    memcpy((char *)conf + row->offset, &value, sizeof(value));
}

char *conf_row_path(const struct conf_row *row, struct conf *conf)
{
    return (char *)conf + row->offset;
}

void conf_row_show(const struct conf_row *row, const struct conf *conf, char *out, size_t size)
{
    out[0] = '\0';
    if (row->kind == CONF_NUMBER)
        append(out, size, "%d", conf_row_get(row, conf));
    else if (row->kind == CONF_WORD)
        append(out, size, "%s", conf_row_word(row, conf_row_get(row, conf)));
    else if (row->kind == CONF_PATH || row->kind == CONF_PLACE)
        append(out, size, "%s", (const char *)conf + row->offset);
}

bool conf_row_read_word(const struct conf_row *row, const char *word, size_t len, int *value)
{
    const struct conf_word *w = row->words;
    while (w->word && !same(w->word, word, len))
        w++;
    *value = w->value;
    return w->word != NULL;
}

const char *conf_row_word(const struct conf_row *row, int value)
{
    for (const struct conf_word *w = row->words; w->word; w++) {
        if (w->value == value)
            return w->word;
    }
    return "?";
}

void conf_defaults(struct conf *conf)
{
    memset(conf, 0, sizeof(*conf));
    for (const struct conf_row *row = conf_rows; row->key; row++) {
        if (row->kind == CONF_NUMBER || row->kind == CONF_WORD)
            conf_row_set(row, conf, row->def);
    }
}

/* The values are marked by comparison: what a source gives and what was there before is not told
 * apart, nor need it be. */
void conf_mark(struct conf_sources *sources, const struct conf *before, const struct conf *after,
               enum conf_source from)
{
    for (const struct conf_row *row = conf_rows; row->key; row++) {
        char was[CONF_PATH_SIZE], is[CONF_PATH_SIZE];
        conf_row_show(row, before, was, sizeof(was));
        conf_row_show(row, after, is, sizeof(is));
        if (strcmp(was, is) != 0)
            sources->of[row - conf_rows] = (unsigned char)from;
    }
}

void conf_walk(const struct conf *conf, const struct conf_sources *sources, conf_value_fn *fn,
               void *arg)
{
    for (const struct conf_row *row = conf_rows; row->key; row++) {
        enum conf_source from = (enum conf_source)sources->of[row - conf_rows];
        char value[CONF_PATH_SIZE];
        if (from == CONF_DEFAULT)
            continue;
        conf_row_show(row, conf, value, sizeof(value));
        fn(arg, row->key, value, from);
    }
}

const char *conf_source_name(enum conf_source source)
{
    static const char *const names[] = {[CONF_DEFAULT] = "default",
                                        [CONF_FILE] = "muster.json",
                                        [CONF_RM] = "resource manager",
                                        [CONF_STEP] = "step"};
    return names[source];
}
