/* SPDX-License-Identifier: BSD-3-Clause */
/* Events for the test clients; see event.h. */
#include "event.h"

enum { LISTENERS_MAX = 8 };

/* PMIx gives a handler no pointer of ours, but for an object that not every release hands on. */
static struct listener *listeners[LISTENERS_MAX];
static size_t nlisteners;
static pthread_mutex_t listeners_lock = PTHREAD_MUTEX_INITIALIZER;

static void note(struct listener *l, pmix_status_t code, const pmix_proc_t *source,
                 const pmix_info_t *info, size_t ninfo)
{
    struct event_seen seen = {.code = code, .source = *source, .affected = PMIX_RANK_UNDEF};
    seen.ninfo = ninfo;
    PMIX_INFO_CREATE(seen.info, ninfo);
    for (size_t i = 0; i < ninfo; i++) {
        PMIX_INFO_XFER(&seen.info[i], &info[i]);
        if (PMIX_CHECK_KEY(&info[i], "ev.tag") && info[i].value.type == PMIX_UINT64)
            seen.tag = info[i].value.data.uint64;
        if (PMIX_CHECK_KEY(&info[i], PMIX_EVENT_AFFECTED_PROC) && info[i].value.type == PMIX_PROC)
            seen.affected = info[i].value.data.proc->rank;
    }
    pthread_mutex_lock(&l->lock);
    if (l->n == l->cap) {
        l->cap = l->cap > 0 ? 2 * l->cap : 64;
        l->seen = realloc(l->seen, l->cap * sizeof *l->seen);
    }
    l->seen[l->n++] = seen;
    pthread_cond_broadcast(&l->came);
    pthread_mutex_unlock(&l->lock);
}

/* @thread PMIx's. One function a listener, as a handler may be called before its id is known. */
#define HANDLER(k)                                                                                 \
    static void handler_##k(size_t id, pmix_status_t code, const pmix_proc_t *source,              \
                            pmix_info_t info[], size_t ninfo, pmix_info_t *results,                \
                            size_t nresults, pmix_event_notification_cbfunc_fn_t done,             \
                            void *cbdata)                                                          \
    {                                                                                              \
        (void)id, (void)results, (void)nresults;                                                   \
        note(listeners[k], code, source, info, ninfo);                                             \
        if (done)                                                                                  \
            done(PMIX_SUCCESS, NULL, 0, NULL, NULL, cbdata);                                       \
    }
HANDLER(0)
HANDLER(1)
HANDLER(2)
HANDLER(3)
HANDLER(4)
HANDLER(5)
HANDLER(6)
HANDLER(7)
static const pmix_notification_fn_t handlers[LISTENERS_MAX] = {
    handler_0, handler_1, handler_2, handler_3, handler_4, handler_5, handler_6, handler_7};

struct registration {
    pthread_mutex_t lock;
    pthread_cond_t done;
    bool is_done;
    pmix_status_t status;
    size_t id;
};

/* @thread PMIx's */
static void on_registered(pmix_status_t status, size_t id, void *cbdata)
{
    struct registration *r = cbdata;
    pthread_mutex_lock(&r->lock);
    r->status = status;
    r->id = id;
    r->is_done = true;
    pthread_cond_signal(&r->done);
    pthread_mutex_unlock(&r->lock);
}

struct listener *listen_to(const pmix_status_t *codes, size_t ncodes, const pmix_info_t *info,
                           size_t ninfo)
{
    struct listener *l = calloc(1, sizeof *l);
    struct registration r = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, false, 0, 0};
    pthread_mutex_init(&l->lock, NULL);
    pthread_cond_init(&l->came, NULL);
    pthread_mutex_lock(&listeners_lock);
    size_t k = nlisteners++;
    CHECK(k < LISTENERS_MAX, "more than %zu listeners", k);
    listeners[k] = l;
    pthread_mutex_unlock(&listeners_lock);
    PMIx_Register_event_handler((pmix_status_t *)codes, ncodes, (pmix_info_t *)info, ninfo,
                                handlers[k], on_registered, &r);
    pthread_mutex_lock(&r.lock);
    while (!r.is_done)
        pthread_cond_wait(&r.done, &r.lock);
    pthread_mutex_unlock(&r.lock);
    CHECK_OK(r.status, "PMIx_Register_event_handler");
    l->id = r.id;
    return l;
}

