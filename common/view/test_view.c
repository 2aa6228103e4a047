/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * Tests of view/: random schedules in which servers end between any two frames, links are cut,
 * servers hang and wake, and leave, while all of them say and ask things. Then nothing more
 * happens, and what docs/view.md promises has to hold: one view for all that are left, the same
 * words in the same order, an answer to each question, nothing kept.
 *
 * ci/campaign --view runs more of them, and tells what happens in one: by MUSTER_VIEW_SEEDS, their
 * number, MUSTER_VIEW_FIRST and MUSTER_VIEW_TRACE.
 */
#include "common/util/test_cmocka.h"
#include "common/view/private.h"
#include "common/view/view.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    N_MAX = 12,
    SEEDS = 400,
    STEPS_MAX = 60000,
    WORDS_MAX = 4000,
    NOTES_MAX = 4096,
};

/* ---- the world ---- */

struct frame {
    struct frame *next;
    size_t len;
    unsigned char body[];
};

struct server {
    uint32_t self;
    struct view *view;
    struct timers timers;
    bool alive, leaving, let_go;
    unsigned hung_until; /* the step of the schedule */
    int budget;          /* frames until it ends; -1: it does not */
    uint32_t nheard, nsaid, nasked, nanswered;
    uint32_t heard[WORDS_MAX]; /* origin * 65536 + number */
    bool lost[N_MAX], left[N_MAX];
};

/* "a is to notice that it cannot reach b" */
struct note {
    uint32_t a, b;
};

static struct server servers[N_MAX];
static uint32_t n, arity;
static struct frame *queues[N_MAX][N_MAX];
static bool cut_links[N_MAX][N_MAX];
static struct note notes[NOTES_MAX];
static uint32_t nnotes;
static int64_t now; /* ms */
static unsigned step, ncuts, nparts, nended, ncomplete, ncut_short;
static bool calm, tracing;
static uint64_t seed, random_state;

static uint32_t rnd(uint32_t below)
{
    random_state = random_state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(random_state >> 33) % below;
}

/* @return whether something happens that does so in @p of a thousand cases */
static bool chance(uint32_t of)
{
    return rnd(1000) < of;
}

#define TRACE(...)                                                                                 \
    do {                                                                                           \
        if (tracing) {                                                                             \
            printf("%6u ", step);                                                                  \
            printf(__VA_ARGS__);                                                                   \
            putchar('\n');                                                                         \
        }                                                                                          \
    } while (0)

static void bad(const char *what, uint32_t server)
{
    printf("seed %" PRIu64 ", step %u: %s: server %u\n", seed, step, what, server);
    fail();
}

static void note(uint32_t a, uint32_t b)
{
    assert_true(nnotes < NOTES_MAX);
    notes[nnotes++] = (struct note){a, b};
}

static void end_parts(void);

static void kill_server(uint32_t a)
{
    if (!servers[a].alive)
        return;
    TRACE("%u ends", a);
    servers[a].alive = false;
    servers[a].hung_until = 0;
    nended++;
    for (uint32_t i = 0; i < n; i++)
        if (i != a)
            note(i, a);
    end_parts();
}

/* Cut links may not leave two parts that hear nothing of each other: all but the lowest one's end.
 */
static void end_parts(void)
{
    bool part[N_MAX] = {false};
    uint32_t first = 0;
    while (first < n && !servers[first].alive)
        first++;
    if (first == n)
        return;
    part[first] = true;
    for (bool more = true; more;) {
        more = false;
        for (uint32_t a = 0; a < n; a++)
            for (uint32_t b = 0; b < n; b++)
                if (part[a] && servers[b].alive && !part[b] && !cut_links[a][b])
                    part[b] = more = true;
    }
    for (uint32_t a = 0; a < n; a++)
        if (servers[a].alive && !part[a]) {
            nparts++;
            kill_server(a);
        }
}

