/* SPDX-License-Identifier: BSD-3-Clause */
/* Asks servers, directly or through relays, and is a relay for others.
 *
 * ASK_RELAY: u8 topic, u32 seconds that each server has (0: no deadline), u32 count and ranges of
 * the servers to be asked, then the body of the question. Its answer has, for each server that
 * has answered or was silent for that time: u32 node, i32 status, block data
 */
#include "common/server/trees/survey.h"

#include "common/util/log.h"

#include <pmix_common.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

/* One survey that is under way. */
struct survey {
    struct surveys *all;
    enum ask_topic topic;
    const void *body; /* owned by one that is under way */
    size_t len;
    uint32_t timeout;
    survey_answer_fn *answer;
    void *arg;
    uint32_t open; /* questions that are not answered, and relays that may still ask one */
};

/* One question of it. */
struct question {
    struct survey *survey;
    struct ranges nodes; /* that it is to bring answers of */
};

/* What another server has this one ask. */
struct relay {
    LIST_ENTRY(relay) entry;
    struct surveys *all;
    uint32_t from;
    uint64_t id;
    struct wire_out answer;
    uint64_t open; /* servers that have not answered yet */
};

struct surveys {
    struct asks *asks;
    uint32_t self, nnodes, few;
    LIST_HEAD(, relay) relays;
};

struct surveys *surveys_new(struct asks *asks, uint32_t self, uint32_t nnodes, uint32_t few)
{
    struct surveys *surveys = calloc(1, sizeof *surveys);
    if (surveys != NULL)
        *surveys = (struct surveys){.asks = asks, .self = self, .nnodes = nnodes, .few = few};
    return surveys;
}

void surveys_free(struct surveys *surveys)
{
    free(surveys);
}

/* ---- asking ---- */

static void let_go(struct survey *survey)
{
    if (--survey->open > 0)
        return;
    free((void *)survey->body);
    free(survey);
}

static void question_end(struct question *q)
{
    ranges_free(&q->nodes);
    let_go(q->survey);
    free(q);
}

/* @param nodes taken over @return NULL: there are none; or out of memory, and that was their answer
 */
static struct question *question_new(struct survey *survey, struct ranges nodes)
{
    struct question *q = nodes.n > 0 ? calloc(1, sizeof *q) : NULL;
    if (q == NULL) {
        for (struct ranges_at at = {0}; ranges_next(&nodes, &at);)
            survey->answer(survey->arg, at.number, PMIX_ERR_NOMEM, NULL, 0);
        ranges_free(&nodes);
        return NULL;
    }
    *q = (struct question){survey, nodes};
    survey->open++;
    return q;
}

static void on_answer(void *arg, int32_t status, const void *data, size_t len)
{
    struct question *q = arg;
    q->survey->answer(q->survey->arg, q->nodes.v[0].first, status, data, len);
    question_end(q);
}

static void ask_one(struct survey *survey, uint32_t node)
{
    struct ranges nodes = {0};
    if (ranges_put(&nodes, node) != 0) {
        survey->answer(survey->arg, node, PMIX_ERR_NOMEM, NULL, 0);
        return;
    }
    struct question *q = question_new(survey, nodes);
    if (q != NULL)
        asks_send(survey->all->asks, node, survey->topic, survey->body, survey->len,
                  survey->timeout, on_answer, q);
}

/* Hands on what a relay has heard. @param heard gets the servers of which it has */
static void take_heard(const struct question *q, const void *data, size_t size,
                       struct ranges *heard)
{
    const struct survey *survey = q->survey;
    struct wire_in in;
    wire_in_init(&in, data, size);
    while (in.p < in.end) {
        uint32_t node = wire_get_u32(&in);
        int32_t status = wire_get_i32(&in);
        size_t len;
        const void *said = wire_get_block(&in, &len);
        if (in.bad)
            return;
        if (ranges_have(&q->nodes, node) && !ranges_have(heard, node) &&
            ranges_put(heard, node) == 0)
            survey->answer(survey->arg, node, status, status == 0 ? said : NULL,
                           status == 0 ? len : 0);
    }
}

static void on_relayed(void *arg, int32_t status, const void *data, size_t len)
{
    struct question *q = arg;
    struct ranges heard = {0};
    if (status == 0)
        take_heard(q, data, len, &heard);
    for (struct ranges_at at = {0}; ranges_next(&q->nodes, &at);)
        if (!ranges_have(&heard, at.number))
            ask_one(q->survey, at.number);
    ranges_free(&heard);
    question_end(q);
}

/* @param rest of the relay's part; taken over */
static void ask_relay(struct survey *survey, uint32_t relay, struct ranges rest)
{
    struct wire_out out = {0};
    struct question *q = question_new(survey, rest);
    if (q == NULL)
        return;
    wire_put_u8(&out, (uint8_t)survey->topic);
    wire_put_u32(&out, survey->timeout);
    ranges_write(&q->nodes, UINT32_MAX, &out);
    wire_put_raw(&out, survey->body, survey->len);
    if (out.failed)
        on_relayed(q, PMIX_ERR_NOMEM, NULL, 0);
    else
        asks_send(survey->all->asks, relay, ASK_RELAY, out.data, out.len,
                  survey->timeout > 0 ? survey->timeout + SURVEY_RELAY_S : 0, on_relayed, q);
    wire_out_free(&out);
}

