/* SPDX-License-Identifier: BSD-3-Clause */
/* The line at the end of a step. */
#include "common/server/totals.h"

#include "common/server/totals_keep.h"
#include "common/server/trace.h"
#include "common/status/stats.h"
#include "common/util/clock.h"
#include "common/util/log.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

enum {
    LINE_MAX_BYTES = 1536,
    LATE_US = 1000 /* what is less is the way of messages */
};

void totals_open(struct server *server)
{
    if (server->conf.stats == CONF_STATS_NONE && boot_setting(&server->boot, BOOT_TRACE) == NULL &&
        boot_setting(&server->boot, BOOT_STATS_DIR) == NULL)
        return;
    server->totals = calloc(1, sizeof *server->totals);
    if (server->boot.node == 0 && server->rm_ops->show != NULL)
        server->rm_ops->show(server->rm, "");
}

void totals_receive(struct server *server, uint32_t from, const void *body, size_t len)
{
    struct tally more = {0};
    struct wire_in in;
    wire_in_init(&in, body, len);
    uint32_t servers = wire_get_u32(&in), traces = wire_get_u32(&in);
    bool good = tally_read(&more, server->boot.nnodes, &in) && servers <= server->boot.nnodes &&
                traces <= servers;
    if (!good)
        log_warning("counts of %s make no sense, and were dropped",
                    nspace_name(server->nspace, from));
    else if (server->totals != NULL) {
        tally_merge(&server->totals->tally, &more);
        server->totals->servers += servers;
        server->totals->traces += traces;
    }
}

static void add_own(struct server *server)
{
    struct totals *totals = server->totals;
    if (totals->own)
        return;
    tally_merge(&totals->tally, engine_tally(server->engine));
    totals->servers++;
    totals->traces += trace_is_written(server);
    totals->own = true;
}

bool totals_are_whole(const struct server *server, uint32_t n)
{
    const struct totals *totals = server->totals;
    return totals == NULL || totals->servers + !totals->own >= n;
}

void totals_hand_over(struct server *server, uint32_t heir)
{
    struct totals *totals = server->totals;
    struct wire_out frame = {0};
    if (totals == NULL)
        return;
    add_own(server);
    if (totals->servers == 0)
        return;
    wire_put_u8(&frame, FRAME_STATS);
    wire_put_u32(&frame, totals->servers);
    wire_put_u32(&frame, totals->traces);
    tally_write(&totals->tally, server->boot.nnodes, &frame);
    link_send(server->link, heir, &frame);
    *totals = (struct totals){.own = true};
}

/* The kind that has waited longest. */
static int worst_kind(const struct tally *tally)
{
    int worst = COLL_FENCE;
    for (int kind = COLL_FENCE; kind < COLL_KIND_END; kind++)
        if (tally->waits[kind].total_us > tally->waits[worst].total_us)
            worst = kind;
    return worst;
}

void totals_line(const struct totals *totals, uint64_t us,
                 const char *(*name)(void *arg, uint32_t node), void *arg, char *buf, size_t cap)
{
    const struct tally *tally = &totals->tally;
    int kind = worst_kind(tally);
    uint64_t n = tally->decided[kind], waited = tally->waits[kind].total_us;
    const struct tally_late *last = NULL;
    char time[24], all[24], median[24], most[24];
    if (tally->waits[kind].count == 0 || totals->servers == 0) {
        snprintf(buf, cap, "no operation of PMIx in %s", stats_time(us, all));
        return;
    }
    int len = snprintf(buf, cap, "%" PRIu64 " %s%s waited %s of %s", n, coll_traits(kind)->name,
                       n == 1 ? "" : "s", stats_time(waited / totals->servers, time),
                       stats_time(us, all));
    for (uint32_t i = 0; i < tally->nservers; i++)
        if ((int)tally->servers[i].kind == kind &&
            (last == NULL || tally->servers[i].times.total_us > last->times.total_us))
            last = &tally->servers[i];
    if (last == NULL || n == 0 || len < 0 || (size_t)len >= cap)
        return;
    uint64_t late = times_quantile(&last->times, 0.5);
    if (late < LATE_US)
        snprintf(buf + len, cap - (size_t)len, "; no node was late by 1 ms as a rule");
    else
        snprintf(buf + len, cap - (size_t)len,
                 "; last: %s in %" PRIu64 " (%" PRIu64 " %%), %s late by median, %s at most",
                 name(arg, last->node), last->times.count, 100 * last->times.count / n,
                 stats_time(late, median), stats_time(last->times.max_us, most));
}

static const char *name_of(void *arg, uint32_t node)
{
    const struct server *server = arg;
    return nspace_name(server->nspace, node);
}

void totals_show(struct server *server)
{
    char text[LINE_MAX_BYTES] = "", line[LINE_MAX_BYTES + 128];
    uint64_t us = (uint64_t)(now_ms() - server->started) * 1000;
    if (server->totals == NULL)
        return;
    add_own(server);
    if (server->conf.stats != CONF_STATS_NONE)
        totals_line(server->totals, us, name_of, server, text, sizeof text);
    totals_keep(server, server->totals, text, sizeof text);
    trace_line(server, server->totals->traces, server->boot.nnodes, text, sizeof text);
    snprintf(line, sizeof line, "%s: %s", server->boot.label, text);
    if (server->rm_ops->show != NULL && server->rm != NULL)
        server->rm_ops->show(server->rm, line);
    else
        log_error("%s", text); /* with the label in front */
}

void totals_close(struct server *server)
{
    free(server->totals);
    server->totals = NULL;
}
