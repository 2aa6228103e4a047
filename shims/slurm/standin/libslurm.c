/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * The functions of Slurm that tell of the step, from musterrun's description of it.
 *
 * Each gives what Slurm's gives: memory that the caller frees, in the same way.
 */
#include "common/util/local.h"
#include "shims/slurm/slurm_raw.h"
#include "shims/slurm/standin/slurm_standin.h"
#include "shims/standin/say.h"

#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

static const struct standin_step *step;
static const struct standin_node *here;

void standin_describe(const struct standin_step *its, const struct standin_node *node)
{
    step = its;
    here = node;
    say_describe(its, node);
}

void slurm_abi_error(const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    say_list(SAY_ERROR, fmt, ap);
    va_end(ap);
}

/* srun shows such lines, and daemons log them. */
void slurm_abi_info(const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    say_list(here != NULL ? SAY_INFO : SAY_NOTE, fmt, ap);
    va_end(ap);
}

void slurm_abi_debug(const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    say_list(SAY_DEBUG, fmt, ap);
    va_end(ap);
}

const char *slurm_abi_strerror(int errnum)
{
    switch (errnum) {
    case STANDIN_CONNECTION_ERROR:
        return "Communication connection failure";
    case SLURM_ABI_INVALID_JOB_ID:
        return "Invalid job id specified";
    case SLURM_ABI_ALREADY_DONE:
        return "Job/step already completing or completed";
    default:
        return strerror(errnum);
    }
}

/* ---- its version; the library counts as a plugin that was loaded, which the plugin looks for ----
 */

const char plugin_type[] = "standin";
const uint32_t plugin_version = STANDIN_VERSION;

long slurm_abi_api_version(void)
{
    return (long)SLURM_ABI_API << 16;
}

/* ---- slurmstepd's own record ---- */

int slurm_raw_stepd_connect(const char *directory, const char *nodename,
                            struct slurm_raw_step_id *id, uint16_t *protocol_version)
{
    struct sockaddr_un addr = {.sun_family = AF_UNIX};
    *protocol_version = 1;
    if (snprintf(addr.sun_path, sizeof(addr.sun_path), "%s/%s_%u.%u", directory, nodename,
                 id->job_id, id->step_id) >= (int)sizeof(addr.sun_path)) {
        errno = ENAMETOOLONG;
        return -1;
    }
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd >= 0 && connect(fd, (struct sockaddr *)&addr, sizeof(addr)) < 0) {
        int saved_errno = errno;
        close(fd);
        errno = saved_errno;
        return -1;
    }
    return fd;
}

/* The process that listens there is the step's user's: musterrun changes no uid. */
uid_t slurm_abi_stepd_get_uid(int fd, uint16_t protocol_version)
{
    (void)protocol_version;
    return local_peer(fd);
}

struct passwd *slurm_abi_stepd_getpw(int fd, uint16_t protocol_version, int mode, uid_t uid,
                                     const char *name)
{
    const struct passwd *known = getpwuid(uid);
    struct passwd *pw = calloc(1, sizeof(*pw));
    (void)fd;
    (void)protocol_version;
    (void)mode;
    (void)name;
    if (!pw || !known) {
        free(pw);
        return NULL;
    }
    pw->pw_name = strdup(known->pw_name);
    pw->pw_passwd = strdup("*");
    pw->pw_gecos = strdup(known->pw_gecos);
    pw->pw_dir = strdup(known->pw_dir);
    pw->pw_shell = strdup(known->pw_shell);
    pw->pw_uid = uid;
    pw->pw_gid = getegid();
    return pw;
}

void slurm_abi_xfree(void **p)
{
    free(*p);
    *p = NULL;
}

char *slurm_abi_get_tmp_fs(const char *node)
{
    char *path;
    return step && asprintf(&path, "%s/%s/tmp", step->dir, node) >= 0 ? path : NULL;
}

const struct slurm_raw_conf *slurm_raw_conf_lock(void)
{
    static char name[] = STANDIN_CLUSTER;
    static const struct slurm_raw_conf conf = {.cluster_name = name};
    return &conf;
}

void slurm_raw_conf_unlock(void)
{
}

/* There is no such file: Slurm's own defaults. */
char *slurm_abi_extra_conf_path(const char *name)
{
    char *path;
    return step && asprintf(&path, "%s/%s", step->dir, name) >= 0 ? path : NULL;
}

/* ---- what slurmctld is asked for ---- */

int slurm_abi_load_conf(time_t update_time, void **conf)
{
    (void)update_time;
    *conf = NULL;
    if (step)
        *conf = strdup(step->dir);
    if (*conf)
        return SLURM_ABI_SUCCESS;
    errno = STANDIN_CONNECTION_ERROR;
    return SLURM_ABI_ERROR;
}

