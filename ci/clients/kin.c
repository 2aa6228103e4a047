/* SPDX-License-Identifier: BSD-3-Clause */
/* kin: all ranks and what rank 0 has spawned connect (RFC 0003), twice. Each process then has the
 * job-level keys of the other namespace in its own store: a get with PMIX_OPTIONAL, which asks no
 * server, finds them. The right values are those that each process finds of itself, and puts.
 *
 * libpmix 4.2 does not send them: docs/limits.md.
 */
#include "spawned.h"

#include <unistd.h>

enum { TEXT_MAX = 1024, ROUNDS = 2, PROCS_MAX = 64 };

/* Of another namespace libpmix finds the first two in no case from 5.0 on: it looks in the memory
 * alone that it shares with its server. */
static const char *const keys[] = {PMIX_HOSTNAME, PMIX_NODEID,      PMIX_LOCAL_RANK,
                                   PMIX_APPNUM,   PMIX_GLOBAL_RANK, PMIX_APP_RANK};
enum { FIRST = LIBPMIX >= 50000 ? 2 : 0, NKEYS = sizeof keys / sizeof *keys };

static char *text_of(const pmix_value_t *value, const char *key)
{
    char text[TEXT_MAX];
    if (value->type == PMIX_STRING)
        return strdup(value->data.string != NULL ? value->data.string : "");
    if (value->type == PMIX_PROC)
        snprintf(text, sizeof text, "%s.%u", value->data.proc->nspace, value->data.proc->rank);
    else
        snprintf(text, sizeof text, "%llu", (unsigned long long)number_in(value, key));
    return strdup(text);
}

/* @param here without asking a server @return a text to free, or NULL: not found */
static char *find(const pmix_proc_t *proc, const char *key, bool here)
{
    pmix_value_t *value = NULL;
    pmix_info_t optional;
    PMIX_INFO_LOAD(&optional, PMIX_OPTIONAL, NULL, PMIX_BOOL);
    if (PMIx_Get(proc, key, &optional, here, &value) != PMIX_SUCCESS || value == NULL)
        return NULL;
    char *text = text_of(value, key);
    PMIX_VALUE_RELEASE(value);
    return text;
}

static void check_text(char *found, const pmix_proc_t *proc, const char *key, char *expected)
{
    CHECK(found != NULL, "%s of %s rank %u is not here", key, proc->nspace, proc->rank);
    CHECK(strcmp(found, expected) == 0, "%s of %s rank %u: expected %s, found %s", key,
          proc->nspace, proc->rank, expected, found);
    free(found);
    free(expected);
}

/* What that process has put of itself. */
static char *put_of(const pmix_proc_t *proc, const char *key)
{
    char name[TEXT_MAX];
    snprintf(name, sizeof name, "kin.%s", key);
    char *text = find(proc, name, false);
    CHECK(text != NULL, "%s of %s rank %u", name, proc->nspace, proc->rank);
    return text;
}

static void put_all(void)
{
    const char *const more[] = {PMIX_LOCAL_PEERS, PMIX_JOB_SIZE, PMIX_NUM_NODES};
    for (size_t i = 0; i < NKEYS + 3; i++) {
        const char *key = i < NKEYS ? keys[i] : more[i - NKEYS];
        char *text = find(i < NKEYS ? &client.me : &client.all, key, false);
        CHECK(text != NULL, "%s of myself", key);
        put_string(PMIX_GLOBAL, text, "kin.%s", key);
        free(text);
    }
    commit();
}

/* What is here of the other namespace. */
struct here {
    char *size, *nodes, *peers;
    char *parents[PROCS_MAX], *texts[PROCS_MAX][NKEYS];
};

static void look_here(struct here *here, const pmix_proc_t *all)
{
    pmix_proc_t proc = *all;
    *here = (struct here){.size = find(all, PMIX_JOB_SIZE, true),
                          .nodes = find(all, PMIX_NUM_NODES, true),
                          .peers = find(all, PMIX_LOCAL_PEERS, true)};
    CHECK(here->size != NULL, "%s of %s is not here", PMIX_JOB_SIZE, all->nspace);
    for (proc.rank = 0; proc.rank < (pmix_rank_t)atoi(here->size); proc.rank++) {
        CHECK(proc.rank < PROCS_MAX, "%s processes", here->size);
        here->parents[proc.rank] = find(&proc, PMIX_PARENT_ID, true);
        for (size_t i = FIRST; i < NKEYS; i++)
            here->texts[proc.rank][i] = find(&proc, keys[i], true);
    }
}

