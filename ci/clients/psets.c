/* SPDX-License-Identifier: BSD-3-Clause */
/* psets: the process sets of the step are what $PSETS_EXPECTED says, "ocean=0-3:ice=4-7": by
 * queries, by the keys of each process, and by events. Their members form groups of those names.
 * "" stands for none. From libpmix 5 on a process defines one more.
 *
 * With --part 0 and --part 1, run in two jobs that have one --run number: part 0 has the set
 * "gone", and ends when all of part 1 have heard of it; then all of part 1 hear that the set is no
 * more.
 */
#include "event.h"
#include "group.h"

enum { SETS_MAX = 8, DEFINED_TIMES = LIBPMIX < 50000 ? 2 : 1 };

struct set {
    char name[64];
    pmix_rank_t first, last;
};

static struct set sets[SETS_MAX];
static size_t nsets;
static long part = -1, run = 0;

static void read_expected(const char *text)
{
    int used;
    for (; *text != '\0'; text += text[used] == ':' ? used + 1 : used) {
        struct set *set = &sets[nsets++];
        CHECK(nsets <= SETS_MAX &&
                  sscanf(text, "%63[^=]=%u-%u%n", set->name, &set->first, &set->last, &used) == 3,
              "PSETS_EXPECTED: expected NAME=RANK-RANK:…, found %s", text);
    }
}

static bool is_in(const struct set *set, pmix_rank_t rank)
{
    return rank >= set->first && rank <= set->last;
}

/* Times that @p name stands in a list with commas. */
static size_t count_in(const char *list, const char *name)
{
    size_t n = 0, len = strlen(name);
    for (const char *p = list; p != NULL; p = strchr(p, ','), p += p != NULL)
        n += strncmp(p, name, len) == 0 && (p[len] == ',' || p[len] == '\0');
    return n;
}

/* @return the value of @p key, to be released; NULL: it is not found */
static pmix_value_t *ask(const char *key, const char *set)
{
    pmix_query_t query;
    pmix_status_t status;
    pmix_info_t *results = NULL;
    size_t nresults = 0;
    pmix_value_t *value = NULL;
    PMIX_QUERY_CONSTRUCT(&query);
    PMIX_ARGV_APPEND(status, query.keys, key);
    CHECK_OK(status, "PMIX_ARGV_APPEND");
    if (set != NULL) {
        PMIX_QUERY_QUALIFIERS_CREATE(&query, 1);
        PMIX_INFO_LOAD(&query.qualifiers[0], PMIX_PSET_NAME, set, PMIX_STRING);
    }
    step("query of %s", key);
    status = PMIx_Query_info(&query, 1, &results, &nresults);
    PMIX_QUERY_DESTRUCT(&query);
    for (size_t i = 0; i < nresults && value == NULL; i++)
        if (PMIX_CHECK_KEY(&results[i], key)) {
            PMIX_VALUE_CREATE(value, 1);
            PMIX_VALUE_XFER(status, value, &results[i].value);
        }
    if (results != NULL)
        PMIX_INFO_FREE(results, nresults);
    return value;
}

static void check_queries(void)
{
    pmix_value_t *value = ask(PMIX_QUERY_NUM_PSETS, NULL);
    CHECK_EQ(number_in(value, "number of sets"), nsets, "number of sets");
    PMIX_VALUE_RELEASE(value);
    value = ask(PMIX_QUERY_PSET_NAMES, NULL);
    CHECK(value != NULL && value->type == PMIX_STRING, "names of sets: expected a list");
    for (size_t i = 0; i < nsets; i++)
        CHECK_EQ(count_in(value->data.string, sets[i].name), 1, sets[i].name);
    PMIX_VALUE_RELEASE(value);
    for (size_t i = 0; i < nsets; i++) {
        value = ask(PMIX_QUERY_PSET_MEMBERSHIP, sets[i].name);
        CHECK(value != NULL && value->type == PMIX_DATA_ARRAY &&
                  value->data.darray->type == PMIX_PROC,
              "members of %s: expected an array of processes", sets[i].name);
        const pmix_data_array_t *array = value->data.darray;
        CHECK_EQ(array->size, sets[i].last - sets[i].first + 1, "number of members");
        for (size_t k = 0; k < array->size; k++)
            CHECK(is_in(&sets[i], ((pmix_proc_t *)array->array)[k].rank) &&
                      PMIX_CHECK_NSPACE(((pmix_proc_t *)array->array)[k].nspace, client.me.nspace),
                  "members of %s: rank %u is none", sets[i].name,
                  ((pmix_proc_t *)array->array)[k].rank);
        PMIX_VALUE_RELEASE(value);
    }
    value = ask(PMIX_QUERY_PSET_MEMBERSHIP, "no such set");
    CHECK(value == NULL, "members of a set that does not exist: expected none");
}

