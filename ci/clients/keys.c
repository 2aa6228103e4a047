/* keys: every reserved key that the host is to provide, asked for in its realm: of the session, the
 * job, its application, each node and each rank, with qualifiers and without, and compared with
 * what the processes know by themselves.
 *
 * The table below and docs/keys.md name the same keys; ci/check-keys sees to it.
 */
#include "keys_known.h"

#include <stdarg.h>
#include <sys/stat.h>
#include <unistd.h>

/* What a key is about. */
enum realm { SESSION, JOB, APP, NODE, PROC, REALMS };

/* What is expected of a value. */
enum kind {
    UNKNOWN, /* nothing to compare with: it is not asked for */
    NUMBER,
    FLAG,
    TEXT,
    SOME,   /* a text that is not empty */
    FOLDER, /* a directory of ours alone */
    RANKS,  /* an array of the processes of a node */
    LAYOUT, /* PMIX_ANL_MAP */
};

struct want {
    enum kind kind;
    uint64_t number;
    const char *text;
};

static struct want number(uint64_t n)
{
    return (struct want){NUMBER, n, NULL};
}

static struct want number_if_known(uint64_t n)
{
    return (struct want){n ? NUMBER : UNKNOWN, n, NULL};
}

static struct want flag(bool on)
{
    return (struct want){FLAG, on, NULL};
}

static struct want text(const char *t)
{
    return (struct want){t ? TEXT : UNKNOWN, 0, t};
}

static uint32_t at_least(uint32_t a, uint32_t b)
{
    return a > b ? a : b;
}

static bool here(uint32_t node)
{
    return node == known.node_of[client.me.rank];
}

/* What each key should be, about a subject: a node, a rank, or nothing. */
#define WANT(name, value)                                                                          \
    static struct want name(uint32_t about)                                                        \
    {                                                                                              \
        (void)about;                                                                               \
        return value;                                                                              \
    }

WANT(session_id, known.session_id ? number(strtoul(known.session_id, NULL, 10)) : text(NULL))
WANT(session_max,
     number_if_known(known.session_slots ? at_least(known.session_slots, client.size) : 0))
WANT(session_slots, number_if_known(known.session_slots))
WANT(session_nodes, number_if_known(known.session_nodes))
WANT(session_list, text(known.session_list))
WANT(cluster, text(known.cluster))
WANT(some_text, ((struct want){SOME, 0, NULL}))
WANT(folder, ((struct want){FOLDER, 0, NULL}))
WANT(yes, flag(true))
WANT(no, flag(false))
WANT(zero, number(0))
WANT(one, number(1))
WANT(nspace, text(client.me.nspace))
WANT(job_id, text(known.job_id))
WANT(size, number(client.size))
WANT(nodes, number(known.nnodes))
WANT(node_list, text(known.step_list))
WANT(step_slots, number_if_known(known.step_slots))
WANT(layout, ((struct want){LAYOUT, 0, NULL}))
WANT(user, number(geteuid()))
WANT(group, number(getegid()))
WANT(my_node, number(known.node_of[client.me.rank]))
WANT(node_id, number(about))
WANT(node_name, text(known.nodes[about].name))
WANT(node_tasks, number(known.nodes[about].tasks))
WANT(node_leader, number(known.nodes[about].ranks[0]))
WANT(node_slots, number_if_known(known.nodes[about].slots))
WANT(node_max, number_if_known(known.nodes[about].slots
                                   ? at_least(known.nodes[about].slots, known.nodes[about].tasks)
                                   : 0))
WANT(node_procs, ((struct want){RANKS, about, NULL}))
WANT(rank, number(about))
WANT(rank_slot, number(known.slot_of[about]))
WANT(rank_node, number(known.node_of[about]))
WANT(rank_host, text(known.nodes[known.node_of[about]].name))

static struct want node_full(uint32_t about)
{
    const struct known_node *node = &known.nodes[about];
    return node->slots ? flag(node->tasks > node->slots) : text(NULL);
}

static struct want node_peers(uint32_t about)
{
    static char *list;
    size_t size = known.nodes[about].tasks * 11u + 1, at = 0;
    list = realloc(list, size);
    for (uint32_t i = 0; i < known.nodes[about].tasks; i++)
        at += (size_t)snprintf(list + at, size - at, "%s%u", i ? "," : "",
                               known.nodes[about].ranks[i]);
    return text(list);
}

static struct want node_alias(uint32_t about)
{
    static char name[256];
    gethostname(name, sizeof name - 1);
    return text(here(about) ? name : NULL);
}

static struct want node_memory(uint32_t about)
{
    uint64_t bytes = (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGE_SIZE);
    return number_if_known(here(about) ? bytes : 0);
}

static struct want rank_folder(uint32_t about)
{
    return (struct want){about == client.me.rank ? FOLDER : UNKNOWN, 0, NULL};
}

/* A task's binding is known on its own node. */
static bool bound_here(pmix_rank_t about)
{
    return known.cpus[about] && here(known.node_of[about]);
}

