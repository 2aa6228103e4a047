/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * A program that starts others (PMIx_Spawn), and what these see. Each rank that --spawn names
 * calls; the child is this program with --child.
 */
#include "spawned.h"

#include <pmix_tool.h>
#include <pthread.h>
#include <unistd.h>

enum { TEXT_MAX = 1024 };

static const char *program;

/* A group of all processes of two namespaces. The context id has 4.2 hand up a wildcard. */
static void group_over(const char *one, const char *other)
{
    pmix_proc_t procs[2];
    pmix_info_t info[1], *results = NULL;
    size_t n = 0;
    bool yes = true;
    PMIX_LOAD_PROCID(&procs[0], one, PMIX_RANK_WILDCARD);
    PMIX_LOAD_PROCID(&procs[1], other, PMIX_RANK_WILDCARD);
    PMIX_INFO_LOAD(&info[0], PMIX_GROUP_ASSIGN_CONTEXT_ID, &yes, PMIX_BOOL);
    CHECK_OK(PMIx_Group_construct("family", procs, 2, info, 1, &results, &n),
             "a group of parents and children");
    CHECK(n > 0, "the group has no context id");
    PMIX_INFO_FREE(results, n);
    CHECK_OK(PMIx_Fence(procs, 2, NULL, 0), "a fence of parents and children");
    CHECK_OK(PMIx_Group_destruct("family", NULL, 0), "the group's destruct");
}

/* ---- the child ---- */

static int child(const char *parent, const char *rank)
{
    pmix_proc_t me, all;
    pmix_value_t *value;
    client.name = "spawner's child";
    CHECK_OK(PMIx_Init(&me, NULL, 0), "PMIx_Init of the child");
    client.me = me;
    PMIX_LOAD_PROCID(&all, me.nspace, PMIX_RANK_WILDCARD);
    CHECK_OK(PMIx_Get(&me, PMIX_PARENT_ID, NULL, 0, &value), "PMIX_PARENT_ID");
    CHECK(value->type == PMIX_PROC, "PMIX_PARENT_ID: type %d", value->type);
    CHECK(strcmp(value->data.proc->nspace, parent) == 0, "PMIX_PARENT_ID: %s, expected %s",
          value->data.proc->nspace, parent);
    CHECK_EQ(value->data.proc->rank, atoi(rank), "rank of PMIX_PARENT_ID");
    PMIX_VALUE_RELEASE(value);
    CHECK_OK(PMIx_Get(&me, PMIX_SPAWNED, NULL, 0, &value), "PMIX_SPAWNED");
    CHECK(value->type == PMIX_BOOL && value->data.flag, "PMIX_SPAWNED is not true");
    PMIX_VALUE_RELEASE(value);
    CHECK_OK(PMIx_Get(&all, PMIX_JOB_SIZE, NULL, 0, &value), "PMIX_JOB_SIZE");
    uint32_t size = value->data.uint32;
    PMIX_VALUE_RELEASE(value);
    const char *colour = getenv("SPAWN_COLOUR");
    CHECK(getenv("MUSTER_EXEC_0") == NULL && getenv("MUSTER_PARENT") == NULL,
          "the plan is left in the environment");
    CHECK(getenv("FLUX_TASK_X") == NULL && getenv("PMI_X") == NULL,
          "the parent's variables are, too");
    CHECK_OK(PMIx_Fence(NULL, 0, NULL, 0), "PMIx_Fence of the children");
    if (getenv("SPAWN_GROUP") != NULL)
        group_over(parent, me.nspace);
    char cwd[TEXT_MAX] = "";
    printf("CHILD %u of %u in %s colour %s\n", me.rank, size, getcwd(cwd, sizeof cwd),
           colour != NULL ? colour : "none");
    if (getenv("SPAWN_ZERO") != NULL)
        printf("ZERO%cBYTE\n", '\0');
    fflush(stdout);
    const char *pause = getenv("SPAWN_PAUSE"), *status = getenv("SPAWN_STATUS");
    if (pause != NULL) {
        sleep((unsigned)atoi(pause));
        printf("LATE %u\n", me.rank);
    }
    if (getenv("SPAWN_ABORT") != NULL) {
        CHECK_OK(PMIx_Fence(NULL, 0, NULL, 0), "PMIx_Fence of the children that have printed");
        PMIx_Abort(atoi(getenv("SPAWN_ABORT")), "the child aborts", NULL, 0);
    }
    CHECK_OK(PMIx_Finalize(NULL, 0), "PMIx_Finalize of the child");
    return status != NULL ? atoi(status) : 0;
}