static void drop_frames(uint32_t a, uint32_t b, uint32_t keep)
{
    struct frame **at = &queues[a][b];
    for (; keep > 0 && *at != NULL; keep--)
        at = &(*at)->next;
    while (*at != NULL) {
        struct frame *frame = *at;
        *at = frame->next;
        free(frame);
    }
}

static void cut(uint32_t a, uint32_t b)
{
    TRACE("the link of %u and %u is cut", a, b);
    ncuts++;
    cut_links[a][b] = cut_links[b][a] = true;
    drop_frames(a, b, rnd(4));
    drop_frames(b, a, rnd(4));
    note(a, b);
    note(b, a);
    end_parts();
}

static void hang(uint32_t a)
{
    static const unsigned times[] = {20, 100, 400};
    TRACE("%u hangs", a);
    servers[a].hung_until = step + times[rnd(3)];
    for (uint32_t i = 0; i < n; i++)
        if (i != a && chance(900))
            note(i, a);
}

/* ---- the surroundings of a view ---- */

static int64_t clock_now(void *arg)
{
    (void)arg;
    return now;
}

static void on_send(void *arg, uint32_t node, enum frame_type type, struct wire_out *body)
{
    struct server *s = arg;
    size_t len;
    (void)type;
    void *data = wire_out_take(body, &len);
    struct frame *frame = malloc(sizeof *frame + len), **end = &queues[s->self][node];
    assert_non_null(frame);
    memcpy(frame->body, data, len);
    frame->len = len;
    frame->next = NULL;
    free(data);
    assert_true(node != s->self && node < n);
    if (s->alive && s->budget >= 0 && s->budget-- == 0)
        kill_server(s->self);
    if (!s->alive || cut_links[s->self][node]) {
        /* What one that has left in order says before it ends is still sent. */
        free(frame);
        return;
    }
    while (*end != NULL)
        end = &(*end)->next;
    *end = frame;
}

static void on_hear(void *arg, uint32_t origin, const void *text, size_t len)
{
    struct server *s = arg;
    uint32_t number;
    assert_int_equal(len, sizeof number);
    memcpy(&number, text, sizeof number);
    if (!s->alive)
        return;
    TRACE("%u hears %u of %u", s->self, number, origin);
    assert_true(s->nheard < WORDS_MAX);
    s->heard[s->nheard++] = origin << 16 | number;
}

/* ---- questions ---- */

struct ask {
    struct server *asker;
    bool forever; /* it has no deadline */
};

static int32_t on_asked(void *arg, uint32_t origin, const void *text, size_t len,
                        struct wire_out *out)
{
    struct server *s = arg;
    assert_int_equal(len, sizeof origin);
    assert_memory_equal(text, &origin, len);
    wire_put_raw(out, &s->self, sizeof s->self);
    return -(int32_t)s->self;
}

/* Each server answers once, for itself. One question without a deadline is answered by all. */
static void on_answers(void *arg, const void *answers, size_t len)
{
    struct ask *ask = arg;
    const struct server *s = ask->asker;
    bool has[N_MAX] = {false}, all = true;
    struct wire_in in;
    wire_in_init(&in, answers, len);
    while (in.p < in.end) {
        size_t size;
        uint32_t node = wire_get_u32(&in), said;
        int32_t status = wire_get_i32(&in);
        const void *data = wire_get_block(&in, &size);
        if (in.bad || node >= n || has[node] || status != -(int32_t)node || size != sizeof said ||
            memcmp(data, &node, size) != 0)
            bad("an answer makes no sense", s->self);
        has[node] = true;
    }
    for (uint32_t i = 0; i < n; i++)
        all = all && (has[i] || !view_has(s->view, i));
    TRACE("%u is answered by %s", s->self, all ? "all" : answers != NULL ? "some" : "nobody");
    if (!all && ask->forever && s->alive)
        bad("an answer lacks servers of the view", s->self);
    ncomplete += all;
    ncut_short += !all && s->alive;
    ask->asker->nanswered++;
    free(ask);
}

