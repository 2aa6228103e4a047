/* SPDX-License-Identifier: BSD-3-Clause */
/* Command lines and messages of Slurm's commands. Those that are told apart have the same words in
 * all releases that muster knows. */
#include "plugins/slurm/resize_words.h"

#include "common/util/text.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { WORDS_MAX = 24, MINUTE = 60 };

/* ---- command lines ---- */

struct words {
    char *list[WORDS_MAX + 1];
    unsigned n;
    bool failed;
};

static void add(struct words *words, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
static void add(struct words *words, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    if (words->n == WORDS_MAX || vasprintf(&words->list[words->n], fmt, ap) < 0)
        words->failed = true;
    else
        words->n++;
    va_end(ap);
}

static char **finish(struct words *words)
{
    char **list = words->failed ? NULL : calloc(words->n + 1, sizeof *list);
    for (unsigned i = 0; i < words->n; i++)
        if (list != NULL)
            list[i] = words->list[i];
        else
            free(words->list[i]);
    return list;
}

char **resize_learn_argv(uint32_t job)
{
    struct words words = {0};
    add(&words, "scontrol");
    add(&words, "--oneliner");
    add(&words, "show");
    add(&words, "job");
    add(&words, "%u", job);
    return finish(&words);
}

/* The job has whole nodes, and so has its expander. */
static void add_size(struct words *words, const struct rm_alloc *what)
{
    if (what->nnodes > 0)
        add(words, "--nodes=%u-%u", what->nnodes, what->nnodes);
    if (what->nodes != NULL)
        add(words, "--nodelist=%s", what->nodes);
    if (what->ncpus > 0)
        add(words, "--ntasks=%u", what->ncpus);
}

static void add_exclude(struct words *words, const struct job_nodes *before)
{
    char *names = strdup("");
    for (uint32_t i = 0; i < before->n; i++)
        names = text_append(names, ",", before->nodes[i].name);
    add(words, "--exclude=%s", names != NULL ? names : "");
    words->failed |= names == NULL;
    free(names);
}

static void add_like(struct words *words, const char *option, const char *value)
{
    if (value[0] != '\0')
        add(words, "--%s=%s", option, value);
}

char **resize_extend_argv(uint32_t job, const char *directory, const struct rm_alloc *what,
                          const struct resize_job *like, const struct job_nodes *before,
                          unsigned seconds)
{
    struct words words = {0};
    add(&words, "salloc");
    add(&words, "--job-name=muster-grow");
    add(&words, "--dependency=expand:%u", job);
    add(&words, "--immediate=%u", seconds);
    add_like(&words, "partition", like->partition);
    add_like(&words, "qos", like->qos);
    add_like(&words, "account", like->account);
    if (like->minutes > 0)
        add(&words, "--time=%u", like->minutes);
    else
        add(&words, "--time=UNLIMITED");
    add_size(&words, what);
    add_exclude(&words, before);
    add(&words, "/bin/sh");
    add(&words, "-c");
    add(&words, "exec \"$0\" update jobid=\"$SLURM_JOB_ID\" NumNodes=0");
    add(&words, "%s/scontrol", directory);
    return finish(&words);
}

char **resize_keep_argv(uint32_t job, const char *nodes)
{
    struct words words = {.failed = nodes == NULL};
    add(&words, "scontrol");
    add(&words, "update");
    add(&words, "jobid=%u", job);
    add(&words, "NodeList=%s", nodes != NULL ? nodes : "");
    return finish(&words);
}

char **resize_time_argv(uint32_t job, uint32_t seconds)
{
    struct words words = {0};
    add(&words, "scontrol");
    add(&words, "update");
    add(&words, "jobid=%u", job);
    add(&words, "TimeLimit=%u", seconds / MINUTE + (seconds % MINUTE > 0));
    return finish(&words);
}

char **resize_cancel_argv(uint32_t job)
{
    struct words words = {0};
    add(&words, "scancel");
    add(&words, "%u", job);
    return finish(&words);
}

/* ---- what they say ---- */

/* Finds a field " KEY=VALUE". "(null)" and the like stand for nothing. @param value
 * RESIZE_WORD_MAX bytes @return whether it is there */
static bool find(const char *text, const char *key, char *value)
{
    char name[32];
    snprintf(name, sizeof name, " %s=", key);
    const char *p = strstr(text, name);
    value[0] = '\0';
    if (p == NULL)
        return false;
    p += strlen(name);
    size_t len = strcspn(p, " \n");
    if (len < RESIZE_WORD_MAX && *p != '(' && strncmp(p, "N/A", 3) != 0) {
        memcpy(value, p, len);
        value[len] = '\0';
    }
    return true;
}

/* @return the seconds of "DAYS-HOURS:MINUTES:SECONDS", of which the days may lack; -1: it is no
 * such time, such as UNLIMITED */
static int64_t seconds_of(const char *text)
{
    unsigned days = 0, hours, minutes, seconds;
    if (sscanf(text, "%u-%u:%u:%u", &days, &hours, &minutes, &seconds) != 4) {
        days = 0;
        if (sscanf(text, "%u:%u:%u", &hours, &minutes, &seconds) != 3)
            return -1;
    }
    return ((days * INT64_C(24) + hours) * 60 + minutes) * 60 + seconds;
}

bool resize_learn(const char *text, struct resize_job *job)
{
    char limit[RESIZE_WORD_MAX], run[RESIZE_WORD_MAX], whole[RESIZE_WORD_MAX];
    bool good = find(text, "Partition", job->partition) && job->partition[0] != '\0' &&
                find(text, "TimeLimit", limit) && find(text, "RunTime", run);
    find(text, "QOS", job->qos);
    find(text, "Account", job->account);
    /* A release that has both fields says by the other one what a job shares by oversubscription.
     */
    job->whole = find(text, "Exclusive", whole)
                     ? strcmp(whole, "NODE") == 0
                     : find(text, "OverSubscribe", whole) && strcmp(whole, "NO") == 0;
    int64_t left = good ? seconds_of(limit) - seconds_of(run) : -1;
    job->minutes = seconds_of(limit) < 0 ? 0 : left > 60 ? (uint32_t)(left / 60) : 1;
    return good;
}

uint32_t resize_expander(const char *text)
{
    static const char said[] = "job allocation ";
    const char *p = strstr(text, said);
    return p != NULL ? (uint32_t)strtoul(p + sizeof said - 1, NULL, 10) : 0;
}

static const struct {
    const char *said;
    enum rm_alloc_result result;
    const char *why; /* NULL: what it says */
} reasons[] = {
    {"not supported on this system", RM_ALLOC_FORBIDDEN,
     "this site lets no job grow: SchedulerParameters of slurm.conf lacks permit_job_expansion"},
    {"DB index is being set", RM_ALLOC_FORBIDDEN,
     "slurmctld takes no change of this job: Slurm 22.05 without a database (slurmdbd) changes a "
     "job only until it has grown or shrunk"},
    {"Connection timed out", RM_ALLOC_LATE, "no such nodes became free in time"},
    {"not available", RM_ALLOC_NO_RESOURCES, NULL},
    {"permission denied", RM_ALLOC_FORBIDDEN, NULL},
    {"nvalid node name", RM_ALLOC_WRONG, NULL},
    {"nvalid time limit", RM_ALLOC_FORBIDDEN, NULL},
    {"Time limit", RM_ALLOC_FORBIDDEN, NULL},
};

/* The first line with an error, or else the last line. */
static const char *line_of(const char *text, int *len)
{
    const char *p = strstr(text, "error: ");
    if (p == NULL)
        for (const char *next = text; *next != '\0'; next += *next == '\n') {
            p = next;
            next += strcspn(next, "\n");
        }
    else
        p += sizeof "error: " - 1;
    *len = p != NULL ? (int)strcspn(p, "\n") : 0;
    return p;
}

enum rm_alloc_result resize_reason(const char *text, bool late, char *why, size_t cap)
{
    int len;
    const char *line = line_of(text, &len);
    for (size_t i = 0; i < sizeof reasons / sizeof *reasons; i++) {
        if (strstr(text, reasons[i].said) == NULL)
            continue;
        if (reasons[i].why != NULL)
            snprintf(why, cap, "%s", reasons[i].why);
        else
            snprintf(why, cap, "Slurm says: %.*s", len, line);
        return reasons[i].result;
    }
    if (late || len == 0)
        snprintf(why, cap, "Slurm has not done it%s", late ? " in time" : ", and does not say why");
    else
        snprintf(why, cap, "Slurm says: %.*s", len, line);
    return late ? RM_ALLOC_LATE : RM_ALLOC_FAILED;
}
