/* SPDX-License-Identifier: BSD-3-Clause */
/* tools: processes that call PMIx_tool_init are served, and nobody minds them. --as
 *   other  one beside each task, which the host has to name: before the task's PMIx_Init, and after
 *   task   the tasks are tools themselves
 *   child  one that a connected task has started, and that takes its name. Up to libpmix 5.0 the
 *          task counts as finalized when that has: its next fence gives PMIX_ERR_PARTIAL_SUCCESS
 */
#include "client.h"

#include <pmix_tool.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

enum { AS_OTHER, AS_TASK, AS_CHILD };

static long as = AS_OTHER;

/* What a tool does. @param uri the server's; NULL: the environment has it */
static void be_a_tool(pmix_proc_t *me, const char *uri)
{
    pmix_query_t query;
    pmix_info_t info, *results = NULL;
    size_t nresults = 0;
    pmix_status_t status;
    alarm(60);
    PMIX_PROC_CONSTRUCT(me);
    if (uri != NULL)
        PMIX_INFO_LOAD(&info, PMIX_SERVER_URI, uri, PMIX_STRING);
    CHECK_OK(PMIx_tool_init(me, uri != NULL ? &info : NULL, uri != NULL), "PMIx_tool_init");
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

/* This program once more, as a tool. @param named it has this task's name; else it has nothing of
 * the environment that is libpmix's, and is told where the server is */
static void run_tool(char *program, bool named)
{
    char **env = calloc(1, sizeof *env), *uri = NULL;
    for (size_t i = 0, n = 0; environ[i] != NULL; i++) {
        env = realloc(env, (n + 2) * sizeof *env);
        if (named || strncmp(environ[i], "PMIX_", strlen("PMIX_")) != 0)
            env[n++] = environ[i];
        env[n] = NULL;
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
    const struct option_number options[] = {{"as", &as, "who is a tool", "other|task|child"}, {0}};
    client.name = "tools";
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
    if (argc < 3 || strcmp(argv[2], "child") != 0)
        run_tool(argv[0], false);
    client_init("tools", options, argc, argv);
    exchange("tools.first");
    step("a tool beside a connected task");
    run_tool(argv[0], as == AS_CHILD);
    exchange("tools.second");
    return client_pass("%u ranks work on after their tools", client.size);
}
