/* SPDX-License-Identifier: BSD-3-Clause */
/* The table of directives, and the one function that looks at them.
 *
 * libpmix's clients give values as they like, and its server takes what it understands: a flag
 * without a value, a number of any width. So a row names kinds of values, and no types. */
#include "common/upcall/directives.h"

#include "common/notify/refuse.h"
#include "common/nspace/built.h"
#include "include/muster/pmix.h"

#include <pmix.h>
#include <stdio.h>
#include <string.h>

/* Kinds of values. docs/calls.md has the same words. */
enum {
    BOOL = 1 << 0,
    NUMBER = 1 << 1,
    STRING = 1 << 2,
    PROCESS = 1 << 3,
    PROCESSES = 1 << 4,
    INFOS = 1 << 5,
    IDS = 1 << 6,
    RANGE = 1 << 7,
    PERSISTENCE = 1 << 8,
    STATUS = 1 << 9,
    BYTES = 1 << 10,
    ENVAR = 1 << 11,
    WILDCARD = 1 << 12, /* PMIX_RANK_WILDCARD and its like as an int: -2 */
    NOTHING = 1 << 13,  /* a PMIX_STRING without a string */
};

static const struct {
    unsigned kind;
    const char *text;
} kinds[] = {
    {BOOL, "true or false (PMIX_BOOL)"},
    {NUMBER, "a number that is not negative"},
    {STRING, "a string"},
    {PROCESS, "a process (PMIX_PROC)"},
    {PROCESSES, "an array of processes (PMIX_PROC)"},
    {INFOS, "an array of PMIX_INFO"},
    {IDS, "an array of PMIX_UINT32"},
    {RANGE, "a PMIX_DATA_RANGE"},
    {PERSISTENCE, "a PMIX_PERSIST"},
    {STATUS, "a PMIX_STATUS"},
    {BYTES, "a PMIX_BYTE_OBJECT"},
    {ENVAR, "a PMIX_ENVAR with a name"},
    {WILDCARD, "PMIX_RANK_WILDCARD"},
    {NOTHING, "NULL"},
};

enum {
    FENCE = CALL_FENCE,
    CONSTRUCT = CALL_CONSTRUCT,
    DESTRUCT = CALL_DESTRUCT,
    CONNECT = CALL_CONNECT,
    DISCONNECT = CALL_DISCONNECT,
    PUBLISH = CALL_PUBLISH,
    LOOKUP = CALL_LOOKUP,
    UNPUBLISH = CALL_UNPUBLISH,
    SPAWN = CALL_SPAWN,
    PULL = CALL_PULL,
    PUSH = CALL_PUSH,
    EVENT = CALL_EVENT,
    LOG = CALL_LOG,
    CONTROL = CALL_CONTROL,
    GET = CALL_GET,
    QUERY = CALL_QUERY,
    ALLOCATE = CALL_ALLOCATE,
    /* several */
    CREDENTIAL = CALL_GET_CREDENTIAL | CALL_VALIDATE,
    GROUP = CONSTRUCT | DESTRUCT,
    LINK = CONNECT | DISCONNECT,
    COLLECTIVE = FENCE | GROUP | LINK,
    DATA = PUBLISH | LOOKUP | UNPUBLISH,
    /* Where a directive is refused that is required and has no row. What others do not know is
     * libpmix's, or data, or looked at by the call's own file: a spawn's. */
    STRICT = COLLECTIVE | LOOKUP | UNPUBLISH | PUSH | LOG | QUERY | ALLOCATE,
};

struct row {
    struct directive_name is;
    unsigned kinds, calls;
    const char *not_served; /* why it is refused where it is required, or NULL: it is heeded */
};

