/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * Directives of PMIx_Spawn, each in a spawn of its own. To be run with a task on each of two nodes,
 * which rank 0 calls h0 and h1. The children are this program with --child; they look whether they
 * are as the parent has said in their environment, and their exit status tells it.
 */
#include "spawned.h"

#include <unistd.h>

enum { TEXT_MAX = 1024, INFOS_MAX = 4 };

static char self[TEXT_MAX], dir[TEXT_MAX], h[2][TEXT_MAX];

/* ---- the child ---- */

/* Rank I's of a list with commas. */
static const char *item(const char *list, uint32_t i, char *buf)
{
    while (i-- > 0 && *list != '\0') {
        list += strcspn(list, ",");
        list += *list == ',';
    }
    snprintf(buf, TEXT_MAX, "%.*s", (int)strcspn(list, ","), list);
    return buf;
}

static void check_variables(const char *list)
{
    char entry[TEXT_MAX];
    for (uint32_t i = 0; *item(list, i, entry) != '\0'; i++) {
        char *value = strchr(entry, '=');
        *value++ = '\0';
        const char *found = getenv(entry);
        CHECK(strcmp(found != NULL ? found : "unset", value) == 0, "%s: expected %s, found %s",
              entry, value, found != NULL ? found : "none");
    }
}

/* Both sets are there, and of us the one that is ours. */
static void check_psets(const char *list)
{
    char name[TEXT_MAX];
    pmix_query_t query;
    pmix_info_t *results = NULL;
    size_t nresults = 0;
    pmix_status_t status;
    PMIX_QUERY_CONSTRUCT(&query);
    PMIX_ARGV_APPEND(status, query.keys, PMIX_QUERY_PSET_NAMES);
    CHECK_OK(status, "PMIX_ARGV_APPEND");
    CHECK_OK(PMIx_Query_info(&query, 1, &results, &nresults), "a query for process sets");
    for (uint32_t i = 0; *item(list, i, name) != '\0'; i++)
        CHECK(strstr(results[0].value.data.string, name) != NULL, "process sets: %s, without %s",
              results[0].value.data.string, name);
    PMIX_QUERY_DESTRUCT(&query);
    PMIX_INFO_FREE(results, nresults);
}

static int child(void)
{
    pmix_value_t *value;
    char text[TEXT_MAX] = "", name[TEXT_MAX];
    client.name = "spawn_how's child";
    CHECK_OK(PMIx_Init(&client.me, NULL, 0), "PMIx_Init of the child");
    if (getenv("HOW_HOSTS") != NULL) {
        CHECK_OK(PMIx_Get(&client.me, PMIX_HOSTNAME, NULL, 0, &value), "PMIX_HOSTNAME");
        item(getenv("HOW_HOSTS"), client.me.rank, name);
        CHECK(strcmp(name, value->data.string) == 0, "node: expected %s, found %s", name,
              value->data.string);
        PMIX_VALUE_RELEASE(value);
    }
    if (getenv("HOW_ENV") != NULL)
        check_variables(getenv("HOW_ENV"));
    if (getenv("HOW_CWD") != NULL)
        CHECK(strcmp(getcwd(text, sizeof text), getenv("HOW_CWD")) == 0,
              "directory: expected %s, found %s", getenv("HOW_CWD"), text);
    if (getenv("HOW_PSETS") != NULL)
        check_psets(getenv("HOW_PSETS"));
    if (getenv("HOW_READS") != NULL) {
        bool reads = client.me.rank == (pmix_rank_t)atoi(getenv("HOW_READS"));
        bool found = fgets(text, sizeof text, stdin) != NULL;
        CHECK(found == reads, "rank %u: standard input: %s", client.me.rank,
              found ? text : "nothing");
    }
    if (getenv("HOW_SAYS") != NULL) {
        printf("out of %u\n", client.me.rank);
        fprintf(stderr, "err of %u\n", client.me.rank);
    }
    CHECK_OK(PMIx_Finalize(NULL, 0), "PMIx_Finalize of the child");
    return 0;
}

/* ---- the parent ---- */

/* One spawn: its directives, and what the children are to find. */
struct how {
    const char *name;
    int n;
    const char *env[6]; /* of the application */
    pmix_info_t infos[INFOS_MAX];
    size_t ninfos;
    bool of_app; /* they are directives of the application, not of the call */
    pmix_status_t refused;
};

