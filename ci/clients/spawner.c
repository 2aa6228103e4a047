/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * A program that starts others (PMIx_Spawn), and what these see. Each rank that --spawn names
 * calls; the child is this program with --child.
 */
#include "client.h"

#include <pthread.h>
#include <unistd.h>

enum { TEXT_MAX = 1024 };

static const char *program;

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
    CHECK_OK(PMIx_Fence(NULL, 0, NULL, 0), "PMIx_Fence of the children");
    char cwd[TEXT_MAX] = "";
    printf("CHILD %u of %u in %s colour %s\n", me.rank, size, getcwd(cwd, sizeof cwd),
           colour != NULL ? colour : "none");
    fflush(stdout);
    const char *pause = getenv("SPAWN_PAUSE"), *status = getenv("SPAWN_STATUS");
    if (pause != NULL)
        sleep((unsigned)atoi(pause));
    if (getenv("SPAWN_ABORT") != NULL)
        PMIx_Abort(atoi(getenv("SPAWN_ABORT")), "the child aborts", NULL, 0);
    CHECK_OK(PMIx_Finalize(NULL, 0), "PMIx_Finalize of the child");
    return status != NULL ? atoi(status) : 0;
}

/* ---- events ---- */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
static char ended[PMIX_MAX_NSLEN + 1];
static int ended_code = -1;

static void on_end(size_t id, pmix_status_t status, const pmix_proc_t *source, pmix_info_t info[],
                   size_t ninfo, pmix_info_t results[], size_t nresults,
                   pmix_event_notification_cbfunc_fn_t done, void *cbdata)
{
    (void)id, (void)status, (void)source, (void)results, (void)nresults;
    pthread_mutex_lock(&lock);
    for (size_t i = 0; i < ninfo; i++) {
        if (PMIX_CHECK_KEY(&info[i], PMIX_EVENT_AFFECTED_PROC))
            snprintf(ended, sizeof ended, "%s", info[i].value.data.proc->nspace);
        else if (PMIX_CHECK_KEY(&info[i], PMIX_EXIT_CODE))
            ended_code = info[i].value.data.integer;
    }
    pthread_cond_broadcast(&cond);
    pthread_mutex_unlock(&lock);
    if (done != NULL)
        done(PMIX_EVENT_ACTION_COMPLETE, NULL, 0, NULL, NULL, cbdata);
}

static void await_end(const char *nspace, int code)
{
    pthread_mutex_lock(&lock);
    while (strcmp(ended, nspace) != 0)
        pthread_cond_wait(&cond, &lock); /* the watchdog bounds it */
    CHECK_EQ(ended_code, code, "PMIX_EXIT_CODE of the end");
    pthread_mutex_unlock(&lock);
}

/* ---- the parent ---- */

/* libpmix's own names for it differ between releases. */
static void append(char ***list, const char *text)
{
    size_t n = 0;
    while (*list != NULL && (*list)[n] != NULL)
        n++;
    *list = realloc(*list, (n + 2) * sizeof **list);
    (*list)[n] = strdup(text);
    (*list)[n + 1] = NULL;
}

static void load_app(pmix_app_t *app, const char *cmd, int n, const char *const env[])
{
    char rank[16];
    snprintf(rank, sizeof rank, "%u", client.me.rank);
    const char *args[] = {cmd, "--child", client.me.nspace, rank};
    PMIX_APP_CONSTRUCT(app);
    app->cmd = strdup(cmd);
    app->maxprocs = n;
    for (size_t i = 0; i < sizeof args / sizeof *args; i++)
        append(&app->argv, args[i]);
    for (; *env != NULL; env++)
        append(&app->env, *env);
}

/* @param wdir NULL: none */
static pmix_status_t spawn(const char *cmd, int n, const char *wdir, const char *env, char *nspace)
{
    pmix_app_t app;
    pmix_info_t info[1];
    bool yes = true;
    load_app(&app, cmd, n, (const char *const[]){"SPAWN_COLOUR=red", env, NULL});
    if (wdir != NULL)
        app.cwd = strdup(wdir);
    PMIX_INFO_LOAD(&info[0], PMIX_NOTIFY_COMPLETION, &yes, PMIX_BOOL);
    pmix_status_t rc = PMIx_Spawn(info, 1, &app, 1, nspace);
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
        append(&app.argv, args[i]);
    PMIX_INFO_LOAD(&info[0], PMIX_NOTIFY_COMPLETION, &yes, PMIX_BOOL);
    pmix_status_t rc = PMIx_Spawn(info, 1, &app, 1, nspace);
    PMIX_APP_DESTRUCT(&app);
    return rc;
}

static void good(int n)
{
    pmix_nspace_t nspace;
    pmix_proc_t all;
    pmix_value_t *value;
    step("a spawn of %d", n);
    CHECK_OK(spawn(program, n, "/usr", NULL, nspace), "PMIx_Spawn");
    PMIX_LOAD_PROCID(&all, nspace, PMIX_RANK_WILDCARD);
    CHECK_OK(PMIx_Get(&all, PMIX_JOB_SIZE, NULL, 0, &value), "PMIX_JOB_SIZE of the spawned job");
    CHECK_EQ(value->data.uint32, n, "PMIX_JOB_SIZE of the spawned job");
    PMIX_VALUE_RELEASE(value);
    await_end(nspace, 0);
    step("a spawn that ends with 7");
    CHECK_OK(spawn(program, 1, NULL, "SPAWN_STATUS=7", nspace), "PMIx_Spawn");
    await_end(nspace, 7);
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
    static long spawners = 1, n = 2, rounds = 1, what;
    static const struct option_number options[] = {
        {"spawners", &spawners, "ranks below this call PMIx_Spawn", NULL},
        {"n", &n, "processes of each spawn", NULL},
        {"rounds", &rounds, "spawns one after another", NULL},
        {"what", &what, "what is spawned",
         "all|good|missing|forbidden|directory|many|leave|abort|nested|hold|tell"},
        {NULL},
    };
    if (argc == 4 && strcmp(argv[1], "--child") == 0)
        return child(argv[2], argv[3]);
    char self[TEXT_MAX] = "";
    if (readlink("/proc/self/exe", self, sizeof self - 1) < 0)
        return 1;
    program = self;
    client_init("spawner", options, argc, argv);
    pmix_status_t code = PMIX_EVENT_JOB_END;
    PMIx_Register_event_handler(&code, 1, NULL, 0, on_end, NULL, NULL);
    if (client.me.rank < (pmix_rank_t)spawners) {
        pmix_nspace_t nspace;
        for (long i = 0; i < rounds && what <= 1; i++)
            good((int)n);
        if (what == 0 || what == 2)
            bad("/no/such/program", 2, NULL, PMIX_ERR_JOB_EXE_NOT_FOUND);
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
        if (what == 10) {
            pthread_mutex_lock(&lock);
            while (strcmp(ended, nspace) != 0)
                pthread_cond_wait(&cond, &lock);
            printf("ENDED with %d\n", ended_code);
            pthread_mutex_unlock(&lock);
        }
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
