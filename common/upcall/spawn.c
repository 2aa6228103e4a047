/* SPDX-License-Identifier: BSD-3-Clause */
/* PMIx_Spawn. */
#include "common/upcall/spawn.h"

#include "common/notify/debug.h"
#include "common/notify/event.h"
#include "common/notify/refuse.h"
#include "common/nspace/foreign.h"
#include "common/nspace/infos.h"
#include "common/server/steps/steps.h"
#include "common/upcall/forward.h"
#include "common/upcall/push.h"
#include "common/upcall/refused.h"
#include "common/util/log.h"
#include "common/util/text.h"

#include <inttypes.h>
#include <pmix.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    APPS_MAX = PLAN_APPS_MAX,
    TASKS_MAX = 1 << 20, /* of a call: a list of their nodes is made before the RM can refuse */
};

static void spawn_free(struct spawn *s)
{
    LIST_REMOVE(s, entry);
    for (unsigned i = 0; i < s->nhints; i++)
        free(s->hints[i]);
    plan_free(&s->plan);
    procset_free(&s->set);
    procset_free(&s->sought);
    shown_forget(&s->shown);
    free(s->apps);
    free(s->hosts);
    free(s->output);
    free(s->psets);
    free(s);
}

/* ---- reading; @thread PMIx's ---- */

static void put_changes(struct spawn *s, const struct plan *of_all, const struct spawn_wants *wants,
                        char **env)
{
    uint32_t at = s->plan.n, n = 0;
    plan_add_number(&s->plan, 0);
    const struct plan *lists[] = {of_all, &wants->changes};
    for (; env != NULL && *env != NULL; env++) {
        if (strchr(*env, '=') == NULL)
            continue;
        char *whole = text_format("%c%s", PLAN_SET, *env);
        plan_add(&s->plan, whole);
        free(whole);
        n++;
    }
    for (int i = 0; i < 2; i++)
        for (uint32_t k = 0; k < lists[i]->n; k++, n++)
            plan_add(&s->plan, lists[i]->strings[k]);
    plan_set_number(&s->plan, at, n);
    s->plan.failed |= of_all->failed || wants->changes.failed;
}

static void put_app(struct spawn *s, const struct spawn_wants *all, struct spawn_wants *own,
                    const pmix_app_t *app)
{
    const char *wdir = app->cwd;
    uint32_t nargs = 0;
    if (own->wdir != NULL || all->wdir != NULL)
        wdir = own->wdir != NULL ? own->wdir : all->wdir;
    while (app->argv != NULL && app->argv[nargs] != NULL)
        nargs++;
    plan_add_number(&s->plan, (size_t)app->maxprocs);
    plan_add(&s->plan, wdir);
    plan_add_number(&s->plan, nargs > 0 ? nargs : 1);
    plan_add(&s->plan, app->cmd);
    for (uint32_t i = 0; i < nargs; i++)
        plan_add(&s->plan, app->argv[i]);
    if (nargs == 0)
        plan_add(&s->plan, app->cmd);
    put_changes(s, &all->changes, own, app->env);
}

/* Appends a set of @p n processes from @p first on. */
static void put_pset(struct spawn *s, const char *name, uint32_t first, uint32_t n)
{
    if (name == NULL || n == 0)
        return;
    char *more = text_format("%s%s%s=%u-%u", s->psets != NULL ? s->psets : "",
                             s->psets != NULL ? ":" : "", name, first, first + n - 1);
    free(s->psets);
    s->psets = more;
}

/* A stop is the whole namespace's, as libpmix has it. */
static void put_stop(struct spawn *s, const struct stop *stop, bool alone)
{
    struct err err = {0};
    if (stop->where == STOP_NOWHERE)
        return;
    s->stop = *stop;
    if (!alone)
        spawn_refuse(s, PMIX_ERR_NOT_SUPPORTED,
                     "one of its applications alone is to stop for a debugger; give that directive "
                     "to the call, or spawn them one after another");
    else if (stop->rank != STOP_ALL && stop->rank >= s->what.ntasks)
        spawn_refuse(s, PMIX_ERR_BAD_PARAM,
                     "rank %u is to stop for a debugger, and %u processes are spawned", stop->rank,
                     s->what.ntasks);
    else if (stop_judge(stop, s->server->library, &err) != 0)
        spawn_refuse(s, PMIX_ERR_NOT_SUPPORTED, "%s", err.text);
    s->what.debug = stop_text(stop, s->debug);
}

