/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * What srun's agent and its callers read: frames off a TCP socket that everybody can connect to,
 * the agent's address in an environment that is the user's, which root reads, a step that is to be
 * started, news of one, and lines that nodes have alike.
 *
 * The first byte of an input says which of these the others are.
 */
#include "fuzz/fuzz.h"
#include "plugins/slurm/agent_causes.h"
#include "plugins/slurm/agent_wire.h"
#include "plugins/slurm/spawn_srun.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FRAMES, ADDRESS, SPAWN, NEWS, CAUSES, KINDS, FRAME_MAX = 64 };

static void seed_spawn(void)
{
    static const char *const plan[] = {"1", "2", "/tmp", "1", "a", "a", "1", "=B=c"};
    const struct rm_spawn what = {.parent = "slurm.1.0",
                                  .ntasks = 2,
                                  .apps = "2",
                                  .plan = (char **)(uintptr_t)plan,
                                  .nplan = sizeof plan / sizeof *plan,
                                  .hosts = "n1,n2,n1",
                                  .output = "o",
                                  .per_node = 1};
    const struct rm_spawn_news news = {.text = "why", .registration = "abc", .len = 3};
    struct wire_out out = {0};
    wire_put_u8(&out, SPAWN);
    spawn_put(&out, &what, true);
    fuzz_seed(out.data, out.len);
    out.len = 0;
    wire_put_u8(&out, NEWS);
    spawn_put_news(&out, &news);
    fuzz_seed(out.data, out.len);
    wire_out_free(&out);
}

/* Each one has a byte with its length before it. */
static void seed_causes(void)
{
    static const char *const said[][2] = {{"c07", "7.0 c07: no /tmp/muster.7.aB here"},
                                          {"c08", "7.0 c08: no /tmp/muster.7.cD here"},
                                          {"c9", "c9: more"}};
    struct wire_out out = {0}, one = {0};
    wire_put_u8(&out, CAUSES);
    for (size_t i = 0; i < sizeof said / sizeof *said; i++) {
        one.len = 0;
        wire_put_str(&one, said[i][0]);
        wire_put_str(&one, said[i][1]);
        wire_put_u8(&out, (uint8_t)one.len);
        wire_put_raw(&out, one.data, one.len);
    }
    fuzz_seed(out.data, out.len);
    wire_out_free(&out);
    wire_out_free(&one);
}

void fuzz_seeds(void)
{
    static const char env[] = "\1"
                              "127.0.0.1 35001:4711.0:00112233445566778899aabbccddeeff";
    struct wire_out out = {0};
    wire_put_u8(&out, FRAMES);
    for (int i = 0; i < 2; i++) {
        size_t begin = agent_frame_begin(&out, AGENT_STATUS);
        wire_put_u32(&out, 1);
        wire_put_u32(&out, 139);
        agent_frame_end(&out, begin);
    }
    fuzz_seed(out.data, out.len);
    fuzz_seed(env, sizeof env - 1);
    wire_out_free(&out);
    seed_spawn();
    seed_causes();
}

static void read_frames(const uint8_t *data, size_t len)
{
    struct agent_frame frame;
    int found;
    while ((found = agent_frame_read(data, len, FRAME_MAX, &frame)) > 0) {
        FUZZ_CHECK(frame.len >= AGENT_HEAD && frame.len <= FRAME_MAX && frame.len <= len);
        FUZZ_CHECK((size_t)(frame.body.end - frame.body.p) == frame.len - AGENT_HEAD);
        while (!frame.body.bad && frame.body.p < frame.body.end)
            wire_get_u32(&frame.body);
        data += frame.len;
        len -= frame.len;
    }
    FUZZ_CHECK(found < 0 || len < FRAME_MAX);
}

/* What is an address is one again when it has gone through the environment. */
static void read_address(const uint8_t *data, size_t len)
{
    struct agent_address address, again;
    char *text = strndup((const char *)data, len), variable[128] = AGENT_ENV "=", host[128];
    FUZZ_CHECK(text != NULL);
    if (agent_address_read(text, &address)) {
        char *env[] = {host, variable, NULL};
        size_t name = strlen(variable);
        agent_env_write(&address, variable + name, sizeof variable - name);
        snprintf(host, sizeof host, "SLURM_SRUN_COMM_HOST=%s", address.host);
        char *found = agent_find(env);
        FUZZ_CHECK(found != NULL && agent_address_read(found, &again));
        FUZZ_CHECK(memcmp(&address, &again, sizeof address) == 0);
        free(found);
    }
    free(text);
}

/* What is an order is the same one when it is written again, and has a command line. */
static void read_spawn(const uint8_t *data, size_t len)
{
    static char variable[] = "SLURM_CONF=x";
    char *env[] = {variable, NULL};
    const struct spawn_place place = {.program = "srun", .job = 1, .env = env};
    struct spawn_order order = {0};
    struct wire_in in;
    wire_in_init(&in, data, len);
    if (spawn_get(&in, &order)) {
        struct wire_out out = {0};
        struct spawn_order again = {0};
        spawn_put(&out, &order.what, order.free_cpus);
        wire_in_init(&in, out.data, out.len);
        FUZZ_CHECK(spawn_get(&in, &again) && in.p == in.end);
        FUZZ_CHECK(again.what.nplan == order.what.nplan && again.what.rank == order.what.rank);
        FUZZ_CHECK((again.what.hosts == NULL) == (order.what.hosts == NULL));
        spawn_list_free(spawn_argv(&place, &order, SPAWN_FREE_CPUS));
        spawn_list_free(spawn_env(&place, &order));
        spawn_order_free(&again);
        wire_out_free(&out);
    }
    spawn_order_free(&order);
}

static void read_news(const uint8_t *data, size_t len)
{
    char text[SPAWN_TEXT_MAX];
    struct rm_spawn_news news = {0};
    struct wire_in in;
    wire_in_init(&in, data, len);
    if (spawn_get_news(&in, &news, text)) {
        FUZZ_CHECK(news.result < RM_SPAWN_RESULTS && strlen(text) < sizeof text);
        FUZZ_CHECK(news.len <= len);
    }
}

/* What is written is looked at by fuzz.c. */
static void read_causes(const uint8_t *data, size_t len)
{
    struct causes causes = {.n = 0};
    int64_t now = 1;
    while (len > 0) {
        size_t n = data[0] < len ? data[0] : len - 1;
        struct wire_in in;
        wire_in_init(&in, data + 1, n);
        causes_take(&causes, &in, now);
        FUZZ_CHECK(causes.n <= CAUSES_MAX + 1 && causes_next(&causes) >= now);
        now += 500;
        causes_tick(&causes, now);
        data += n + 1;
        len -= n + 1;
    }
    causes_end(&causes);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    static void (*const readers[])(const uint8_t *data, size_t len) = {[FRAMES] = read_frames,
                                                                       [ADDRESS] = read_address,
                                                                       [SPAWN] = read_spawn,
                                                                       [NEWS] = read_news,
                                                                       [CAUSES] = read_causes};
    if (len > 0)
        readers[data[0] % KINDS](data + 1, len - 1);
    return 0;
}
