/* SPDX-License-Identifier: BSD-3-Clause */
/* What clients that call PMIx_Spawn share. */
#include "spawned.h"

#include <pmix_tool.h>
#include <pthread.h>
#include <unistd.h>

enum { PADDING = 80, ENDS_MAX = 32 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
static struct {
    char nspace[PMIX_MAX_NSLEN + 1];
    int code;
} ends[ENDS_MAX]; /* those that were told, in any order */
static size_t nends;

void spawned_append(char ***list, const char *text)
{
    size_t n = 0;
    while (*list != NULL && (*list)[n] != NULL)
        n++;
    *list = realloc(*list, (n + 2) * sizeof **list);
    (*list)[n] = strdup(text);
    (*list)[n + 1] = NULL;
}

static void on_end(size_t id, pmix_status_t status, const pmix_proc_t *source, pmix_info_t info[],
                   size_t ninfo, pmix_info_t results[], size_t nresults,
                   pmix_event_notification_cbfunc_fn_t done, void *cbdata)
{
    (void)id, (void)status, (void)source, (void)results, (void)nresults;
    pthread_mutex_lock(&lock);
    CHECK(nends < ENDS_MAX, "%zu spawned jobs have ended", nends);
    for (size_t i = 0; i < ninfo; i++) {
        if (PMIX_CHECK_KEY(&info[i], PMIX_EVENT_AFFECTED_PROC))
            PMIX_LOAD_NSPACE(ends[nends].nspace, info[i].value.data.proc->nspace);
        else if (PMIX_CHECK_KEY(&info[i], PMIX_EXIT_CODE))
            ends[nends].code = info[i].value.data.integer;
    }
    nends++;
    pthread_cond_broadcast(&cond);
    pthread_mutex_unlock(&lock);
    if (done != NULL)
        done(PMIX_EVENT_ACTION_COMPLETE, NULL, 0, NULL, NULL, cbdata);
}

void spawned_watch(void)
{
    pmix_status_t code = PMIX_EVENT_JOB_END;
    PMIx_Register_event_handler(&code, 1, NULL, 0, on_end, NULL, NULL);
}

int spawned_end(const char *nspace)
{
    size_t i = 0;
    pthread_mutex_lock(&lock);
    while (i == nends || strcmp(ends[i].nspace, nspace) != 0) {
        if (i < nends)
            i++;
        else
            pthread_cond_wait(&cond, &lock);
    }
    int code = ends[i].code;
    pthread_mutex_unlock(&lock);
    return code;
}

/* @param args what comes behind the program's name; ended by NULL */
static pmix_status_t spawn_self(const char *program, const char *const *args, int n,
                                pmix_info_t *info, size_t ninfo, char *nspace)
{
    char self[1024] = "";
    pmix_app_t app;
    CHECK(readlink(program, self, sizeof self - 1) > 0, "%s is no link", program);
    PMIX_APP_CONSTRUCT(&app);
    app.cmd = strdup(self);
    app.maxprocs = n;
    spawned_append(&app.argv, self);
    for (size_t i = 0; args[i] != NULL; i++)
        spawned_append(&app.argv, args[i]);
    pmix_status_t rc = PMIx_Spawn(info, ninfo, &app, 1, nspace);
    PMIX_APP_DESTRUCT(&app);
    return rc;
}

pmix_status_t spawned_printers(const char *program, int n, long lines, const char *go,
                               pmix_info_t *info, size_t ninfo, char *nspace)
{
    char number[24];
    snprintf(number, sizeof number, "%ld", lines);
    return spawn_self(program, (const char *[]){SPAWNED_PRINT, number, go, NULL}, n, info, ninfo,
                      nspace);
}

pmix_status_t spawned_readers(int n, long lines, pmix_rank_t target, pmix_info_t *info,
                              size_t ninfo, char *nspace)
{
    char number[24], rank[24];
    snprintf(number, sizeof number, "%ld", lines);
    snprintf(rank, sizeof rank, "%u", target);
    return spawn_self("/proc/self/exe", (const char *[]){SPAWNED_READ, number, rank, NULL}, n, info,
                      ninfo, nspace);
}

void spawned_line(FILE *out, const char *stream, int rank, long line)
{
    fprintf(out, "%s %d %ld %0*d\n", stream, rank, line, PADDING, 0);
}

int spawned_print(char **argv)
{
    const char *rank = getenv("PMIX_RANK");
    alarm(120);
    setvbuf(stdout, NULL, _IOLBF, 0);
    while (argv[3] != NULL && access(argv[3], F_OK) != 0)
        sleep_ms(10);
    for (long i = 0; i < atol(argv[2]); i++) {
        spawned_line(stdout, "OUT", atoi(rank), i);
        spawned_line(stderr, "ERR", atoi(rank), i);
    }
    return 0;
}

int spawned_read(char **argv)
{
    pmix_rank_t rank = (pmix_rank_t)atol(getenv("PMIX_RANK"));
    pmix_rank_t target = (pmix_rank_t)strtoul(argv[3], NULL, 10);
    char *expected = NULL;
    char found[4096];
    size_t len, at = 0, n;
    FILE *out = open_memstream(&expected, &len);
    alarm(120);
    for (long i = 0; i < atol(argv[2]) && (rank == target || target == PMIX_RANK_WILDCARD); i++)
        spawned_line(out, "IN", 0, i);
    fclose(out);
    while ((n = fread(found, 1, sizeof found, stdin)) > 0) {
        if (n > len - at || memcmp(found, expected + at, n) != 0) {
            fprintf(stderr, "rank %u: other input than expected at byte %zu\n", rank, at);
            return 7;
        }
        at += n;
    }
    if (at != len)
        fprintf(stderr, "rank %u: %zu bytes of input, expected %zu\n", rank, at, len);
    free(expected);
    return at == len ? 0 : 7;
}

/* What a callback of PMIx_IOF_push has said, guarded by the lock; -1000: nothing yet */
static pmix_status_t pushed;

static void on_pushed(pmix_status_t status, void *arg)
{
    (void)arg;
    pthread_mutex_lock(&lock);
    pushed = status;
    pthread_cond_broadcast(&cond);
    pthread_mutex_unlock(&lock);
}

/* With a callback: without, libpmix up to 5.0 reads what it has freed. */
static void push(const pmix_proc_t *target, char *text, size_t len)
{
    pmix_byte_object_t bytes = {text, len};
    pushed = -1000;
    CHECK_OK(PMIx_IOF_push(target, 1, &bytes, NULL, 0, on_pushed, NULL), "PMIx_IOF_push");
    pthread_mutex_lock(&lock);
    while (pushed == -1000)
        pthread_cond_wait(&cond, &lock);
    CHECK_OK(pushed, "PMIx_IOF_push");
    pthread_mutex_unlock(&lock);
}

void spawned_push(const char *nspace, pmix_rank_t rank, long lines)
{
    enum { STEP = 100000 };
    pmix_proc_t target;
    char *text = NULL;
    size_t len;
    FILE *out = open_memstream(&text, &len);
    PMIX_LOAD_PROCID(&target, nspace, rank);
    for (long i = 0; i < lines; i++)
        spawned_line(out, "IN", 0, i);
    fclose(out);
    push(&target, text, len / 1000);
    for (size_t at = len / 1000; at < len; at += STEP)
        push(&target, text + at, len - at < STEP ? len - at : STEP);
    push(&target, NULL, 0);
    free(text);
}