#define ROW(key, kinds, calls)                                                                     \
    {                                                                                              \
        {#key, key}, kinds, calls, NULL                                                            \
    }
/* Not heeded. */
#define NOT(key, kinds, calls, why)                                                                \
    {                                                                                              \
        {#key, key}, kinds, calls, why                                                             \
    }

/* clang-format off */
static const struct row rows[] = {
    ROW(PMIX_TIMEOUT, NUMBER, COLLECTIVE | DATA | SPAWN | PUSH | GET | ALLOCATE),
    ROW(PMIX_COLLECT_DATA, BOOL, COLLECTIVE),
    ROW(PMIX_COLLECT_GENERATED_JOB_INFO, BOOL, COLLECTIVE),
    ROW(PMIX_LOCAL_COLLECTIVE_STATUS, STATUS, COLLECTIVE),

    ROW(PMIX_GROUP_ID, STRING, COLLECTIVE | QUERY),
    ROW(PMIX_GROUP_ASSIGN_CONTEXT_ID, BOOL, GROUP | CONTROL),
    ROW(PMIX_GROUP_ADD_MEMBERS, PROCESSES, GROUP),
    ROW(PMIX_GROUP_BOOTSTRAP, NUMBER, GROUP),
    ROW(PMIX_GROUP_FT_COLLECTIVE, BOOL, GROUP),
    ROW(PMIX_GROUP_NOTIFY_TERMINATION, BOOL, GROUP),
    ROW(PMIX_GROUP_LOCAL_ONLY, BOOL, GROUP),
    ROW(PMIX_GROUP_INFO, INFOS, GROUP),
    ROW(PMIX_GROUP_ENDPT_DATA, BYTES | INFOS, GROUP),
    ROW(PMIX_PROC_DATA, BYTES | INFOS, GROUP),
    NOT(PMIX_GROUP_OPTIONAL, BOOL, GROUP, "a member that ends makes a construct fail"),
    NOT(PMIX_GROUP_LEADER, BOOL, GROUP, "it is for PMIx_Group_invite alone"),

    ROW(PMIX_CONNECT_ID, STRING, LINK | QUERY),
    ROW(PMIX_CONNECT_OPTIONAL, BOOL, LINK),
    ROW(PMIX_CONNECT_EARLY_TERM_ALLOWED, BOOL, LINK),
    ROW(PMIX_CONNECT_NOTIFY_EACH, BOOL, LINK),
    ROW(PMIX_CONNECT_NOTIFY_REQ, BOOL, LINK),
    ROW(PMIX_CONNECT_XCHG_ONLY, BOOL, LINK),
    ROW(MUSTER_CONNECT_NSPACE, BOOL, LINK),

    ROW(PMIX_RANGE, RANGE, GROUP | DATA | QUERY),
    ROW(PMIX_PERSISTENCE, PERSISTENCE, DATA),
    ROW(PMIX_EVENT_CUSTOM_RANGE, PROCESS | PROCESSES, DATA | EVENT),
    ROW(PMIX_WAIT, BOOL | NUMBER, DATA),
    ROW(PMIX_USERID, NUMBER, DATA | SPAWN),
    ROW(PMIX_GRPID, NUMBER, DATA | SPAWN),
    ROW(PMIX_ACCESS_PERMISSIONS, INFOS, DATA),
    ROW(PMIX_ACCESS_USERIDS, IDS, DATA),
    ROW(PMIX_ACCESS_GRPIDS, IDS, DATA),

    ROW(PMIX_WDIR, STRING, SPAWN),
    ROW(PMIX_PREFIX, STRING, SPAWN),
    ROW(PMIX_SET_ENVAR, ENVAR, SPAWN),
    ROW(PMIX_ADD_ENVAR, ENVAR, SPAWN),
    ROW(PMIX_UNSET_ENVAR, STRING, SPAWN),
    ROW(PMIX_PREPEND_ENVAR, ENVAR, SPAWN),
    ROW(PMIX_APPEND_ENVAR, ENVAR, SPAWN),
    ROW(PMIX_HOST, STRING, SPAWN),
    ROW(PMIX_ADD_HOST, STRING, SPAWN),
    ROW(PMIX_HOSTFILE, STRING, SPAWN),
    ROW(PMIX_ADD_HOSTFILE, STRING, SPAWN),
    ROW(PMIX_MAPBY, STRING, SPAWN),
    ROW(PMIX_RANKBY, STRING, SPAWN),
    ROW(PMIX_BINDTO, STRING, SPAWN),
    ROW(PMIX_PPR, STRING, SPAWN),
    ROW(PMIX_STDIN_TGT, STRING | NUMBER | PROCESS, SPAWN),
    ROW(PMIX_FWD_STDIN, BOOL | NUMBER | PROCESS, SPAWN),
    ROW(PMIX_FWD_STDOUT, BOOL, SPAWN),
    ROW(PMIX_FWD_STDERR, BOOL, SPAWN),
    ROW(PMIX_FWD_STDDIAG, BOOL, SPAWN),
    ROW(PMIX_OUTPUT_TO_FILE, STRING, SPAWN),
    ROW(PMIX_IOF_OUTPUT_TO_FILE, STRING, SPAWN),
    ROW(PMIX_MERGE_STDERR_STDOUT, BOOL, SPAWN),
    ROW(PMIX_IOF_MERGE_STDERR_STDOUT, BOOL, SPAWN),
    ROW(PMIX_TAG_OUTPUT, BOOL, SPAWN),
    ROW(PMIX_IOF_TAG_OUTPUT, BOOL, SPAWN),
    ROW(PMIX_PSET_NAME, STRING, SPAWN | QUERY),
    ROW(PMIX_NOTIFY_COMPLETION, BOOL, SPAWN),
    ROW(PMIX_DEBUG_STOP_ON_EXEC, BOOL | NUMBER, SPAWN),
    ROW(PMIX_DEBUG_STOP_IN_INIT, BOOL | NUMBER, SPAWN),
    ROW(PMIX_DEBUG_STOP_IN_APP, BOOL | NUMBER, SPAWN),
    ROW(PMIX_DEBUGGER_DAEMONS, BOOL, SPAWN),
    ROW(PMIX_DEBUG_TARGET, PROCESS, SPAWN),
    ROW(PMIX_DEBUG_DAEMONS_PER_NODE, NUMBER, SPAWN),
    ROW(PMIX_DEBUG_DAEMONS_PER_PROC, NUMBER, SPAWN),
    ROW(PMIX_SPAWN_TIMEOUT, NUMBER, SPAWN),
    ROW(PMIX_PERSONALITY, STRING, SPAWN),
    ROW(PMIX_REQUESTOR_IS_CLIENT, BOOL, SPAWN),
    ROW(PMIX_REQUESTOR_IS_TOOL, BOOL, SPAWN),
    ROW(PMIX_NON_PMI, BOOL, SPAWN),

    ROW(PMIX_IOF_STOP, BOOL, PULL),
    ROW(PMIX_IOF_COMPLETE, BOOL, PUSH),
    ROW(PMIX_IOF_PUSH_STDIN, BOOL, PUSH),

    ROW(PMIX_EVENT_STAYS_LOCAL, BOOL, EVENT),

    ROW(PMIX_LOG_STDERR, STRING, LOG),
    ROW(PMIX_LOG_STDOUT, STRING, LOG),
    ROW(PMIX_LOG_SYSLOG, STRING, LOG),
    ROW(PMIX_LOG_LOCAL_SYSLOG, STRING, LOG),

    ROW(PMIX_JOB_CTRL_ID, STRING, CONTROL),
    ROW(PMIX_JOB_CTRL_CANCEL, STRING | NOTHING, CONTROL),
#ifdef PMIX_JOB_CTRL_DEFINE_PSET
    ROW(PMIX_JOB_CTRL_DEFINE_PSET, STRING, CONTROL),
#endif
    ROW(PMIX_JOB_CTRL_SIGNAL, NUMBER, CONTROL),
    ROW(PMIX_JOB_CTRL_PAUSE, BOOL, CONTROL),
    ROW(PMIX_JOB_CTRL_RESUME, BOOL, CONTROL),
    ROW(PMIX_JOB_CTRL_TERMINATE, BOOL, CONTROL),
    ROW(PMIX_JOB_CTRL_KILL, BOOL, CONTROL),
    ROW(PMIX_JOB_CTRL_CHECKPOINT, STRING, CONTROL),
    ROW(PMIX_JOB_CTRL_CHECKPOINT_EVENT, BOOL, CONTROL),
    ROW(PMIX_JOB_CTRL_CHECKPOINT_SIGNAL, NUMBER, CONTROL),
    ROW(PMIX_JOB_CTRL_CHECKPOINT_TIMEOUT, NUMBER, CONTROL),

    ROW(PMIX_CRED_TYPE, STRING, CREDENTIAL),

    ROW(PMIX_REQUIRED_KEY, STRING, GET),

    ROW(PMIX_PROCID, PROCESS, QUERY),
    ROW(PMIX_NSPACE, STRING, QUERY),
    ROW(PMIX_RANK, NUMBER | WILDCARD, QUERY),
    ROW(PMIX_HOSTNAME, STRING, QUERY),
    ROW(PMIX_NODEID, NUMBER, QUERY),
    ROW(PMIX_ALLOC_ID, STRING, QUERY | ALLOCATE),
    ROW(PMIX_ALLOC_REQ_ID, STRING, ALLOCATE),
    ROW(PMIX_ALLOC_NUM_NODES, NUMBER, ALLOCATE),
    ROW(PMIX_ALLOC_NODE_LIST, STRING, ALLOCATE),
    ROW(PMIX_ALLOC_NUM_CPUS, NUMBER, ALLOCATE),
    ROW(PMIX_ALLOC_TIME, STRING | NUMBER, ALLOCATE),
    ROW(PMIX_ALLOC_QUEUE, STRING, ALLOCATE),
    ROW(PMIX_QUERY_LOCAL_ONLY, BOOL, QUERY),
    ROW(PMIX_QUERY_SUPPORTED_QUALIFIERS, BOOL, QUERY),
};
/* clang-format on */

static const struct {
    unsigned call;
    const char *name;
} names[] = {
    {FENCE, "PMIx_Fence"},
    {CONSTRUCT, "PMIx_Group_construct"},
    {DESTRUCT, "PMIx_Group_destruct"},
    {CONNECT, "PMIx_Connect"},
    {DISCONNECT, "PMIx_Disconnect"},
    {PUBLISH, "PMIx_Publish"},
    {LOOKUP, "PMIx_Lookup"},
    {UNPUBLISH, "PMIx_Unpublish"},
    {SPAWN, "PMIx_Spawn"},
    {PULL, "PMIx_IOF_pull"},
    {PUSH, "PMIx_IOF_push"},
    {EVENT, "PMIx_Notify_event"},
    {LOG, "PMIx_Log"},
    {CONTROL, "PMIx_Job_control"},
    {GET, "PMIx_Get"},
    {QUERY, "PMIx_Query_info"},
    {CALL_GET_CREDENTIAL, "PMIx_Get_credential"},
    {CALL_VALIDATE, "PMIx_Validate_credential"},
    {ALLOCATE, "PMIx_Allocation_request"},
};

const char *directives_call_name(enum directives_call call)
{
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (names[i].call == (unsigned)call)
            return names[i].name;
    return "?";
}

const struct directive_name *directives_name(const char *call, size_t i)
{
    unsigned calls = 0;
    for (size_t k = 0; k < sizeof names / sizeof *names; k++)
        if (strcmp(names[k].name, call) == 0)
            calls = names[k].call;
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++)
        if ((rows[k].calls & calls) != 0 && rows[k].not_served == NULL && i-- == 0)
            return &rows[k].is;
    return NULL;
}

/* ---- values ---- */

bool directive_is_on(const pmix_info_t *info, const char *key)
{
    return PMIX_CHECK_KEY(info, key) && PMIX_INFO_TRUE(info);
}

bool directive_number(const pmix_value_t *value, uint32_t *number)
{
    pmix_status_t rc;
    double n = 0;
    PMIX_VALUE_GET_NUMBER(rc, value, n, double);
    if (rc != PMIX_SUCCESS || !(n >= 0))
        return false;
    *number = n < UINT32_MAX ? (uint32_t)n : UINT32_MAX;
    if (*number < n && *number < UINT32_MAX)
        ++*number;
    return true;
}

bool directive_rank(const pmix_value_t *value, uint32_t *rank)
{
    bool is_int = value->type == PMIX_INT || value->type == PMIX_INT32;
    if (!is_int || (uint32_t)value->data.int32 <= PMIX_RANK_VALID)
        return directive_number(value, rank);
    *rank = (uint32_t)value->data.int32;
    return true;
}

const char *directive_text(const pmix_info_t *info)
{
    return info->value.type == PMIX_STRING ? info->value.data.string : NULL;
}

static const pmix_data_array_t *array_of(const pmix_value_t *value)
{
    return value->type == PMIX_DATA_ARRAY ? value->data.darray : NULL;
}

const pmix_proc_t *directive_procs(const pmix_value_t *value, size_t *n)
{
    const pmix_data_array_t *array = array_of(value);
    const pmix_proc_t *procs = NULL;
    *n = 0;
    if (value->type == PMIX_PROC) {
        procs = value->data.proc;
        *n = procs != NULL;
    } else if (array != NULL && array->type == PMIX_PROC) {
        procs = array->array;
        *n = procs != NULL ? array->size : 0;
    }
    return procs;
}

/* An array without elements has any type, and may not be there. */
static bool is_array(const pmix_value_t *value, pmix_data_type_t type)
{
    const pmix_data_array_t *array = array_of(value);
    return value->type == PMIX_DATA_ARRAY &&
           (array == NULL || array->size == 0 || (array->type == type && array->array != NULL));
}

/* @return the kinds that a value is of */
static unsigned kinds_of(const pmix_value_t *value)
{
    uint32_t number;
    switch (value->type) {
    case PMIX_STRING:
        return value->data.string == NULL ? NOTHING : STRING | (PMIX_CHECK_BOOL(value) ? BOOL : 0);
    case PMIX_BOOL:
    case PMIX_UNDEF:
        return BOOL;
    case PMIX_PROC:
        return value->data.proc != NULL ? PROCESS : 0;
    case PMIX_DATA_ARRAY:
        return (is_array(value, PMIX_PROC) ? PROCESSES : 0) |
               (is_array(value, PMIX_INFO) ? INFOS : 0) | (is_array(value, PMIX_UINT32) ? IDS : 0);
    case PMIX_DATA_RANGE:
        return RANGE;
    case PMIX_PERSIST:
        return PERSISTENCE;
    case PMIX_STATUS:
        return STATUS;
    case PMIX_BYTE_OBJECT:
        return BYTES;
    case PMIX_ENVAR:
        return value->data.envar.envar != NULL && value->data.envar.envar[0] != '\0' ? ENVAR : 0;
    default:
        return directive_number(value, &number) ? NUMBER
               : directive_rank(value, &number) ? WILDCARD
                                                : 0;
    }
}

/* ---- the check ---- */

static const struct row *find(enum directives_call call, const pmix_info_t *info)
{
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if ((rows[i].calls & call) != 0 && PMIX_CHECK_KEY(info, rows[i].is.key))
            return &rows[i];
    return NULL;
}

bool directive_known(enum directives_call call, const pmix_info_t *info)
{
    return find(call, info) != NULL;
}

/* "a string, or a number that is not negative" */
static void describe_kinds(unsigned which, char *buf, size_t cap)
{
    buf[0] = '\0';
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        size_t used = strlen(buf);
        if ((which & kinds[i].kind) != 0)
            snprintf(buf + used, cap - used, "%s%s", used > 0 ? ", or " : "", kinds[i].text);
    }
}

