/* SPDX-License-Identifier: BSD-3-Clause */
/* keys: every reserved key that the host is to provide, asked for in its realm: of the session, the
 * job, its application, each node and each rank, with qualifiers and without, and compared with
 * what the processes know by themselves.
 *
 * The keys are in keys_table.c.
 */
#include "keys_table.h"

#include <stdarg.h>
#include <sys/stat.h>
#include <unistd.h>

/* How a key is asked for. */
enum way {
    BARE,      /* of the wildcard rank, no qualifier */
    QUALIFIED, /* PMIX_SESSION_INFO, PMIX_JOB_INFO, PMIX_APP_INFO or PMIX_NODE_INFO alone */
    BY_ID,     /* and PMIX_SESSION_ID, PMIX_APPNUM or PMIX_NODEID */
    BY_NAME,   /* and PMIX_HOSTNAME */
    OF_RANK,   /* of a rank, no qualifier */
    WAYS
};
static const char *const way_names[WAYS] = {"without a qualifier", "in its realm",
                                            "in its realm by id", "in its realm by host name",
                                            "of a rank"};

static const char *const realm_names[REALMS] = {"session", "job", "application", "node", "process"};

static long bound; /* expect that every rank is bound */
static long app;   /* number of the application that we are of */
static unsigned asked, left_out, failures;
static const char *excuse; /* why libpmix may be wrong about what is being asked, or NULL */

/* Rank 0 says once what is left out. */
static void leave_out(const struct row *row, enum way way)
{
    static bool said[ROWS_MAX][WAYS];
    left_out++;
    if (client.me.rank == 0 && !said[row - rows][way])
        printf("NOTE keys: SKIP %s %s: libpmix: %s\n", row->name, way_names[way], excuse);
    said[row - rows][way] = true;
}

static __attribute__((format(printf, 4, 5))) void fail(const struct row *row, enum way way,
                                                       uint32_t about, const char *format, ...)
{
    static const struct row *last_row;
    static enum way last_way;
    char what[600];
    va_list args;
    if (excuse) {
        leave_out(row, way);
        return;
    }
    va_start(args, format);
    vsnprintf(what, sizeof what, format, args);
    va_end(args);
    failures++;
    if (row != last_row || way != last_way) /* the first of its sort */
        fprintf(stderr, "FAIL keys: rank %u: %s %s, about %u: %s\n", client.me.rank, row->name,
                way_names[way], about, what);
    last_row = row;
    last_way = way;
}

/* Ranks in ANL notation, against where everybody is. */
static bool same_layout(const char *map)
{
    pmix_rank_t rank = 0;
    const char *first = strchr(map, ',');
    unsigned node, count, ranks;
    int length;
    if (strncmp(map, "(vector,", 8))
        return false;
    for (const char *p = first; rank < client.size; p += length) {
        if (*p == ')')
            p = first; /* the sequence repeats */
        if (sscanf(p, ",(%u,%u,%u)%n", &node, &count, &ranks, &length) != 3 || !count || !ranks)
            return false;
        for (unsigned i = 0; i < count; i++)
            for (unsigned k = 0; k < ranks; k++, rank++)
                if (rank >= client.size || known.node_of[rank] != node + i)
                    return false;
    }
    return true;
}

static bool same_ranks(const pmix_value_t *value, uint32_t node)
{
    const pmix_data_array_t *array = value->type == PMIX_DATA_ARRAY ? value->data.darray : NULL;
    if (!array || array->type != PMIX_PROC || array->size != known.nodes[node].tasks)
        return false;
    const pmix_proc_t *procs = array->array;
    for (size_t i = 0; i < array->size; i++)
        if (strcmp(procs[i].nspace, client.me.nspace) ||
            procs[i].rank != known.nodes[node].ranks[i])
            return false;
    return true;
}

static bool own_folder(const char *path)
{
    struct stat st;
    return path[0] == '/' && stat(path, &st) == 0 && S_ISDIR(st.st_mode) &&
           st.st_uid == geteuid() && (st.st_mode & 077) == 0;
}

/* Several programs may be one application. */
static bool is_command(const char *text, uint32_t number)
{
    bool found = false;
    for (pmix_rank_t r = 0; r < client.size; r++)
        found |=
            known.app_of[r] == number && is_here(known.node_of[r]) && !strcmp(text, known.argv[r]);
    return found;
}

static void compare_text(const struct row *row, enum way way, uint32_t about,
                         const struct want *want, const char *found)
{
    if (want->kind == TEXT && strcmp(found, want->text))
        fail(row, way, about, "expected \"%s\", found \"%s\"", want->text, found);
    if (want->kind == SOME && !found[0])
        fail(row, way, about, "expected some text, found none");
    if (want->kind == COMMAND && !is_command(found, about))
        fail(row, way, about, "expected the arguments of a task here, \"%s\", found \"%s\"",
             want->text, found);
    if (want->kind == FOLDER && !own_folder(found))
        fail(row, way, about, "expected a directory of ours alone, found \"%s\"", found);
    if (want->kind == LAYOUT && !same_layout(found))
        fail(row, way, about, "expected the layout of the job, found \"%s\"", found);
}