static void read_app(struct spawn *s, const struct spawn_wants *all, const pmix_app_t *app,
                     struct wire_out *hosts, bool *placed, bool alone)
{
    struct spawn_wants own = {0};
    if (app->cmd == NULL || app->cmd[0] == '\0' || (app->maxprocs <= 0 && !s->daemons)) {
        spawn_refuse(s, PMIX_ERR_BAD_PARAM, "an application has %s",
                     app->cmd != NULL && app->cmd[0] != '\0' ? "no processes" : "no program");
        return;
    }
    uint32_t nprocs = s->daemons ? 0 : (uint32_t)app->maxprocs; /* spawn_daemons.c counts them */
    if (nprocs > TASKS_MAX - s->what.ntasks) {
        spawn_refuse(s, PMIX_ERR_OUT_OF_RESOURCE, "it asks for more than %d processes", TASKS_MAX);
        return;
    }
    spawn_directives(s, &own, app->info, app->ninfo);
    if (own.hosts == NULL && own.hostfile == NULL) {
        own.hosts = all->hosts;
        own.hostfile = all->hostfile;
    }
    *placed |= !s->daemons && spawn_hosts(s, &own, nprocs, hosts);
    put_app(s, all, &own, app);
    put_pset(s, own.pset, s->what.ntasks, nprocs);
    s->what.ntasks += nprocs;
    put_stop(s, &own.stop, alone);
    plan_free(&own.changes);
}

/* Puts into the plan which rank reads what is pushed. */
static void put_input(struct spawn *s)
{
    uint32_t input = s->what.input;
    if (s->target == PMIX_RANK_UNDEF)
        s->target = input == RM_INPUT_NONE ? 0 : input == RM_INPUT_ALL ? PMIX_RANK_WILDCARD : input;
    s->what.input = RM_INPUT_NONE;
    if (s->target == PMIX_RANK_WILDCARD)
        plan_set(&s->plan, PLAN_AT_INPUT, PLAN_INPUT_ALL);
    else if (s->target < s->what.ntasks)
        plan_set_number(&s->plan, PLAN_AT_INPUT, s->target);
    else
        spawn_refuse(s, PMIX_ERR_BAD_PARAM,
                     "rank %u is to read what is pushed, and %u processes are spawned", s->target,
                     s->what.ntasks);
}

/* Puts into the plan which output comes here. Output that goes to files does not. */
static void put_home(struct spawn *s, bool out, bool err)
{
    const struct boot *boot = &s->server->boot;
    char home[PLAN_HOME_MAX + 1], *at = s->streams;
    out = out && s->output == NULL;
    err = err && s->output == NULL;
    if (s->what.merge && out)
        *at++ = PLAN_BOTH;
    else if (out)
        *at++ = PLAN_STDOUT;
    if (err && !s->what.merge)
        *at++ = PLAN_STDERR;
    if (at > s->streams)
        s->number = forwards_number(s->server);
    else if (!s->pushed)
        return;
    snprintf(home, sizeof home, "%s%.*s %" PRIu64 " %" PRIu32 " %s", s->streams, s->pushed,
             (char[]){PLAN_STDIN}, s->number, boot->node, boot->nspace);
    plan_set(&s->plan, PLAN_AT_HOME, home);
}

