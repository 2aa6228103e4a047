/* SPDX-License-Identifier: BSD-3-Clause */
/* An operation ends on all nodes within the time of a few messages, so its ends align the clocks:
 * the clock of a file is off by the median, over all operations that it has in common with the
 * first file, of the difference of their ends. Each file is read twice, a line at a time: once for
 * the operations, once to write it with other times. */
#include "common/status/trace_merge.h"

#include "common/status/fields.h"
#include <errno.h>
#include <inttypes.h>
#include <json-c/json.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { OP_SIZE = 48, NODE_SIZE = 256 };

/* One server's part in an operation. */
struct op {
    char id[OP_SIZE];
    int64_t begin, dur;
    int64_t late; /* µs, where the file's server has decided it; else -1 */
    char *last;   /* who was last then; owned */
    int64_t tid;
};

struct source {
    const char *path;
    char node[NODE_SIZE];
    int64_t pid;
    size_t n;
    struct op *ops; /* by id; owned */
    int64_t off;    /* µs that its clock is ahead of the first file's */
};

static const char *text_of(json_object *o, const char *key)
{
    const char *text = field_text(o, key);
    return text != NULL ? text : "";
}

/* @return the event of a line, or NULL: it has none */
static json_object *event_of(char *line)
{
    size_t len = strcspn(line, "\n");
    if (len > 0 && line[len - 1] == ',')
        len--;
    line[len] = '\0';
    json_object *event =
        line[0] == '{' && len > 0 && line[len - 1] == '}' ? json_tokener_parse(line) : NULL;
    if (field_text(event, "ph") != NULL)
        return event;
    json_object_put(event);
    return NULL;
}

/* @return 0, or -1: out of memory */
static int take_op(struct source *s, json_object *event)
{
    json_object *args = field(event, "args", json_type_object);
    int64_t late = field_number(args, "late_us", -1);
    if ((s->n & (s->n - 1)) == 0) { /* a power of two: it is full */
        struct op *more = realloc(s->ops, (s->n > 0 ? 2 * s->n : 1) * sizeof *more);
        if (more == NULL)
            return -1;
        s->ops = more;
    }
    struct op *op = &s->ops[s->n++];
    *op = (struct op){.begin = field_number(event, "ts", 0),
                      .dur = field_number(event, "dur", 0),
                      .tid = field_number(event, "tid", 0),
                      .late = late};
    snprintf(op->id, sizeof op->id, "%s", text_of(args, "op"));
    if (late < 0)
        return 0;
    op->last = strdup(text_of(args, "last"));
    return op->last != NULL ? 0 : -1;
}

static int by_id(const void *a, const void *b)
{
    return strcmp(((const struct op *)a)->id, ((const struct op *)b)->id);
}

/* Calls @p take for each event of the file. @return 0, or -1 with the reason in @p err */
static int each_event(struct source *s,
                      int (*take)(struct source *s, json_object *event, void *arg), void *arg,
                      struct err *err)
{
    FILE *in = fopen(s->path, "re");
    char *line = NULL;
    size_t size = 0;
    int rc = 0;
    if (in == NULL)
        return err_set(err, "%s: %s", s->path, strerror(errno));
    while (rc == 0 && getline(&line, &size, in) >= 0) {
        json_object *event = event_of(line);
        if (event != NULL && take(s, event, arg) != 0)
            rc = err_set(err, "out of memory");
        json_object_put(event);
    }
    free(line);
    fclose(in);
    return rc;
}

static int learn(struct source *s, json_object *event, void *unused)
{
    (void)unused;
    if (strcmp(text_of(event, "name"), "process_name") == 0) {
        s->pid = field_number(event, "pid", 0);
        snprintf(s->node, sizeof s->node, "%s",
                 text_of(field(event, "args", json_type_object), "name"));
    }
    return strcmp(text_of(event, "ph"), "X") == 0 ? take_op(s, event) : 0;
}

static const struct op *find(const struct source *s, const char *id)
{
    struct op key = {.begin = 0};
    snprintf(key.id, sizeof key.id, "%s", id);
    return s->n > 0 ? bsearch(&key, s->ops, s->n, sizeof key, by_id) : NULL;
}