void slurm_abi_print_conf(FILE *out, void *conf)
{
    fprintf(out, "SlurmdSpoolDir          = %s/%%n\n", (const char *)conf);
    fprintf(out, "TmpFS                   = %s/%%n/tmp\n", (const char *)conf);
}

void slurm_raw_free_conf(void *conf)
{
    free(conf);
}

static char *list_names(void)
{
    char *text = NULL;
    size_t len;
    FILE *out = open_memstream(&text, &len);
    for (uint32_t n = 0; out && n < step->nnodes; n++)
        fprintf(out, "%s%s", n ? "," : "", step->nodes[n].name);
    if (out)
        fclose(out);
    return text;
}

/* All steps of the user's runs, which are the jobs of a cluster. */
static int list_steps(struct slurm_raw_step_records **records)
{
    char *text, *line, *rest;
    uint32_t n = 1, i = 0;
    int rc = standin_ask_steps(NULL, &text);
    if (rc != 0) {
        errno = rc;
        return SLURM_ABI_ERROR;
    }
    for (const char *p = text; *p != '\0'; p++)
        n += *p == '\n';
    *records = calloc(1, sizeof(**records) + n * sizeof(*(*records)->steps) + strlen(text) + 1);
    if (!*records) {
        free(text);
        errno = ENOMEM;
        return SLURM_ABI_ERROR;
    }
    (*records)->steps = (struct slurm_raw_step_record *)(*records + 1);
    rest = strcpy((char *)((*records)->steps + n), text); /* which names of nodes stay in */
    free(text);
    while ((line = strsep(&rest, "\n"))) {
        uint32_t job, number;
        long long start;
        int at = 0;
        if (sscanf(line, "%u %u %lld %n", &job, &number, &start, &at) == 3 && at > 0)
            (*records)->steps[i++] = (struct slurm_raw_step_record){
                .start_time = (time_t)start,
                .user_id = geteuid(),
                .nodes = line + at,
                .step_id = slurm_raw_step_id(job, number, SLURM_ABI_NO_VAL),
            };
    }
    (*records)->count = i;
    (*records)->last_update = time(NULL);
    return SLURM_ABI_SUCCESS;
}

/* Of another step; its nodes are all that is asked for. */
static struct slurm_raw_step_layout *other_layout(struct slurm_raw_step_id *id)
{
    struct slurm_raw_step_records *records;
    struct slurm_raw_step_layout *layout = NULL;
    if (list_steps(&records) != SLURM_ABI_SUCCESS)
        return NULL;
    errno = SLURM_ABI_INVALID_JOB_ID;
    for (uint32_t i = 0; i < records->count; i++) {
        const struct slurm_raw_step_record *record = &records->steps[i];
        if (record->step_id.job_id != id->job_id || record->step_id.step_id != id->step_id ||
            !(layout = calloc(1, sizeof(*layout))))
            continue;
        layout->node_list = strdup(record->nodes);
        layout->node_cnt = 1;
        for (const char *p = record->nodes; *p != '\0'; p++)
            layout->node_cnt += *p == ',';
    }
    free(records);
    return layout;
}

struct slurm_raw_step_layout *slurm_raw_step_layout_get(struct slurm_raw_step_id *id)
{
    struct slurm_raw_step_layout *layout;
    if (!step || id->job_id != step->job || id->step_id != step->step)
        return other_layout(id);
    layout = calloc(1, sizeof(*layout));
    if (!layout)
        return NULL;
    layout->node_cnt = step->nnodes;
    layout->task_cnt = step->ntasks;
    layout->node_list = list_names();
    layout->tasks = calloc(step->nnodes, sizeof(*layout->tasks));
    layout->tids = calloc(step->nnodes, sizeof(*layout->tids));
    for (uint32_t n = 0; layout->tasks && layout->tids && n < step->nnodes; n++) {
        const struct standin_node *node = &step->nodes[n];
        layout->tids[n] = calloc(node->ntasks, sizeof(uint32_t));
        if (!layout->tids[n])
            continue;
        layout->tasks[n] = node->ntasks;
        memcpy(layout->tids[n], node->ranks, node->ntasks * sizeof(uint32_t));
    }
    return layout;
}

void slurm_raw_step_layout_free(struct slurm_raw_step_layout *layout)
{
    for (uint32_t n = 0; layout->tids && n < layout->node_cnt; n++)
        free(layout->tids[n]);
    free(layout->tids);
    free(layout->tasks);
    free(layout->node_list);
    free(layout);
}

static char *list_job_nodes(void)
{
    char *text = NULL;
    size_t len;
    FILE *out = open_memstream(&text, &len);
    for (uint32_t n = 0; out && n < step->job_nodes; n++)
        fprintf(out, "%snode%u", n ? "," : "", n);
    if (out)
        fclose(out);
    return text;
}

