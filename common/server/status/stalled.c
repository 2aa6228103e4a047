/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * Reports of what has waited for stall_report seconds.
 */
#include "common/server/status/stalled.h"

#include "common/server/status/status.h"
#include "common/status/fields.h"
#include "common/util/log.h"
#include "common/util/text.h"
#include "common/view/view.h"

#include <json-c/json.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    STALLED_MAX = 1000, /* bytes of a line */
    ASKED_MAX = 4,      /* servers that are asked what they wait in */
};

/* How the user asks all servers of the step; only the launcher may know how to get to a node. */
static void command(const struct server *server, char *buf, size_t cap)
{
    const struct boot *boot = &server->boot;
    const char *ask = boot_setting(boot, "ask"), *slash = strrchr(boot->tmpdir, '/');
    if (ask != NULL)
        snprintf(buf, cap, "%s", ask);
    else
        snprintf(buf, cap, "muster-status --dir=%.*s %s", (int)(slash - boot->tmpdir), boot->tmpdir,
                 boot->label);
}

/* Processes that a debugger or job control has stopped are not late. */
static void say_stopped(const struct server *server, char *text, size_t size)
{
    const struct stopped *stopped = &server->stopped;
    text[0] = '\0';
    if (stopped->n > 0)
        snprintf(text, size, "; stopped by a debugger: %u of %u processes, at %s", stopped->n,
                 server->boot.ntasks, stopped->where);
    else if (server->paused.nparts > 0)
        snprintf(text, size, "; paused by PMIx_Job_control: %u of %u processes",
                 (unsigned)procset_size(&server->paused), server->boot.ntasks);
}

/* All servers of the step may have something to report: the first one shows it. */
static void show(struct server *server, uint64_t s, const char *text)
{
    char how[512], line[STALLED_MAX], more[160];
    command(server, how, sizeof how);
    say_stopped(server, more, sizeof more);
    snprintf(line, sizeof line,
             "waiting for %llu s: %s%s; the %s goes on waiting; to see all of it: %s",
             (unsigned long long)s, text, more, log_unit(), how);
    if (view_head(server->view) == server->boot.node) {
        log_error("%s", line);
        return;
    }
    struct wire_out frame = {0};
    log_warning("waiting for %llu s: %s", (unsigned long long)s,
                text); /* Flux's user sees it, too */
    wire_put_u8(&frame, FRAME_STALLED);
    wire_put_str(&frame, line);
    link_send(server->link, view_head(server->view), &frame);
}

/* @return whether it is the step's first report, which is shown */
static bool is_first(struct server *server, uint64_t s, const char *text)
{
    if (server->stall_told || server->conf.stall_terminal == CONF_STALL_NEVER) {
        log_warning("waiting for %llu s: %s", (unsigned long long)s, text);
        return false;
    }
    server->stall_told = true;
    return true;
}

void stalled(void *arg, uint64_t s, const char *text)
{
    if (is_first(arg, s, text))
        show(arg, s, text);
}

/* ---- what the missing servers wait in ---- */

/* A first report, while the servers that are missing are asked. */
struct report {
    struct server *server;
    uint64_t s;
    char text[STALLED_MAX];
    char what[256];  /* what one of them waits in; "": nothing that is known */
    char nodes[256]; /* those that wait in it, "node2, node3" */
    uint32_t several, open;
};

struct question {
    struct report *report;
    uint32_t node;
};

/* @return what a server waits in, of its state, other than the operation of @p text; or NULL */
static const char *waits_in(json_object *state, const char *text)
{
    json_object *o = NULL;
    for (size_t i = 0; (o = field_at(field_list(state, "trackers"), i)) != NULL; i++) {
        const char *what = field_text(o, "operation");
        if (what != NULL && json_object_get_boolean(field(o, "called", json_type_boolean)) &&
            strncmp(text, what, strlen(what)) != 0)
            return what;
    }
    o = field_at(field_list(state, "waits"), 0);
    if (o == NULL)
        o = field_at(field_list(state, "asks"), 0);
    return field_text(o, "about");
}

static void take(struct report *report, const char *name, const char *what)
{
    char copy[sizeof report->what] = "";
    text_fit(copy, sizeof copy, what);
    log_mask(copy);
    if (report->what[0] == '\0')
        memcpy(report->what, copy, sizeof copy);
    else if (strcmp(report->what, copy) != 0)
        return;
    report->several += report->nodes[0] != '\0';
    text_fit(report->nodes, sizeof report->nodes, report->nodes[0] != '\0' ? ", " : "");
    text_fit(report->nodes, sizeof report->nodes, name);
}

static void let_go(struct report *report)
{
    char text[STALLED_MAX];
    if (--report->open > 0)
        return;
    snprintf(text, sizeof text, "%s", report->text);
    if (report->what[0] != '\0') {
        text_fit(text, sizeof text, "; ");
        text_fit(text, sizeof text, report->nodes);
        text_fit(text, sizeof text, report->several > 0 ? " wait" : " waits");
        text_fit(text, sizeof text, " in another operation: ");
        text_fit(text, sizeof text, report->what);
    }
    if (!report->server->leaving)
        show(report->server, report->s, text);
    free(report);
}

static void on_state(void *arg, int32_t status, const void *data, size_t len)
{
    struct question *q = arg;
    struct report *report = q->report;
    json_tokener *tokener = status == 0 && len > 0 && len <= STATUS_NODE_MAX
                                ? json_tokener_new_ex(STATUS_DEPTH_MAX)
                                : NULL;
    json_object *state = tokener != NULL ? json_tokener_parse_ex(tokener, data, (int)len) : NULL;
    const char *what = waits_in(state, report->text);
    if (what != NULL)
        take(report, nspace_name(report->server->nspace, q->node), what);
    json_object_put(state);
    if (tokener != NULL)
        json_tokener_free(tokener);
    free(q);
    let_go(report);
}

/* This server itself may be missing, too. */
static void ask(struct report *report, uint32_t node)
{
    struct server *server = report->server;
    struct question *q = calloc(1, sizeof *q);
    size_t len = 0;
    *q = (struct question){report, node};
    report->open++;
    if (node != server->boot.node) {
        asks_send(server->asks, node, ASK_STATUS, NULL, 0, STATUS_ANSWER_S, on_state, q);
        return;
    }
    char *own = status_text(server, &len);
    on_state(q, 0, own, len);
    free(own);
}

void stalled_operation(void *arg, uint64_t s, const char *text, const uint32_t *nodes, uint32_t n)
{
    struct server *server = arg;
    if (!is_first(server, s, text))
        return;
    struct report *report = calloc(1, sizeof *report);
    *report = (struct report){.server = server, .s = s, .open = 1};
    text_fit(report->text, sizeof report->text, text);
    for (uint32_t i = 0; i < n && i < ASKED_MAX; i++)
        if (nodes[i] < server->boot.nnodes)
            ask(report, nodes[i]);
    let_go(report);
}

void stalled_receive(struct server *server, const void *body, size_t len)
{
    struct wire_in in;
    char line[STALLED_MAX];
    wire_in_init(&in, body, len);
    wire_get_str(&in, line, sizeof line);
    if (in.bad || server->stall_told || server->conf.stall_terminal == CONF_STALL_NEVER)
        return;
    server->stall_told = true;
    log_error("%s", line);
}