/* A debugger's daemons find out for whom they are. */
static void put_target(struct spawn *s, size_t napps)
{
    uint32_t rank = s->debuggee.rank == PMIX_RANK_WILDCARD ? STOP_ALL : s->debuggee.rank;
    if (s->debuggee.nspace[0] == '\0')
        spawn_refuse(s, PMIX_ERR_NOT_SUPPORTED,
                     "it starts a debugger's daemons without PMIX_DEBUG_TARGET; name the processes "
                     "that are debugged");
    else if (napps != 1 || s->pushed || s->stop.where != STOP_NOWHERE)
        spawn_refuse(s, PMIX_ERR_NOT_SUPPORTED,
                     "a debugger's daemons are one application, which neither stops nor reads what "
                     "is pushed");
    stop_put_target(s->debug, s->debuggee.nspace, rank);
    s->what.debug = s->debug;
}

static void read_call(struct spawn *s, const pmix_info_t info[], size_t ninfo,
                      const pmix_app_t apps[], size_t napps)
{
    struct spawn_wants all = {0};
    struct wire_out hosts = {0}, counts = {0};
    bool placed = false;
    spawn_directives(s, &all, info, ninfo);
    bool out = s->forward_out, err = s->forward_err; /* of the call, as libpmix has it */
    plan_add_number(&s->plan, napps);
    plan_add(&s->plan, NULL); /* set below */
    plan_add(&s->plan, NULL);
    for (size_t i = 0; i < napps && s->status == PMIX_SUCCESS; i++) {
        char text[16];
        read_app(s, &all, &apps[i], &hosts, &placed, napps == 1);
        snprintf(text, sizeof text, "%s%d", i > 0 ? "," : "", apps[i].maxprocs);
        wire_put_raw(&counts, text, strlen(text));
    }
    wire_put_u8(&counts, 0);
    if (s->pushed && s->status == PMIX_SUCCESS)
        put_input(s);
    put_home(s, out, err);
    put_stop(s, &all.stop, true);
    if (s->daemons)
        put_target(s, napps);
    put_pset(s, all.pset, 0, s->what.ntasks);
    s->apps = (char *)wire_out_take(&counts, &(size_t){0});
    if (s->plan.failed)
        spawn_refuse(s, PMIX_ERR_OUT_OF_RESOURCE,
                     "its arguments and variables are more than %d KiB, or %d",
                     PLAN_BYTES_MAX >> 10, PLAN_STRINGS_MAX);
    if (placed && s->status == PMIX_SUCCESS) {
        wire_put_u8(&hosts, 0);
        s->hosts = (char *)wire_out_take(&hosts, &(size_t){0});
    }
    plan_free(&all.changes);
    wire_out_free(&hosts);
}

/* ---- the loop ---- */

static pmix_status_t status_of(enum rm_spawn_result result)
{
    switch (result) {
    case RM_SPAWN_RUNS:
        return PMIX_SUCCESS;
    case RM_SPAWN_NO_RESOURCES:
        return PMIX_ERR_OUT_OF_RESOURCE;
    case RM_SPAWN_NO_PROGRAM:
        return PMIX_ERR_JOB_EXE_NOT_FOUND;
    case RM_SPAWN_NO_EXECUTE:
        return PMIX_ERR_EXE_NOT_ACCESSIBLE;
    case RM_SPAWN_NO_DIRECTORY:
        return PMIX_ERR_JOB_WDIR_NOT_FOUND;
    case RM_SPAWN_NO_ENTRY:
        return PMIX_ERR_JOB_WDIR_NOT_ACCESSIBLE;
    case RM_SPAWN_TIMEOUT:
        return PMIX_ERR_TIMEOUT;
    case RM_SPAWN_UNREACHED:
        return PMIX_ERR_UNREACH;
    case RM_SPAWN_REFUSED:
        return PMIX_ERR_NOT_SUPPORTED; /* told with the launcher's text */
    default:
        return PMIX_ERR_JOB_FAILED_TO_LAUNCH;
    }
}

