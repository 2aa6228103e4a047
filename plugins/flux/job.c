/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * What the job shell's plugin has to know of its job, from the shell and from the broker's module:
 *
 *     id, nodes, their brokers and tasks, cores   the shell, which has R and the task map
 *     what is run                                 the shell, which has the jobspec
 *     where                                       the shell, which has gone there
 *     the table [muster] of Flux's settings       the module
 *     tmpdir                                      that table, else muster.json, else the job's own
 *                                                 directory, FLUX_JOB_TMPDIR
 *
 * All of this runs as the job's user, so a lie in what it is told gains the user nothing.
 */
#include "plugins/flux/job.h"

#include "common/conf/conf_file.h"
#include "common/util/text.h"
#include "plugins/flux/idset.h"
#include "plugins/flux/jobid.h"
#include "plugins/flux/options.h"

#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MODULE_S = 5 /* for its answer */ };

/* Several brokers may run on one host, and PMIx tells nodes by name. No host has a '_'. */
static int name_nodes(struct boot *boot, const int *brokers)
{
    bool twice = false;
    for (uint32_t i = 0; i < boot->nnodes && !twice; i++) {
        for (uint32_t k = 0; k < i && !twice; k++)
            twice = strcmp(boot->nodes[i].name, boot->nodes[k].name) == 0;
    }
    for (uint32_t i = 0; i < boot->nnodes && twice; i++) {
        char *name = text_format("%s_%d", boot->nodes[i].name, brokers[i]);
        if (!name)
            return -1;
        free(boot->nodes[i].name);
        boot->nodes[i].name = name;
    }
    return 0;
}

/* The ranks of a node's tasks, in ascending order as the shell numbers its own. */
static int read_ranks(struct boot_node *node, const char *text, uint32_t ntasks, struct err *err)
{
    struct ranges ids = {0};
    uint32_t n = 0;
    int rc = idset_parse(&ids, text, ntasks);
    for (struct ranges_at at = {0}; rc == 0 && ranges_next(&ids, &at);)
        if (n++ < node->ntasks)
            node->ranks[n - 1] = at.number;
    ranges_free(&ids);
    return rc == 0 && n == node->ntasks
               ? 0
               : err_set(err, "the shell has %u tasks on node %s and names them \"%.100s\"",
                         node->ntasks, node->name, text);
}

static int read_node(struct boot *boot, flux_shell_t *shell, uint32_t i, int *broker,
                     struct err *err)
{
    struct boot_node *node = &boot->nodes[i];
    const char *name, *ids;
    int ntasks, cores;
    if (flux_shell_rank_info_unpack(shell, (int)i, "{s:s s:i s:i s:s s:{s:i}}", "name", &name,
                                    "broker_rank", broker, "ntasks", &ntasks, "taskids", &ids,
                                    "resources", "ncores", &cores) < 0)
        return err_set(err, "the shell does not tell of node %u of the job: %s", i,
                       strerror(errno));
    node->name = strdup(name);
    node->ntasks = (uint32_t)ntasks;
    node->slots = (uint32_t)cores;
    node->ranks = calloc(node->ntasks ? node->ntasks : 1, sizeof(*node->ranks));
    if (!node->name || !node->ranks)
        return err_set(err, "out of memory");
    return read_ranks(node, ids, boot->ntasks, err);
}

/* The brokers of all nodes, "0,3,4", and their names. @return whether there was memory for them */
static bool list_nodes(struct boot *boot, const int *brokers)
{
    char *ranks = NULL, *names = NULL;
    size_t ranks_len, names_len;
    FILE *to_ranks = open_memstream(&ranks, &ranks_len);
    FILE *to_names = open_memstream(&names, &names_len);
    for (uint32_t i = 0; to_ranks && to_names && i < boot->nnodes; i++) {
        fprintf(to_ranks, "%s%d", i > 0 ? "," : "", brokers[i]);
        fprintf(to_names, "%s%s", i > 0 ? "," : "", boot->nodes[i].name);
        boot->allocation.slots += boot->nodes[i].slots;
    }
    if (to_ranks)
        fclose(to_ranks);
    if (to_names)
        fclose(to_names);
    boot->allocation.nnodes = boot->nnodes;
    boot->allocation.nodes = names;
    if (ranks)
        boot_set(boot, "brokers", ranks);
    free(ranks);
    return ranks && names;
}

