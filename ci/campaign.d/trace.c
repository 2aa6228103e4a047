/* SPDX-License-Identifier: BSD-3-Clause */
/* Tells what happens. */
#include "ci/campaign.d/campaign.h"

#include <stdarg.h>
#include <stdio.h>

static const char *const kinds[COLL_KIND_END] = {"",         "fence",   "construct",
                                                 "destruct", "connect", "disconnect"};
static const char *const methods[METHODS] = {"plain", "adding", "bootstrap"};

void trace(const struct run *run, const char *fmt, ...)
{
    va_list ap;
    if (!run->verbose)
        return;
    fprintf(stderr, "%8llu ", (unsigned long long)loopback_now(run->net));
    va_start(ap, fmt);
    vfprintf(stderr, fmt, ap);
    va_end(ap);
    fputc('\n', stderr);
}

const char *trace_op(const struct op *op)
{
    static char text[96];
    snprintf(text, sizeof text, "group %u \"%s\" %s %s, instance %u", op->group->number,
             op->group->id, methods[op->method], kinds[op->kind], op->instance);
    return text;
}

static void trace_members(const struct op *op)
{
    fprintf(stderr, "         %s:", trace_op(op));
    for (uint32_t i = 0; i < op->ncallers; i++)
        fprintf(stderr, "%s %c%u", i == op->nleaders ? " adding" : "", op->callers[i].proc.ns,
                op->callers[i].proc.rank);
    fprintf(stderr, "; server %u decides\n", decider_of(op));
}

void trace_plan(const struct run *run)
{
    const struct weather *w = &run->weather;
    if (!run->verbose)
        return;
    fprintf(stderr, "seed %llu: %u servers;%s%s%s%s%s%s%s%s%s%s\n", (unsigned long long)run->seed,
            run->nnodes, w->lossy ? " lossy" : "", w->slow ? " slow" : "",
            w->crashes ? " crashes" : "", w->parts ? " parts" : "", w->deaths ? " deaths" : "",
            w->hands_up ? " handed-up" : "", w->deadlines ? " deadlines" : "",
            w->failures ? " failures" : "", w->cancels ? " cancels" : "",
            w->nameless ? " nameless" : "");
    for (const struct group *group = run->groups; group != NULL; group = group->next)
        for (const struct op *op = group->ops; op != NULL; op = op->next)
            trace_members(op);
}

static const char *frame_name(uint8_t type)
{
    switch (type) {
    case FRAME_CONTRIB:
        return "contribution";
    case FRAME_RELEASE:
        return "release";
    case FRAME_WANTED:
        return "wanted";
    case FRAME_LEAD:
        return "lead";
    case FRAME_CLAIM:
        return "claim";
    case FRAME_JOINED:
        return "joined";
    case FRAME_OUTCOME:
        return "outcome";
    case FRAME_DOUBT:
        return "doubt";
    case FRAME_VIEW:
    case FRAME_OUTSIDE:
        return "view";
    case FRAME_HAVE:
        return "have";
    case FRAME_PIECE:
        return "piece";
    default:
        return "frame";
    }
}

bool trace_frame(void *arg, uint32_t from, uint32_t to, const void *data, size_t len)
{
    enum { LINK_HEAD = 4 + 8 + 4 + 8 };
    const struct run *run = arg;
    struct wire_in in;
    size_t siglen;
    char what[320] = "";
    if (!run->verbose || len < LINK_HEAD + 1)
        return true;
    wire_in_init(&in, (const unsigned char *)data + LINK_HEAD, len - LINK_HEAD);
    uint8_t type = wire_get_u8(&in);
    if (type == FRAME_TAKEN && wire_get_u64(&in) > 0 && in.p + 1 < in.end)
        type = wire_get_u8(&in);
    if (type <= FRAME_RELEASE || type == FRAME_WANTED || type == FRAME_OUTCOME ||
        type == FRAME_DOUBT || type == FRAME_HAVE || type == FRAME_PIECE) {
        if (type == FRAME_RELEASE)
            wire_get_u64(&in); /* the number of a call */
        for (uint32_t n = type == FRAME_OUTCOME ? wire_get_u32(&in) : 0; n > 0 && !in.bad; n--)
            wire_get_u64(&in);
        const void *sig = wire_get_block(&in, &siglen);
        if (siglen > 0)
            signature_describe(sig, siglen, what, sizeof what);
    } else if (type == FRAME_CLAIM || type == FRAME_JOINED) {
        snprintf(what, sizeof what, "#%llu", (unsigned long long)wire_get_u64(&in));
    } else if (type == FRAME_LEAD) {
        wire_get_str(&in, what, sizeof what);
    }
    trace(run, "%u -> %u %s %s", from, to, frame_name(type), what);
    return true;
}
