/* SPDX-License-Identifier: BSD-3-Clause */
/* A trace of this server's calls. One event a line, so that muster-status --trace can put those of
 * all servers together without having them in memory. */
#include "common/server/trace.h"

#include "common/server/server.h"
#include "common/server/user_write.h"
#include "common/util/log.h"
#include "common/util/text.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { NAME_SIZE = 48, LANES_MAX = 16 };

struct slice {
    uint64_t begin, end; /* µs of the engine's clock */
    uint64_t hash, generation;
    uint32_t last, late;
    int32_t status;
    uint8_t kind;
    char name[NAME_SIZE]; /* cut */
};

struct trace {
    bool written;   /* all of it */
    char why[1024]; /* there is no file, or not all of it; "": there is */
    char name[512];
    int64_t to_real; /* µs from the engine's clock to the time of day */
    uint64_t n;      /* slices that were noted, those that others have taken the place of as well */
    struct slice slices[TRACE_MAX];
};

static int64_t real_us(void)
{
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    return (int64_t)t.tv_sec * 1000000 + t.tv_nsec / 1000;
}

void trace_open(struct server *server)
{
    const char *dir = boot_setting(&server->boot, BOOT_TRACE);
    if (dir == NULL)
        return;
    struct trace *trace = server->trace = calloc(1, sizeof *trace);
    snprintf(trace->name, sizeof trace->name, "muster.%s.%s.json", server->boot.label,
             boot_here(&server->boot)->name);
    trace->to_real = real_us() - timers_now_us(&server->timers);
}

void trace_ended(void *arg, const struct engine_ended *ended)
{
    struct trace *trace = ((struct server *)arg)->trace;
    if (trace == NULL)
        return;
    struct slice *s = &trace->slices[trace->n++ % TRACE_MAX];
    *s = (struct slice){.begin = ended->begin,
                        .end = ended->end,
                        .hash = signature_hash(ended->sig, ended->siglen),
                        .generation = ended->generation,
                        .last = ended->last,
                        .late = ended->late,
                        .status = ended->status,
                        .kind = (uint8_t)ended->kind};
    if (signature_kind(ended->sig, ended->siglen) == ended->kind)
        signature_describe(ended->sig, ended->siglen, s->name, sizeof s->name);
    else
        snprintf(s->name, sizeof s->name, "%s", coll_traits(ended->kind)->name);
}

static void put_text(FILE *out, const char *text)
{
    char copy[512];
    snprintf(copy, sizeof copy, "%s", text);
    log_mask(copy);
    fputc('"', out);
    for (const char *p = copy; *p != '\0'; p++) {
        if (*p == '"' || *p == '\\')
            fputc('\\', out);
        fputc(*p, out);
    }
    fputc('"', out);
}

static int by_begin(const void *a, const void *b)
{
    const struct slice *x = a, *y = b;
    return (x->begin > y->begin) - (x->begin < y->begin);
}

/* Slices that overlap are on tracks of their own. */
static unsigned lane_of(uint64_t ends[static LANES_MAX], const struct slice *s)
{
    unsigned lane = 0;
    while (lane + 1 < LANES_MAX && ends[lane] > s->begin)
        lane++;
    ends[lane] = s->end;
    return lane;
}

static void put_slice(FILE *out, const struct server *server, const struct slice *s, unsigned lane)
{
    const struct trace *trace = server->trace;
    fprintf(out, ",\n{\"name\":");
    put_text(out, s->name);
    fprintf(out,
            ",\"cat\":\"%s\",\"ph\":\"X\",\"pid\":%u,\"tid\":%u,\"ts\":%" PRId64 ",\"dur\":%" PRIu64
            ",\"args\":{\"op\":\"%016" PRIx64 ".%" PRIu64 "\",\"status\":%d",
            coll_traits(s->kind)->name, server->boot.node, lane, (int64_t)s->begin + trace->to_real,
            s->end - s->begin, s->hash, s->generation, s->status);
    if (s->last != ENGINE_NOBODY) {
        fprintf(out, ",\"last\":");
        put_text(out, nspace_name(server->nspace, s->last));
        fprintf(out, ",\"late_us\":%u", s->late);
    }
    fprintf(out, "}}");
}

static void put_all(FILE *out, const struct server *server)
{
    struct trace *trace = server->trace;
    const struct boot *boot = &server->boot;
    size_t n = trace->n < TRACE_MAX ? (size_t)trace->n : TRACE_MAX;
    uint64_t ends[LANES_MAX] = {0};
    qsort(trace->slices, n, sizeof *trace->slices, by_begin);
    fprintf(out, "{\"displayTimeUnit\":\"ms\",\"otherData\":{\"muster\":1,\"step\":");
    put_text(out, boot->label);
    fprintf(out, ",\"omitted\":%" PRIu64 "},\"traceEvents\":[\n", trace->n - n);
    fprintf(out, "{\"name\":\"process_name\",\"ph\":\"M\",\"pid\":%u,\"tid\":0,\"args\":{\"name\":",
            boot->node);
    put_text(out, boot_here(boot)->name);
    fprintf(out,
            "}},\n{\"name\":\"process_sort_index\",\"ph\":\"M\",\"pid\":%u,\"tid\":0,\"args\":"
            "{\"sort_index\":%u}}",
            boot->node, boot->node);
    for (size_t i = 0; i < n; i++)
        put_slice(out, server, &trace->slices[i], lane_of(ends, &trace->slices[i]));
    fprintf(out, "\n]}\n");
}

static void explain(struct trace *trace, const char *dir, bool made, int error)
{
    const char *reason = error == ETIMEDOUT ? "the file system does not answer" : strerror(error);
    if (made)
        snprintf(trace->why, sizeof trace->why, BOOT_TRACE_ENV ": %.400s is not whole: %s",
                 trace->name, reason);
    else
        snprintf(trace->why, sizeof trace->why,
                 BOOT_TRACE_ENV ": no trace is written: %.300s/%.300s: %s%s", dir, trace->name,
                 reason,
                 error == EEXIST ? "; remove it, or give another directory"
                                 : "; give a directory of your own that all nodes have");
    log_warning("%s", trace->why); /* the user is told at the end: totals.h */
}

void trace_write(struct server *server)
{
    struct trace *trace = server->trace;
    const char *dir = boot_setting(&server->boot, BOOT_TRACE);
    char *text = NULL;
    size_t len = 0;
    bool made;
    if (trace == NULL)
        return;
    FILE *out = open_memstream(&text, &len);
    put_all(out, server);
    fclose(out);
    int error = user_write(server, dir, trace->name, text, len, &made);
    trace->written = error == 0;
    if (error != 0)
        explain(trace, dir, made, error);
}

bool trace_is_written(const struct server *server)
{
    return server->trace != NULL && server->trace->written;
}

void trace_line(const struct server *server, uint32_t n, uint32_t all, char *buf, size_t cap)
{
    const struct trace *trace = server->trace;
    char text[1500];
    if (trace == NULL)
        return;
    if (n == 0 && trace->why[0] != '\0')
        snprintf(text, sizeof text, "%s", trace->why);
    else
        snprintf(text, sizeof text,
                 "traces of %u of %u nodes are written: muster-status --trace %s/muster.%s.*.json "
                 ">trace.json",
                 n, all, boot_setting(&server->boot, BOOT_TRACE), server->boot.label);
    text_fit(buf, cap, buf[0] != '\0' ? "; " : "");
    text_fit(buf, cap, text);
}

void trace_close(struct server *server)
{
    free(server->trace);
    server->trace = NULL;
}