static void ask_all(struct server *s, bool forever)
{
    struct ask *ask = malloc(sizeof *ask);
    assert_non_null(ask);
    *ask = (struct ask){s, forever};
    TRACE("%u asks%s", s->self, forever ? "" : ", for a while");
    s->nasked++;
    view_gather(s->view, &s->self, sizeof s->self, forever ? 0 : 1 + rnd(500), on_answers, ask);
}

/* What one server takes for heard by all, all that are left have heard, whoever is left out later.
 */
static void on_settled(void *arg)
{
    const struct server *s = arg;
    uint64_t settled = view_settled(s->view);
    for (uint32_t i = 0; i < n && s->alive; i++)
        if (servers[i].alive && !s->lost[i] && view_has(s->view, i) &&
            view_has(servers[i].view, s->self) && view_heard(servers[i].view) < settled)
            bad("what is settled was not heard by all", i);
}

static void on_changed(void *arg, const struct ranges *lost, const struct ranges *left)
{
    struct server *s = arg;
    TRACE("%u enters a view, the head is %u", s->self, view_head(s->view));
    for (struct ranges_at at = {0}; ranges_next(lost, &at);) {
        if (s->lost[at.number] || s->left[at.number])
            bad("a server goes twice", s->self);
        s->lost[at.number] = true;
    }
    for (struct ranges_at at = {0}; ranges_next(left, &at);) {
        if (s->lost[at.number] || s->left[at.number] || !servers[at.number].leaving)
            bad("a server leaves that has not wished to", s->self);
        s->left[at.number] = true;
    }
}

static void on_over(void *arg, enum view_over how, const char *why)
{
    struct server *s = arg;
    TRACE("%u is over: %s %s", s->self, how != VIEW_LEFT_OUT ? "let go" : "left out", why);
    if (how != VIEW_LEFT_OUT && !s->leaving)
        bad("let go without a wish", s->self);
    s->let_go = how != VIEW_LEFT_OUT;
    if (s->alive && s->let_go)
        nended--;
    kill_server(s->self);
}

/* ---- a schedule ---- */

/* What is drawn for a schedule, in thousandths of its steps. */
static struct {
    uint32_t chaos, quick, cut, leave, hang, say, ask, ms; /* of a step */
    bool only_cut;
} plan;

static uint32_t pick(const uint32_t *of, uint32_t count)
{
    return of[rnd(count)];
}

#define PICK(...)                                                                                  \
    pick((const uint32_t[]){__VA_ARGS__},                                                          \
         sizeof((const uint32_t[]){__VA_ARGS__}) / sizeof(uint32_t))

static void open_views(void)
{
    now = 1;
    memset(servers, 0, sizeof servers);
    memset(cut_links, 0, sizeof cut_links);
    nnotes = ncuts = nparts = nended = step = 0;
    calm = false;
    for (uint32_t i = 0; i < n; i++) {
        struct server *s = &servers[i];
        s->self = i;
        s->alive = true;
        s->budget = -1;
        s->timers = (struct timers){.now = clock_now};
        const struct view_env env = {.arg = s,
                                     .self = i,
                                     .nnodes = n,
                                     .arity = arity,
                                     .timers = &s->timers,
                                     .send = on_send,
                                     .hear = on_hear,
                                     .answer = on_asked,
                                     .settled = on_settled,
                                     .changed = on_changed,
                                     .over = on_over};
        s->view = view_new(&env);
        assert_non_null(s->view);
    }
}

static void close_views(void)
{
    for (uint32_t i = 0; i < n; i++) {
        view_free(servers[i].view);
        for (uint32_t k = 0; k < n; k++)
            drop_frames(i, k, 0);
    }
}