/* A Flux job is an allocation of its own: its nodes are those of the job. */
static int read_nodes(struct job *job, flux_shell_t *shell, int size, struct err *err)
{
    struct boot *boot = &job->boot;
    int *brokers = calloc((size_t)size, sizeof(*brokers)), rc = 0;
    boot->nodes = calloc((size_t)size, sizeof(*boot->nodes));
    if (!brokers || !boot->nodes)
        rc = err_set(err, "out of memory");
    for (uint32_t i = 0; rc == 0 && i < (uint32_t)size; i++) {
        boot->nnodes = i + 1;
        rc = read_node(boot, shell, i, &brokers[i], err);
    }
    if (rc == 0 && (name_nodes(boot, brokers) < 0 || !list_nodes(boot, brokers)))
        rc = err_set(err, "out of memory");
    free(brokers);
    return rc;
}

static int set_library(struct boot *boot, struct err *err)
{
    Dl_info info = {0};
    /* The server loads the same libflux-core, to speak as this broker does. */
    if (dladdr((void *)(uintptr_t)flux_rpc, &info) == 0 || !info.dli_fname)
        return err_set(err, "cannot find the file that libflux-core was loaded from");
    boot_set(boot, "backend", "flux");
    boot_set(boot, "preload", info.dli_fname);
    return 0;
}

/* The program that prints what the tasks print: it reads the job's log. It is Flux's own, of the
 * shell's release, and not what the user's PATH has. musterrun, whose shell has MUSTER_PRINTER in
 * its own environment, names another one or none.
 */
static void name_printer(struct boot *boot, const char *uri)
{
    static const char *const places[] = {"../../bin", "../../../bin"}; /* from libexec/flux */
    const char *given = getenv("MUSTER_PRINTER");
    char self[PATH_MAX] = "";
    if (given)
        boot_set(boot, BOOT_PRINTER, given);
    if (given || readlink("/proc/self/exe", self, sizeof(self) - 1) < 0)
        return;
    for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
        char *program =
            text_format("%.*s/%s/flux", (int)(strrchr(self, '/') - self), self, places[i]);
        char *command =
            program && access(program, X_OK) == 0
                ? text_format("%s python " FLUX_PRINTER " %s %s", program, uri, boot->label)
                : NULL;
        free(program);
        if (command) {
            boot_set(boot, BOOT_PRINTER, command);
            free(command);
            return;
        }
    }
}

static int describe(struct job *job, flux_t *h, struct err *err)
{
    struct boot *boot = &job->boot;
    const char *uri = flux_attr_get(h, "local-uri");
    char id[JOBID_SIZE];
    if (!uri)
        return err_set(err, "the broker does not tell of itself: %s", strerror(errno));
    jobid_write(job->id, id);
    boot->session = text_format("%llu", (unsigned long long)job->id);
    boot->nspace = text_format("flux.%s", id);
    boot->label = strdup(id);
    boot->allocation.rm = strdup("flux");
    boot->allocation.rm_version = strdup(flux_core_version_string());
    boot->allocation.cluster = strdup("");
    if (!boot->session || !boot->nspace || !boot->label || !boot->allocation.rm ||
        !boot->allocation.rm_version || !boot->allocation.cluster)
        return err_set(err, "out of memory");
    boot_set(boot, "jobid", boot->session);
    boot_set(boot, "uri", uri);
    boot_set(boot, "other_pmi", "flux run -o pmi=simple");
    boot_set(boot, "unit", "job");
    boot_set(boot, "launcher", "shell");
    name_printer(boot, uri);
    return set_library(boot, err);
}

/* The table [muster]; its "tmpdir" is ours to heed, the rest the server's. */
static int ask_module(struct job *job, flux_t *h, struct err *err)
{
    const char *node = boot_here(&job->boot)->name, *conf = NULL, *tmpdir = NULL;
    flux_future_t *f = flux_rpc(h, "muster.config", NULL, FLUX_NODEID_ANY, 0);
    int rc = 0;
    errno = f ? 0 : errno;
    if (!f || flux_future_wait_for(f, MODULE_S) < 0)
        rc = err_set(err, "the broker on node %s does not say whether it has muster's module: %s",
                     node, errno == ETIMEDOUT ? "no answer within 5 s" : strerror(errno));
    else if (flux_rpc_get(f, &conf) < 0 && errno == ENOSYS)
        rc = err_set(err,
                     "muster's module is not loaded in the broker on node %s: an admin of this "
                     "Flux instance has to run \"flux exec -r all flux module load " FLUX_MODULE
                     "\"; else leave muster out of -o pmi=",
                     node);
    else if (!conf || flux_rpc_get_unpack(f, "{s?s}", "tmpdir", &tmpdir) < 0)
        rc = err_set(err, "muster's module in the broker on node %s does not tell its settings: %s",
                     node, f ? flux_future_error_string(f) : strerror(errno));
    if (rc == 0) {
        boot_set(&job->boot, "conf", conf);
        if (tmpdir && tmpdir[0] != '\0' && tmpdir[0] != '/')
            rc = err_set(err, "[muster] tmpdir=\"%.200s\" of Flux's settings is no absolute path",
                         tmpdir);
        job->table_has_tmpdir = tmpdir != NULL;
        job->parent_key = "tmpdir";
        job->parent = tmpdir && tmpdir[0] != '\0' ? strdup(tmpdir) : NULL;
    }
    if (f)
        flux_future_destroy(f);
    return rc;
}