void listen_end(struct listener *listener)
{
    CHECK_OK(PMIx_Deregister_event_handler(listener->id, NULL, NULL),
             "PMIx_Deregister_event_handler");
}

static size_t count(const struct listener *l, pmix_status_t code, pmix_rank_t source)
{
    size_t n = 0;
    for (size_t i = 0; i < l->n; i++)
        n += (code == 0 || l->seen[i].code == code) &&
             (source == PMIX_RANK_WILDCARD || l->seen[i].source.rank == source);
    return n;
}

size_t listen_count(struct listener *l, pmix_status_t code, pmix_rank_t source)
{
    pthread_mutex_lock(&l->lock);
    size_t n = count(l, code, source);
    pthread_mutex_unlock(&l->lock);
    return n;
}

void listen_wait(struct listener *l, pmix_status_t code, pmix_rank_t source, size_t n)
{
    pthread_mutex_lock(&l->lock);
    while (count(l, code, source) < n)
        pthread_cond_wait(&l->came, &l->lock);
    pthread_mutex_unlock(&l->lock);
}

/* Events that PMIx has not answered yet, and the first failure of those posted. */
static struct {
    pthread_mutex_t lock;
    pthread_cond_t answered;
    size_t open;
    pmix_status_t failure;
} posted = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, 0, PMIX_SUCCESS};

/* One event under way: PMIx borrows the infos until its callback. */
struct raised {
    pmix_info_t *info;
    size_t ninfo;
    pmix_status_t *status; /* NULL: it was only posted */
};

/* @thread PMIx's */
static void on_raised(pmix_status_t status, void *cbdata)
{
    struct raised *r = cbdata;
    pthread_mutex_lock(&posted.lock);
    if (r->status)
        *r->status = status;
    else if (posted.failure == PMIX_SUCCESS)
        posted.failure = status;
    posted.open--;
    pthread_cond_signal(&posted.answered);
    pthread_mutex_unlock(&posted.lock);
    PMIX_INFO_FREE(r->info, r->ninfo);
    free(r);
}

static void start(pmix_status_t code, pmix_data_range_t range, uint64_t tag,
                  const pmix_info_t *more, size_t nmore, pmix_status_t *status)
{
    struct raised *r = malloc(sizeof *r);
    *r = (struct raised){NULL, nmore + 1, status};
    PMIX_INFO_CREATE(r->info, r->ninfo);
    PMIX_INFO_LOAD(&r->info[0], "ev.tag", &tag, PMIX_UINT64);
    for (size_t i = 0; i < nmore; i++)
        PMIX_INFO_XFER(&r->info[i + 1], &more[i]);
    pthread_mutex_lock(&posted.lock);
    posted.open++;
    pthread_mutex_unlock(&posted.lock);
    pmix_status_t rc = PMIx_Notify_event(code, &client.me, range, r->info, r->ninfo, on_raised, r);
    if (rc != PMIX_SUCCESS)
        on_raised(rc, r);
}

pmix_status_t event_raise(pmix_status_t code, pmix_data_range_t range, uint64_t tag,
                          const pmix_info_t *more, size_t nmore)
{
    pmix_status_t status = PMIX_SUCCESS;
    start(code, range, tag, more, nmore, &status);
    pthread_mutex_lock(&posted.lock);
    while (posted.open > 0)
        pthread_cond_wait(&posted.answered, &posted.lock);
    pthread_mutex_unlock(&posted.lock);
    CHECK_OK(posted.failure, "PMIx_Notify_event of what was posted");
    return status;
}

void event_post(pmix_status_t code, pmix_data_range_t range, uint64_t tag)
{
    start(code, range, tag, NULL, 0, NULL);
}

void event_target(pmix_info_t *info, const pmix_proc_t *procs, size_t nprocs)
{
    pmix_data_array_t array = {.type = PMIX_PROC, .size = nprocs, .array = (void *)procs};
    PMIX_INFO_LOAD(info, PMIX_EVENT_CUSTOM_RANGE, &array, PMIX_DATA_ARRAY);
}