/* "PMIX_STRING "3 s"" */
static void describe_value(const pmix_value_t *value, char *buf, size_t cap)
{
    const pmix_data_array_t *array = array_of(value);
    const char *type = PMIx_Data_type_string(value->type);
    pmix_status_t rc;
    double n;
    if (value->type == PMIX_STRING && value->data.string != NULL)
        snprintf(buf, cap, "the string \"%.80s%s\"", value->data.string,
                 strlen(value->data.string) > 80 ? "..." : "");
    else if (value->type == PMIX_BOOL)
        snprintf(buf, cap, "PMIX_BOOL %s", value->data.flag ? "true" : "false");
    else if (array != NULL)
        snprintf(buf, cap, "an array of %s", PMIx_Data_type_string(array->type));
    else {
        PMIX_VALUE_GET_NUMBER(rc, value, n, double);
        if (rc == PMIX_SUCCESS)
            snprintf(buf, cap, "%s %.15g", type, n);
        else
            snprintf(buf, cap, "of type %s%s", type,
                     value->type == PMIX_STRING || value->type == PMIX_PROC ? ", and empty" : "");
    }
}

pmix_status_t directive_fault(enum directives_call call, const pmix_info_t *info, char *why,
                              size_t cap)
{
    const struct row *row = find(call, info);
    bool required = PMIX_INFO_IS_REQUIRED(info);
    if (row == NULL && required && (call & STRICT) != 0) {
        snprintf(why, cap,
                 "the directive \"%.*s\" is required and not known: leave it out, or its "
                 "PMIX_INFO_REQD",
                 PMIX_MAX_KEYLEN, info->key);
        return PMIX_ERR_NOT_SUPPORTED; /* told by the caller */
    }
    if (row != NULL && (row->kinds & kinds_of(&info->value)) == 0) {
        char is[160], may[256];
        describe_value(&info->value, is, sizeof is);
        describe_kinds(row->kinds, may, sizeof may);
        snprintf(why, cap, "%s is %s; give %s", row->is.name, is, may);
        return PMIX_ERR_BAD_PARAM; /* told by the caller */
    }
    if (row != NULL && row->not_served != NULL && required) {
        snprintf(why, cap, "%s is required and not served: %s; leave it out, or its PMIX_INFO_REQD",
                 row->is.name, row->not_served);
        return PMIX_ERR_NOT_SUPPORTED; /* told by the caller */
    }
    return PMIX_SUCCESS;
}

pmix_status_t directives_check(enum directives_call call, const char *of, const pmix_info_t info[],
                               size_t ninfo)
{
    pmix_status_t first = PMIX_SUCCESS;
    const char *name = directives_call_name(call), *quote = *of != '\0' ? "\"" : "";
    for (size_t i = 0; i < ninfo; i++) {
        char why[700];
        pmix_status_t rc = directive_fault(call, &info[i], why, sizeof why);
        enum log_level level = (call & COLLECTIVE) != 0 && rc == PMIX_ERR_NOT_SUPPORTED
                                   ? LOG_LEVEL_CAUSE
                                   : LOG_LEVEL_INFO;
        if (rc != PMIX_SUCCESS)
            refused_at(level, rc, "%s%s%s%s%s: %s", name, *of != '\0' ? " of " : "", quote, of,
                       quote, why);
        if (first == PMIX_SUCCESS)
            first = rc;
    }
    return first;
}