/* PMIX_EVENT_JOB_END, to the process that asked for it. */
static void tell_end(const struct spawn *s, uint32_t status)
{
    struct infos list = {0};
    pmix_proc_t source, all;
    pmix_status_t term = status == 0 ? PMIX_SUCCESS : PMIX_ERR_PROC_ABORTED;
    int code = (int)status;
    bool none = true;
    PMIX_LOAD_PROCID(&all, s->child, PMIX_RANK_WILDCARD);
    PMIX_LOAD_PROCID(&source, s->child, 0);
    infos_put(&list, PMIX_EVENT_AFFECTED_PROC, &all, PMIX_PROC);
    infos_put(&list, PMIX_JOB_TERM_STATUS, &term, PMIX_STATUS);
    infos_put(&list, PMIX_EXIT_CODE, &code, PMIX_INT);
    infos_put(&list, PMIX_EVENT_NON_DEFAULT, &none, PMIX_BOOL);
    infos_put(&list, PMIX_EVENT_CUSTOM_RANGE, &s->parent, PMIX_PROC);
    notification_give(PMIX_EVENT_JOB_END, &source, PMIX_RANGE_CUSTOM, list.info, list.n);
}

/* All servers of the step know the child, as far as they answer. */
static void on_known(struct spread_wait *wait)
{
    struct spawn *s = (struct spawn *)((char *)wait - offsetof(struct spawn, wait));
    spawn_answer(s, PMIX_SUCCESS);
    if (s->ended)
        spawn_free(s);
}

/* The child's first server hears of this step, and tells the child's others. */
static void introduce(const struct spawn *s)
{
    uint32_t first;
    if (nspace_node(s->server->nspace, s->child, 0, &first) == 0)
        steps_tell(s->server, s->server->nspace, first);
}

static void runs(struct spawn *s, const struct rm_spawn_news *news)
{
    const char *name = steps_learn(s->server, news->registration, news->len);
    if (name == NULL) {
        spawn_answer(s, PMIX_ERR_JOB_FAILED_TO_LAUNCH);
        return;
    }
    PMIX_LOAD_NSPACE(s->child, name);
    log_info("PMIx_Spawn by rank %u: %u processes run as %s", s->parent.rank, s->what.ntasks,
             s->child);
    /* A task of this node is in the set, so this server tells the others. */
    const struct boot *boot = &s->server->boot;
    const struct boot_node *here = boot_here(boot);
    procset_add(&s->set, s->child, 0, s->what.ntasks - 1);
    procset_add(&s->set, boot->nspace, here->ranks[0], here->ranks[0]);
    procset_canonical(&s->set);
    introduce(s);
    if (s->stop.where != STOP_NOWHERE && answer_wanted())
        debug_await(s->server, &s->parent, s->child);
    s->wait = (struct spread_wait){.set = &s->set, .done = on_known};
    spread_await(s->server, &s->wait);
}

/* Its output has been delivered. */
static void ended(void *arg)
{
    struct spawn *s = arg;
    log_info("spawned namespace %s has ended with status %u", s->child, s->exit);
    if (s->notify && answer_wanted())
        tell_end(s, s->exit);
    s->ended = true;
    if (s->answered)
        spawn_free(s);
}

/* The user can read why. */
static void on_shown(struct shown_wait *wait)
{
    struct spawn *s = (struct spawn *)((char *)wait - offsetof(struct spawn, shown));
    spawn_answer(s, s->status);
    spawn_free(s);
}

/* It is answered when the user has been told why: the program may end then, and with it what the
 * user sees of this node. */
static void refuse(struct spawn *s)
{
    log_error("PMIx_Spawn by rank %u fails: %s", s->parent.rank, s->refused);
    s->shown.done = on_shown;
    shown_await(&s->shown);
}

static void on_news(void *arg, const struct rm_spawn_news *news)
{
    struct spawn *s = arg;
    if (news->result == RM_SPAWN_RUNS) {
        runs(s, news);
        return;
    }
    if (news->result == RM_SPAWN_ENDED) {
        s->exit = news->status;
        if (s->number == 0 || !forwards_await_end(s->server, s->number, ended, s))
            ended(s);
        return;
    }
    s->ended = true;
    if (news->result == RM_SPAWN_UNREACHED || news->result == RM_SPAWN_REFUSED) {
        spawn_refuse(s, status_of(news->result), "%s", news->text);
        refuse(s);
        return;
    }
    /* The server or launcher that has found it out has shown it on the terminal. */
    log_warning("PMIx_Spawn by rank %u: %s", s->parent.rank, news->text);
    spawn_answer(s, status_of(news->result));
    if (s->answered)
        spawn_free(s);
}