static void compare(const struct row *row, enum way way, uint32_t about, const struct want *want,
                    const pmix_value_t *value)
{
    if (want->kind == RANKS) {
        if (!same_ranks(value, about))
            fail(row, way, about, "expected the ranks of that node, found others");
    } else if (want->kind == FLAG) {
        if (value->type != PMIX_BOOL || value->data.flag != (want->number != 0))
            fail(row, way, about, "expected %s, found %s", want->number ? "true" : "false",
                 value->type == PMIX_BOOL ? "the opposite" : PMIx_Data_type_string(value->type));
    } else if (want->kind == NUMBER) {
        uint64_t found = number_in(value, row->name);
        if (found != want->number)
            fail(row, way, about, "expected %llu, found %llu", (unsigned long long)want->number,
                 (unsigned long long)found);
    } else if (value->type != PMIX_STRING || !value->data.string) {
        fail(row, way, about, "expected a text, found %s", PMIx_Data_type_string(value->type));
    } else {
        compare_text(row, way, about, want, value->data.string);
    }
}

static size_t qualify(pmix_info_t *info, const struct row *row, enum way way, uint32_t about)
{
    static const char *const realms[REALMS] = {
        [SESSION] = PMIX_SESSION_INFO, PMIX_JOB_INFO, PMIX_APP_INFO, PMIX_NODE_INFO, NULL};
    uint32_t id = about;
    if (way == BARE || way == OF_RANK)
        return 0;
    PMIX_INFO_LOAD(&info[0], realms[row->realm], NULL, PMIX_BOOL);
    if (way == QUALIFIED)
        return 1;
    if (way == BY_NAME) {
        PMIX_INFO_LOAD(&info[1], PMIX_HOSTNAME, known.nodes[about].name, PMIX_STRING);
    } else if (row->realm == SESSION) {
        id = (uint32_t)strtoul(known.session_id, NULL, 10);
        PMIX_INFO_LOAD(&info[1], PMIX_SESSION_ID, &id, PMIX_UINT32);
    } else if (row->realm == APP) {
        PMIX_INFO_LOAD(&info[1], PMIX_APPNUM, &id, PMIX_UINT32);
    } else {
        PMIX_INFO_LOAD(&info[1], PMIX_NODEID, &id, PMIX_UINT32);
    }
    return 2;
}

static bool is(const struct row *row, enum realm realm, const char *key)
{
    return row->realm == realm && !strcmp(row->key, key);
}

/* libpmix 4.2: pmix_gds_hash_process_session_array() and _node_array() keep what names a session or
 * a node to themselves; _getnbfn() looks up ranks and jobs before nodes. */
static const char *fault_of_4_2(const struct row *row, enum way way, uint32_t node)
{
    if (is(row, SESSION, PMIX_SESSION_ID))
        return "not kept for PMIx_Get";
    if (is(row, NODE, PMIX_NODEID) || is(row, PROC, PMIX_NODEID))
        return is_here(node) ? NULL : "not found of other nodes";
    if (is(row, NODE, PMIX_HOSTNAME))
        return is_here(node) || way == OF_RANK ? NULL : "not found of other nodes";
    if (row->realm == NODE && way == OF_RANK)
        return "a rank does not stand for its node";
    if (is(row, NODE, PMIX_MAX_PROCS) || is(row, NODE, PMIX_NUM_SLOTS))
        return "the job's is found";
    if (is(row, APP, PMIX_APP_ARGV) && !getenv("FLUX_JOB_ID"))
        return "a namespace cannot be registered again";
    return NULL;
}

/* libpmix 5 and later: get_data() answers from what the process believes of itself and of the
 * question, and never looks. Without gds/hash the process has not been told its session, node and
 * application (pmix_globals.appnum). */
static const char *fault_of_5(const struct row *row, enum way way)
{
    if (is(row, SESSION, PMIX_SESSION_ID) && (way != BY_ID || LIBPMIX < 60000))
        return "the process has not been told its session";
    if (row->realm == APP && way != BY_ID && known.app_of[client.me.rank] != 0)
        return "the process has not been told its application";
    if (is(row, NODE, PMIX_NODEID) && way != BY_ID && way != OF_RANK)
        return "the process has not been told its node id";
    if (is(row, NODE, PMIX_HOSTNAME) && way == BY_ID)
        return "a node's id is not turned into its name";
    return NULL;
}

/* Why this libpmix may be wrong about a key asked for in that way, or NULL: it is right. */
static const char *library_fault(const struct row *row, enum way way, uint32_t about)
{
    if (LIBPMIX >= 50000)
        return fault_of_5(row, way);
    return fault_of_4_2(row, way, row->realm == PROC ? known.node_of[about] : about);
}

