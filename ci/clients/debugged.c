/* SPDX-License-Identifier: BSD-3-Clause */
/* debugged: processes wait for a debugger, in PMIx_Init or in the program. --as
 *   step    the step was started so (MUSTER_DEBUG). Rank 0 starts a tool before PMIx_Init: it hears
 *          that all are ready, and starts another one, which connects later, hears the same, and
 *          releases them
 *   parent  rank 0 spawns --n of them, hears that they are ready, and releases them
 *   watcher  rank 0 finds the --n processes of the namespace WATCHED, which is another step's
 * --daemons   signal: none, but SIGCONT instead of the release, at exec; resume: nor that, but rank
 * 0 alone is stopped at its exec, and rank 1 resumes it by job control; node or proc: a parent's
 * daemons, one a node or a process, find the processes of their nodes, and release all
 * --where   init, app, or, for a parent, exec; --rank: one process alone stops, and the others go
 * on; --dead: one ends before PMIx_Init, and is not awaited; with --late they wait for it in a
 * fence, whose deadline (MUSTER_TIMEOUTS_FENCE) is shorter
 */
#include "event.h"
#include "spawned.h"

#include <fcntl.h>
#include <pmix_tool.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

enum { AS_STEP, AS_PARENT, AS_WATCHER };
enum { IN_INIT, IN_APP, ON_EXEC };

enum { DAEMONS_NONE, DAEMONS_NODE, DAEMONS_PROC, BY_SIGNAL, BY_RESUME };

#define APP_BREAKPOINT "debugged-app"
#define GO "debugged.go" /* published before the release */

static long as = AS_STEP, n = 2, where = IN_INIT, rank = -1, dead = -1, daemons = DAEMONS_NONE,
            late;

static const char *breakpoint(void)
{
    return where == IN_INIT ? "pmix-init" : where == ON_EXEC ? "exec" : APP_BREAKPOINT;
}

/* Without a callback, as debuggers and libpmix itself do it: with one, libpmix 4.2 answers a tool
 * twice, and a client of the resource manager's range never. */
static void raise_event(pmix_status_t code, pmix_data_range_t range, pmix_info_t *info,
                        size_t ninfo)
{
    pmix_status_t rc = PMIx_Notify_event(code, &client.me, range, info, ninfo, NULL, NULL);
    CHECK(rc == PMIX_SUCCESS || rc == PMIX_OPERATION_SUCCEEDED, "event %d: %s", code,
          PMIx_Error_string(rc));
}

/* ---- the debugger ---- */

/* Waits until all are ready. @param nspace gets theirs */
static struct listener *await_ready(char *nspace)
{
    const pmix_status_t code = PMIX_READY_FOR_DEBUG;
    struct listener *l = listen_to(&code, 1, NULL, 0);
    const char *at = "";
    listen_wait(l, code, PMIX_RANK_WILDCARD, 1);
    nspace[0] = '\0';
    for (size_t i = 0; i < l->seen[0].ninfo; i++) {
        const pmix_info_t *info = &l->seen[0].info[i];
        if (PMIX_CHECK_KEY(info, PMIX_NSPACE))
            PMIX_LOAD_NSPACE(nspace, info->value.data.string);
        if (PMIX_CHECK_KEY(info, PMIX_BREAKPOINT))
            at = info->value.data.string;
    }
    CHECK(nspace[0] != '\0', "expected PMIX_NSPACE in the event, found none");
    CHECK(strcmp(at, breakpoint()) == 0, "PMIX_BREAKPOINT: expected %s, found %s", breakpoint(),
          at);
    return l;
}

static void release(const char *nspace)
{
    pmix_info_t info[2];
    pmix_proc_t all;
    bool yes = true;
    PMIX_LOAD_PROCID(&all, nspace, PMIX_RANK_WILDCARD);
    event_target(&info[0], &all, 1);
    PMIX_INFO_LOAD(&info[1], PMIX_EVENT_NON_DEFAULT, &yes, PMIX_BOOL);
    raise_event(PMIX_DEBUGGER_RELEASE, PMIX_RANGE_CUSTOM, info, 2);
}

/* This program once more, as a tool, with nothing of the environment that is libpmix's.
 * @param role "tool" or "late" @param in its standard input @param out its standard output */
