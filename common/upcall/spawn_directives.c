/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * PMIx_Spawn's directives. One table says of each key what is done with it; any other key is a
 * hint, or, with PMIX_INFO_REQD, the reason for a refusal.
 * @thread all of it: PMIx's
 */
#include "common/upcall/spawn.h"

#include <ctype.h>
#include <pmix.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* @return whether it was done */
typedef bool take_fn(struct spawn *s, struct spawn_wants *wants, const pmix_info_t *info);

static const char *text_of(const pmix_info_t *info)
{
    return info->value.type == PMIX_STRING ? info->value.data.string : NULL;
}

/* Seconds, which programs give as any number. @return whether it is one, and then @p number */
static bool number_of(const pmix_info_t *info, uint32_t *number)
{
    const pmix_value_t *v = &info->value;
    int64_t n;
    switch (v->type) {
    case PMIX_INT:
        n = v->data.integer;
        break;
    case PMIX_INT32:
        n = v->data.int32;
        break;
    case PMIX_UINT32:
        n = v->data.uint32;
        break;
    case PMIX_UINT:
        n = v->data.uint;
        break;
    case PMIX_UINT16:
        n = v->data.uint16;
        break;
    case PMIX_PROC_RANK:
        n = v->data.rank;
        break;
    case PMIX_SIZE:
        n = v->data.size < UINT32_MAX ? (int64_t)v->data.size : -1;
        break;
    default:
        return false;
    }
    if (n >= 0)
        *number = (uint32_t)n;
    return n >= 0;
}

static bool take_wdir(struct spawn *s, struct spawn_wants *wants, const pmix_info_t *info)
{
    (void)s;
    wants->wdir = text_of(info);
    return wants->wdir != NULL;
}

/* ---- the environment ---- */

static void change(struct spawn_wants *wants, char kind, const char *separator, const char *name,
                   const char *value)
{
    char *text;
    if (asprintf(&text, "%c%s%s%s%s", kind, separator, name, value != NULL ? "=" : "",
                 value != NULL ? value : "") < 0) {
        wants->changes.failed = true;
        return;
    }
    plan_add(&wants->changes, text);
    free(text);
}

/* PMIX_SET_ENVAR and its like. */
static bool take_envar(struct spawn_wants *wants, const pmix_info_t *info, char kind)
{
    const pmix_envar_t *envar = &info->value.data.envar;
    char separator[2] = {envar->separator != '\0' ? envar->separator : ':', '\0'};
    if (info->value.type != PMIX_ENVAR || envar->envar == NULL || envar->envar[0] == '\0')
        return false;
    bool joins = kind == PLAN_PREPEND || kind == PLAN_APPEND;
    change(wants, kind, joins ? separator : "", envar->envar,
           envar->value != NULL ? envar->value : "");
    return true;
}

static bool take_set(struct spawn *s, struct spawn_wants *wants, const pmix_info_t *info)
{
    (void)s;
    return take_envar(wants, info, PLAN_SET);
}

static bool take_add(struct spawn *s, struct spawn_wants *wants, const pmix_info_t *info)
{
    (void)s;
    return take_envar(wants, info, PLAN_ADD);
}

static bool take_prepend(struct spawn *s, struct spawn_wants *wants, const pmix_info_t *info)
{
    (void)s;
    return take_envar(wants, info, PLAN_PREPEND);
}

static bool take_append(struct spawn *s, struct spawn_wants *wants, const pmix_info_t *info)
{
    (void)s;
    return take_envar(wants, info, PLAN_APPEND);
}

static bool take_unset(struct spawn *s, struct spawn_wants *wants, const pmix_info_t *info)
{
    const char *name = text_of(info);
    (void)s;
    if (name == NULL)
        return false;
    change(wants, PLAN_UNSET, "", name, NULL);
    return true;
}