static void load_app(pmix_app_t *app, const struct how *how)
{
    PMIX_APP_CONSTRUCT(app);
    app->cmd = strdup(self);
    app->maxprocs = how->n;
    spawned_append(&app->argv, self);
    spawned_append(&app->argv, "--child");
    for (size_t i = 0; how->env[i] != NULL; i++)
        spawned_append(&app->env, how->env[i]);
}

static void await_end(const char *nspace, const char *name)
{
    CHECK_EQ(spawned_end(nspace), 0, name);
}

static void spawn(struct how *how)
{
    pmix_app_t app;
    pmix_info_t infos[INFOS_MAX + 1];
    pmix_nspace_t nspace;
    bool yes = true;
    step("%s", how->name);
    load_app(&app, how);
    PMIX_INFO_LOAD(&infos[0], PMIX_NOTIFY_COMPLETION, &yes, PMIX_BOOL);
    memcpy(infos + 1, how->infos, sizeof how->infos);
    if (how->of_app) {
        app.info = how->infos;
        app.ninfo = how->ninfos;
    }
    pmix_status_t rc = PMIx_Spawn(infos, 1 + (how->of_app ? 0 : how->ninfos), &app, 1, nspace);
    CHECK(rc == how->refused, "%s: expected %s, found %s", how->name,
          PMIx_Error_string(how->refused), PMIx_Error_string(rc));
    if (rc == PMIX_SUCCESS)
        await_end(nspace, how->name);
    printf("DONE %s\n", how->name);
    fflush(stdout);
}

static void with(struct how *how, const char *key, const char *value)
{
    PMIX_INFO_LOAD(&how->infos[how->ninfos], key, value, PMIX_STRING);
    how->ninfos++;
}

static void with_envar(struct how *how, const char *key, const char *name, const char *value)
{
    pmix_envar_t envar = {(char *)name, (char *)value, ':'};
    PMIX_INFO_LOAD(&how->infos[how->ninfos], key, &envar, PMIX_ENVAR);
    how->ninfos++;
}

static void with_flag(struct how *how, const char *key)
{
    bool yes = true;
    PMIX_INFO_LOAD(&how->infos[how->ninfos], key, &yes, PMIX_BOOL);
    how->ninfos++;
}

/* ---- the table ---- */

static char hosts[4][TEXT_MAX];

static void say_hosts(int i, const char *const *names, int n)
{
    size_t at = (size_t)snprintf(hosts[i], TEXT_MAX, "HOW_HOSTS=");
    for (int k = 0; k < n; k++)
        at += (size_t)snprintf(hosts[i] + at, TEXT_MAX - at, "%s%s", k > 0 ? "," : "", names[k]);
}

static void places(void)
{
    char list[TEXT_MAX * 3], file[TEXT_MAX + 16];
    say_hosts(0, (const char *[]){h[1], h[1]}, 2);
    say_hosts(1, (const char *[]){h[1], h[0]}, 2);
    say_hosts(2, (const char *[]){h[0], h[1], h[0], h[1]}, 4);
    say_hosts(3, (const char *[]){h[0], h[0], h[1], h[1]}, 4);
    struct how host = {.name = "host", .n = 2, .env = {hosts[0]}};
    with(&host, PMIX_HOST, h[1]);
    spawn(&host);
    struct how of_app = {
        .name = "host of the application", .n = 2, .env = {hosts[0]}, .of_app = true};
    with(&of_app, PMIX_HOST, h[1]);
    spawn(&of_app);
    struct how slots = {.name = "host with slots", .n = 2, .env = {hosts[1]}};
    snprintf(list, sizeof list, "%s:1,%s:1", h[1], h[0]);
    with(&slots, PMIX_HOST, list);
    spawn(&slots);
    struct how add = {.name = "add-host", .n = 2, .env = {hosts[0]}};
    with(&add, PMIX_ADD_HOST, h[1]);
    spawn(&add);
    struct how hostfile = {.name = "hostfile", .n = 2, .env = {hosts[1]}};
    snprintf(file, sizeof file, "%s/hostfile", dir);
    FILE *out = fopen(file, "w");
    CHECK(out != NULL, "%s cannot be written", file);
    fprintf(out, "# nodes\n%s slots=1 # the second one\n%s slots=1\n", h[1], h[0]);
    fclose(out);
    with(&hostfile, PMIX_HOSTFILE, file);
    spawn(&hostfile);
    struct how cyclic = {.name = "map by node", .n = 4, .env = {hosts[2]}};
    with(&cyclic, PMIX_MAPBY, "node");
    spawn(&cyclic);
    struct how rank = {.name = "rank by node", .n = 4, .env = {hosts[2]}};
    with(&rank, PMIX_RANKBY, "node");
    spawn(&rank);
    struct how ppr = {.name = "map by ppr", .n = 4, .env = {hosts[3]}};
    with(&ppr, PMIX_MAPBY, "ppr:2:node");
    spawn(&ppr);
    struct how per = {.name = "ppr", .n = 4, .env = {hosts[3]}};
    with(&per, PMIX_PPR, "2:node");
    spawn(&per);
    struct how outside = {.name = "a node that is not the job's",
                          .n = 1,
                          .env = {NULL},
                          .refused = PMIX_ERR_OUT_OF_RESOURCE};
    with(&outside, PMIX_HOST, "nosuchnode");
    spawn(&outside);
}