static pid_t start_tool(const char *role, const char *uri, int in, int out)
{
    char *argv[] = {"debugged", (char *)role, (char *)uri, where == IN_INIT ? "init" : "app", NULL},
         *env[] = {NULL};
    posix_spawn_file_actions_t files;
    pid_t pid;
    posix_spawn_file_actions_init(&files);
    posix_spawn_file_actions_adddup2(&files, in, STDIN_FILENO);
    posix_spawn_file_actions_adddup2(&files, out, STDOUT_FILENO);
    CHECK_EQ(posix_spawn(&pid, "/proc/self/exe", &files, NULL, argv, env), 0, "posix_spawn");
    posix_spawn_file_actions_destroy(&files);
    return pid;
}

static void await_tool(pid_t pid)
{
    int status = -1;
    CHECK_EQ(waitpid(pid, &status, 0), pid, "waitpid");
    CHECK_EQ(status, 0, "wait status of the tool");
}

/* Prints when it releases the processes, once it has read that it may. */
static int be_a_tool(char **argv)
{
    pmix_info_t info;
    pmix_nspace_t nspace;
    alarm(60);
    client.name = argv[1];
    where = strcmp(argv[3], "app") == 0 ? IN_APP : IN_INIT;
    PMIX_INFO_LOAD(&info, PMIX_SERVER_URI, argv[2], PMIX_STRING);
    CHECK_OK(PMIx_tool_init(&client.me, &info, 1), "PMIx_tool_init");
    step("processes that are ready");
    struct listener *l = await_ready(nspace);
    if (strcmp(argv[1], "tool") == 0) {
        await_tool(start_tool("late", argv[2], STDIN_FILENO, STDOUT_FILENO));
    } else {
        CHECK_EQ(getchar(), 'g', "the word that processes may be released");
        printf("%llu\n", (unsigned long long)now_ns());
        fflush(stdout);
        release(nspace);
    }
    CHECK_EQ(listen_count(l, 0, PMIX_RANK_WILDCARD), 1, "events that the tool got");
    CHECK_OK(PMIx_tool_finalize(), "PMIx_tool_finalize");
    return 0;
}

static const char *find_uri(void)
{
    for (size_t i = 0; environ[i] != NULL; i++)
        if (strncmp(environ[i], "PMIX_SERVER_URI", strlen("PMIX_SERVER_URI")) == 0)
            return strchr(environ[i], '=') + 1;
    CHECK(false, "expected PMIX_SERVER_URI… in the environment, found none");
    return NULL;
}

/* ---- those that are debugged ---- */

/* What an MPI does in MPI_Init. */
static void stop_in_app(void)
{
    const pmix_status_t code = PMIX_DEBUGGER_RELEASE;
    pmix_info_t info[2];
    pmix_value_t *value = NULL;
    bool yes = true;
    step("the release");
    CHECK_OK(PMIx_Get(&client.all, PMIX_DEBUG_STOP_IN_APP, NULL, 0, &value),
             "PMIx_Get of PMIX_DEBUG_STOP_IN_APP");
    PMIX_VALUE_RELEASE(value);
    struct listener *l = listen_to(&code, 1, NULL, 0);
    PMIX_INFO_LOAD(&info[0], PMIX_EVENT_NON_DEFAULT, &yes, PMIX_BOOL);
    PMIX_INFO_LOAD(&info[1], PMIX_BREAKPOINT, APP_BREAKPOINT, PMIX_STRING);
    raise_event(PMIX_READY_FOR_DEBUG, PMIX_RANGE_RM, info, 2);
    listen_wait(l, code, PMIX_RANK_WILDCARD, 1);
}

/* @param without a rank; -1: none */
static void fence_others(long without, bool collect)
{
    pmix_proc_t *others = calloc(client.size, sizeof *others);
    size_t nothers = 0;
    for (pmix_rank_t r = 0; r < client.size; r++)
        if ((long)r != without)
            others[nothers++] = proc_of(r);
    if (without != (long)client.me.rank)
        fence_of(others, nothers, collect);
    free(others);
}