/* Asks @p rank for a key about a subject and compares it. */
static void ask(const struct row *row, enum way way, uint32_t about, pmix_rank_t rank)
{
    struct want want = row->want(about);
    pmix_proc_t proc = proc_of(rank);
    pmix_value_t *value = NULL;
    pmix_info_t info[2];
    if (want.kind == UNKNOWN)
        return;
    excuse = library_fault(row, way, about);
    asked++;
    step("%s %s, about %u", row->name, way_names[way], about);
    size_t ninfo = qualify(info, row, way, about);
    pmix_status_t status = PMIx_Get(&proc, row->key, info, ninfo, &value);
    for (size_t i = 0; i < ninfo; i++)
        PMIX_INFO_DESTRUCT(&info[i]);
    if (want.kind == ABSENT ? status != PMIX_ERR_NOT_FOUND : status != PMIX_SUCCESS || !value) {
        fail(row, way, about, "expected %s value, found %s", want.kind == ABSENT ? "no" : "a",
             PMIx_Error_string(status));
        return;
    }
    if (want.kind == ABSENT)
        return;
    compare(row, way, about, &want, value);
    PMIX_VALUE_RELEASE(value);
}

/* Whether a key without a qualifier means this realm: some stand in several. */
static bool bare_means(const struct row *row)
{
    if (!strcmp(row->key, PMIX_MAX_PROCS) || !strcmp(row->key, PMIX_NUM_SLOTS) ||
        !strcmp(row->key, PMIX_NUM_NODES) || !strcmp(row->key, PMIX_NUM_ALLOCATED_NODES) ||
        !strcmp(row->key, PMIX_ALLOCATED_NODELIST) || !strcmp(row->key, PMIX_NODE_LIST) ||
        !strcmp(row->key, PMIX_NSDIR))
        return row->realm == JOB;
    if (!strcmp(row->key, PMIX_TMPDIR))
        return row->realm == SESSION;
    return true;
}

static void ask_about_nodes(const struct row *row)
{
    uint32_t mine = known.node_of[client.me.rank];
    if (bare_means(row))
        ask(row, BARE, mine, PMIX_RANK_WILDCARD);
    ask(row, QUALIFIED, mine, PMIX_RANK_WILDCARD);
    for (uint32_t i = 0; i < known.nnodes; i++) {
        ask(row, BY_ID, i, PMIX_RANK_WILDCARD);
        ask(row, BY_NAME, i, PMIX_RANK_WILDCARD);
    }
    for (pmix_rank_t r = 0; r < client.size && bare_means(row); r++)
        ask(row, OF_RANK, known.node_of[r], r);
}

static void ask_about_apps(const struct row *row)
{
    uint32_t mine = known.app_of[client.me.rank];
    if (bare_means(row))
        ask(row, BARE, mine, PMIX_RANK_WILDCARD);
    ask(row, QUALIFIED, mine, PMIX_RANK_WILDCARD);
    for (uint32_t i = 0; i < known.napps; i++)
        ask(row, BY_ID, i, PMIX_RANK_WILDCARD);
}

static void ask_all_ways(const struct row *row)
{
    switch (row->realm) {
    case PROC:
        for (pmix_rank_t r = 0; r < client.size; r++)
            ask(row, OF_RANK, r, r);
        return;
    case NODE:
        ask_about_nodes(row);
        return;
    case APP:
        ask_about_apps(row);
        return;
    default:
        if (bare_means(row))
            ask(row, BARE, 0, PMIX_RANK_WILDCARD);
        ask(row, QUALIFIED, 0, PMIX_RANK_WILDCARD);
        if (row->realm == SESSION && known.session_id)
            ask(row, BY_ID, 0, PMIX_RANK_WILDCARD);
    }
}

/* Asks for a key in all ways. @return whether there was any, for somebody who knows what it should
 * be: rank 0 says where there was none */
static bool ask_row(const struct row *row)
{
    unsigned before = asked;
    ask_all_ways(row);
    if (asked == before && client.me.rank == 0)
        printf("NOTE keys: not asked for %s of the %s: not known here\n", row->name,
               realm_names[row->realm]);
    return asked > before;
}

int main(int argc, char **argv)
{
    const struct option_number options[] = {
        {"bound", &bound, "1: every rank has to be bound to some processors", NULL},
        {"app", &app, "number of the application that this process is of", NULL},
        {0}};
    size_t rows_asked = 0;
    client_init("keys", options, argc, argv);
    known_find((uint32_t)app, argv);
    CHECK(!bound || known.cpus[client.me.rank], "expected to be bound, found all processors");
    for (size_t i = 0; i < nrows; i++)
        rows_asked += ask_row(&rows[i]);
    CHECK(failures == 0, "%u of %u answers are not what they should be", failures, asked);
    fence_all(false);
    return client_pass("%zu of %zu keys, %u questions a rank, %u left out for faults of libpmix",
                       rows_asked, nrows, asked, left_out);
}
