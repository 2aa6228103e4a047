/* SPDX-License-Identifier: BSD-3-Clause */
/* Servers in one process, their native way, and their credentials. */
#include "common/transport/direct/test_kit.h"

#include "common/util/clock.h"
#include "common/util/log.h"
#include "common/util/test_cmocka.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { NUMBER_AT = 16, NATIVE_US = 200 };

static const char SEALED[] = "sealed";

/* What goes natively. */
struct message {
    struct event *event;
    uint32_t to;
    size_t len;
    unsigned char *data;
};

struct kit kit;
_Atomic bool kit_hang, kit_refuse;

static void log_line(void *arg, enum log_level level, const char *text)
{
    (void)arg;
    kit.warnings += level == LOG_LEVEL_WARNING;
    snprintf(kit.lines[kit.nlines++ % KIT_LINES], sizeof *kit.lines, "%s", text);
}

unsigned kit_logged(const char *text)
{
    unsigned n = 0;
    for (unsigned i = 0; i < kit.nlines && i < KIT_LINES; i++)
        n += strstr(kit.lines[i], text) != NULL;
    return n;
}

extern const struct seal_ops muster_seal;

static const struct seal_ops *load(struct err *err)
{
    (void)err;
    return &muster_seal;
}

static bool seal(const void *data, size_t len, struct wire_out *out)
{
    while (kit_hang)
        usleep(1000);
    wire_put_str(out, SEALED);
    wire_put_raw(out, data, len);
    return true;
}

static bool unseal(const void *data, size_t len, struct wire_out *out)
{
    char word[sizeof SEALED];
    struct wire_in in;
    while (kit_hang)
        usleep(1000);
    wire_in_init(&in, data, len);
    wire_get_str(&in, word, sizeof word);
    wire_put_raw(out, in.p, (size_t)(in.end - in.p));
    return !kit_refuse && strcmp(word, SEALED) == 0;
}

static const struct vouch_ops ops = {seal, unseal};

static void deliver(void *arg, uint32_t from, enum frame_type type, const void *body, size_t len,
                    struct shared_bytes *whole)
{
    struct kit_server *s = arg;
    struct wire_in in;
    (void)whole;
    if (type == FRAME_ANNOUNCE) {
        s->announced++;
        if (!s->deaf)
            direct_announced(s->direct, from, body, len);
        return;
    }
    if (type == FRAME_LAST) {
        if (len == 1 && *(const unsigned char *)body != 0)
            link_answer(s->link, from);
        return;
    }
    wire_in_init(&in, body, len);
    uint32_t number = wire_get_u32(&in);
    assert_true(number < KIT_FRAMES);
    for (const unsigned char *p = in.p; p < in.end; p++)
        assert_int_equal(*p, (unsigned char)number);
    s->got[from][number]++;
}

static void arrives(evutil_socket_t fd, short what, void *arg)
{
    struct message *m = arg;
    struct kit_server *s = &kit.servers[m->to];
    struct wire_in in;
    (void)fd, (void)what;
    wire_in_init(&in, m->data + NUMBER_AT, sizeof(uint64_t));
    s->native_in += wire_get_u64(&in) > 0;
    link_receive(s->link, m->data, m->len, NULL, false);
    event_free(m->event);
    free(m->data);
    free(m);
}

unsigned kit_direct_in(uint32_t index)
{
    const struct kit_server *s = &kit.servers[index];
    uint64_t all = 0;
    for (uint32_t i = 0; i < KIT_SERVERS; i++)
        all += link_counts(s->link, i).frames_in;
    return (unsigned)all - s->native_in;
}

/* A message is one frame, and counts as arrived at once. */
static void native(void *arg, uint32_t node)
{
    const struct timeval tv = {.tv_usec = NATIVE_US};
    const struct kit_server *s = arg;
    struct wire_out out = {0};
    uint64_t ticket;
    while ((ticket = link_batch(s->link, node, 0, &out)) != 0) {
        struct message *m = malloc(sizeof *m);
        *m = (struct message){.to = node};
        m->data = wire_out_take(&out, &m->len);
        m->event = evtimer_new(kit.base, arrives, m);
        evtimer_add(m->event, &tv);
        link_arrived(s->link, node, ticket);
    }
}

static bool connect_to(void *arg, uint32_t node)
{
    const struct kit_server *s = arg;
    return direct_connect(s->direct, node);
}

static void ready(void *arg, uint32_t node)
{
    const struct kit_server *s = arg;
    direct_ready(s->direct, node);
}