static void bindings(void)
{
    static const char *const kinds[] = {"none", "hwthread", "core", "numa", "package"};
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        char name[64];
        snprintf(name, sizeof name, "bind to %s", kinds[i]);
        struct how bind = {.name = name, .n = 1, .env = {NULL}};
        with(&bind, PMIX_BINDTO, kinds[i]);
        PMIX_INFO_REQUIRED(&bind.infos[0]);
        spawn(&bind);
    }
}

static void environments(void)
{
    struct how set = {
        .name = "set, unset and add variables",
        .n = 1,
        .env = {"HOW_A=1", "HOW_B=1", "HOW_C=1", "HOW_ENV=HOW_A=2,HOW_B=unset,HOW_C=1,HOW_D=3"}};
    with_envar(&set, PMIX_SET_ENVAR, "HOW_A", "2");
    with(&set, PMIX_UNSET_ENVAR, "HOW_B");
    with_envar(&set, PMIX_ADD_ENVAR, "HOW_C", "3");
    with_envar(&set, PMIX_ADD_ENVAR, "HOW_D", "3");
    spawn(&set);
    struct how join = {.name = "prepend and append to variables",
                       .n = 1,
                       .env = {"HOW_A=m", "HOW_ENV=HOW_A=a:m:z,HOW_B=b"},
                       .of_app = true};
    with_envar(&join, PMIX_PREPEND_ENVAR, "HOW_A", "a");
    with_envar(&join, PMIX_APPEND_ENVAR, "HOW_A", "z");
    with_envar(&join, PMIX_PREPEND_ENVAR, "HOW_B", "b");
    spawn(&join);
    struct how prefix = {.name = "prefix",
                         .n = 1,
                         .env = {"PATH=/bin", "LD_LIBRARY_PATH=/x",
                                 "HOW_ENV=PATH=/how/bin:/bin,LD_LIBRARY_PATH=/how/lib:/x"}};
    with(&prefix, PMIX_PREFIX, "/how");
    spawn(&prefix);
    struct how wdir = {.name = "working directory", .n = 1, .env = {"HOW_CWD=/usr"}};
    with(&wdir, PMIX_WDIR, "/usr");
    spawn(&wdir);
    struct how own = {.name = "working directory of the application",
                      .n = 1,
                      .env = {"HOW_CWD=/etc"},
                      .of_app = true};
    with(&own, PMIX_WDIR, "/etc");
    spawn(&own);
}

/* What a file has to be. */
static void check_file(const char *name, const char *text)
{
    char path[2 * TEXT_MAX], found[TEXT_MAX] = "";
    snprintf(path, sizeof path, "%s/%s", dir, name);
    FILE *in = fopen(path, "r");
    CHECK(in != NULL, "%s is not there", path);
    CHECK(fread(found, 1, sizeof found - 1, in) < sizeof found - 1, "%s is long", path);
    fclose(in);
    CHECK(strcmp(found, text) == 0, "%s: expected %s, found %s", path, text, found);
}

static void streams(void)
{
    char path[TEXT_MAX + 16];
    struct how files = {.name = "output to files", .n = 2, .env = {"HOW_SAYS=1"}};
    snprintf(path, sizeof path, "%s/two", dir);
    with(&files, PMIX_OUTPUT_TO_FILE, path);
    spawn(&files);
    check_file("two.0.out", "out of 0\n");
    check_file("two.1.err", "err of 1\n");
    struct how merged = {.name = "output to a file for both", .n = 2, .env = {"HOW_SAYS=1"}};
    snprintf(path, sizeof path, "%s/one", dir);
    with(&merged, PMIX_OUTPUT_TO_FILE, path);
    with_flag(&merged, PMIX_MERGE_STDERR_STDOUT);
    spawn(&merged);
    check_file("one.1", "err of 1\nout of 1\n"); /* stdout is written at the end */
    struct how tag = {.name = "output with ranks", .n = 2, .env = {"HOW_SAYS=1"}};
    with_flag(&tag, PMIX_TAG_OUTPUT);
    spawn(&tag);
    struct how input = {.name = "standard input", .n = 2, .env = {"HOW_READS=1"}};
    with(&input, PMIX_STDIN_TGT, "1");
    spawn(&input);
}

