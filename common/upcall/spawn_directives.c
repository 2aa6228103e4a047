/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * PMIx_Spawn's directives. One table says of each key what is done with it; any other key is a
 * hint, or, with PMIX_INFO_REQD, the reason for a refusal.
 * @thread all of it: PMIx's
 */
#include "common/upcall/spawn.h"

#include "common/nspace/psets.h"
#include "common/upcall/directives.h"
#include "common/util/text.h"

#include <ctype.h>
#include <pmix.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* One directive on its way to where it belongs. */
struct directive {
    struct spawn *spawn;
    struct spawn_wants *wants;
    const pmix_info_t *info;
    size_t to; /* what its row of the table says: a member, or how the environment changes */
};

/* @return whether it was done */
typedef bool take_fn(const struct directive *d);

/* A text, to a member of the wants. */
static bool take_text(const struct directive *d)
{
    const char **to = (const char **)((char *)d->wants + d->to);
    *to = directive_text(d->info);
    return *to != NULL;
}

/* Yes or no, to a member of the spawn. */
static bool take_flag(const struct directive *d)
{
    *(bool *)((char *)d->spawn + d->to) = PMIX_INFO_TRUE(d->info);
    return true;
}

/* Where it says false, it asks for no more than muster does anyway; with true it is a hint. */
static bool take_unless(const struct directive *d)
{
    return !PMIX_INFO_TRUE(d->info);
}

/* ---- the environment ---- */

static void change(struct spawn_wants *wants, char kind, const char *separator, const char *name,
                   const char *value)
{
    char *text = text_format("%c%s%s%s%s", kind, separator, name, value != NULL ? "=" : "",
                             value != NULL ? value : "");
    plan_add(&wants->changes, text);
    free(text);
}

/* PMIX_SET_ENVAR and its like. */
static bool take_envar(const struct directive *d)
{
    const pmix_envar_t *envar = &d->info->value.data.envar;
    char separator[2] = {envar->separator != '\0' ? envar->separator : ':', '\0'};
    bool joins = d->to == PLAN_PREPEND || d->to == PLAN_APPEND;
    change(d->wants, (char)d->to, joins ? separator : "", envar->envar,
           envar->value != NULL ? envar->value : "");
    return true;
}

static bool take_unset(const struct directive *d)
{
    const char *name = directive_text(d->info);
    if (name != NULL)
        change(d->wants, PLAN_UNSET, "", name, NULL);
    return name != NULL;
}

/* Where the program and its libraries are installed. */
static bool take_prefix(const struct directive *d)
{
    static const char *const below[][2] = {{"PATH", "bin"}, {"LD_LIBRARY_PATH", "lib"}};
    const char *prefix = directive_text(d->info);
    if (prefix == NULL)
        return false;
    for (size_t i = 0; i < sizeof below / sizeof *below; i++) {
        char *path = text_format("%s/%s", prefix, below[i][1]);
        change(d->wants, PLAN_PREPEND, ":", below[i][0], path);
        free(path);
    }
    return true;
}

/* ---- where ---- */

static bool is(const char *text, size_t len, const char *word)
{
    return strlen(word) == len && strncasecmp(text, word, len) == 0;
}

/* "2:node" */
static bool take_per_node(struct spawn *s, const char *text)
{
    char *end;
    unsigned long n = strtoul(text, &end, 10);
    if (n == 0 || n > UINT16_MAX || strcasecmp(end, ":node") != 0)
        return false;
    s->what.per_node = (uint32_t)n;
    return true;
}

static bool take_ppr(const struct directive *d)
{
    const char *text = directive_text(d->info);
    return text != NULL && take_per_node(d->spawn, text);
}

/* "ppr:2:node", "slot", "node:pe=1": what comes behind the policy's name is not taken. */
static bool take_map(const struct directive *d)
{
    const char *text = directive_text(d->info);
    struct rm_spawn *what = &d->spawn->what;
    if (text == NULL)
        return false;
    size_t len = strcspn(text, ":");
    bool whole = text[len] == '\0';
    if (is(text, len, "ppr") && !whole)
        return take_per_node(d->spawn, text + len + 1);
    if (is(text, len, "slot") || is(text, len, "core") || is(text, len, "fill"))
        what->map = RM_MAP_BLOCK;
    else if (is(text, len, "node"))
        what->map = RM_MAP_NODES;
    else
        return false;
    const char *more = whole ? "" : text + len + 1;
    what->overcommit |= strcasecmp(more, "oversubscribe") == 0;
    return whole || strcasecmp(more, "oversubscribe") == 0 ||
           strcasecmp(more, "nooversubscribe") == 0;
}

/* Slurm and Flux give ranks as they place tasks: so it is done where it says the same. */
static bool take_rank(const struct directive *d)
{
    const char *text = directive_text(d->info);
    struct rm_spawn *what = &d->spawn->what;
    if (text == NULL)
        return false;
    enum rm_map map = strcasecmp(text, "node") == 0 ? RM_MAP_NODES
                      : strcasecmp(text, "slot") == 0 || strcasecmp(text, "fill") == 0
                          ? RM_MAP_BLOCK
                          : RM_MAP_ANY;
    if (map == RM_MAP_ANY || (what->map != RM_MAP_ANY && what->map != map))
        return false;
    what->map = map;
    return true;
}