/* Where the program and its libraries are installed. */
static bool take_prefix(struct spawn *s, struct spawn_wants *wants, const pmix_info_t *info)
{
    static const char *const below[][2] = {{"PATH", "bin"}, {"LD_LIBRARY_PATH", "lib"}};
    const char *prefix = text_of(info);
    (void)s;
    if (prefix == NULL)
        return false;
    for (size_t i = 0; i < sizeof below / sizeof *below; i++) {
        char *path;
        if (asprintf(&path, "%s/%s", prefix, below[i][1]) < 0)
            return false;
        change(wants, PLAN_PREPEND, ":", below[i][0], path);
        free(path);
    }
    return true;
}

/* ---- where ---- */

static bool take_host(struct spawn *s, struct spawn_wants *wants, const pmix_info_t *info)
{
    (void)s;
    wants->hosts = text_of(info);
    return wants->hosts != NULL;
}

static bool take_hostfile(struct spawn *s, struct spawn_wants *wants, const pmix_info_t *info)
{
    (void)s;
    wants->hostfile = text_of(info);
    return wants->hostfile != NULL;
}

static bool is(const char *text, size_t len, const char *word)
{
    return strlen(word) == len && strncasecmp(text, word, len) == 0;
}

/* "ppr:2:node", "slot", "node:pe=1": what comes behind the policy's name is not taken. */
static bool take_map(struct spawn *s, struct spawn_wants *wants, const pmix_info_t *info)
{
    const char *text = text_of(info);
    (void)wants;
    if (text == NULL)
        return false;
    size_t len = strcspn(text, ":");
    bool whole = text[len] == '\0';
    if (is(text, len, "ppr") && !whole) {
        char *end;
        unsigned long n = strtoul(text + len + 1, &end, 10);
        if (n == 0 || n > UINT16_MAX || strcasecmp(end, ":node") != 0)
            return false;
        s->what.per_node = (uint32_t)n;
        return true;
    }
    if (is(text, len, "slot") || is(text, len, "core") || is(text, len, "fill"))
        s->what.map = RM_MAP_BLOCK;
    else if (is(text, len, "node"))
        s->what.map = RM_MAP_NODES;
    else
        return false;
    const char *more = whole ? "" : text + len + 1;
    s->what.overcommit |= strcasecmp(more, "oversubscribe") == 0;
    return whole || strcasecmp(more, "oversubscribe") == 0 ||
           strcasecmp(more, "nooversubscribe") == 0;
}

/* Slurm and Flux give ranks as they place tasks: so it is done where it says the same. */
static bool take_rank(struct spawn *s, struct spawn_wants *wants, const pmix_info_t *info)
{
    const char *text = text_of(info);
    (void)wants;
    if (text == NULL)
        return false;
    enum rm_map map = strcasecmp(text, "node") == 0 ? RM_MAP_NODES
                      : strcasecmp(text, "slot") == 0 || strcasecmp(text, "fill") == 0
                          ? RM_MAP_BLOCK
                          : RM_MAP_ANY;
    if (map == RM_MAP_ANY || (s->what.map != RM_MAP_ANY && s->what.map != map))
        return false;
    s->what.map = map;
    return true;
}

static bool take_bind(struct spawn *s, struct spawn_wants *wants, const pmix_info_t *info)
{
    static const struct {
        const char *name;
        enum rm_bind bind;
    } binds[] = {{"none", RM_BIND_NONE}, {"hwthread", RM_BIND_THREAD}, {"core", RM_BIND_CORE},
                 {"numa", RM_BIND_NUMA}, {"socket", RM_BIND_SOCKET},   {"package", RM_BIND_SOCKET}};
    const char *text = text_of(info);
    (void)wants;
    for (size_t i = 0; text != NULL && i < sizeof binds / sizeof *binds; i++)
        if (is(text, strcspn(text, ":"), binds[i].name)) {
            s->what.bind = binds[i].bind;
            return text[strcspn(text, ":")] == '\0';
        }
    return false;
}