static void await_end(const char *nspace, int code)
{
    CHECK_EQ(spawned_end(nspace), code, "PMIX_EXIT_CODE of the end");
}

/* ---- the parent ---- */

static void load_app(pmix_app_t *app, const char *cmd, int n, const char *const env[])
{
    char rank[16];
    snprintf(rank, sizeof rank, "%u", client.me.rank);
    const char *args[] = {cmd, "--child", client.me.nspace, rank};
    PMIX_APP_CONSTRUCT(app);
    app->cmd = strdup(cmd);
    app->maxprocs = n;
    for (size_t i = 0; i < sizeof args / sizeof *args; i++)
        spawned_append(&app->argv, args[i]);
    for (; *env != NULL; env++)
        spawned_append(&app->env, *env);
}

/* @param wdir NULL: none */
static pmix_status_t spawn(const char *cmd, int n, const char *wdir, const char *env, char *nspace)
{
    pmix_app_t app;
    pmix_info_t info[2];
    bool yes = true, forward = getenv("SPAWNER_FORWARD") != NULL;
    load_app(&app, cmd, n, (const char *const[]){"SPAWN_COLOUR=red", env, NULL});
    if (wdir != NULL)
        app.cwd = strdup(wdir);
    PMIX_INFO_LOAD(&info[0], PMIX_NOTIFY_COMPLETION, &yes, PMIX_BOOL);
    PMIX_INFO_LOAD(&info[1], PMIX_FWD_STDOUT, &forward, PMIX_BOOL);
    pmix_status_t rc = PMIx_Spawn(info, 2, &app, 1, nspace);
    PMIX_APP_DESTRUCT(&app);
    return rc;
}

/* Of this program as a parent. */
static pmix_status_t spawn_nested(char *nspace)
{
    pmix_app_t app;
    pmix_info_t info[1];
    bool yes = true;
    const char *args[] = {program, "--what", "good", "--seconds", "100"};
    PMIX_APP_CONSTRUCT(&app);
    app.cmd = strdup(program);
    app.maxprocs = 2;
    for (size_t i = 0; i < sizeof args / sizeof *args; i++)
        spawned_append(&app.argv, args[i]);
    PMIX_INFO_LOAD(&info[0], PMIX_NOTIFY_COMPLETION, &yes, PMIX_BOOL);
    pmix_status_t rc = PMIx_Spawn(info, 1, &app, 1, nspace);
    PMIX_APP_DESTRUCT(&app);
    return rc;
}

/* What is known of a spawned job is known for some seconds after its end, too. */
static void check_size(const char *nspace, int n)
{
    pmix_proc_t all;
    pmix_value_t *value;
    PMIX_LOAD_PROCID(&all, nspace, PMIX_RANK_WILDCARD);
    CHECK_OK(PMIx_Get(&all, PMIX_JOB_SIZE, NULL, 0, &value), "PMIX_JOB_SIZE of the spawned job");
    CHECK_EQ(value->data.uint32, n, "PMIX_JOB_SIZE of the spawned job");
    PMIX_VALUE_RELEASE(value);
}

static void good(int n)
{
    pmix_nspace_t nspace;
    step("a spawn of %d", n);
    uint64_t begin = now_ns();
    CHECK_OK(spawn(program, n, "/usr", NULL, nspace), "PMIx_Spawn");
    printf("SPAWNED after %.0f ms\n", (double)(now_ns() - begin) / 1e6);
    fflush(stdout);
    check_size(nspace, n);
    await_end(nspace, 0);
    step("a spawn that ends with 7");
    CHECK_OK(spawn(program, 1, NULL, "SPAWN_STATUS=7", nspace), "PMIx_Spawn");
    await_end(nspace, 7);
    check_size(nspace, 1);
}