/* libpmix 4.2 finds neither key of a rank. PMIX_PSET_NAME is there when a set has all ranks. */
static void check_keys(void)
{
    size_t whole = 0;
    if (LIBPMIX < 50000)
        return;
    while (whole < nsets && (sets[whole].first > 0 || sets[whole].last + 1 < client.size))
        whole++;
    for (pmix_rank_t rank = 0; rank < client.size; rank++) {
        step("set of rank %u", rank);
        if (whole == nsets) {
            CHECK_STATUS(try_get(rank, PMIX_PSET_NAME, NULL, 0), PMIX_ERR_NOT_FOUND,
                         "PMIX_PSET_NAME where no set has all ranks");
            continue;
        }
        char *name = get_string(rank, "%s", PMIX_PSET_NAME);
        CHECK(strcmp(name, sets[whole].name) == 0, "set of rank %u: expected %s, found %s", rank,
              sets[whole].name, name);
        free(name);
    }
    pmix_value_t *value = NULL;
    pmix_status_t status = PMIx_Get(&client.me, PMIX_PSET_NAMES, NULL, 0, &value);
    for (size_t i = 0; i < nsets; i++) {
        bool found = status == PMIX_SUCCESS && count_in(value->data.string, sets[i].name) == 1;
        CHECK(found == is_in(&sets[i], client.me.rank), "PMIX_PSET_NAMES: %s is %s", sets[i].name,
              found ? "there" : "missing");
    }
    if (status == PMIX_SUCCESS)
        PMIX_VALUE_RELEASE(value);
}

/* @return how often a set was told of by that code */
static size_t told(struct listener *heard, pmix_status_t code, const char *name)
{
    size_t n = 0;
    pthread_mutex_lock(&heard->lock);
    for (size_t k = 0; k < heard->n; k++)
        for (size_t j = 0; j < heard->seen[k].ninfo && heard->seen[k].code == code; j++)
            n += PMIX_CHECK_KEY(&heard->seen[k].info[j], PMIX_PSET_NAME) &&
                 strcmp(heard->seen[k].info[j].value.data.string, name) == 0;
    pthread_mutex_unlock(&heard->lock);
    return n;
}

/* They were defined before this process began, and libpmix keeps the events. 4.2 sends what it has
 * kept when a process connects, and once more when it registers. */
static struct listener *hear_all(void)
{
    const pmix_status_t code = PMIX_PROCESS_SET_DEFINE;
    struct listener *heard = listen_to(&code, 1, NULL, 0);
    step("events of %zu sets", nsets);
    listen_wait(heard, code, PMIX_RANK_WILDCARD, nsets * DEFINED_TIMES);
    return heard;
}

/* Much later, when a second event of a set would have come. */
static void check_events(struct listener *heard)
{
    for (size_t i = 0; i < nsets; i++)
        CHECK_EQ(told(heard, PMIX_PROCESS_SET_DEFINE, sets[i].name), DEFINED_TIMES, sets[i].name);
    listen_end(heard);
}

/* ---- two jobs ---- */

static void publish(const char *what)
{
    char key[64];
    pmix_info_t info;
    snprintf(key, sizeof key, "psets.%ld.%s", run, what);
    PMIX_INFO_LOAD(&info, key, what, PMIX_STRING);
    CHECK_OK(PMIx_Publish(&info, 1), key);
    PMIX_INFO_DESTRUCT(&info);
}

/* Waits until the other job has published it. That makes its namespace known to all of ours. */
static void await(const char *what)
{
    pmix_pdata_t data;
    pmix_info_t info;
    bool yes = true;
    PMIX_PDATA_CONSTRUCT(&data);
    snprintf(data.key, sizeof data.key, "psets.%ld.%s", run, what);
    PMIX_INFO_LOAD(&info, PMIX_WAIT, &yes, PMIX_BOOL);
    step("lookup of %s", data.key);
    CHECK_OK(PMIx_Lookup(&data, 1, &info, 1), data.key);
    PMIX_PDATA_DESTRUCT(&data);
}

static int leave(void)
{
    if (client.me.rank == 0) {
        publish("here");
        await("heard");
    }
    fence_all(false);
    return client_pass("the set ends with its job");
}