static struct slurm_raw_allocation *allocation_new(void)
{
    struct slurm_raw_allocation *allocation = calloc(1, sizeof(*allocation));
    if (!allocation)
        return NULL;
    allocation->node_cnt = step->job_nodes;
    allocation->node_list = list_job_nodes();
    allocation->cpus_per_node = calloc(step->job_nodes, sizeof(*allocation->cpus_per_node));
    allocation->cpu_count_reps = calloc(step->job_nodes, sizeof(*allocation->cpu_count_reps));
    if (!allocation->cpus_per_node || !allocation->cpu_count_reps)
        return allocation;
    for (uint32_t n = 0; n < step->job_nodes; n++) {
        allocation->cpus_per_node[n] = step->cpus[n];
        allocation->cpu_count_reps[n] = 1;
    }
    allocation->num_cpu_groups = step->job_nodes;
    return allocation;
}

int slurm_raw_allocation_lookup(struct slurm_raw_step_id id,
                                struct slurm_raw_allocation **allocation)
{
    *allocation = NULL;
    errno = SLURM_ABI_INVALID_JOB_ID;
    if (step && id.job_id == step->job)
        *allocation = allocation_new();
    return *allocation ? SLURM_ABI_SUCCESS : SLURM_ABI_ERROR;
}

/* The step's record, as far as muster looks at it; in muster-server, which knows no step, the
 * slurmd is asked. */
static int get_record(uint32_t job, uint32_t step_id, struct slurm_raw_step_records **records)
{
    int64_t times[] = {step ? step->start : 0, 0};
    int rc = step ? job != step->job || step_id != step->step ? SLURM_ABI_INVALID_JOB_ID : 0
                  : standin_ask_record(job, step_id, times);
    *records = NULL;
    if (rc == 0 && !(*records = calloc(1, sizeof(**records) + sizeof(*(*records)->steps))))
        rc = ENOMEM;
    if (rc != 0) {
        errno = rc;
        return SLURM_ABI_ERROR;
    }
    (*records)->count = 1;
    (*records)->steps = (struct slurm_raw_step_record *)(*records + 1);
    *(*records)->steps = (struct slurm_raw_step_record){
        .start_time = (time_t)times[0],
        .user_id = geteuid(),
        .step_id = slurm_raw_step_id(job, step_id, SLURM_ABI_NO_VAL),
    };
    return SLURM_ABI_SUCCESS;
}

/* Of a job without a limit as slurmctld does. */
long slurm_raw_time_left(struct slurm_raw_step_id id)
{
    enum { YEAR = 365 * 24 * 60 * 60 };
    int64_t times[2], now = time(NULL);
    int rc = standin_ask_record(id.job_id, SLURM_ABI_NO_VAL, times);

    if (rc != 0) {
        errno = rc;
        return SLURM_ABI_ERROR;
    }
    if (times[1] == 0)
        times[1] = times[0] + YEAR;
    return times[1] > now ? (long)(times[1] - now) : 0;
}

int slurm_raw_get_steps(struct slurm_raw_step_id *id, struct slurm_raw_step_records **records,
                        uint16_t flags)
{
    (void)flags;
    return id->job_id == SLURM_ABI_NO_VAL ? list_steps(records)
                                          : get_record(id->job_id, id->step_id, records);
}

void slurm_raw_free_steps(struct slurm_raw_step_records *records)
{
    free(records);
}

void slurm_raw_free_allocation(struct slurm_raw_allocation *allocation)
{
    free(allocation->node_list);
    free(allocation->cpus_per_node);
    free(allocation->cpu_count_reps);
    free(allocation);
}

/* ---- lists; our names have no ranges in brackets ---- */

struct hostlist {
    char *text, *rest;
};

void *slurm_abi_hostlist_create(const char *hostlist)
{
    struct hostlist *list = calloc(1, sizeof(*list));
    if (list)
        list->rest = list->text = strdup(hostlist);
    return list;
}

char *slurm_abi_hostlist_shift(void *hostlist)
{
    struct hostlist *list = hostlist;
    const char *name = list->rest ? strsep(&list->rest, ",") : NULL;
    return name ? strdup(name) : NULL;
}

void slurm_abi_hostlist_destroy(void *hostlist)
{
    struct hostlist *list = hostlist;
    free(list->text);
    free(list);
}

/* The array and its strings are malloc()ed. */
int slurm_abi_env_overwrite(char ***env, const char *name, const char *value)
{
    size_t n = 0, len = strlen(name);
    char *entry, **grown;
    if (asprintf(&entry, "%s=%s", name, value) < 0)
        return 0;
    for (; *env && (*env)[n]; n++) {
        if (strncmp((*env)[n], name, len) == 0 && (*env)[n][len] == '=') {
            free((*env)[n]);
            (*env)[n] = entry;
            return 1;
        }
    }
    grown = realloc(*env, (n + 2) * sizeof(*grown));
    if (!grown) {
        free(entry);
        return 0;
    }
    grown[n] = entry;
    grown[n + 1] = NULL;
    *env = grown;
    return 1;
}