static uint32_t universe(const char *nspace)
{
    pmix_proc_t all;
    pmix_value_t *value;
    PMIX_LOAD_PROCID(&all, nspace, PMIX_RANK_WILDCARD);
    CHECK_OK(PMIx_Get(&all, PMIX_UNIV_SIZE, NULL, 0, &value), "PMIX_UNIV_SIZE");
    uint32_t size = value->data.uint32;
    PMIX_VALUE_RELEASE(value);
    return size;
}

/* Rank 0 tells the others of the children, and all make a group with them, without a connect. */
static void family(int n)
{
    pmix_nspace_t nspace = "";
    pmix_proc_t first;
    pmix_value_t *value, name = {.type = PMIX_STRING, .data.string = nspace};
    step("a group of parents and children");
    if (client.me.rank == 0) {
        CHECK_OK(spawn(program, n, NULL, "SPAWN_GROUP=1", nspace), "PMIx_Spawn");
        CHECK_OK(PMIx_Put(PMIX_GLOBAL, "children", &name), "PMIx_Put");
        CHECK_OK(PMIx_Commit(), "PMIx_Commit");
    }
    fence_all(true);
    PMIX_LOAD_PROCID(&first, client.me.nspace, 0);
    CHECK_OK(PMIx_Get(&first, "children", NULL, 0, &value), "the children's namespace");
    if (PMIX_VERSION_MAJOR > 4) /* before, no key of another job's session is found */
        CHECK_EQ(universe(value->data.string), universe(client.me.nspace),
                 "the children's session");
    group_over(client.me.nspace, value->data.string);
    if (client.me.rank == 0)
        await_end(nspace, 0);
    PMIX_VALUE_RELEASE(value);
}

static void bad(const char *cmd, int n, const char *wdir, pmix_status_t expected)
{
    pmix_nspace_t nspace = "";
    step("a spawn of %s in %s", cmd, wdir != NULL ? wdir : "this directory");
    uint64_t begin = now_ns();
    pmix_status_t rc = spawn(cmd, n, wdir, NULL, nspace);
    printf("REFUSED %s after %.1f s\n", PMIx_Error_string(rc), (double)(now_ns() - begin) / 1e9);
    fflush(stdout);
    CHECK_STATUS(rc, expected, "PMIx_Spawn");
}

/* ---- output ---- */

enum { PRINTERS_MAX = 64 };

/* What was pulled; guarded by the lock. */
static struct {
    pthread_mutex_t lock;
    pthread_cond_t cond;
    char *text[2][PRINTERS_MAX];
    size_t len[2][PRINTERS_MAX];
    int nended;
} pulled = {.lock = PTHREAD_MUTEX_INITIALIZER, .cond = PTHREAD_COND_INITIALIZER};

static void on_output(size_t id, pmix_iof_channel_t channel, pmix_proc_t *source,
                      pmix_byte_object_t *bytes, pmix_info_t info[], size_t ninfo)
{
    int err = channel == PMIX_FWD_STDERR_CHANNEL;
    (void)id, (void)info, (void)ninfo;
    pthread_mutex_lock(&pulled.lock);
    CHECK(source->rank < PRINTERS_MAX, "output of rank %u", source->rank);
    char **text = &pulled.text[err][source->rank];
    size_t *len = &pulled.len[err][source->rank];
    *text = realloc(*text, *len + bytes->size + 1);
    if (bytes->size > 0)
        memcpy(*text + *len, bytes->bytes, bytes->size);
    *len += bytes->size;
    (*text)[*len] = '\0';
    pulled.nended += bytes->size == 0;
    pthread_cond_signal(&pulled.cond);
    pthread_mutex_unlock(&pulled.lock);
}