static void draw(void)
{
    n = 2 + rnd(N_MAX - 1);
    arity = 2 + rnd(2);
    plan.chaos = PICK(100, 300, 900);
    plan.only_cut = chance(250);
    plan.quick = PICK(10, 30, 100, 300);
    plan.cut = plan.only_cut ? 10 : PICK(0, 3, 10);
    plan.leave = plan.only_cut ? 0 : PICK(0, 0, 5, 30);
    plan.hang = plan.only_cut ? 0 : PICK(0, 0, 3);
    plan.say = PICK(0, 10, 50, 300);
    plan.ask = PICK(0, 10, 50);
    plan.ms = PICK(0, 1, 5);
    uint32_t doomed = plan.only_cut ? 0 : rnd(n / PICK(2, 3, 4) + 1);
    open_views();
    for (; doomed > 0; doomed--)
        servers[rnd(n)].budget = (int)rnd(plan.chaos / 2);
}

static bool is_up(uint32_t a)
{
    return servers[a].alive && servers[a].hung_until <= step;
}

static uint32_t any_up(void)
{
    uint32_t a = rnd(n);
    for (uint32_t i = 0; i < n && !is_up(a); i++)
        a = (a + 1) % n;
    return is_up(a) ? a : UINT32_MAX;
}

static void say(uint32_t a)
{
    struct server *s = &servers[a];
    uint32_t number = ++s->nsaid;
    TRACE("%u says %u", a, number);
    view_say(s->view, &number, sizeof number);
}

static void chaos(void)
{
    uint32_t a = any_up(), b = any_up(), up = 0;
    for (uint32_t i = 0; i < n; i++)
        up += is_up(i);
    if (up > 2 && a != b) {
        if (chance(plan.cut) && !cut_links[a][b])
            cut(a, b);
        if (chance(plan.hang))
            hang(a);
        else if (chance(plan.leave) && !servers[b].leaving && servers[b].alive) {
            TRACE("%u wants to leave", b);
            servers[b].leaving = true;
            view_leave(servers[b].view);
        }
    }
    a = any_up();
    if (a != UINT32_MAX && chance(plan.say))
        say(a);
    a = any_up();
    if (a != UINT32_MAX && chance(plan.ask))
        ask_all(&servers[a], chance(700));
}

/* Runs timers that are due. @param quiet nothing else happens: the clock goes on to the next one
 * @return whether there was one */
static bool run_timer(bool quiet)
{
    int64_t first = -1;
    for (uint32_t a = 0; a < n; a++) {
        int64_t wait = is_up(a) ? timers_wait(&servers[a].timers) : -1;
        if (wait >= 0 && (first < 0 || wait < first))
            first = wait;
    }
    if (first < 0 || (first > 0 && !quiet))
        return false;
    now += first;
    for (uint32_t a = 0; a < n; a++)
        if (is_up(a))
            timers_run(&servers[a].timers);
    return true;
}

/* @return whether one was noticed */
static bool run_note(void)
{
    uint32_t at = nnotes > 0 ? rnd(nnotes) : 0;
    for (uint32_t i = 0; i < nnotes; i++, at = (at + 1) % nnotes) {
        struct note what = notes[at];
        if (!is_up(what.a))
            continue;
        notes[at] = notes[--nnotes];
        TRACE("%u notices that it does not reach %u", what.a, what.b);
        view_accuse(servers[what.a].view, what.b, !servers[what.b].alive && servers[what.b].let_go);
        return true;
    }
    return false;
}

/* @return whether one was delivered */
static bool run_frame(void)
{
    uint32_t at = rnd(n * n);
    for (uint32_t i = 0; i < n * n; i++, at = (at + 1) % (n * n)) {
        uint32_t a = at / n, b = at % n;
        struct frame *frame = queues[a][b];
        if (frame == NULL || !is_up(b))
            continue;
        queues[a][b] = frame->next;
        TRACE("%u -> %u: %u", a, b, frame->body[0]);
        view_take(servers[b].view, a, frame->body, frame->len);
        free(frame);
        return true;
    }
    return false;
}