/* Where muster.json or the shell say, unless Flux's settings have said it. */
static int find_parent(struct job *job, flux_shell_t *shell, struct err *err)
{
    const char *path = geteuid() != 0 ? getenv("MUSTER_CONF") : NULL;
    const char *own = flux_shell_getenv(shell, "FLUX_JOB_TMPDIR");
    char tmpdir[CONF_PATH_SIZE] = "";
    if (job->parent)
        return 0;
    if (!job->table_has_tmpdir &&
        conf_file_tmpdir(path ? path : MUSTER_CONF_PATH, path ? getuid() : 0, tmpdir, err) < 0)
        return -1;
    if (tmpdir[0] == '\0' && !own)
        return err_set(err, "the shell has made no FLUX_JOB_TMPDIR for the job");
    job->parent_key = tmpdir[0] != '\0' ? "tmpdir" : "FLUX_JOB_TMPDIR";
    job->siblings = tmpdir[0] != '\0' ? NULL : "jobtmp-"; /* as the shell names it */
    job->parent = strdup(tmpdir[0] != '\0' ? tmpdir : own);
    return job->parent ? 0 : err_set(err, "out of memory");
}

/* Joined by blanks; the caller frees it. @return NULL: too long, or out of memory */
static char *join(const json_t *command)
{
    char *text = NULL;
    size_t len;
    FILE *out = open_memstream(&text, &len);
    for (size_t i = 0; out && i < json_array_size(command); i++) {
        const char *argument = json_string_value(json_array_get(command, i));
        fprintf(out, "%s%s", i > 0 ? " " : "", argument ? argument : "");
    }
    if (!out || fclose(out) != 0 || len > BOOT_ARGV_MAX) {
        free(text);
        return NULL;
    }
    return text;
}

/* Where and by what command line tasks start, as it stands in the jobspec. */
static int read_command(struct job *job, flux_shell_t *shell, struct err *err)
{
    json_t *command;
    char wdir[BOOT_WDIR_MAX], *argv;
    if (flux_shell_info_unpack(shell, "{s:{s:[{s:o}]}}", "jobspec", "tasks", "command", &command) <
        0)
        return err_set(err, "the shell does not tell what the job runs: %s", strerror(errno));
    argv = join(command);
    if (argv)
        boot_set(&job->boot, "argv", argv);
    free(argv);
    if (getcwd(wdir, sizeof(wdir)))
        boot_set(&job->boot, "wdir", wdir);
    return 0;
}

/* When the job has to end, if it has to: what "flux update" changes later is not known. */
static void read_limit(struct boot *boot, flux_shell_t *shell)
{
    double end = 0;
    char text[32];
    if (flux_shell_info_unpack(shell, "{s?{s?{s?F}}}", "R", "execution", "expiration", &end) < 0 ||
        end <= 0)
        return;
    snprintf(text, sizeof(text), "%.0f", end);
    boot_set(boot, "expires", text);
}

int job_read(struct job *job, flux_shell_t *shell, struct err *err)
{
    flux_t *h = flux_shell_get_flux(shell);
    long long id;
    int rank, size, ntasks;
    *job = (struct job){0};
    if (flux_shell_info_unpack(shell, "{s:I s:i s:i s:i}", "jobid", &id, "rank", &rank, "size",
                               &size, "ntasks", &ntasks) < 0 ||
        size <= 0 || rank < 0 || rank >= size)
        return err_set(err, "the shell does not tell of its job: %s", strerror(errno));
    job->id = (uint64_t)id;
    job->boot.node = (uint32_t)rank;
    job->boot.ntasks = (uint32_t)ntasks;
    if (read_nodes(job, shell, size, err) < 0 || read_command(job, shell, err) < 0 ||
        describe(job, h, err) < 0 || options_take(&job->boot, shell, err) < 0 ||
        ask_module(job, h, err) < 0)
        return -1;
    read_limit(&job->boot, shell);
    return find_parent(job, shell, err);
}

void job_free(struct job *job)
{
    free(job->parent);
    boot_free(&job->boot);
    *job = (struct job){0};
}