static struct want rank_cpus(uint32_t about)
{
    static char cpus[300];
    snprintf(cpus, sizeof cpus, "hwloc:%s", known.cpus[about] ? known.cpus[about] : "");
    return text(bound_here(about) ? cpus : NULL);
}

static struct want rank_locality(uint32_t about)
{
    return (struct want){bound_here(about) ? SOME : UNKNOWN, 0, NULL};
}

/* One key, what it is about, and what it should be. */
static const struct row {
    const char *name, *key;
    enum realm realm;
    struct want (*want)(uint32_t about);
} rows[] = {
#define ROW(name, realm, want)                                                                     \
    {                                                                                              \
#name, name, realm, want                                                                   \
    }
    ROW(PMIX_SESSION_ID, SESSION, session_id),
    ROW(PMIX_UNIV_SIZE, SESSION, session_max),
    ROW(PMIX_MAX_PROCS, SESSION, session_max),
    ROW(PMIX_NUM_SLOTS, SESSION, session_slots),
    ROW(PMIX_NUM_ALLOCATED_NODES, SESSION, session_nodes),
    ROW(PMIX_ALLOCATED_NODELIST, SESSION, session_list),
    ROW(PMIX_CLUSTER_ID, SESSION, cluster),
    ROW(PMIX_RM_NAME, SESSION, some_text),
    ROW(PMIX_RM_VERSION, SESSION, some_text),
    ROW(PMIX_TMPDIR, SESSION, folder),
    ROW(PMIX_TDIR_RMCLEAN, SESSION, yes),
    ROW(PMIX_NSPACE, JOB, nspace),
    ROW(PMIX_JOBID, JOB, job_id),
    ROW(PMIX_JOB_SIZE, JOB, size),
    ROW(PMIX_MAX_PROCS, JOB, size),
    ROW(PMIX_JOB_NUM_APPS, JOB, one),
    ROW(PMIX_NPROC_OFFSET, JOB, zero),
    ROW(PMIX_NUM_NODES, JOB, nodes),
    ROW(PMIX_NUM_SLOTS, JOB, step_slots),
    ROW(PMIX_NUM_ALLOCATED_NODES, JOB, session_nodes),
    ROW(PMIX_ALLOCATED_NODELIST, JOB, session_list),
    ROW(PMIX_NODE_LIST, JOB, node_list),
    ROW(PMIX_ANL_MAP, JOB, layout),
    ROW(PMIX_SPAWNED, JOB, no),
    ROW(PMIX_USERID, JOB, user),
    ROW(PMIX_GRPID, JOB, group),
    ROW(PMIX_NSDIR, JOB, folder),
    ROW(PMIX_SERVER_NSPACE, JOB, some_text),
    ROW(PMIX_SERVER_RANK, JOB, my_node),
    ROW(PMIX_APP_SIZE, APP, size),
    ROW(PMIX_APPLDR, APP, zero),
    ROW(PMIX_MAX_PROCS, APP, size),
    ROW(PMIX_NUM_NODES, APP, nodes),
    ROW(PMIX_NODEID, NODE, node_id),
    ROW(PMIX_HOSTNAME, NODE, node_name),
    ROW(PMIX_LOCAL_SIZE, NODE, node_tasks),
    ROW(PMIX_NODE_SIZE, NODE, node_tasks),
    ROW(PMIX_LOCAL_PEERS, NODE, node_peers),
    ROW(PMIX_LOCAL_PROCS, NODE, node_procs),
    ROW(PMIX_LOCALLDR, NODE, node_leader),
    ROW(PMIX_NODE_OVERSUBSCRIBED, NODE, node_full),
    ROW(PMIX_NUM_SLOTS, NODE, node_slots),
    ROW(PMIX_MAX_PROCS, NODE, node_max),
    ROW(PMIX_HOSTNAME_ALIASES, NODE, node_alias),
    ROW(PMIX_AVAIL_PHYS_MEMORY, NODE, node_memory),
    ROW(PMIX_RANK, PROC, rank),
    ROW(PMIX_GLOBAL_RANK, PROC, rank),
    ROW(PMIX_APP_RANK, PROC, rank),
    ROW(PMIX_APPNUM, PROC, zero),
    ROW(PMIX_LOCAL_RANK, PROC, rank_slot),
    ROW(PMIX_NODE_RANK, PROC, rank_slot),
    ROW(PMIX_HOSTNAME, PROC, rank_host),
    ROW(PMIX_NODEID, PROC, rank_node),
    ROW(PMIX_REINCARNATION, PROC, zero),
    ROW(PMIX_SPAWNED, PROC, no),
    ROW(PMIX_PROCDIR, PROC, rank_folder),
    ROW(PMIX_CPUSET, PROC, rank_cpus),
    ROW(PMIX_LOCALITY_STRING, PROC, rank_locality),
};

/* How a key is asked for. */
enum way {
    BARE,      /* of the wildcard rank, no qualifier */
    QUALIFIED, /* PMIX_SESSION_INFO, PMIX_JOB_INFO, PMIX_APP_INFO or PMIX_NODE_INFO alone */
    BY_ID,     /* and PMIX_SESSION_ID, PMIX_APPNUM or PMIX_NODEID */
    BY_NAME,   /* and PMIX_HOSTNAME */
    OF_RANK,   /* of a rank, no qualifier */
};
static const char *const way_names[] = {"without a qualifier", "in its realm", "in its realm by id",
                                        "in its realm by host name", "of a rank"};