/* @param parent whose child each of the other namespace is; or NULL */
static void look_at(const char *nspace, const char *parent)
{
    struct here here;
    pmix_proc_t all, proc;
    char *host = find(&client.me, PMIX_HOSTNAME, false);
    PMIX_LOAD_PROCID(&all, nspace, PMIX_RANK_WILDCARD);
    PMIX_LOAD_PROCID(&proc, nspace, 0);
    step("keys of %s", nspace);
    /* All of it before the first get that asks a server, as such a get brings other keys along. */
    look_here(&here, &all);
    for (pmix_rank_t n = (pmix_rank_t)atoi(here.size); proc.rank < n; proc.rank++) {
        char *theirs = put_of(&proc, PMIX_HOSTNAME);
        if (parent != NULL)
            check_text(here.parents[proc.rank], &proc, PMIX_PARENT_ID, strdup(parent));
        for (size_t i = FIRST; i < NKEYS; i++)
            check_text(here.texts[proc.rank][i], &proc, keys[i], put_of(&proc, keys[i]));
        if (strcmp(theirs, host) == 0) {
            check_text(here.peers, &all, PMIX_LOCAL_PEERS, put_of(&proc, PMIX_LOCAL_PEERS));
            here.peers = put_of(&proc, PMIX_LOCAL_PEERS); /* of the next rank here */
        }
        free(theirs);
    }
    proc.rank = 0;
    check_text(here.size, &all, PMIX_JOB_SIZE, put_of(&proc, PMIX_JOB_SIZE));
    check_text(here.nodes, &all, PMIX_NUM_NODES, put_of(&proc, PMIX_NUM_NODES));
    free(here.peers);
    free(host);
}

static void meet(const char *nspace, const char *parent)
{
    pmix_proc_t both[2];
    PMIX_LOAD_PROCID(&both[0], nspace, PMIX_RANK_WILDCARD);
    both[1] = client.all;
    for (int round = 0; round < ROUNDS; round++) {
        step("connect of parents and children");
        CHECK_OK(PMIx_Connect(both, 2, NULL, 0), "PMIx_Connect");
        look_at(nspace, parent);
        step("disconnect of parents and children");
        CHECK_OK(PMIx_Disconnect(both, 2, NULL, 0), "PMIx_Disconnect");
    }
}

static int child(void)
{
    pmix_proc_t parent;
    char *text;
    client.name = "kin's child";
    CHECK_OK(PMIx_Init(&client.me, NULL, 0), "PMIx_Init of the child");
    PMIX_LOAD_PROCID(&client.all, client.me.nspace, PMIX_RANK_WILDCARD);
    CHECK((text = find(&client.me, PMIX_PARENT_ID, false)) != NULL, "no PMIX_PARENT_ID");
    PMIX_LOAD_PROCID(&parent, text, 0);
    *strrchr(parent.nspace, '.') = '\0';
    free(text);
    put_all();
    meet(parent.nspace, NULL);
    CHECK_OK(PMIx_Finalize(NULL, 0), "PMIx_Finalize of the child");
    return 0;
}

static void spawn(int n, char *nspace)
{
    pmix_app_t app;
    char self[TEXT_MAX] = "";
    CHECK(readlink("/proc/self/exe", self, sizeof self - 1) > 0, "/proc/self/exe is no link");
    PMIX_APP_CONSTRUCT(&app);
    app.cmd = strdup(self);
    app.maxprocs = n;
    spawned_append(&app.argv, self);
    spawned_append(&app.argv, "--child");
    step("a spawn of %d", n);
    CHECK_OK(PMIx_Spawn(NULL, 0, &app, 1, nspace), "PMIx_Spawn");
    PMIX_APP_DESTRUCT(&app);
}

int main(int argc, char **argv)
{
    static long n = 2;
    static const struct option_number options[] = {{"n", &n, "processes that are spawned", NULL},
                                                   {NULL}};
    pmix_nspace_t nspace = "";
    char parent[TEXT_MAX];
    if (argc == 2 && strcmp(argv[1], "--child") == 0) {
        alarm(120);
        return child();
    }
    client_init("kin", options, argc, argv);
    if (LIBPMIX < 50000)
        return client_skip("this libpmix does not tell processes of other namespaces");
    if (client.me.rank == 0) {
        spawn((int)n, nspace);
        put_string(PMIX_GLOBAL, nspace, "children");
    }
    put_all();
    fence_all(true);
    char *children = get_string(0, "children");
    snprintf(parent, sizeof parent, "%s.0", client.me.nspace);
    meet(children, parent);
    free(children);
    return client_pass("%u parents, %ld children", client.size, n);
}