/* Has the tool release those that wait, with --late from a process beside this one. */
static void let_release(int go)
{
    pid_t pid = late > 0 ? fork() : 0;
    if (late > 0 && pid == 0)
        sleep_ms(late);
    bool sent = pid != 0 || write(go, "g", 1) == 1;
    if (late > 0 && pid == 0)
        _exit(sent ? 0 : 1);
    CHECK(sent, "the tool is gone");
}

/* None that waits goes on before the release. */
static int be_stopped(const char *program, int argc, char **argv,
                      const struct option_number *options)
{
    const char *own = getenv("PMIX_RANK");
    bool leader = own != NULL && strcmp(own, "0") == 0;
    int pipe_of[2] = {-1, -1}, go[2] = {-1, -1};
    pid_t pid = 0;
    if (leader) {
        CHECK(pipe2(pipe_of, O_CLOEXEC) == 0 && pipe2(go, O_CLOEXEC) == 0, "there is no pipe");
        pid = start_tool("tool", find_uri(), go[0], pipe_of[1]);
        close(pipe_of[1]);
    }
    bool alone = false; /* one of the others waits */
    for (int i = 1; i < argc; i++) {
        alone |= strcmp(argv[i], "--rank") == 0;
        if (own != NULL && i + 1 < argc && strcmp(argv[i], "--dead") == 0 &&
            strcmp(argv[i + 1], own) == 0)
            _exit(0);
    }
    if (leader && !alone)
        CHECK(write(go[1], "g", 1) == 1, "the tool is gone");
    client_init(program, options, argc, argv);
    if (rank >= 0)
        fence_others(rank, false);
    if (rank >= 0 && leader)
        let_release(go[1]);
    if (where == IN_APP && (rank < 0 || rank == (long)client.me.rank))
        stop_in_app();
    uint64_t on = now_ns();
    if (leader) {
        unsigned long long at = 0;
        FILE *in = fdopen(pipe_of[0], "r");
        CHECK_EQ(fscanf(in, "%llu", &at), 1, "the tool's word of its release");
        await_tool(pid);
        fclose(in);
        put_u64(PMIX_GLOBAL, at, "debugged.at");
        commit();
    }
    fence_others(dead, true);
    uint64_t at = get_u64(0, "debugged.at");
    if (rank < 0 || rank == (long)client.me.rank)
        CHECK(on > at, "rank %u goes on %lld us before the release", client.me.rank,
              (long long)(at - on) / 1000);
    fence_others(dead, false);
    return client_pass("%u ranks waited for a debugger", client.size);
}

/* ---- tables of processes ---- */

/* @return the table of @p nspace, or NULL: there is none; PMIX_INFO_FREE() it, 1 */
static pmix_info_t *ask_table(const char *key, const char *nspace)
{
    pmix_query_t query;
    pmix_info_t *results = NULL;
    size_t nresults = 0;
    pmix_status_t status;
    PMIX_QUERY_CONSTRUCT(&query);
    PMIX_ARGV_APPEND(status, query.keys, key);
    CHECK_OK(status, "PMIX_ARGV_APPEND");
    PMIX_QUERY_QUALIFIERS_CREATE(&query, 1);
    PMIX_INFO_LOAD(&query.qualifiers[0], PMIX_NSPACE, nspace, PMIX_STRING);
    status = PMIx_Query_info(&query, 1, &results, &nresults);
    PMIX_QUERY_DESTRUCT(&query);
    return status == PMIX_SUCCESS ? results : NULL;
}

/* @return whether the process, which is on this machine, is stopped, and is the program, but has
 * not come as far as loading its libraries */
static bool is_at_exec(pid_t pid, const char *self)
{
    char path[64], text[4096] = "", exe[1024] = "";
    snprintf(path, sizeof path, "/proc/%d/exe", (int)pid);
    CHECK(readlink(path, exe, sizeof exe - 1) > 0, "%s cannot be read", path);
    /* of another root it has that root's path in front */
    size_t len = strlen(exe), own = strlen(self);
    CHECK(len >= own && strcmp(exe + len - own, self) == 0, "%s: expected %s, found %s", path, self,
          exe);
    snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    FILE *in = fopen(path, "r");
    CHECK(in != NULL && fgets(text, sizeof text, in) != NULL, "%s cannot be read", path);
    fclose(in);
    const char *state = strrchr(text, ')');
    CHECK(state != NULL && state[2] == 'T', "%s: expected a stopped process, found %s", path, text);
    snprintf(path, sizeof path, "/proc/%d/maps", (int)pid);
    in = fopen(path, "r");
    CHECK(in != NULL, "%s cannot be read", path);
    bool loaded = false;
    while (fgets(text, sizeof text, in) != NULL)
        loaded |= strstr(text, "libpmix") != NULL || strstr(text, "libc.so") != NULL;
    fclose(in);
    return !loaded;
}