static long bound; /* expect that every rank is bound */
static unsigned asked, left_out, failures;

static __attribute__((format(printf, 4, 5))) void fail(const struct row *row, enum way way,
                                                       uint32_t about, const char *format, ...)
{
    char what[600];
    va_list args;
    va_start(args, format);
    vsnprintf(what, sizeof what, format, args);
    va_end(args);
    static const struct row *last_row;
    static enum way last_way;
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

static void compare_text(const struct row *row, enum way way, uint32_t about,
                         const struct want *want, const char *found)
{
    if (want->kind == TEXT && strcmp(found, want->text))
        fail(row, way, about, "expected \"%s\", found \"%s\"", want->text, found);
    if (want->kind == SOME && !found[0])
        fail(row, way, about, "expected some text, found none");
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
    uint32_t id = row->realm == APP ? 0 : about;
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
        return here(node) ? NULL : "not found of other nodes";
    if (is(row, NODE, PMIX_HOSTNAME))
        return here(node) || way == OF_RANK ? NULL : "not found of other nodes";
    if (row->realm == NODE && way == OF_RANK)
        return "a rank does not stand for its node";
    if (is(row, NODE, PMIX_MAX_PROCS) || is(row, NODE, PMIX_NUM_SLOTS))
        return "the job's is found";
    return NULL;
}

/* libpmix 5 and later: get_data() answers from what the process believes of itself and of the
 * question, and never looks. Without gds/hash the process has not been told its session and node.
 */
static const char *fault_of_5(const struct row *row, enum way way)
{
    if (is(row, SESSION, PMIX_SESSION_ID) && (way != BY_ID || LIBPMIX < 60000))
        return "the process has not been told its session";
    if (is(row, NODE, PMIX_NODEID) && way != BY_ID && way != OF_RANK)
        return "the process has not been told its node id";
    if (is(row, NODE, PMIX_HOSTNAME) && way == BY_ID)
        return "a node's id is not turned into its name";
    return NULL;
}

/* Why this libpmix does not find a key asked for in that way, or NULL: it does. */
static const char *library_fault(const struct row *row, enum way way, uint32_t about)
{
    const char *fault =
        LIBPMIX < 50000 ? fault_of_4_2(row, way, row->realm == PROC ? known.node_of[about] : about)
                        : fault_of_5(row, way);
    static const struct row *last_row;
    static enum way last_way;
    if (!fault)
        return NULL;
    if (client.me.rank == 0 && (row != last_row || way != last_way))
        printf("NOTE keys: SKIP %s %s: libpmix: %s\n", row->name, way_names[way], fault);
    last_row = row;
    last_way = way;
    return fault;
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
    if (library_fault(row, way, about)) {
        left_out++;
        return;
    }
    asked++;
    step("%s %s, about %u", row->name, way_names[way], about);
    size_t ninfo = qualify(info, row, way, about);
    pmix_status_t status = PMIx_Get(&proc, row->key, info, ninfo, &value);
    for (size_t i = 0; i < ninfo; i++)
        PMIX_INFO_DESTRUCT(&info[i]);
    if (status != PMIX_SUCCESS || !value) {
        fail(row, way, about, "expected a value, found %s", PMIx_Error_string(status));
        return;
    }
    compare(row, way, about, &want, value);
    PMIX_VALUE_RELEASE(value);
}

/* Whether a key without a qualifier means this realm: some stand in several. */
static bool bare_means(const struct row *row)
{
    if (!strcmp(row->key, PMIX_MAX_PROCS) || !strcmp(row->key, PMIX_NUM_SLOTS) ||
        !strcmp(row->key, PMIX_NUM_NODES) || !strcmp(row->key, PMIX_NUM_ALLOCATED_NODES) ||
        !strcmp(row->key, PMIX_ALLOCATED_NODELIST))
        return row->realm == JOB;
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
    default:
        if (bare_means(row))
            ask(row, BARE, 0, PMIX_RANK_WILDCARD);
        ask(row, QUALIFIED, 0, PMIX_RANK_WILDCARD);
        if (row->realm == APP || (row->realm == SESSION && known.session_id))
            ask(row, BY_ID, 0, PMIX_RANK_WILDCARD);
    }
}

int main(int argc, char **argv)
{
    const struct option_number options[] = {
        {"bound", &bound, "1: every rank has to be bound to some processors", NULL}, {0}};
    client_init("keys", options, argc, argv);
    known_find();
    CHECK(!bound || known.cpus[client.me.rank], "expected to be bound, found all processors");
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        ask_all_ways(&rows[i]);
    CHECK(failures == 0, "%u of %u answers are not what they should be", failures, asked);
    fence_all(false);
    return client_pass("%zu keys, %u questions a rank, %u left out for faults of libpmix",
                       sizeof rows / sizeof *rows, asked, left_out);
}