static bool take_bind(const struct directive *d)
{
    static const struct {
        const char *name;
        enum rm_bind bind;
    } binds[] = {{"none", RM_BIND_NONE}, {"hwthread", RM_BIND_THREAD}, {"core", RM_BIND_CORE},
                 {"numa", RM_BIND_NUMA}, {"socket", RM_BIND_SOCKET},   {"package", RM_BIND_SOCKET}};
    const char *text = directive_text(d->info);
    for (size_t i = 0; text != NULL && i < sizeof binds / sizeof *binds; i++)
        if (is(text, strcspn(text, ":"), binds[i].name)) {
            d->spawn->what.bind = binds[i].bind;
            return text[strcspn(text, ":")] == '\0';
        }
    return false;
}

/* ---- streams ---- */

static bool rank_of(const pmix_info_t *info, uint32_t *rank)
{
    if (info->value.type != PMIX_PROC)
        return directive_number(&info->value, rank);
    *rank = info->value.data.proc->rank;
    return true;
}

/* The standard has the rank that reads what is pushed, libpmix a bool: PMIX_STDIN_TGT's, or 0. */
static bool take_push(const struct directive *d)
{
    struct spawn *s = d->spawn;
    s->target = PMIX_RANK_UNDEF;
    s->pushed =
        rank_of(d->info, &s->target) ? s->target != PMIX_RANK_INVALID : PMIX_INFO_TRUE(d->info);
    return true;
}

/* A rank, as a number or a process; PRRTE's "all" and "none", too. */
static bool take_input(const struct directive *d)
{
    const char *text = directive_text(d->info);
    uint32_t rank;
    if (text != NULL && strcasecmp(text, "all") == 0)
        rank = RM_INPUT_ALL;
    else if (text != NULL && strcasecmp(text, "none") == 0)
        rank = RM_INPUT_NONE;
    else if (text != NULL && isdigit((unsigned char)*text))
        rank = (uint32_t)strtoul(text, NULL, 10);
    else if (!rank_of(d->info, &rank))
        return false;
    d->spawn->what.input = rank == PMIX_RANK_WILDCARD  ? RM_INPUT_ALL
                           : rank == PMIX_RANK_INVALID ? RM_INPUT_NONE
                                                       : rank;
    return true;
}

static bool take_output(const struct directive *d)
{
    const char *text = directive_text(d->info);
    if (text == NULL || text[0] == '\0' || strlen(text) > 1024)
        return false;
    free(d->spawn->output);
    d->spawn->output = strdup(text);
    return true;
}

/* ---- the rest ---- */

/* Its name goes through BOOT_PSETS, whose separators it must not have. */
static bool take_pset(const struct directive *d)
{
    const char *text = directive_text(d->info);
    if (text == NULL || !psets_is_name(text, strlen(text)))
        return false;
    d->wants->pset = text;
    return true;
}

static bool take_timeout(const struct directive *d)
{
    return directive_number(&d->info->value, &d->spawn->what.timeout);
}

/* true, or one rank. */
static bool take_stop(const struct directive *d)
{
    struct stop *stop = &d->wants->stop;
    uint32_t rank;
    if (rank_of(d->info, &rank) && rank != PMIX_RANK_WILDCARD)
        *stop = (struct stop){(enum stop_where)d->to, rank};
    else if (d->info->value.type == PMIX_PROC_RANK || PMIX_INFO_TRUE(d->info))
        *stop = (struct stop){(enum stop_where)d->to, STOP_ALL};
    return true;
}

static bool take_debuggee(const struct directive *d)
{
    size_t n;
    const pmix_proc_t *procs = directive_procs(&d->info->value, &n);
    if (n != 1)
        return false;
    d->spawn->debuggee = *procs;
    d->spawn->daemons = true;
    return true;
}

static bool take_number(const struct directive *d)
{
    return directive_number(&d->info->value, (uint32_t *)((char *)d->spawn + d->to));
}

#define WANTS(member) offsetof(struct spawn_wants, member)
#define SPAWN(member) offsetof(struct spawn, member)

