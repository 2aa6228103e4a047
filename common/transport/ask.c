/* SPDX-License-Identifier: BSD-3-Clause */
/* ASK:    u64 id, u8 topic, body…
 *         u64 id, ASK_KNOCK: that question waits still
 * ANSWER: u64 id, i32 status, data… */
#include "common/transport/ask.h"

#include "common/util/clock.h"
#include "common/util/log.h"

#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

enum {
    ABOUT_MAX = 512,
    KNOCK_FIRST_MS = 1000,  /* a question has waited */
    KNOCK_MS = 5000,        /* and then, each time */
    WAITING_MAX = 64 << 20, /* bytes of questions, and what it takes to keep them */
    REFUSED_LINE = 10000,   /* questions for which there is one more line */
    KEPT_BYTES = 256,       /* that it takes to keep a question and its frame */
};

struct question {
    TAILQ_ENTRY(question) entry;
    struct asks *asks;
    struct timer due; /* the first of the times below */
    uint64_t id;
    uint32_t node;
    enum ask_topic topic;
    void *body; /* owned copy, for describe(); NULL when it is empty */
    size_t len;
    int64_t asked;    /* ms */
    int64_t deadline; /* ms; 0: none. Of a process's data: of timers_clock() */
    bool stands;      /* it stands still with that clock */
    int64_t report;   /* when it is reported next, ms; 0: never */
    int64_t knock;    /* when it knocks next, ms */
    ask_done_fn *done;
    void *arg;
};

struct asks {
    struct ask_env env;
    uint64_t ids;
    TAILQ_HEAD(, question) open;
    struct ask_counts counts;
    uint32_t nlost;
    bool *lost;     /* by handle; false beyond nlost */
    size_t waiting; /* bytes of questions */
    uint64_t refused;
    bool closing;
};

struct asks *asks_new(const struct ask_env *env)
{
    struct asks *asks = calloc(1, sizeof *asks);
    if (asks == NULL)
        return NULL;
    asks->env = *env;
    TAILQ_INIT(&asks->open);
    return asks;
}

static void put(struct asks *asks, const struct question *q, enum ask_topic topic, const void *body,
                size_t len)
{
    struct wire_out out = {0};
    wire_put_u8(&out, FRAME_ASK);
    wire_put_u64(&out, q->id);
    wire_put_u8(&out, (uint8_t)topic);
    wire_put_raw(&out, body, len);
    asks->env.send(asks->env.arg, q->node, &out);
}

bool asks_are_lost(const struct asks *asks, uint32_t node)
{
    return node < asks->nlost && asks->lost[node];
}

/* The clock that the deadline is of. */
static int64_t clock_of(const struct question *q)
{
    return q->stands ? timers_clock(q->due.timers) : timers_now(q->due.timers);
}

static void set_due(struct question *q)
{
    int64_t late = q->stands ? timers_due(q->due.timers, q->deadline) : q->deadline;
    timer_at(&q->due, earlier(q->knock, earlier(late, q->report)));
}

static timer_fire on_due;

/* Whether too much waits already. */
static bool is_refused(struct asks *asks, uint32_t node, enum ask_topic topic, const void *body,
                       size_t len)
{
    char about[ABOUT_MAX] = "a question";
    bool own = topic == ASK_OUTPUT || topic == ASK_INPUT || topic == ASK_READY || topic == ASK_DATA;
    if (own || asks->waiting + len <= WAITING_MAX)
        return false;
    if (asks->env.describe != NULL)
        asks->env.describe(asks->env.arg, node, topic, body, len, about, sizeof about);
    uint64_t n = ++asks->refused;
    if (n == 1 || n % REFUSED_LINE == 0)
        log_error(
            "refused, as %d MiB of questions wait for their answers: %s; %llu such ones so far",
            WAITING_MAX >> 20, about, (unsigned long long)n);
    return true;
}

void asks_send(struct asks *asks, uint32_t node, enum ask_topic topic, const void *body, size_t len,
               uint32_t timeout, ask_done_fn *done, void *arg)
{
    bool lost = asks_are_lost(asks, node);
    if (!lost && !asks->closing && is_refused(asks, node, topic, body, len)) {
        done(arg, asks->env.full, NULL, 0);
        return;
    }
    struct question *q = lost || asks->closing ? NULL : calloc(1, sizeof *q);
    if (q == NULL) {
        done(arg, asks->closing ? asks->env.closing : asks->env.lost, NULL, 0);
        return;
    }
    q->asks = asks;
    timer_init(&q->due, asks->env.timers, on_due, q);
    q->id = ++asks->ids;
    q->node = node;
    q->topic = topic;
    q->body = len > 0 ? malloc(len) : NULL;
    q->len = len;
    if (q->body == NULL && len > 0) {
        free(q);
        done(arg, asks->env.lost, NULL, 0);
        return;
    }
    if (len > 0)
        memcpy(q->body, body, len);
    asks->waiting += len + KEPT_BYTES;
    q->asked = timers_now(asks->env.timers);
    q->stands = topic == ASK_MODEX || topic == ASK_DATA || topic == ASK_CHECKPOINT;
    q->deadline = timeout > 0 ? clock_of(q) + timeout * 1000ll : 0;
    bool stalls = topic != ASK_OUTPUT && topic != ASK_INPUT && topic != ASK_READY;
    q->report = asks->env.stall > 0 && stalls ? q->asked + asks->env.stall * 1000ll : 0;
    q->knock = q->asked + KNOCK_FIRST_MS;
    if (topic < ASK_TOPICS)
        asks->counts.asked[topic]++;
    q->done = done;
    q->arg = arg;
    set_due(q);
    TAILQ_INSERT_TAIL(&asks->open, q, entry);
    put(asks, q, topic, body, len);
}

