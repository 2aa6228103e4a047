/* SPDX-License-Identifier: BSD-3-Clause */
/* tools: processes that call PMIx_tool_init are served, and nobody minds them. --as
 *   spawner  one that starts --n processes, each of which prints --lines lines on both streams, and
 *          prints all of that itself, as prun does
 *   pusher  one that starts --n processes, the first of which reads its standard input
 *   other  one beside each task, which the host has to name: before the task's PMIx_Init, and after
 *   task   the tasks are tools themselves
 *   child  one that a connected task has started, and that takes its name. Up to libpmix 5.0 the
 *          task counts as finalized when that has: its next fence gives PMIX_ERR_PARTIAL_SUCCESS
 */
#include "spawned.h"

#include <fcntl.h>
#include <pmix_tool.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

enum { AS_OTHER, AS_TASK, AS_CHILD, AS_SPAWNER, AS_PUSHER };

enum { STOP_NO, STOP_WHILE, STOP_KILL };

static long as = AS_OTHER, n = 2, lines = 1000, stop;

/* @param uri the server's; NULL: the environment has it */
static void tool_init(pmix_proc_t *me, const char *uri)
{
    pmix_info_t info;
    alarm(60);
    PMIX_PROC_CONSTRUCT(me);
    if (uri != NULL)
        PMIX_INFO_LOAD(&info, PMIX_SERVER_URI, uri, PMIX_STRING);
    CHECK_OK(PMIx_tool_init(me, uri != NULL ? &info : NULL, uri != NULL), "PMIx_tool_init");
}

/* What a tool does. */
static void be_a_tool(pmix_proc_t *me, const char *uri)
{
    pmix_query_t query;
    pmix_info_t *results = NULL;
    size_t nresults = 0;
    pmix_status_t status;
    tool_init(me, uri);
    PMIX_QUERY_CONSTRUCT(&query);
    PMIX_ARGV_APPEND(status, query.keys, PMIX_QUERY_NUM_GROUPS);
    CHECK_OK(status, "PMIX_ARGV_APPEND");
    CHECK_OK(PMIx_Query_info(&query, 1, &results, &nresults), "a tool's query");
    CHECK_EQ(nresults, 1, "answers to a tool's query");
    CHECK_EQ(number_in(&results[0].value, PMIX_QUERY_NUM_GROUPS), 0, "number of groups");
    PMIX_QUERY_DESTRUCT(&query);
    PMIX_INFO_FREE(results, nresults);
    CHECK_OK(PMIx_tool_finalize(), "PMIx_tool_finalize");
}

static void on_collecting(pmix_status_t status, void *arg)
{
    (void)status, (void)arg;
}

/* What prun does: it awaits the end, whatever its directive says. libpmix prints what comes.
 * @param how "LINES N" */
static void be_a_spawner(const char *program, const char *uri, const char *how)
{
    pmix_proc_t me;
    pmix_nspace_t nspace;
    pmix_info_t info;
    bool no = false;
    tool_init(&me, uri);
    spawned_watch();
    PMIX_INFO_LOAD(&info, PMIX_NOTIFY_COMPLETION, &no, PMIX_BOOL);
    CHECK_EQ(sscanf(how, "%ld %ld", &lines, &n), 2, "numbers for the tool");
    CHECK_OK(spawned_printers(program, (int)n, lines, NULL, &info, 1, nspace), "a tool's spawn");
    CHECK_EQ(spawned_end(nspace), 0, "PMIX_EXIT_CODE of what the tool has spawned");
    CHECK_OK(PMIx_tool_finalize(), "PMIx_tool_finalize");
}

/* libpmix reads our standard input and pushes it. @param how "LINES N" */
static void be_a_pusher(const char *uri, const char *how)
{
    pmix_proc_t me, target;
    pmix_nspace_t nspace;
    pmix_info_t info[2];
    bool yes = true;
    tool_init(&me, uri);
    spawned_watch();
    PMIX_INFO_LOAD(&info[0], PMIX_NOTIFY_COMPLETION, &yes, PMIX_BOOL);
    PMIX_INFO_LOAD(&info[1], PMIX_FWD_STDIN, &yes, PMIX_BOOL);
    CHECK_EQ(sscanf(how, "%ld %ld", &lines, &n), 2, "numbers for the tool");
    CHECK_OK(spawned_readers((int)n, lines, 0, info, 2, nspace), "a tool's spawn");
    PMIX_LOAD_PROCID(&target, nspace, 0);
    PMIX_INFO_LOAD(&info[0], PMIX_IOF_PUSH_STDIN, &yes, PMIX_BOOL);
    pmix_status_t rc = PMIx_IOF_push(&target, 1, NULL, info, 1, on_collecting, NULL);
    CHECK(rc == PMIX_SUCCESS || rc == PMIX_OPERATION_SUCCEEDED, "PMIx_IOF_push: %s",
          PMIx_Error_string(rc));
    CHECK_EQ(spawned_end(nspace), 0, "PMIX_EXIT_CODE of what the tool has spawned");
    CHECK_OK(PMIx_tool_finalize(), "PMIx_tool_finalize");
}