/* Those that are to be are at their exec; gives them SIGCONT if @p go. */
static void look_at_exec(const char *nspace, const char *self, bool go)
{
    pmix_info_t *results = ask_table(PMIX_QUERY_PROC_TABLE, nspace);
    CHECK(results != NULL, "there is no table of %s", nspace);
    const pmix_data_array_t *table = results[0].value.data.darray;
    const pmix_proc_info_t *rows = table->array;
    CHECK_EQ(table->size, n, "processes in the table");
    for (size_t i = 0; i < table->size; i++) {
        if (daemons == BY_RESUME && rows[i].proc.rank != 0)
            continue;
        CHECK(is_at_exec(rows[i].pid, self), "process %d has loaded its libraries",
              (int)rows[i].pid);
        if (go)
            CHECK_EQ(kill(rows[i].pid, SIGCONT), 0, "kill");
    }
    PMIX_INFO_FREE(results, 1);
}

/* @return how many processes of @p nspace, which is another step's, have a number, a program, and
 * are connected */
static long count_table(const char *key, const char *nspace)
{
    pmix_info_t *results = ask_table(key, nspace);
    long connected = 0;
    if (results == NULL)
        return 0;
    const pmix_data_array_t *table = results[0].value.data.darray;
    const pmix_proc_info_t *rows = table->array;
    for (size_t i = 0; i < table->size; i++)
        connected += rows[i].pid > 0 && rows[i].executable_name != NULL &&
                     rows[i].executable_name[0] == '/' &&
                     rows[i].state == PMIX_PROC_STATE_CONNECTED;
    PMIX_INFO_FREE(results, 1);
    return connected;
}

static bool has_table(const char *nspace)
{
    return count_table(PMIX_QUERY_PROC_TABLE, nspace) == n;
}

/* ---- daemons ---- */

/* @param all "N": how many processes they are to find together */
static int be_a_daemon(const char *all)
{
    pmix_value_t *value = NULL;
    pmix_proc_t target;
    alarm(60);
    client.name = "daemon";
    CHECK_OK(PMIx_Init(&client.me, NULL, 0), "PMIx_Init");
    PMIX_LOAD_PROCID(&client.all, client.me.nspace, PMIX_RANK_WILDCARD);
    CHECK_OK(PMIx_Get(&client.all, PMIX_DEBUG_TARGET, NULL, 0, &value), "PMIX_DEBUG_TARGET");
    target = *value->data.proc;
    PMIX_VALUE_RELEASE(value);
    client.size = (uint32_t)get_u64(PMIX_RANK_WILDCARD, PMIX_JOB_SIZE);
    put_u64(PMIX_GLOBAL, (uint64_t)count_table(PMIX_QUERY_LOCAL_PROC_TABLE, target.nspace),
            "debugged.n");
    put_u64(PMIX_GLOBAL, get_u64(PMIX_RANK_WILDCARD, PMIX_LOCAL_SIZE), "debugged.daemons");
    commit();
    fence_all(true);
    /* of each node, those that are one of so many daemons there */
    double found = 0;
    for (pmix_rank_t r = 0; r < client.size; r++)
        found += (double)get_u64(r, "debugged.n") / (double)get_u64(r, "debugged.daemons");
    CHECK_EQ(found + 0.5, strtol(all, NULL, 10), "processes in the tables of all nodes");
    if (client.me.rank == 0) {
        printf("DAEMONS %u\n", client.size);
        release(target.nspace);
    }
    CHECK_OK(PMIx_Finalize(NULL, 0), "PMIx_Finalize");
    return 0;
}

/* ---- a parent ---- */