static bool take_ppr(struct spawn *s, struct spawn_wants *wants, const pmix_info_t *info)
{
    const char *text = text_of(info);
    char *end;
    (void)wants;
    unsigned long n = text != NULL ? strtoul(text, &end, 10) : 0;
    if (n == 0 || n > UINT16_MAX || strcasecmp(end, ":node") != 0)
        return false;
    s->what.per_node = (uint32_t)n;
    return true;
}

/* ---- streams ---- */

static bool rank_of(const pmix_info_t *info, uint32_t *rank)
{
    if (info->value.type != PMIX_PROC || info->value.data.proc == NULL)
        return number_of(info, rank);
    *rank = info->value.data.proc->rank;
    return true;
}

/* The standard has the rank that reads what is pushed, libpmix a bool: PMIX_STDIN_TGT's, or 0. */
static bool take_push(struct spawn *s, struct spawn_wants *wants, const pmix_info_t *info)
{
    (void)wants;
    s->target = PMIX_RANK_UNDEF;
    if (info->value.type != PMIX_BOOL && info->value.type != PMIX_UNDEF &&
        !rank_of(info, &s->target))
        return false;
    s->pushed =
        s->target != PMIX_RANK_UNDEF ? s->target != PMIX_RANK_INVALID : PMIX_INFO_TRUE(info);
    return true;
}

/* A rank, as a number or a process; PRRTE's "all" and "none", too. */
static bool take_input(struct spawn *s, struct spawn_wants *wants, const pmix_info_t *info)
{
    const char *text = text_of(info);
    uint32_t rank;
    (void)wants;
    if (text != NULL && strcasecmp(text, "all") == 0)
        rank = RM_INPUT_ALL;
    else if (text != NULL && strcasecmp(text, "none") == 0)
        rank = RM_INPUT_NONE;
    else if (text != NULL && isdigit((unsigned char)*text))
        rank = (uint32_t)strtoul(text, NULL, 10);
    else if (!rank_of(info, &rank))
        return false;
    s->what.input = rank == PMIX_RANK_WILDCARD  ? RM_INPUT_ALL
                    : rank == PMIX_RANK_INVALID ? RM_INPUT_NONE
                                                : rank;
    return true;
}

static bool take_output(struct spawn *s, struct spawn_wants *wants, const pmix_info_t *info)
{
    const char *text = text_of(info);
    (void)wants;
    if (text == NULL || text[0] == '\0' || strlen(text) > 1024)
        return false;
    free(s->output);
    s->output = strdup(text);
    return s->output != NULL;
}

static bool take_merge(struct spawn *s, struct spawn_wants *wants, const pmix_info_t *info)
{
    (void)wants;
    s->what.merge = PMIX_INFO_TRUE(info);
    return true;
}

static bool take_tag(struct spawn *s, struct spawn_wants *wants, const pmix_info_t *info)
{
    (void)wants;
    s->what.tag = PMIX_INFO_TRUE(info);
    return true;
}

/* ---- the rest ---- */

/* Its name goes through BOOT_PSETS, whose separators it must not have. */
static bool take_pset(struct spawn *s, struct spawn_wants *wants, const pmix_info_t *info)
{
    const char *text = text_of(info);
    (void)s;
    if (text == NULL || text[0] == '\0' || strlen(text) > PROCSET_NAME_MAX ||
        text[strcspn(text, ":=")] != '\0')
        return false;
    wants->pset = text;
    return true;
}

static bool take_notify(struct spawn *s, struct spawn_wants *wants, const pmix_info_t *info)
{
    (void)wants;
    s->notify = PMIX_INFO_TRUE(info);
    return true;
}

static bool take_timeout(struct spawn *s, struct spawn_wants *wants, const pmix_info_t *info)
{
    (void)wants;
    return number_of(info, &s->what.timeout);
}

/* Whether output comes to the process that spawns: forward.h. */
static bool take_forward(struct spawn *s, struct spawn_wants *wants, const pmix_info_t *info)
{
    (void)wants;
    *(PMIX_CHECK_KEY(info, PMIX_FWD_STDOUT) ? &s->forward_out : &s->forward_err) =
        PMIX_INFO_TRUE(info);
    return true;
}