static int by_size(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

/* Generation 0 is of no decision: such calls are not of one operation. */
static bool is_shared(const struct op *op)
{
    size_t len = strlen(op->id);
    return len > 2 && strcmp(op->id + len - 2, ".0") != 0;
}

/* @param spread raised to what nine in ten of the operations are within, µs
 * @return how many operations say so */
static size_t align(const struct source *first, struct source *s, int64_t *spread)
{
    size_t n = 0;
    int64_t *off = calloc(s->n + 1, sizeof *off);
    for (size_t i = 0; i < s->n && off != NULL; i++) {
        const struct op *here = &s->ops[i], *there = find(first, here->id);
        if (there != NULL && is_shared(here))
            off[n++] = here->begin + here->dur - there->begin - there->dur;
    }
    if (n > 0) {
        qsort(off, n, sizeof *off, by_size);
        s->off = off[n / 2];
        int64_t above = off[n - 1 - n / 20] - s->off, below = s->off - off[n / 20];
        int64_t most = above > below ? above : below;
        if (most > *spread)
            *spread = most;
    }
    free(off);
    return n;
}

struct writer {
    FILE *out;
    const struct source *all;
    size_t n;
    struct op *decided; /* of all sources, by id; owned, but for what is in them */
    size_t ndecided;
    uint64_t arrows;
    bool any;
};

static void put(struct writer *w, json_object *event)
{
    fprintf(w->out, "%s%s", w->any ? ",\n" : "", field_line(event));
    w->any = true;
}

static const struct source *source_of(const struct writer *w, const char *node)
{
    for (size_t i = 0; i < w->n; i++)
        if (strcmp(w->all[i].node, node) == 0)
            return &w->all[i];
    return NULL;
}

/* From where the last node's slice begins to where the decider's ends. */
static void put_arrow(struct writer *w, const struct source *decider, const struct op *op)
{
    const struct source *last = op->last != NULL ? source_of(w, op->last) : NULL;
    const struct op *from = last != NULL && last != decider ? find(last, op->id) : NULL;
    if (from == NULL || op->late < TRACE_LATE_US)
        return;
    fprintf(w->out,
            ",\n{\"name\":\"last\",\"cat\":\"last\",\"ph\":\"s\",\"id\":%" PRIu64
            ",\"pid\":%" PRId64 ",\"tid\":%" PRId64 ",\"ts\":%" PRId64 "}",
            w->arrows, last->pid, from->tid, from->begin - last->off);
    fprintf(w->out,
            ",\n{\"name\":\"last\",\"cat\":\"last\",\"ph\":\"f\",\"bp\":\"e\",\"id\":%" PRIu64
            ",\"pid\":%" PRId64 ",\"tid\":%" PRId64 ",\"ts\":%" PRId64 "}",
            w->arrows, decider->pid, op->tid,
            op->begin + (op->dur > 0 ? op->dur - 1 : 0) - decider->off);
    w->arrows++;
}

/* A slice of a node that was late is named so. */
static void mark(const struct writer *w, const struct source *s, json_object *event)
{
    struct op key = {.begin = 0};
    char name[512];
    snprintf(key.id, sizeof key.id, "%s", text_of(field(event, "args", json_type_object), "op"));
    const struct op *op =
        w->ndecided > 0 ? bsearch(&key, w->decided, w->ndecided, sizeof key, by_id) : NULL;
    if (op == NULL || op->late < TRACE_LATE_US || strcmp(op->last, s->node) != 0)
        return;
    snprintf(name, sizeof name, "LAST, %.1f ms late: %s", (double)op->late / 1000,
             text_of(event, "name"));
    json_object_object_add(event, "name", json_object_new_string(name));
}

/* @return 0, or -1: out of memory */
static int gather_decided(struct writer *w)
{
    size_t n = 0;
    for (size_t i = 0; i < w->n; i++)
        for (size_t k = 0; k < w->all[i].n; k++)
            n += w->all[i].ops[k].last != NULL;
    w->decided = calloc(n + 1, sizeof *w->decided);
    for (size_t i = 0; i < w->n && w->decided != NULL; i++)
        for (size_t k = 0; k < w->all[i].n; k++)
            if (w->all[i].ops[k].last != NULL)
                w->decided[w->ndecided++] = w->all[i].ops[k];
    if (w->ndecided > 1)
        qsort(w->decided, w->ndecided, sizeof *w->decided, by_id);
    return w->decided != NULL ? 0 : -1;
}

static int rewrite(struct source *s, json_object *event, void *arg)
{
    struct writer *w = arg;
    json_object *ts = field(event, "ts", json_type_int);
    if (ts != NULL) {
        int64_t at = json_object_get_int64(ts) - s->off;
        json_object_object_add(event, "ts", json_object_new_int64(at));
        mark(w, s, event);
    }
    put(w, event);
    return 0;
}

static int read_all(struct source *sources, char *const *files, size_t n, struct err *err)
{
    for (size_t i = 0; i < n; i++) {
        struct source *s = &sources[i];
        s->path = files[i];
        if (each_event(s, learn, NULL, err) != 0)
            return -1;
        if (s->node[0] == '\0')
            return err_set(err, "%s: this is no trace of a muster-server", s->path);
        if (s->n > 1)
            qsort(s->ops, s->n, sizeof *s->ops, by_id);
    }
    return 0;
}

static void note(FILE *notes, struct source *sources, size_t n)
{
    int64_t spread = 0;
    size_t alone = 0;
    for (size_t i = 1; i < n; i++)
        alone += align(&sources[0], &sources[i], &spread) == 0;
    if (n > 1)
        fprintf(notes,
                "%zu nodes; clocks aligned by the ends of operations: nine in ten within %.2f ms\n",
                n, (double)spread / 1000);
    if (alone > 0)
        fprintf(notes,
                "%zu of them have no operation in common with %s: their times are those of "
                "their own clocks\n",
                alone, sources[0].node);
}

int trace_merge(FILE *out, FILE *notes, char *const *files, size_t n, struct err *err)
{
    if (n == 0 || n > TRACE_FILES_MAX)
        return err_set(err, "give 1 to %d files", TRACE_FILES_MAX);
    struct source *sources = calloc(n, sizeof *sources);
    struct writer w = {.out = out, .all = sources, .n = n};
    int rc = sources != NULL ? read_all(sources, files, n, err) : err_set(err, "out of memory");
    if (rc == 0 && gather_decided(&w) != 0)
        rc = err_set(err, "out of memory");
    if (rc == 0) {
        note(notes, sources, n);
        fprintf(out, "{\"displayTimeUnit\":\"ms\",\"traceEvents\":[\n");
        for (size_t i = 0; i < n && rc == 0; i++)
            rc = each_event(&sources[i], rewrite, &w, err);
        for (size_t i = 0; i < n; i++)
            for (size_t k = 0; k < sources[i].n; k++)
                put_arrow(&w, &sources[i], &sources[i].ops[k]);
        fprintf(out, "\n]}\n");
    }
    for (size_t i = 0; i < n && sources != NULL; i++) {
        for (size_t k = 0; k < sources[i].n; k++)
            free(sources[i].ops[k].last);
        free(sources[i].ops);
    }
    free(w.decided);
    free(sources);
    return rc;
}