/* Once rank 0 has been looked at. The watchdog bounds it. */
static void resume_first(void)
{
    pmix_info_t info, *results = NULL;
    size_t nresults = 0;
    pmix_proc_t first = proc_of(0);
    bool yes = true;
    pmix_pdata_t data;
    PMIX_PDATA_CONSTRUCT(&data);
    snprintf(data.key, sizeof data.key, "%s", GO);
    while (PMIx_Lookup(&data, 1, NULL, 0) != PMIX_SUCCESS)
        sleep_ms(50);
    PMIX_PDATA_DESTRUCT(&data);
    PMIX_INFO_LOAD(&info, PMIX_JOB_CTRL_RESUME, &yes, PMIX_BOOL);
    CHECK_OK(PMIx_Job_control(&first, 1, &info, 1, &results, &nresults), "PMIx_Job_control");
}

static int be_spawned(bool resumes)
{
    pmix_pdata_t data;
    client.name = "debugged";
    alarm(60);
    CHECK_OK(PMIx_Init(&client.me, NULL, 0), "PMIx_Init");
    PMIX_LOAD_PROCID(&client.all, client.me.nspace, PMIX_RANK_WILDCARD);
    if (where == IN_APP)
        stop_in_app();
    if (resumes && client.me.rank == 1)
        resume_first();
    if (resumes)
        fence_all(false);
    PMIX_PDATA_CONSTRUCT(&data);
    snprintf(data.key, sizeof data.key, "%s", GO);
    CHECK_OK(PMIx_Lookup(&data, 1, NULL, 0),
             "PMIx_Lookup of what was published before the release");
    PMIX_PDATA_DESTRUCT(&data);
    CHECK_OK(PMIx_Finalize(NULL, 0), "PMIx_Finalize");
    return 0;
}

/* Whom this step has never met. The watchdog bounds it. */
static void watch(void)
{
    const char *nspace = getenv("WATCHED");
    CHECK(nspace != NULL, "set WATCHED to a namespace");
    step("the table of %s", nspace);
    while (!has_table(nspace))
        sleep_ms(50);
}

/* They release what is debugged. */
static void spawn_daemons(const char *self, const char *target)
{
    pmix_app_t app;
    pmix_info_t info[4];
    pmix_nspace_t nspace;
    pmix_proc_t proc;
    char all[16];
    uint16_t one = 1;
    bool yes = true;
    step("a debugger's daemons");
    snprintf(all, sizeof all, "%ld", n);
    PMIX_APP_CONSTRUCT(&app);
    app.cmd = strdup(self);
    spawned_append(&app.argv, self);
    spawned_append(&app.argv, "daemon");
    spawned_append(&app.argv, all);
    PMIX_LOAD_PROCID(&proc, target, PMIX_RANK_WILDCARD);
    PMIX_INFO_LOAD(&info[0], PMIX_DEBUGGER_DAEMONS, &yes, PMIX_BOOL);
    PMIX_INFO_LOAD(&info[1], PMIX_DEBUG_TARGET, &proc, PMIX_PROC);
    PMIX_INFO_LOAD(&info[2],
                   daemons == DAEMONS_NODE ? PMIX_DEBUG_DAEMONS_PER_NODE
                                           : PMIX_DEBUG_DAEMONS_PER_PROC,
                   &one, PMIX_UINT16);
    PMIX_INFO_LOAD(&info[3], PMIX_NOTIFY_COMPLETION, &yes, PMIX_BOOL);
    CHECK_OK(PMIx_Spawn(info, 4, &app, 1, nspace), "PMIx_Spawn of daemons");
    PMIX_APP_DESTRUCT(&app);
}