static const struct {
    const char *key;
    take_fn *take; /* NULL: it asks for no more than muster does anyway */
    size_t to;
} directives[] = {
    {PMIX_WDIR, take_text, WANTS(wdir)},
    {PMIX_PREFIX, take_prefix, 0},
    {PMIX_SET_ENVAR, take_envar, PLAN_SET},
    {PMIX_ADD_ENVAR, take_envar, PLAN_ADD},
    {PMIX_UNSET_ENVAR, take_unset, 0},
    {PMIX_PREPEND_ENVAR, take_envar, PLAN_PREPEND},
    {PMIX_APPEND_ENVAR, take_envar, PLAN_APPEND},
    {PMIX_HOST, take_text, WANTS(hosts)},
    {PMIX_ADD_HOST, take_text, WANTS(hosts)},
    {PMIX_HOSTFILE, take_text, WANTS(hostfile)},
    {PMIX_ADD_HOSTFILE, take_text, WANTS(hostfile)},
    {PMIX_MAPBY, take_map, 0},
    {PMIX_RANKBY, take_rank, 0},
    {PMIX_BINDTO, take_bind, 0},
    {PMIX_PPR, take_ppr, 0},
    {PMIX_STDIN_TGT, take_input, 0},
    {PMIX_OUTPUT_TO_FILE, take_output, 0},
    {PMIX_IOF_OUTPUT_TO_FILE, take_output, 0},
    {PMIX_MERGE_STDERR_STDOUT, take_flag, SPAWN(what.merge)},
    {PMIX_IOF_MERGE_STDERR_STDOUT, take_flag, SPAWN(what.merge)},
    {PMIX_TAG_OUTPUT, take_flag, SPAWN(what.tag)},
    {PMIX_IOF_TAG_OUTPUT, take_flag, SPAWN(what.tag)},
    {PMIX_PSET_NAME, take_pset, 0},
    {PMIX_NOTIFY_COMPLETION, take_flag, SPAWN(notify)},
    {PMIX_TIMEOUT, take_timeout, 0},
    {PMIX_SPAWN_TIMEOUT, take_timeout, 0},
    {PMIX_PERSONALITY, NULL, 0},
    {PMIX_REQUESTOR_IS_CLIENT, NULL, 0},
    {PMIX_REQUESTOR_IS_TOOL, NULL, 0},
    {PMIX_FWD_STDOUT, take_flag, SPAWN(forward_out)},
    {PMIX_FWD_STDERR, take_flag, SPAWN(forward_err)},
    {PMIX_FWD_STDDIAG, NULL, 0},
    {PMIX_FWD_STDIN, take_push, 0},
    {PMIX_NON_PMI, take_unless, 0},
    {PMIX_DEBUG_STOP_ON_EXEC, take_stop, STOP_ON_EXEC},
    {PMIX_DEBUG_STOP_IN_INIT, take_stop, STOP_IN_INIT},
    {PMIX_DEBUG_STOP_IN_APP, take_stop, STOP_IN_APP},
    {PMIX_DEBUGGER_DAEMONS, take_flag, SPAWN(daemons)},
    {PMIX_DEBUG_TARGET, take_debuggee, 0},
    {PMIX_DEBUG_DAEMONS_PER_NODE, take_number, SPAWN(daemons_per_node)},
    {PMIX_DEBUG_DAEMONS_PER_PROC, take_number, SPAWN(daemons_per_proc)},
    {PMIX_USERID, NULL, 0},
    {PMIX_GRPID, NULL, 0},
};

static bool take(struct spawn *s, struct spawn_wants *wants, const pmix_info_t *info)
{
    for (size_t i = 0; i < sizeof directives / sizeof *directives; i++)
        if (PMIX_CHECK_KEY(info, directives[i].key))
            return directives[i].take == NULL ||
                   directives[i].take(&(struct directive){s, wants, info, directives[i].to});
    return false;
}

static void hint(struct spawn *s, const char *key)
{
    for (unsigned i = 0; i < s->nhints; i++)
        if (strncmp(s->hints[i], key, PMIX_MAX_KEYLEN) == 0)
            return;
    if (s->nhints < SPAWN_HINTS_MAX)
        s->hints[s->nhints++] = strndup(key, PMIX_MAX_KEYLEN);
}

void spawn_refuse(struct spawn *s, pmix_status_t status, const char *fmt, ...)
{
    va_list ap;
    if (s->status != PMIX_SUCCESS)
        return;
    s->status = status;
    va_start(ap, fmt);
    int n = vsnprintf(s->refused, sizeof s->refused, fmt, ap);
    va_end(ap);
    if (n >= (int)sizeof s->refused)
        strcpy(s->refused + sizeof s->refused - sizeof "...", "...");
}

void spawn_directives(struct spawn *s, struct spawn_wants *wants, const pmix_info_t info[],
                      size_t ninfo)
{
    for (size_t i = 0; i < ninfo && s->status == PMIX_SUCCESS; i++) {
        char why[400];
        pmix_status_t fault = directive_fault(CALL_SPAWN, &info[i], why, sizeof why);
        if (fault != PMIX_SUCCESS) {
            spawn_refuse(s, fault, "%s", why);
            return;
        }
        if (take(s, wants, &info[i]))
            continue;
        if (PMIX_INFO_IS_REQUIRED(&info[i])) {
            const char *value = directive_text(&info[i]);
            spawn_refuse(s, PMIX_ERR_NOT_SUPPORTED,
                         "it requires %.*s%s%.60s%s, which muster cannot do here", PMIX_MAX_KEYLEN,
                         info[i].key, value != NULL ? " = " : "", value != NULL ? value : "",
                         value != NULL && strlen(value) > 60 ? "..." : "");
        } else {
            hint(s, info[i].key);
        }
    }
}
