/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * Tests of spread.c: before anybody goes on, every server that is left has learnt, whoever is lost
 * meanwhile. The test plays the view: all hear all words in one order, each at its own pace.
 */
#include "common/server/steps/spread.h"

#include "common/nspace/foreign.h"
#include "common/server/steps/steps.h"
#include "common/util/test_cmocka.h"
#include "common/view/view.h"

#include <stdlib.h>
#include <string.h>

enum { N = 14, WORDS_MAX = 64 };

static char name[] = "job.2";
static struct foreign foreign = {.name = name};
static struct nspace there = {.foreign = &foreign, .bytes = name, .len = sizeof name};

struct host {
    struct server server;
    struct nspace own;
    struct spread_wait wait;
    bool member, learnt, lost, done, refuses;
    uint64_t heard;
};

static struct host hosts[N];
static uint32_t nhosts;
static struct {
    uint32_t origin;
    unsigned char *data;
    size_t len;
} words[WORDS_MAX];
static uint64_t nwords;
static int64_t now;
static struct procset set;

static int64_t clock_of(void *arg)
{
    (void)arg;
    return now;
}

static struct host *host_of(const struct server *server)
{
    return (struct host *)((char *)(uintptr_t)server - offsetof(struct host, server));
}

static uint64_t settled(void)
{
    uint64_t least = nwords;
    for (uint32_t i = 0; i < nhosts; i++)
        if (!hosts[i].lost && hosts[i].heard < least)
            least = hosts[i].heard;
    return least;
}

/* ---- the parts of the server that spread.c calls ---- */

void server_say(struct server *server, struct wire_out *word)
{
    assert_true(nwords < WORDS_MAX);
    words[nwords].origin = server->boot.node;
    words[nwords].data = wire_out_take(word, &words[nwords].len);
    nwords++;
}

const struct nspace *nspace_find(const struct nspace *own, const char *nspace)
{
    const struct host *host = (const struct host *)((const char *)own - offsetof(struct host, own));
    return strcmp(nspace, name) == 0 && host->learnt ? &there : NULL;
}

bool foreign_has_ended(const struct nspace *ns)
{
    (void)ns;
    return false;
}

struct nspace *steps_take(struct server *server, uint64_t step, const void *bytes, size_t len)
{
    struct host *host = host_of(server);
    (void)step;
    assert_int_equal(len, sizeof name);
    assert_memory_equal(bytes, name, len);
    host->learnt = !host->refuses;
    return host->refuses ? NULL : &there;
}

int steps_register(struct server *server, const struct procset *names)
{
    (void)server;
    assert_true(procset_has(names, name, 0));
    return 0;
}

uint32_t steps_speaker(void *arg, const struct procset *members)
{
    (void)arg;
    assert_ptr_equal(members, &set);
    for (uint32_t i = 0; i < nhosts; i++)
        if (hosts[i].member && !hosts[i].lost)
            return i;
    return nhosts;
}

uint64_t view_heard(const struct view *view)
{
    return ((const struct host *)view)->heard;
}

uint64_t view_settled(const struct view *view)
{
    (void)view;
    return settled();
}

/* ---- hosts ---- */

static void done(struct spread_wait *wait)
{
    struct host *host = (struct host *)((char *)wait - offsetof(struct host, wait));
    assert_false(host->done);
    host->done = true;
}

static void open_all(uint32_t n)
{
    memset(hosts, 0, sizeof hosts);
    nhosts = n;
    now = 1000;
    procset_add(&set, "job.1", 0, 3);
    procset_add(&set, name, 0, 3);
    procset_canonical(&set);
    for (uint32_t i = 0; i < n; i++) {
        struct host *h = &hosts[i];
        h->server.boot.node = i;
        h->server.timers.now = clock_of;
        h->server.nspace = &h->own;
        h->server.view = (struct view *)h;
        h->wait = (struct spread_wait){.set = &set, .done = done};
        spread_open(&h->server);
    }
}

static void close_all(void)
{
    for (uint32_t i = 0; i < nhosts; i++) {
        bool waited = hosts[i].member && !hosts[i].done;
        spread_close(&hosts[i].server);
        assert_true(!waited || hosts[i].done);
    }
    while (nwords > 0)
        free(words[--nwords].data);
    procset_free(&set);
}

/* The construct's result has come to this server. */
static void member(uint32_t i)
{
    hosts[i].learnt = true;
    spread_await(&hosts[i].server, &hosts[i].wait);
}

/* The first word of server 0, as much of it. */
static void hear(struct host *h, const void *body, size_t len)
{
    h->heard = 1;
    spread_hear(&h->server, 0, body, len);
}

/* All servers that are left have learnt when one goes on. */
static void check(void)
{
    bool any = false, all = true;
    for (uint32_t i = 0; i < nhosts; i++) {
        any = any || (hosts[i].done && !hosts[i].lost);
        all = all && (hosts[i].learnt || hosts[i].lost);
    }
    assert_true(!any || all);
}