static void check_pulled(int n, long lines)
{
    step("the output that was pulled");
    pthread_mutex_lock(&pulled.lock);
    while (pulled.nended < 2 * n)
        pthread_cond_wait(&pulled.cond, &pulled.lock);
    pthread_mutex_unlock(&pulled.lock);
    for (int rank = 0; rank < n; rank++)
        for (int err = 0; err < 2; err++) {
            char *expected = NULL;
            size_t len;
            FILE *out = open_memstream(&expected, &len);
            for (long i = 0; i < lines; i++)
                spawned_line(out, err ? "ERR" : "OUT", rank, i);
            fclose(out);
            CHECK(strcmp(pulled.text[err][rank], expected) == 0,
                  "stream %d of rank %d is not what it prints: %zu bytes, expected %zu", err + 1,
                  rank, pulled.len[err][rank], len);
            free(expected);
        }
}

static void pull(const char *nspace)
{
    pmix_proc_t all;
    PMIX_LOAD_PROCID(&all, nspace, PMIX_RANK_WILDCARD);
    const pmix_iof_channel_t both = PMIX_FWD_STDOUT_CHANNEL | PMIX_FWD_STDERR_CHANNEL;
    step("a pull of what is not forwarded");
    pmix_proc_t nobody = client.all;
    PMIX_LOAD_NSPACE(nobody.nspace, "nobody.1");
    CHECK_STATUS(PMIx_IOF_pull(&nobody, 1, NULL, 0, both, on_output, NULL, NULL),
                 PMIX_ERR_NOT_SUPPORTED, "a pull of a job that is not known");
    step("a pull of what is");
    pmix_status_t id = PMIx_IOF_pull(&all, 1, NULL, 0, both, on_output, NULL, NULL);
    CHECK(id >= 0, "PMIx_IOF_pull: %s", PMIx_Error_string(id));
}

static void output(int n, long lines, pmix_rank_t puller)
{
    pmix_nspace_t nspace = "";
    pmix_proc_t first;
    pmix_info_t info[3];
    pmix_value_t *value, name = {.type = PMIX_STRING, .data.string = nspace};
    const char *const keys[] = {PMIX_FWD_STDOUT, PMIX_FWD_STDERR, PMIX_NOTIFY_COMPLETION};
    const char *go = getenv("SPAWNER_GO");
    bool yes = true;
    CHECK(n <= PRINTERS_MAX && go != NULL, "too many processes, or no SPAWNER_GO");
    for (int i = 0; i < 3; i++)
        PMIX_INFO_LOAD(&info[i], keys[i], &yes, PMIX_BOOL);
    if (client.me.rank == 0) {
        step("a spawn whose output comes here");
        CHECK_OK(spawned_printers("/proc/self/exe", n, lines, go, info, 3, nspace), "PMIx_Spawn");
        CHECK_OK(PMIx_Put(PMIX_GLOBAL, "printers", &name), "PMIx_Put");
        CHECK_OK(PMIx_Commit(), "PMIx_Commit");
    }
    fence_all(true);
    PMIX_LOAD_PROCID(&first, client.me.nspace, 0);
    CHECK_OK(PMIx_Get(&first, "printers", NULL, 0, &value), "the printers' namespace");
    if (client.me.rank == puller)
        pull(value->data.string);
    fence_all(false);
    if (client.me.rank == 0) {
        step("the end of what prints");
        fclose(fopen(go, "w"));
        await_end(nspace, 0);
    }
    if (client.me.rank == puller)
        check_pulled(n, lines);
    PMIX_VALUE_RELEASE(value);
}

/* ---- input ---- */

static void input(int n, long lines)
{
    pmix_nspace_t nspace = "";
    pmix_info_t info[3];
    pmix_rank_t all = PMIX_RANK_WILDCARD, last = (pmix_rank_t)n - 1;
    bool yes = true;
    step("input for one process");
    PMIX_INFO_LOAD(&info[0], PMIX_NOTIFY_COMPLETION, &yes, PMIX_BOOL);
    PMIX_INFO_LOAD(&info[1], PMIX_FWD_STDIN, &yes, PMIX_BOOL);
    PMIX_INFO_LOAD(&info[2], PMIX_STDIN_TGT, &last, PMIX_PROC_RANK);
    CHECK_OK(spawned_readers(n, lines, last, info, 3, nspace), "PMIx_Spawn");
    spawned_push(nspace, last, lines);
    await_end(nspace, 0);
    step("input for all");
    PMIX_INFO_LOAD(&info[1], PMIX_FWD_STDIN, &all, PMIX_PROC_RANK);
    CHECK_OK(spawned_readers(n, lines, all, info, 2, nspace), "PMIx_Spawn");
    spawned_push(nspace, all, lines);
    await_end(nspace, 0);
}