void upcall_free_spawns(struct server *server)
{
    while (!LIST_EMPTY(&server->spawns))
        spawn_free(LIST_FIRST(&server->spawns));
}

static void start(struct spawn *s)
{
    struct server *server = s->server;
    if (s->status == PMIX_SUCCESS && s->number != 0)
        forwards_add(server, s->number, &s->parent, s->streams, s->what.ntasks);
    if (s->status == PMIX_SUCCESS && s->pushed)
        s->inlet = inlet_new(server, &s->parent, s->target);
    if (s->status == PMIX_SUCCESS && server->rm != NULL && server->rm_ops->spawn != NULL) {
        if (s->what.timeout == 0)
            s->what.timeout = (uint32_t)server->conf.timeouts.spawn;
        s->what.linger = (uint32_t)server->conf.spawn_linger;
        s->what.overcommit |= server->conf.spawn_overcommit == CONF_SPAWN_OVERCOMMIT_ALLOW;
        server->rm_ops->spawn(server->rm, &s->what, on_news, s);
        return;
    }
    spawn_refuse(s, PMIX_ERR_NOT_SUPPORTED,
                 server->conf.direct.mode == CONF_DIRECT_REQUIRE
                     ? "muster.json has direct.mode \"require\", and servers of other steps are "
                       "reached otherwise"
                     : "the resource manager starts no further processes");
    refuse(s);
}

static void on_sought(struct seek_wait *wait)
{
    struct spawn *s = (struct spawn *)((char *)wait - offsetof(struct spawn, seek));
    spawn_daemons(s);
    start(s);
}

static void run(struct handoff_item *item)
{
    struct spawn *s = (struct spawn *)item;
    struct server *server = s->server;
    LIST_INSERT_HEAD(&server->spawns, s, entry);
    for (unsigned i = 0; i < s->nhints; i++)
        refused_tell(REFUSED_SPAWN_HINT, s->hints[i], "it is no more than a hint");
    if (server->leaving) {
        spawn_answer(s, PMIX_ERR_UNREACH);
        spawn_free(s);
    } else if (s->daemons && s->status == PMIX_SUCCESS) {
        spawn_seek(s, on_sought);
    } else {
        start(s);
    }
}

pmix_status_t upcall_spawn(const pmix_proc_t *proc, const pmix_info_t job_info[], size_t ninfo,
                           const pmix_app_t apps[], size_t napps, pmix_spawn_cbfunc_t cbfunc,
                           void *cbdata)
{
    if (proc == NULL || apps == NULL || napps == 0 || napps > APPS_MAX)
        return refused(PMIX_ERR_BAD_PARAM, "PMIx_Spawn: it has %zu applications; give 1 to %d",
                       napps, APPS_MAX);
    struct spawn *s = calloc(1, sizeof *s);
    s->server = s->shown.server = upcall_server();
    s->parent = *proc;
    s->callback = cbfunc;
    s->cbdata = cbdata;
    s->status = PMIX_SUCCESS;
    s->what.input = RM_INPUT_NONE;
    s->target = PMIX_RANK_UNDEF;
    bool tool = strcmp(proc->nspace, s->server->boot.nspace) != 0;
    s->forward_out = s->forward_err = tool;
    read_call(s, job_info, ninfo, apps, napps);
    s->notify |= tool; /* PRRTE 3.0's prun waits for the end, and says here what its stack had */
    s->what.parent = s->parent.nspace;
    s->what.rank = s->parent.rank;
    s->what.plan = s->plan.strings;
    s->what.nplan = s->plan.n;
    s->what.apps = s->apps;
    s->what.hosts = s->hosts;
    s->what.output = s->output;
    s->what.psets = s->psets;
    return upcall_post(&s->item, run);
}