/* @return KiB that the largest server here has */
static long kib_of_servers(void)
{
    FILE *in = popen("ps -C muster-server -o rss=", "r");
    long max = 0, kib;
    while (in != NULL && fscanf(in, "%ld", &kib) == 1)
        max = kib > max ? kib : max;
    pclose(in);
    CHECK(max > 0, "there is no muster-server");
    return max;
}

/* A tool that does not read: what is printed meanwhile stays with the processes that print. One
 * that is gone gets nothing that the terminal is to have. */
static void stop_tool(pid_t pid)
{
    enum { KIB_MAX = 3072, WAIT_MS = 3000 };
    if (stop == STOP_KILL) {
        kill(pid, SIGKILL);
        return;
    }
    long before = kib_of_servers();
    kill(pid, SIGSTOP);
    sleep_ms(WAIT_MS);
    long after = kib_of_servers();
    kill(pid, SIGCONT);
    printf("tools: the largest server had %ld KiB, and then %ld KiB\n", before, after);
    CHECK(after - before < KIB_MAX, "a server grew from %ld to %ld KiB", before, after);
}

/* What the tool prints on one stream has to be what the processes print, each in order. */
static void read_lines(int fd, const char *stream, pid_t pid)
{
    FILE *in = fdopen(fd, "r");
    long *next = calloc((size_t)n, sizeof *next), rank, line;
    char text[256], word[16];
    for (bool first = true; fgets(text, sizeof text, in) != NULL; first = false) {
        if (first && stop != STOP_NO)
            stop_tool(pid);
        CHECK_EQ(sscanf(text, "%15s %ld %ld", word, &rank, &line), 3, text);
        CHECK(strcmp(word, stream) == 0 && rank >= 0 && rank < n, "%s has: %s", stream, text);
        CHECK_EQ(line, next[rank]++, "number of the next line");
    }
    fclose(in);
    for (rank = 0; rank < n && stop != STOP_KILL; rank++)
        CHECK_EQ(next[rank], lines, stream);
    if (stop == STOP_KILL)
        printf("tools: killed after line %ld\n", next[0]);
    free(next);
}

/* @return where the server of this task is */
static char *find_uri(void)
{
    for (size_t i = 0; environ[i] != NULL; i++)
        if (strncmp(environ[i], "PMIX_SERVER_URI", strlen("PMIX_SERVER_URI")) == 0)
            return strchr(environ[i], '=') + 1;
    CHECK(false, "expected PMIX_SERVER_URI… in the environment, found none");
    return NULL;
}

/* What the tool reads has to fit into a pipe. */
static void run_pusher(char *program)
{
    char how[64];
    int in[2], status = -1;
    pid_t pid;
    char *argv[] = {program, "push", find_uri(), how, NULL}, *env[] = {NULL};
    posix_spawn_file_actions_t files;
    snprintf(how, sizeof how, "%ld %ld", lines, n);
    CHECK(pipe2(in, O_CLOEXEC) == 0, "there is no pipe");
    fcntl(in[1], F_SETPIPE_SZ, 1 << 20);
    FILE *out = fdopen(in[1], "w");
    for (long i = 0; i < lines; i++)
        spawned_line(out, "IN", 0, i);
    fclose(out);
    posix_spawn_file_actions_init(&files);
    posix_spawn_file_actions_adddup2(&files, in[0], STDIN_FILENO);
    CHECK_EQ(posix_spawn(&pid, "/proc/self/exe", &files, NULL, argv, env), 0, "posix_spawn");
    posix_spawn_file_actions_destroy(&files);
    close(in[0]);
    CHECK_EQ(waitpid(pid, &status, 0), pid, "waitpid");
    CHECK_EQ(status, 0, "wait status of the tool");
}