static void be_a_parent(void)
{
    pmix_app_t app;
    pmix_info_t info[3], go;
    pmix_nspace_t child, ready;
    char self[1024] = "";
    pmix_rank_t first = 0;
    bool yes = true;
    step("a spawn that stops");
    CHECK(readlink("/proc/self/exe", self, sizeof self - 1) > 0, "no program");
    PMIX_APP_CONSTRUCT(&app);
    app.cmd = strdup(self);
    app.maxprocs = (int)n;
    spawned_append(&app.argv, self);
    spawned_append(&app.argv, "child");
    spawned_append(&app.argv, where == IN_APP ? "app" : "init");
    if (daemons == BY_RESUME)
        spawned_append(&app.argv, "resume");
    PMIX_INFO_LOAD(&info[0],
                   where == IN_INIT   ? PMIX_DEBUG_STOP_IN_INIT
                   : where == ON_EXEC ? PMIX_DEBUG_STOP_ON_EXEC
                                      : PMIX_DEBUG_STOP_IN_APP,
                   &yes, PMIX_BOOL);
    if (daemons == BY_RESUME)
        PMIX_INFO_LOAD(&info[0], PMIX_DEBUG_STOP_ON_EXEC, &first, PMIX_PROC_RANK);
    PMIX_INFO_LOAD(&info[1], PMIX_NOTIFY_COMPLETION, &yes, PMIX_BOOL);
    PMIX_INFO_LOAD(&info[2], PMIX_MAPBY, "node", PMIX_STRING);
    PMIX_INFO_REQUIRED(&info[0]);
    spawned_watch();
    CHECK_OK(PMIx_Spawn(info, 3, &app, 1, child), "PMIx_Spawn");
    PMIX_APP_DESTRUCT(&app);
    step("spawned processes that are ready");
    await_ready(ready);
    CHECK(strcmp(ready, child) == 0, "PMIX_NSPACE: expected %s, found %s", child, ready);
    step("the table of the spawned processes");
    CHECK(where == ON_EXEC || has_table(child), "the table of %s is not whole", child);
    if (where == ON_EXEC)
        look_at_exec(child, self, false);
    PMIX_INFO_LOAD(&go, GO, "go", PMIX_STRING);
    CHECK_OK(PMIx_Publish(&go, 1), "PMIx_Publish");
    if (late > 0)
        sleep_ms(late);
    if (daemons == DAEMONS_NONE)
        release(child);
    else if (daemons == BY_SIGNAL)
        look_at_exec(child, self, true);
    else if (daemons != BY_RESUME)
        spawn_daemons(self, child);
    step("the end of what is released");
    CHECK_EQ(spawned_end(child), 0, "PMIX_EXIT_CODE of the spawned processes");
}

int main(int argc, char **argv)
{
    const struct option_number options[] = {
        {"as", &as, "who waits", "step|parent|watcher"},
        {"n", &n, "processes that a parent starts", NULL},
        {"where", &where, "where they wait", "init|app|exec"},
        {"rank", &rank, "the only one that waits", NULL},
        {"dead", &dead, "one that ends before PMIx_Init, and is not awaited", NULL},
        {"daemons", &daemons, "of a parent", "none|node|proc|signal|resume"},
        {"late", &late,
         "ms until they are released, while the others, if there are, are in a fence", NULL},
        {0}};
    if (argc > 3 && (strcmp(argv[1], "tool") == 0 || strcmp(argv[1], "late") == 0))
        return be_a_tool(argv);
    if (argc > 2 && strcmp(argv[1], "child") == 0) {
        where = strcmp(argv[2], "app") == 0 ? IN_APP : IN_INIT;
        return be_spawned(argc > 3);
    }
    if (argc > 2 && strcmp(argv[1], "daemon") == 0)
        return be_a_daemon(argv[2]);
    for (int i = 1; i + 1 < argc; i++) { /* before PMIx_Init */
        as = strcmp(argv[i + 1], "parent") == 0    ? AS_PARENT
             : strcmp(argv[i + 1], "watcher") == 0 ? AS_WATCHER
                                                   : as;
        where = strcmp(argv[i + 1], "app") == 0    ? IN_APP
                : strcmp(argv[i + 1], "exec") == 0 ? ON_EXEC
                                                   : where;
    }
    if (as == AS_STEP)
        return be_stopped("debugged", argc, argv, options);
    client_init("debugged", options, argc, argv);
    if (client.me.rank == 0 && as == AS_WATCHER)
        watch();
    else if (client.me.rank == 0)
        be_a_parent();
    fence_all(false);
    return client_pass(as == AS_WATCHER ? "%ld processes of another step in a table"
                                        : "%ld spawned processes waited for a debugger",
                       n);
}