/* @return how many servers a part has, when so many are asked */
static uint64_t part_size(uint64_t count, uint32_t few)
{
    uint64_t parts = few;
    while (parts * parts < count)
        parts++;
    return count <= few ? 1 : (count + parts - 1) / parts;
}

/* @param size of a part */
static void ask_all(struct surveys *all, const struct ranges *nodes, uint64_t size,
                    const struct survey *what)
{
    struct survey *survey = calloc(1, sizeof *survey);
    void *copy = malloc(what->len + 1);
    struct ranges_at at = {0};
    struct ranges rest = {0}; /* of the part that relay is the first server of */
    uint32_t relay = 0;
    if (survey == NULL || copy == NULL) {
        while (ranges_next(nodes, &at))
            what->answer(what->arg, at.number, PMIX_ERR_NOMEM, NULL, 0);
        free(survey);
        free(copy);
        return;
    }
    if (what->len > 0)
        memcpy(copy, what->body, what->len);
    *survey = *what;
    survey->all = all;
    survey->body = copy;
    survey->open = 1;
    for (uint64_t i = 0; ranges_next(nodes, &at);) {
        /* A relay may not know that a server is lost, and would wait for it. */
        bool lost = asks_are_lost(all->asks, at.number);
        if (lost || i == 0 || ranges_put(&rest, at.number) != 0)
            ask_one(survey, at.number);
        if (lost)
            continue;
        if (i == 0)
            relay = at.number;
        if (++i == size) {
            ask_relay(survey, relay, rest);
            rest = (struct ranges){0};
            i = 0;
        }
    }
    ask_relay(survey, relay, rest);
    let_go(survey);
}

void surveys_ask(struct surveys *all, const struct ranges *nodes, enum ask_topic topic,
                 const void *body, size_t len, uint32_t timeout, survey_answer_fn *answer,
                 void *arg)
{
    const struct survey what = {
        .topic = topic, .body = body, .len = len, .timeout = timeout, .answer = answer, .arg = arg};
    ask_all(all, nodes, part_size(ranges_count(nodes), all->few), &what);
}

/* ---- being a relay ---- */

static void relay_heard(void *arg, uint32_t node, int32_t status, const void *data, size_t len)
{
    struct relay *relay = arg;
    /* The server that asks notices what is left out, and asks itself. So a relay says nothing of a
     * server that only the relay cannot ask, as when the relay leaves. */
    if ((status == PMIX_SUCCESS || status == PMIX_ERR_TIMEOUT) &&
        relay->answer.len + len <= SURVEY_BYTES_MAX) {
        wire_put_u32(&relay->answer, node);
        wire_put_i32(&relay->answer, status);
        wire_put_block(&relay->answer, data, len);
    }
    if (--relay->open > 0)
        return;
    asks_reply(relay->all->asks, relay->from, relay->id,
               relay->answer.failed ? PMIX_ERR_NOMEM : PMIX_SUCCESS, relay->answer.data,
               relay->answer.len);
    wire_out_free(&relay->answer);
    LIST_REMOVE(relay, entry);
    free(relay);
}

/* A question that waits comes again. */
static bool is_served(const struct surveys *all, uint32_t from, uint64_t id)
{
    const struct relay *relay;
    LIST_FOREACH (relay, &all->relays, entry)
        if (relay->from == from && relay->id == id)
            return true;
    return false;
}

void surveys_serve(struct surveys *all, uint32_t from, uint64_t id, const void *body, size_t len)
{
    struct ranges nodes = {0};
    struct wire_in in;
    wire_in_init(&in, body, len);
    enum ask_topic topic = (enum ask_topic)wire_get_u8(&in);
    uint32_t timeout = wire_get_u32(&in);
    ranges_read(&nodes, all->nnodes - 1, &in);
    bool good = !in.bad && nodes.n > 0 && !ranges_have(&nodes, all->self) &&
                (topic == ASK_QUERY || topic == ASK_STATUS);
    struct relay *relay = good && !is_served(all, from, id) ? calloc(1, sizeof *relay) : NULL;
    if (relay != NULL) {
        *relay = (struct relay){.all = all, .from = from, .id = id, .open = ranges_count(&nodes)};
        LIST_INSERT_HEAD(&all->relays, relay, entry);
        ask_all(all, &nodes, 1,
                &(struct survey){.topic = topic,
                                 .body = in.p,
                                 .len = (size_t)(in.end - in.p),
                                 .timeout = timeout,
                                 .answer = relay_heard,
                                 .arg = relay});
    } else if (!good) {
        log_warning("a malformed question of node %u for others was dropped", from);
    }
    ranges_free(&nodes);
}
