/* SPDX-License-Identifier: BSD-3-Clause */
/* muster-server's end of a spawn: a request to the job shell of its node, which submits the job and
 * answers with news (children.h), as long as that job lives. */
#include "plugins/flux/rm_flux.h"

#include "common/launch/spawn_wire.h"
#include "common/util/clock.h"
#include "common/util/log.h"

#include <stdlib.h>

enum { SPARE_MS = 15000 /* beyond the time that the shell has */ };

struct call {
    struct call *next;
    uint32_t tag;
    int64_t by; /* now_ms(); 0: every process runs, and the job may take its time */
    rm_spawn_fn *news;
    void *arg;
};

static void call_free(struct rm *rm, struct call *call)
{
    struct call **at = &rm->calls;
    while (*at != call)
        at = &(*at)->next;
    *at = call->next;
    free(call);
}

static void refuse(rm_spawn_fn *news, void *arg, enum rm_spawn_result result, const char *text)
{
    const struct rm_spawn_news none = {.result = result, .text = text};
    news(arg, &none);
}

/* No news will come any more. */
static void fail(struct rm *rm, struct call *call, enum rm_spawn_result result, const char *text)
{
    if (call->by != 0)
        refuse(call->news, call->arg, result, text);
    call_free(rm, call);
}

void spawns_start(struct rm *rm, const struct rm_spawn *what, rm_spawn_fn *news, void *arg)
{
    const char *topic = boot_setting(rm->boot, "spawn");
    struct wire_out out = {0};
    if (topic == NULL) {
        refuse(news, arg, RM_SPAWN_REFUSED,
               "the job's shell starts no other jobs: under musterrun --rm=flux it never does, so "
               "use --rm=slurm; under Flux the shell's log says why");
        return;
    }
    if (what->daemons) {
        refuse(news, arg, RM_SPAWN_REFUSED,
               "Flux starts no processes on the processors of others, as a debugger's daemons are; "
               "start them by flux exec");
        return;
    }
    if (what->input != RM_INPUT_NONE)
        log_warning("PMIx_Spawn by rank %u: under Flux no spawned process reads the terminal",
                    what->rank);
    struct call *call = calloc(1, sizeof *call);
    spawn_put(&out, what, false);
    flux_msg_t *msg = broker_request(topic, rm->brokers[rm->boot->node], &out);
    if (msg != NULL)
        flux_msg_set_streaming(msg);
    *call = (struct call){.next = rm->calls, .tag = broker_tag(rm), .news = news, .arg = arg};
    call->by = now_ms() + (int64_t)what->timeout * 1000 + SPARE_MS;
    rm->calls = call;
    broker_send(rm, msg, call->tag);
    rm_wake(rm);
}

bool spawns_answer(struct rm *rm, uint32_t tag, const flux_msg_t *msg)
{
    struct call *call = rm->calls;
    char text[SPAWN_TEXT_MAX];
    struct rm_spawn_news news = {0};
    const void *data = NULL;
    const char *why = NULL;
    size_t len = 0;
    struct wire_in in;
    while (call != NULL && call->tag != tag)
        call = call->next;
    if (call == NULL)
        return false;
    if (flux_response_decode_raw(msg, NULL, &data, &len) < 0) {
        if (flux_response_decode_error(msg, &why) < 0 || why == NULL)
            why = "the job's shell does not answer";
        fail(rm, call, RM_SPAWN_UNREACHED, why);
        return true;
    }
    wire_in_init(&in, data, len);
    if (!spawn_get_news(&in, &news, text)) {
        fail(rm, call, RM_SPAWN_FAILED, "the answer of the job's shell cannot be read");
        return true;
    }
    bool runs = news.result == RM_SPAWN_RUNS, ended = news.result == RM_SPAWN_ENDED;
    if (ended != (call->by == 0)) /* a failure was told; this is its job's end */
        return true;
    if (runs)
        call->by = 0;
    call->news(call->arg, &news);
    if (!runs)
        call_free(rm, call);
    return true;
}

int64_t spawns_tick(struct rm *rm, int64_t now)
{
    int64_t next = INT64_MAX;
    for (struct call *call = rm->calls, *after; call != NULL; call = after) {
        after = call->next;
        if (rm->broker == BROKER_GONE)
            fail(rm, call, RM_SPAWN_UNREACHED, "the connection to our own broker was lost");
        else if (call->by != 0 && now >= call->by)
            fail(rm, call, RM_SPAWN_UNREACHED, "the job's shell does not answer");
        else if (call->by != 0 && call->by < next)
            next = call->by;
    }
    return next;
}

/* The setting: the number of this job among the shell's children, its broker, the service. */
void spawns_started(struct rm *rm, const struct rm_spawn_news *news)
{
    const char *channel = boot_setting(rm->boot, "channel");
    struct wire_out out = {0};
    char *end = NULL;
    unsigned long number = channel != NULL ? strtoul(channel, &end, 10) : 0;
    unsigned long broker = channel != NULL ? strtoul(end, &end, 10) : 0;
    if (channel == NULL || *end != ' ' || number > UINT32_MAX || broker >= UINT32_MAX) {
        log_warning("the program that has spawned this job is not told how it started: the job's "
                    "environment does not say where the program's shell is");
        return;
    }
    wire_put_u32(&out, (uint32_t)number);
    spawn_put_news(&out, news);
    broker_send(rm, broker_request(end + 1, (uint32_t)broker, &out), 0);
}

void spawns_free(struct rm *rm)
{
    while (rm->calls != NULL)
        call_free(rm, rm->calls);
}