static void begin_calm(void)
{
    calm = true;
    for (uint32_t i = 0; i < n; i++) {
        servers[i].budget = -1;
        servers[i].hung_until = 0;
    }
    for (uint32_t i = 0; i < n; i++)
        if (servers[i].alive) {
            say(i);
            ask_all(&servers[i], true);
        }
}

/* ---- what has to hold ---- */

static void check_words(void)
{
    const struct server *longest = &servers[0];
    for (uint32_t i = 0; i < n; i++)
        if (servers[i].alive && (!longest->alive || servers[i].nheard > longest->nheard))
            longest = &servers[i];
    for (uint32_t i = 0; i < n; i++) {
        const struct server *s = &servers[i];
        if (s->alive && s->nheard != longest->nheard)
            bad("words: one lacks some", i);
        if (s->alive && memcmp(s->heard, longest->heard, s->nheard * sizeof *s->heard) != 0)
            bad("words: another order", i);
    }
    for (uint32_t i = 0; longest->alive && i < n; i++) {
        uint32_t count = 0;
        for (uint32_t k = 0; k < longest->nheard; k++)
            if (longest->heard[k] >> 16 == i && (longest->heard[k] & 0xffff) != ++count)
                bad("words: one is missing, or there twice", i);
        if (servers[i].alive && count != servers[i].nsaid)
            bad("words: what a server has said was not heard", i);
    }
}

static void check(void)
{
    uint32_t first = UINT32_MAX;
    for (uint32_t i = 0; i < n; i++) {
        const struct server *s = &servers[i];
        if (!s->alive)
            continue;
        first = first == UINT32_MAX ? i : first;
        if (view_pending(s->view) != 0)
            bad("something is kept at rest", i);
        if (s->nasked != s->nanswered)
            bad("a question is not answered", i);
        if (s->leaving)
            bad("a server that wants to leave is still there", i);
        for (uint32_t k = 0; k < n; k++) {
            if (view_has(s->view, k) != servers[k].alive)
                bad("the view is not who is there", i);
            if (s->lost[k] != servers[first].lost[k] || s->left[k] != servers[first].left[k])
                bad("another way of going", i);
            if (view_has(s->view, k) == (s->lost[k] || s->left[k]))
                bad("nobody was told that a server has gone", i);
        }
    }
    check_words();
    if (plan.only_cut && nended > ncuts + nparts)
        bad("one cut link ends more than one server", nended);
}

static void run_schedule(void)
{
    random_state = seed * 2654435761u + 12345;
    draw();
    for (step = 0; step < STEPS_MAX; step++) {
        if (step == plan.chaos)
            begin_calm();
        if (!calm)
            chaos();
        if (chance(plan.quick) && run_note())
            continue;
        now += plan.ms;
        if (run_timer(false))
            continue;
        if (!run_frame() && !run_note() && !run_timer(true) && calm)
            break;
    }
    if (step == STEPS_MAX)
        bad("the schedule does not come to rest", n);
    check();
    close_views();
}

static void take_some(void *arg, const void *answers, size_t len)
{
    enum { ONE = 3 * sizeof(uint32_t) + sizeof(uint32_t) };
    *(size_t *)arg = answers != NULL ? len / ONE : 0;
}

/* A server hangs at the bottom of the tree, or in its middle: the others above it, and beside it,
 * are heard in time. */
static void test_hung(void **state)
{
    static const struct {
        uint32_t hung;
        size_t answers;
    } cases[] = {{6, 11}, {11, 11}, {5, 10}, {1, 5}};
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        size_t got = SIZE_MAX;
        n = N_MAX;
        arity = 2;
        open_views();
        servers[cases[i].hung].hung_until = 1;
        view_gather(servers[10].view, (uint32_t[]){10}, sizeof(uint32_t), 1000, take_some, &got);
        while (got == SIZE_MAX)
            assert_true(run_frame() || run_timer(true));
        assert_int_equal(got, cases[i].answers);
        assert_in_range(now, 1, 1000);
        close_views();
    }
}