static void refusals(void)
{
    static const char *const wants[][2] = {{PMIX_MAPBY, "board"},
                                           {PMIX_MAPBY, "node:pe=2"},
                                           {PMIX_RANKBY, "board"},
                                           {PMIX_BINDTO, "l3cache"},
                                           {PMIX_PPR, "2:socket"},
                                           {"muster.nosuch", "x"},
                                           {PMIX_PRELOAD_FILES, "/etc/passwd"}};
    for (size_t i = 0; i < sizeof wants / sizeof *wants; i++) {
        struct how how = {
            .name = wants[i][1], .n = 1, .env = {NULL}, .refused = PMIX_ERR_NOT_SUPPORTED};
        with(&how, wants[i][0], wants[i][1]);
        PMIX_INFO_REQUIRED(&how.infos[0]);
        spawn(&how);
    }
    struct how hint = {.name = "a hint", .n = 1, .env = {NULL}};
    with(&hint, PMIX_MAPBY, "board");
    spawn(&hint);
}

/* Two applications, each a process set. */
static void applications(void)
{
    struct how how[2] = {
        {.n = 1, .env = {"HOW_PSETS=sea,air,air", "HOW_CWD=/usr"}},
        {.n = 2, .env = {"HOW_PSETS=sea,air,air", "HOW_CWD=/etc"}},
    };
    pmix_app_t apps[2];
    pmix_info_t info;
    pmix_nspace_t nspace;
    bool yes = true;
    step("process sets of two applications");
    with(&how[0], PMIX_PSET_NAME, "sea");
    with(&how[0], PMIX_WDIR, "/usr");
    with(&how[1], PMIX_PSET_NAME, "air");
    with(&how[1], PMIX_WDIR, "/etc");
    for (int i = 0; i < 2; i++) {
        load_app(&apps[i], &how[i]);
        apps[i].info = how[i].infos;
        apps[i].ninfo = how[i].ninfos;
    }
    PMIX_INFO_LOAD(&info, PMIX_NOTIFY_COMPLETION, &yes, PMIX_BOOL);
    CHECK_OK(PMIx_Spawn(&info, 1, apps, 2, nspace), "PMIx_Spawn");
    await_end(nspace, "process sets");
    printf("DONE process sets\n");
    fflush(stdout);
}

/* The nodes of ranks 0 and 1. */
static void find_nodes(void)
{
    for (pmix_rank_t rank = 0; rank < 2; rank++) {
        pmix_proc_t proc;
        pmix_value_t *value;
        PMIX_LOAD_PROCID(&proc, client.me.nspace, rank);
        CHECK_OK(PMIx_Get(&proc, PMIX_HOSTNAME, NULL, 0, &value), "PMIX_HOSTNAME");
        snprintf(h[rank], TEXT_MAX, "%s", value->data.string);
        PMIX_VALUE_RELEASE(value);
    }
    CHECK(strcmp(h[0], h[1]) != 0, "both tasks are on %s", h[0]);
}

int main(int argc, char **argv)
{
    static long what;
    static const struct option_number options[] = {
        {"what", &what, "which directives",
         "all|places|bindings|environments|streams|refusals|apps"},
        {NULL},
    };
    static void (*const tests[])(void) = {places,  bindings, environments,
                                          streams, refusals, applications};
    if (argc == 2 && strcmp(argv[1], "--child") == 0)
        return child();
    if (readlink("/proc/self/exe", self, sizeof self - 1) < 0)
        return 1;
    client_init("spawn_how", options, argc, argv);
    spawned_watch();
    snprintf(dir, sizeof dir, "%s", getenv("HOW_DIR") != NULL ? getenv("HOW_DIR") : "/tmp");
    find_nodes();
    if (client.me.rank == 0)
        for (long i = 0; i < 6; i++)
            if (what == 0 || what == i + 1)
                tests[i]();
    fence_all(false);
    return client_pass("directives");
}