/* A directive that asks for no more than muster does anyway. */
static bool take_given(struct spawn *s, struct spawn_wants *wants, const pmix_info_t *info)
{
    (void)s;
    (void)wants;
    (void)info;
    return true;
}

/* The same, where it says false; with true it is a hint. */
static bool take_unless(struct spawn *s, struct spawn_wants *wants, const pmix_info_t *info)
{
    (void)s;
    (void)wants;
    return !PMIX_INFO_TRUE(info);
}

static const struct {
    const char *key;
    take_fn *take;
} directives[] = {
    {PMIX_WDIR, take_wdir},
    {PMIX_PREFIX, take_prefix},
    {PMIX_SET_ENVAR, take_set},
    {PMIX_ADD_ENVAR, take_add},
    {PMIX_UNSET_ENVAR, take_unset},
    {PMIX_PREPEND_ENVAR, take_prepend},
    {PMIX_APPEND_ENVAR, take_append},
    {PMIX_HOST, take_host},
    {PMIX_ADD_HOST, take_host},
    {PMIX_HOSTFILE, take_hostfile},
    {PMIX_ADD_HOSTFILE, take_hostfile},
    {PMIX_MAPBY, take_map},
    {PMIX_RANKBY, take_rank},
    {PMIX_BINDTO, take_bind},
    {PMIX_PPR, take_ppr},
    {PMIX_STDIN_TGT, take_input},
    {PMIX_OUTPUT_TO_FILE, take_output},
    {PMIX_IOF_OUTPUT_TO_FILE, take_output},
    {PMIX_MERGE_STDERR_STDOUT, take_merge},
    {PMIX_IOF_MERGE_STDERR_STDOUT, take_merge},
    {PMIX_TAG_OUTPUT, take_tag},
    {PMIX_IOF_TAG_OUTPUT, take_tag},
    {PMIX_PSET_NAME, take_pset},
    {PMIX_NOTIFY_COMPLETION, take_notify},
    {PMIX_TIMEOUT, take_timeout},
    {PMIX_SPAWN_TIMEOUT, take_timeout},
    {PMIX_PERSONALITY, take_given},
    {PMIX_REQUESTOR_IS_CLIENT, take_given},
    {PMIX_REQUESTOR_IS_TOOL, take_given},
    {PMIX_FWD_STDOUT, take_forward},
    {PMIX_FWD_STDERR, take_forward},
    {PMIX_FWD_STDDIAG, take_given},
    {PMIX_FWD_STDIN, take_push},
    {PMIX_NON_PMI, take_unless},
    {PMIX_USERID, take_given},
    {PMIX_GRPID, take_given},
};

static bool take(struct spawn *s, struct spawn_wants *wants, const pmix_info_t *info)
{
    for (size_t i = 0; i < sizeof directives / sizeof *directives; i++)
        if (PMIX_CHECK_KEY(info, directives[i].key))
            return directives[i].take(s, wants, info);
    return false;
}

static void hint(struct spawn *s, const char *key)
{
    for (unsigned i = 0; i < s->nhints; i++)
        if (strncmp(s->hints[i], key, PMIX_MAX_KEYLEN) == 0)
            return;
    if (s->nhints < SPAWN_HINTS_MAX &&
        (s->hints[s->nhints] = strndup(key, PMIX_MAX_KEYLEN)) != NULL)
        s->nhints++;
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
        if (take(s, wants, &info[i]))
            continue;
        if (PMIX_INFO_IS_REQUIRED(&info[i])) {
            const char *value = text_of(&info[i]);
            spawn_refuse(s, PMIX_ERR_NOT_SUPPORTED,
                         "it requires %.*s%s%.60s%s, which muster cannot do here", PMIX_MAX_KEYLEN,
                         info[i].key, value != NULL ? " = " : "", value != NULL ? value : "",
                         value != NULL && strlen(value) > 60 ? "..." : "");
        } else {
            hint(s, info[i].key);
        }
    }
}