static int be_left(void)
{
    const pmix_status_t codes[] = {PMIX_PROCESS_SET_DEFINE, PMIX_PROCESS_SET_DELETE};
    struct listener *heard = listen_to(codes, 2, NULL, 0);
    if (client.me.rank == 0)
        await("here");
    step("event that the other job's set is there");
    listen_wait(heard, codes[0], PMIX_RANK_WILDCARD, 1);
    CHECK_EQ(told(heard, codes[0], "gone"), 1, "definition of the other job's set");
    CHECK_EQ(told(heard, codes[1], "gone"), 0, "end of the other job's set, while it lives");
    fence_all(false);
    if (client.me.rank == 0)
        publish("heard");
    step("event that the other job's set is no more");
    listen_wait(heard, codes[1], PMIX_RANK_WILDCARD, 1);
    CHECK_EQ(told(heard, codes[1], "gone"), 1, "end of the other job's set");
    step("last fence");
    fence_all(false);
    listen_end(heard);
    return client_pass("told of the other job's set and of its end");
}

/* ---- one job ---- */

static void check_groups(void)
{
    for (size_t i = 0; i < nsets; i++) {
        struct group_result result;
        pmix_proc_t *members = calloc(client.size, sizeof *members);
        size_t n = 0;
        for (pmix_rank_t rank = sets[i].first; rank <= sets[i].last; rank++)
            members[n++] = proc_of(rank);
        if (is_in(&sets[i], client.me.rank)) {
            step("group of %s", sets[i].name);
            group_construct(sets[i].name, members, n, &result);
            group_check_members(&result, members, n);
            group_result_free(&result);
            group_destruct(sets[i].name);
        }
        free(members);
    }
}

#ifdef PMIX_JOB_CTRL_DEFINE_PSET
static pmix_status_t define(const char *name, pmix_rank_t n)
{
    pmix_info_t info, *results = NULL;
    size_t nresults = 0;
    pmix_proc_t *targets = calloc(n, sizeof *targets);
    for (pmix_rank_t rank = 0; rank < n; rank++)
        targets[rank] = proc_of(n - 1 - rank);
    PMIX_INFO_LOAD(&info, PMIX_JOB_CTRL_DEFINE_PSET, name, PMIX_STRING);
    pmix_status_t status = PMIx_Job_control(targets, n, &info, 1, &results, &nresults);
    PMIX_INFO_DESTRUCT(&info);
    free(targets);
    return status;
}

/* The last rank defines one more, and all find it as soon as the call has returned. */
static void define_more(struct listener *heard)
{
    struct set *more = &sets[nsets++];
    CHECK(nsets <= SETS_MAX, "at most %d sets", SETS_MAX);
    *more = (struct set){.name = "reef", .first = 0, .last = client.size / 2};
    step("a set that a process defines");
    fence_all(false); /* the others have asked for the sets that there are */
    if (client.me.rank == client.size - 1) {
        CHECK_OK(define(more->name, more->last + 1), "a new set");
        CHECK_OK(define(more->name, more->last + 1), "the same again");
        CHECK_STATUS(define(more->name, 1), PMIX_ERR_EXISTS, "a set of that name");
        CHECK_STATUS(define("no name", 1), PMIX_ERR_BAD_PARAM, "a name with a blank");
        CHECK_STATUS(define(client.me.nspace, 1), PMIX_ERR_BAD_PARAM, "the namespace's name");
    }
    fence_all(false);
    check_queries();
    listen_wait(heard, PMIX_PROCESS_SET_DEFINE, PMIX_RANK_WILDCARD, nsets);
}
#endif

int main(int argc, char **argv)
{
    const struct option_number options[] = {
        {"part", &part, "of two jobs: 0 has the set \"gone\" and ends, 1 hears of it; -1: one job",
         NULL},
        {"run", &run, "number of the run, the same in both", NULL},
        {NULL, NULL, NULL, NULL}};
    const char *expected = getenv("PSETS_EXPECTED");
    client_init("psets", options, argc, argv);
    if (part >= 0)
        return part == 0 ? leave() : be_left();
    if (expected == NULL)
        return client_skip("PSETS_EXPECTED is not set");
    read_expected(expected);
    struct listener *heard = hear_all();
    check_queries();
    check_keys();
    check_groups();
#ifdef PMIX_JOB_CTRL_DEFINE_PSET
    define_more(heard);
#endif
    step("last fence");
    fence_all(false);
    check_events(heard);
    return client_pass("%zu sets", nsets);
}