static void answer(struct asks *asks, struct question *q, int32_t status, const void *data,
                   size_t len)
{
    TAILQ_REMOVE(&asks->open, q, entry);
    asks->waiting -= q->len + KEPT_BYTES;
    timer_stop(&q->due);
    q->done(q->arg, status, data, len);
    free(q->body);
    free(q);
}

void asks_reply(struct asks *asks, uint32_t node, uint64_t id, int32_t status, const void *data,
                size_t len)
{
    struct wire_out out = {0};
    wire_put_u8(&out, FRAME_ANSWER);
    wire_put_u64(&out, id);
    wire_put_i32(&out, status);
    wire_put_raw(&out, data, len);
    asks->env.send(asks->env.arg, node, &out);
}

void asks_frame(struct asks *asks, uint32_t from, enum frame_type type, const void *body,
                size_t len)
{
    struct wire_in in;
    struct question *q;
    wire_in_init(&in, body, len);
    uint64_t id = wire_get_u64(&in);
    if (type == FRAME_ASK) {
        uint8_t topic = wire_get_u8(&in);
        if (!in.bad && topic == ASK_KNOCK)
            return;
        if (in.bad || topic >= ASK_TOPICS || asks->env.serve[topic] == NULL)
            asks_reply(asks, from, id, asks->env.unsupported, NULL, 0);
        else {
            asks->counts.served[topic]++;
            asks->env.serve[topic](asks->env.arg, from, id, in.p, (size_t)(in.end - in.p));
        }
        return;
    }
    int32_t status = wire_get_i32(&in);
    TAILQ_FOREACH (q, &asks->open, entry)
        if (q->id == id && q->node == from && !in.bad) {
            answer(asks, q, status, status == 0 ? in.p : NULL,
                   status == 0 ? (size_t)(in.end - in.p) : 0);
            return;
        }
    log_debug("transport: an answer of node %u that nobody waits for was dropped", from);
}

void asks_lost(struct asks *asks, uint32_t node)
{
    struct question *q, *next;
    if (node >= asks->nlost) {
        bool *more = realloc(asks->lost, node + 1ul);
        if (more != NULL) {
            memset(more + asks->nlost, 0, node + 1ul - asks->nlost);
            asks->lost = more;
            asks->nlost = node + 1;
        }
    }
    if (node < asks->nlost)
        asks->lost[node] = true;
    for (q = TAILQ_FIRST(&asks->open); q != NULL; q = next) {
        next = TAILQ_NEXT(q, entry);
        if (q->node != node)
            continue;
        answer(asks, q, asks->env.lost, NULL, 0);
        next = TAILQ_FIRST(&asks->open); /* done() may have asked again */
    }
}

static void describe(const struct asks *asks, const struct question *q, char *buf, size_t cap)
{
    buf[0] = '\0';
    if (asks->env.describe != NULL)
        asks->env.describe(asks->env.arg, q->node, q->topic, q->body, q->len, buf, cap);
}

static void report(const struct question *q, int64_t now)
{
    const struct ask_env *env = &q->asks->env;
    char about[ABOUT_MAX];
    describe(q->asks, q, about, sizeof about);
    uint64_t s = (uint64_t)(now - q->asked) / 1000;
    if (env->stalled != NULL)
        env->stalled(env->arg, s, about);
    else
        log_warning("waiting for %llu s: %s", (unsigned long long)s, about);
}

static void on_due(void *arg, struct timer *timer)
{
    struct question *q = arg;
    const struct asks *asks = q->asks;
    int64_t now = timers_now(asks->env.timers);
    (void)timer;
    if (q->deadline != 0 && q->deadline <= clock_of(q)) {
        answer(q->asks, q, asks->env.timeout, NULL, 0);
    } else if (q->report != 0 && q->report <= now) {
        q->report = now + asks->env.stall * 1000ll;
        set_due(q);
        report(q, now);
    } else if (q->knock <= now) {
        q->knock = now + KNOCK_MS;
        set_due(q);
        if (asks->env.is_under_way == NULL || !asks->env.is_under_way(asks->env.arg, q->node))
            put(q->asks, q, ASK_KNOCK, NULL, 0);
    } else {
        set_due(q);
    }
}

void asks_walk(const struct asks *asks, void (*visit)(void *arg, const struct ask_view *view),
               void *arg)
{
    int64_t now = timers_now(asks->env.timers);
    const struct question *q;
    TAILQ_FOREACH (q, &asks->open, entry) {
        char about[ABOUT_MAX];
        describe(asks, q, about, sizeof about);
        const struct ask_view view = {
            .node = q->node,
            .topic = q->topic,
            .about = about,
            .age = (uint64_t)(now - q->asked),
            .left = ms_until(q->deadline, clock_of(q)),
        };
        visit(arg, &view);
    }
}

struct ask_counts asks_counts(const struct asks *asks)
{
    return asks->counts;
}

void asks_close(struct asks *asks)
{
    struct question *q;
    asks->closing = true;
    while ((q = TAILQ_FIRST(&asks->open)) != NULL)
        answer(asks, q, asks->env.closing, NULL, 0);
}

void asks_free(struct asks *asks)
{
    if (asks == NULL)
        return;
    asks_close(asks);
    free(asks->lost);
    free(asks);
}