/* Every server hears what has been said, @p seed says who next. @param lost goes after @p steps */
static void run(uint64_t seed, uint32_t lost, uint32_t steps)
{
    for (uint32_t step = 0, idle = 0; idle < 20 * nhosts; step++) {
        seed = seed * 6364136223846793005u + 1442695040888963407u;
        struct host *h = &hosts[(seed >> 33) % nhosts];
        if (step == steps && lost < nhosts) {
            hosts[lost].lost = true;
            for (uint32_t i = 0; i < nhosts; i++)
                if (!hosts[i].lost)
                    spread_lost(&hosts[i].server);
        }
        idle++;
        if (h->lost || h->heard == nwords)
            continue;
        idle = 0;
        uint64_t at = h->heard++;
        spread_hear(&h->server, words[at].origin, words[at].data + 1, words[at].len - 1);
        check();
        for (uint32_t i = 0; i < nhosts; i++)
            if (!hosts[i].lost && (seed >> (40 + i % 8)) % 2 == 0)
                spread_settled(&hosts[i].server);
        check();
    }
    for (uint32_t i = 0; i < nhosts; i++)
        if (!hosts[i].lost)
            spread_settled(&hosts[i].server);
    check();
}

/* Every one of a step's servers is told, and once. */
static void all_learn_before_anybody_goes_on(void **state)
{
    (void)state;
    for (uint32_t n = 1; n <= N; n++)
        for (uint32_t members = 1; members <= 3 && members <= n; members++) {
            open_all(n);
            for (uint32_t i = 0; i < members; i++)
                hosts[(n / 2 + i) % n].member = true;
            for (uint32_t i = members; i-- > 0;)
                member((n / 2 + i) % n);
            run(n * 7 + members, N, 0);
            assert_int_equal(nwords, 1);
            for (uint32_t i = 0; i < n; i++) {
                assert_true(hosts[i].learnt);
                assert_int_equal(hosts[i].done, hosts[i].member);
            }
            close_all();
        }
}

/* Any one server is lost, the one that speaks too, also before its word is heard by anybody. */
static void a_server_is_lost_meanwhile(void **state)
{
    (void)state;
    for (uint32_t lost = 0; lost < N; lost++)
        for (uint32_t steps = 0; steps < 45; steps++) {
            open_all(N);
            hosts[2].member = hosts[7].member = true;
            member(7);
            member(2);
            if (lost == 2 && steps == 0) /* the head has not got it */
                free(words[--nwords].data);
            run(lost * 97 + steps, lost, steps);
            for (uint32_t i = 0; i < N; i++)
                assert_true(hosts[i].lost || !hosts[i].member || hosts[i].done);
            close_all();
        }
}

/* One that does not answer is not waited for any longer, and by later groups not at all. */
static void a_server_that_does_not_answer(void **state)
{
    (void)state;
    open_all(5);
    hosts[0].member = true;
    member(0);
    hear(&hosts[0], words[0].data + 1, words[0].len - 1);
    spread_settled(&hosts[0].server);
    assert_false(hosts[0].done);
    assert_int_equal(timers_wait(&hosts[0].server.timers), SPREAD_WAIT_MS);
    now += SPREAD_WAIT_MS;
    timers_run(&hosts[0].server.timers);
    assert_true(hosts[0].done);
    assert_int_equal(timers_wait(&hosts[0].server.timers), -1);
    hosts[0].done = false;
    member(0);
    assert_true(hosts[0].done);
    close_all();
}

/* One that refuses the registration is not waited for. */
static void a_server_that_refuses(void **state)
{
    (void)state;
    open_all(4);
    hosts[0].member = true;
    hosts[1].refuses = true;
    member(0);
    for (uint32_t i = 0; i < 4; i++)
        hear(&hosts[i], words[0].data + 1, words[0].len - 1);
    for (uint32_t i = 0; i < 4; i++)
        spread_settled(&hosts[i].server);
    assert_true(hosts[0].done);
    assert_false(hosts[1].learnt);
    assert_int_equal(nwords, 1);
    close_all();
}

/* What was forgotten is told anew. */
static void a_namespace_that_is_forgotten(void **state)
{
    (void)state;
    open_all(4);
    hosts[1].member = true;
    member(1);
    run(5, N, 0);
    assert_true(hosts[1].done);
    for (uint32_t i = 0; i < 4; i++) {
        spread_forget(&hosts[i].server, name);
        hosts[i].learnt = hosts[i].done = false;
    }
    member(1);
    assert_false(hosts[1].done);
    run(6, N, 0);
    assert_true(hosts[1].done);
    assert_int_equal(nwords, 2);
    close_all();
}

/* A call does not wait until all know a namespace that has ended. */
static void a_namespace_that_ends_meanwhile(void **state)
{
    (void)state;
    open_all(4);
    hosts[1].member = true;
    member(1);
    assert_false(hosts[1].done);
    hosts[1].learnt = false;
    spread_forget(&hosts[1].server, name);
    assert_true(hosts[1].done);
    close_all();
}

static void malformed_words(void **state)
{
    (void)state;
    open_all(2);
    hosts[0].member = true;
    member(0);
    for (size_t len = 0; len < words[0].len - 1; len++)
        hear(&hosts[1], words[0].data + 1, len);
    assert_false(hosts[1].learnt);
    hear(&hosts[1], words[0].data + 1, words[0].len - 1);
    assert_true(hosts[1].learnt);
    close_all();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_learn_before_anybody_goes_on),
        cmocka_unit_test(a_server_is_lost_meanwhile),
        cmocka_unit_test(a_server_that_does_not_answer),
        cmocka_unit_test(a_server_that_refuses),
        cmocka_unit_test(a_namespace_that_is_forgotten),
        cmocka_unit_test(a_namespace_that_ends_meanwhile),
        cmocka_unit_test(malformed_words),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