/* The streams are read one after the other, so the second one has to fit into its pipe. */
static void run_spawner(char *program)
{
    char how[64], *uri = find_uri();
    int out[2], err[2], status = -1;
    pid_t pid;
    char *env[] = {NULL};
    posix_spawn_file_actions_t files;
    snprintf(how, sizeof how, "%ld %ld", lines, n);
    char *argv[] = {program, "spawn", uri, how, NULL};
    CHECK(pipe(out) == 0 && pipe(err) == 0, "there is no pipe");
    fcntl(err[1], F_SETPIPE_SZ, 1 << 20);
    posix_spawn_file_actions_init(&files);
    posix_spawn_file_actions_adddup2(&files, out[1], STDOUT_FILENO);
    if (stop == STOP_NO)
        posix_spawn_file_actions_adddup2(&files, err[1], STDERR_FILENO);
    else
        posix_spawn_file_actions_addopen(&files, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
    for (int i = 0; i < 2; i++) {
        posix_spawn_file_actions_addclose(&files, out[i]);
        posix_spawn_file_actions_addclose(&files, err[i]);
    }
    CHECK_EQ(posix_spawn(&pid, "/proc/self/exe", &files, NULL, argv, env), 0, "posix_spawn");
    posix_spawn_file_actions_destroy(&files);
    close(out[1]);
    close(err[1]);
    read_lines(out[0], "OUT", pid);
    if (stop == STOP_NO)
        read_lines(err[0], "ERR", pid);
    CHECK_EQ(waitpid(pid, &status, 0), pid, "waitpid");
    CHECK_EQ(status, stop == STOP_KILL ? SIGKILL : 0, "wait status of the tool");
}

/* This program once more, as a tool. @param named it has this task's name; else it has nothing of
 * the environment that is libpmix's, and is told where the server is */
static void run_tool(char *program, bool named)
{
    char **env = calloc(1, sizeof *env), *uri = NULL;
    for (size_t i = 0, k = 0; environ[i] != NULL; i++) {
        env = realloc(env, (k + 2) * sizeof *env);
        if (named || strncmp(environ[i], "PMIX_", strlen("PMIX_")) != 0)
            env[k++] = environ[i];
        env[k] = NULL;
        if (strncmp(environ[i], "PMIX_SERVER_URI", strlen("PMIX_SERVER_URI")) == 0)
            uri = strchr(environ[i], '=') + 1;
    }
    CHECK(uri != NULL, "expected PMIX_SERVER_URI… in the environment, found none");
    char *argv[] = {program, "tool", named ? NULL : uri, NULL};
    pid_t pid;
    int status = -1;
    CHECK_EQ(posix_spawn(&pid, "/proc/self/exe", NULL, NULL, argv, env), 0, "posix_spawn");
    CHECK_EQ(waitpid(pid, &status, 0), pid, "waitpid");
    CHECK_EQ(status, 0, "wait status of the tool");
    free(env);
}

/* The job works on. */
static void exchange(const char *key)
{
    put_u64(PMIX_GLOBAL, client.me.rank, "%s", key);
    commit();
    fence_all(true);
    for (pmix_rank_t r = 0; r < client.size; r++)
        CHECK_EQ(get_u64(r, "%s", key), r, "a number exchanged after a tool");
}

int main(int argc, char **argv)
{
    const struct option_number options[] = {
        {"as", &as, "who is a tool", "other|task|child|spawner|pusher"},
        {"n", &n, "processes that a tool starts", NULL},
        {"lines", &lines, "lines of each", NULL},
        {"stop", &stop, "what happens to a tool that prints", "no|while|kill"},
        {0}};
    client.name = "tools";
    if (argc > 1 && strcmp(argv[1], SPAWNED_PRINT) == 0)
        return spawned_print(argv);
    if (argc > 1 && strcmp(argv[1], SPAWNED_READ) == 0)
        return spawned_read(argv);
    if (argc > 3 && strcmp(argv[1], "push") == 0) {
        be_a_pusher(argv[2], argv[3]);
        return 0;
    }
    if (argc > 3 && strcmp(argv[1], "spawn") == 0) {
        be_a_spawner("/proc/self/exe", argv[2], argv[3]);
        return 0;
    }
    if (argc > 1 && strcmp(argv[1], "tool") == 0) {
        pmix_proc_t me;
        be_a_tool(&me, argv[2]);
        return 0;
    }
    if (argc > 2 && strcmp(argv[2], "task") == 0) {
        be_a_tool(&client.me, NULL);
        if (client.me.rank == 0)
            printf("PASS tools: as tasks\n");
        return 0;
    }
    if (argc < 3 || (strcmp(argv[2], "child") != 0 && strcmp(argv[2], "spawner") != 0 &&
                     strcmp(argv[2], "pusher") != 0))
        run_tool(argv[0], false);
    client_init("tools", options, argc, argv);
    if (as == AS_SPAWNER) {
        step("a tool that spawns");
        if (client.me.rank == 0)
            run_spawner(argv[0]);
        fence_all(false);
        return client_pass("a tool prints what it has spawned");
    }
    if (as == AS_PUSHER) {
        step("a tool that pushes");
        if (client.me.rank == 0)
            run_pusher(argv[0]);
        fence_all(false);
        return client_pass("what a tool has spawned reads its standard input");
    }
    exchange("tools.first");
    step("a tool beside a connected task");
    run_tool(argv[0], as == AS_CHILD);
    exchange("tools.second");
    return client_pass("%u ranks work on after their tools", client.size);
}