/* What cannot be done is refused by name, if it is required. */
static void required(void)
{
    pmix_app_t app;
    pmix_info_t info[1];
    pmix_nspace_t nspace;
    step("a directive that cannot be done");
    load_app(&app, program, 1, (const char *const[]){NULL});
    PMIX_INFO_LOAD(&info[0], PMIX_MAPBY, "board", PMIX_STRING);
    PMIX_INFO_REQUIRED(&info[0]);
    CHECK_STATUS(PMIx_Spawn(info, 1, &app, 1, nspace), PMIX_ERR_NOT_SUPPORTED, "PMIx_Spawn");
    PMIX_APP_DESTRUCT(&app);
}

int main(int argc, char **argv)
{
    static long spawners = 1, n = 2, rounds = 1, lines = 1000, puller = 1, what;
    static const struct option_number options[] = {
        {"spawners", &spawners, "ranks below this call PMIx_Spawn", NULL},
        {"n", &n, "processes of each spawn", NULL},
        {"rounds", &rounds, "spawns one after another", NULL},
        {"lines", &lines, "lines that each process prints", NULL},
        {"puller", &puller, "the rank that takes them", NULL},
        {"what", &what, "what is spawned",
         "all|good|missing|forbidden|directory|many|leave|abort|nested|hold|tell|group|output|"
         "input"},
        {NULL},
    };
    if (argc == 4 && strcmp(argv[1], "--child") == 0)
        return child(argv[2], argv[3]);
    if (argc > 2 && strcmp(argv[1], SPAWNED_PRINT) == 0)
        return spawned_print(argv);
    if (argc > 3 && strcmp(argv[1], SPAWNED_READ) == 0)
        return spawned_read(argv);
    char self[TEXT_MAX] = "";
    if (readlink("/proc/self/exe", self, sizeof self - 1) < 0)
        return 1;
    program = self;
    client_init("spawner", options, argc, argv);
    /* Of a path that is long, the end is shown. */
    char missing[TEXT_MAX];
    snprintf(missing, sizeof missing, "/%0200d/%0200d/no/such/program", 0, 0);
    spawned_watch();
    if (what == 11)
        family((int)n);
    else if (what == 12)
        output((int)n, lines, (pmix_rank_t)puller);
    else if (what == 13 && client.me.rank == 0)
        input((int)n, lines);
    else if (client.me.rank < (pmix_rank_t)spawners && what != 13) {
        pmix_nspace_t nspace;
        for (long i = 0; i < rounds && what <= 1; i++)
            good((int)n);
        if (what == 0 || what == 2)
            bad(missing, 2, NULL, PMIX_ERR_JOB_EXE_NOT_FOUND);
        if (what == 0 || what == 3)
            bad("/etc/passwd", 2, NULL, PMIX_ERR_EXE_NOT_ACCESSIBLE);
        if (what == 0 || what == 4)
            bad(program, 2, "/no/such/directory", PMIX_ERR_JOB_WDIR_NOT_FOUND);
        if (what == 0 || what == 5)
            bad(program, 1000, NULL, PMIX_ERR_OUT_OF_RESOURCE);
        if (what == 0)
            required();
        if (what == 8) {
            step("a spawn of what spawns");
            CHECK_OK(spawn_nested(nspace), "PMIx_Spawn");
            await_end(nspace, 0);
        }
        if (what == 6 || what == 7 || what > 8)
            CHECK_OK(spawn(program, (int)n, NULL, getenv("SPAWNER_ENV"), nspace), "PMIx_Spawn");
        if (what == 10)
            printf("ENDED with %d\n", spawned_end(nspace));
        if (what == 9)
            sleep(1000); /* somebody ends the step */
        if (what == 7) {
            sleep(1);
            PMIx_Abort(9, "the parent aborts", NULL, 0);
        }
    }
    fence_all(false);
    return client_pass("%ld ranks have spawned", spawners);
}