/* ---- bounds ---- */

enum { LARGE = 1 << 20, MANY = 1000 };

static void open_some(uint32_t count)
{
    n = count;
    arity = 2;
    open_views();
}

static uint32_t count_frames(uint32_t from, uint32_t to, enum view_kind kind)
{
    uint32_t found = 0;
    for (const struct frame *frame = queues[from][to]; frame != NULL; frame = frame->next)
        found += frame->body[0] == kind;
    return found;
}

static void begin(struct wire_out *body, enum view_kind kind, uint64_t number)
{
    wire_put_u8(body, kind);
    view_put_name(body, (struct view_name){.number = number, .proposer = 0});
}

/* Has server @p to take frames until it accuses their sender, server 1. @return how many */
static uint32_t flood(uint32_t to, const struct wire_out *body, enum view_kind then, uint32_t at)
{
    uint32_t count = 0;
    while (count < MANY && count_frames(to, at, then) == 0) {
        count++;
        view_take(servers[to].view, 1, body->data, body->len);
        timers_run(&servers[to].timers);
    }
    return count;
}

/* The head hears no word of the others, who send it more than they may. */
static void test_too_many_words(void **state)
{
    struct wire_out body = {0};
    (void)state;
    open_some(3);
    begin(&body, VIEW_WORD, 0);
    wire_put_u64(&body, 1);
    wire_put_raw(&body, "\1", 1); /* a question without a time makes no sense, and is heard */
    assert_in_range(flood(0, &body, VIEW_PROPOSE, 2), VIEW_WINDOW,
                    VIEW_WINDOW + 3 * VIEW_SENT_MAX + 1);
    wire_out_free(&body);
    close_views();
}

static void test_too_much_of_a_newer_view(void **state)
{
    static const unsigned char bytes[LARGE];
    struct wire_out body = {0};
    (void)state;
    open_some(4);
    begin(&body, VIEW_SAID, 5);
    wire_put_raw(&body, bytes, sizeof bytes);
    assert_in_range(flood(2, &body, VIEW_ACCUSE, 0), 2, VIEW_EARLY_MAX / LARGE + 2);
    wire_out_free(&body);
    close_views();
}

/* A server whose words nobody hears ends before it has filled its memory; the head has got as many
 * as it takes. */
static void test_words_that_are_not_heard(void **state)
{
    static const unsigned char bytes[LARGE];
    uint32_t count = 0;
    (void)state;
    open_some(2);
    for (; count < MANY && servers[1].alive; count++) {
        assert_in_range(view_unheard(servers[1].view), count * LARGE, count * (LARGE + 256));
        view_say(servers[1].view, bytes, sizeof bytes);
    }
    assert_int_equal(count_frames(1, 0, VIEW_WORD), VIEW_SENT_MAX);
    assert_in_range(count, VIEW_SENT_MAX, VIEW_SAID_MAX / LARGE + 1);
    close_views();
}

static uint64_t number_of(const char *name, uint64_t otherwise)
{
    const char *text = getenv(name);
    return text != NULL ? strtoull(text, NULL, 10) : otherwise;
}

static void test_schedules(void **state)
{
    (void)state;
    uint64_t first = number_of("MUSTER_VIEW_FIRST", 1),
             count = number_of("MUSTER_VIEW_SEEDS", SEEDS);
    tracing = number_of("MUSTER_VIEW_TRACE", 0) != 0;
    for (seed = first; seed < first + count; seed++)
        run_schedule();
    assert_true(ncomplete > ncut_short); /* both are tried */
    assert_true(ncut_short > 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_hung),
        cmocka_unit_test(test_too_many_words),
        cmocka_unit_test(test_too_much_of_a_newer_view),
        cmocka_unit_test(test_words_that_are_not_heard),
        cmocka_unit_test(test_schedules),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