static void stuck(void *arg, uint32_t node)
{
    const struct kit_server *s = arg;
    direct_stuck(s->direct, node);
}

static void heard(void *arg, uint32_t node)
{
    struct kit_server *s = arg;
    s->heard |= 1u << node;
}

static void unreachable(void *arg, uint32_t node, const char *why)
{
    const struct kit_server *s = arg;
    log_warning("unreachable: %s", why);
    direct_forget(s->direct, node);
    link_forget(s->link, node);
}

static const char *name(void *arg, uint32_t node)
{
    static const char *const names[KIT_SERVERS] = {"n0", "n1", "n2", "n3", "n4", "n5"};
    (void)arg;
    return names[node];
}

static bool turn(void *arg, int64_t ms)
{
    const struct timeval tv = {.tv_usec = ms < 5 ? 300 : 3000};
    (void)arg;
    event_base_loopexit(kit.base, &tv);
    event_base_dispatch(kit.base);
    timers_run(&kit.timers);
    return true;
}

void kit_begin(void)
{
    kit = (struct kit){.connections = 16, .vouches = true};
    kit_hang = kit_refuse = false;
    kit.conf.ports = 1;
    strcpy(kit.conf.where, "127.0.0.1");
    kit.base = event_base_new();
    log_open(log_line, NULL, LOG_LEVEL_INFO, NULL);
}

bool kit_open(uint32_t index)
{
    struct kit_server *s = &kit.servers[index];
    s->index = index;
    const struct link_env link = {.arg = s,
                                  .self = index,
                                  .nnodes = KIT_SERVERS,
                                  .step = KIT_STEP,
                                  .native = native,
                                  .required = kit.conf.mode == CONF_DIRECT_REQUIRE,
                                  .deliver = deliver,
                                  .timers = &kit.timers,
                                  .connect = connect_to,
                                  .ready = ready,
                                  .stuck = stuck};
    kit.err = (struct err){0};
    if (s->link == NULL)
        s->link = link_new(&link);
    const struct direct_env env = {.arg = s,
                                   .self = index,
                                   .step = KIT_STEP,
                                   .conf = &kit.conf,
                                   .connections = kit.connections,
                                   .ops = kit.vouches ? &ops : NULL,
                                   .seal = load,
                                   .base = kit.base,
                                   .timers = &kit.timers,
                                   .turn = turn,
                                   .link = s->link,
                                   .unreachable = unreachable,
                                   .patience = KIT_PATIENCE,
                                   .heard = heard,
                                   .name = name,
                                   .native_name = "the test"};
    s->direct = direct_open(&env, &kit.err);
    return s->direct != NULL;
}

void kit_close(uint32_t index)
{
    direct_close(kit.servers[index].direct, 5000);
    kit.servers[index].direct = NULL;
}

static bool never(void)
{
    return false;
}

void kit_end(void)
{
    kit_hang = false;
    for (uint32_t i = 0; i < KIT_SERVERS; i++)
        kit_close(i);
    kit_run(never, 5); /* what was sent natively at the end */
    for (uint32_t i = 0; i < KIT_SERVERS; i++)
        link_free(kit.servers[i].link);
    event_base_free(kit.base);
    log_open(NULL, NULL, LOG_LEVEL_WARNING, NULL);
}

void kit_send(uint32_t from, uint32_t to, uint32_t number, size_t len)
{
    kit_send_body(from, to, number, len, NULL);
}

void kit_send_body(uint32_t from, uint32_t to, uint32_t number, size_t len,
                   struct shared_bytes *body)
{
    struct wire_out out = {0};
    wire_put_u8(&out, FRAME_CONTRIB);
    wire_put_u32(&out, number);
    unsigned char *filler = malloc(len + 1);
    memset(filler, (int)number, len + 1);
    wire_put_raw(&out, filler, len);
    free(filler);
    link_send_shared(kit.servers[from].link, to, &out, body);
}

bool kit_run(bool (*done)(void), int ms)
{
    int64_t by = now_ms() + ms;
    while (!done() && now_ms() < by)
        turn(NULL, ms);
    return done();
}

bool kit_is_up(uint32_t a, uint32_t b)
{
    return direct_is_up(kit.servers[a].direct, b) && direct_is_up(kit.servers[b].direct, a);
}

static uint32_t ends[2];

static bool ends_are_up(void)
{
    return kit_is_up(ends[0], ends[1]);
}

void kit_await_up(uint32_t a, uint32_t b)
{
    ends[0] = a;
    ends[1] = b;
    assert_true(kit_run(ends_are_up, 20000));
}
