/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * What slurmstepd's plugin has to know of its step.
 *
 * prefork's arguments are of no use: the step record's layout is private and differs from release
 * to release, and the environment is the user's. So each fact comes from where root can trust it:
 *
 *     node, spool directory, job, step   slurmstepd's own listening socket,
 *                                        <spool>/<node>_<job>.<step>[.<component>]
 *     user and group                     slurmstepd's own record, asked over that socket
 *     the user's other groups            the group database
 *     which run of the step it is        slurmctld's record of the step (run.h)
 *     nodes, tasks and their ranks       slurmctld's record of the step, or of each of its
 *                                        components (layout.c)
 *     tmpdir                             muster.json, which is root's
 *     nodes and processors of the job    slurmctld's record of the allocation (allocation.c)
 *     TmpFS, ClusterName                 slurmstepd's own copy of slurm.conf
 *     SlurmdSpoolDir with its %n         the directory itself where it names no node, else
 *                                        slurmctld's slurm.conf
 *
 * slurmstepd has SlurmdSpoolDir too, but nothing hands it out: its structure changes with every
 * release, and printing it ends in a crash from 24.11 on, where slurmd passes on only part of it.
 * slurmctld is asked only where nodes have directories of different names, because its answer is
 * large and every node of every step would ask.
 */
#include "plugins/slurm/facts.h"

#include "common/conf/conf_file.h"
#include "common/util/log.h"
#include "common/util/text.h"
#include "plugins/slurm/allocation.h"
#include "plugins/slurm/layout.h"
#include "shims/slurm/slurm_abi.h"

#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <grp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

/* Reads "<spool>/<node>_<job>.<step>" or the same with ".<component>". */
static bool parse_step_socket(const char *path, struct facts *facts)
{
    const char *base = strrchr(path, '/'), *ids = strrchr(path, '_');
    char rest;
    if (path[0] != '/' || !base || !ids || ids <= base + 1)
        return false;
    facts->component = SLURM_ABI_NO_VAL;
    int n = sscanf(ids + 1, "%u.%u.%u%c", &facts->job, &facts->step, &facts->component, &rest);
    if (n != 3 && (n != 2 || strspn(ids + 1, "0123456789.") != strlen(ids + 1)))
        return false;
    facts->spool = strndup(path, (size_t)(base - path));
    facts->node = strndup(base + 1, (size_t)(ids - base - 1));
    return facts->spool && facts->node;
}

/* The path that fd listens on. */
static bool listening_path(int fd, char *path, size_t cap)
{
    struct sockaddr_un addr = {0};
    socklen_t len = sizeof(addr), size;
    int listening = 0;
    if (getsockname(fd, (struct sockaddr *)&addr, &len) < 0 || addr.sun_family != AF_UNIX)
        return false;
    size = sizeof(listening);
    if (getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listening, &size) < 0 || !listening)
        return false;
    /* sun_path need not end with NUL */
    snprintf(path, cap, "%.*s", (int)sizeof(addr.sun_path), addr.sun_path);
    return true;
}

/* From now on messages name the step, by its first component's job, and the node, as the server's.
 */
static void speak_as(const struct facts *facts)
{
    char prefix[128];
    snprintf(prefix, sizeof(prefix), "%u.%u %s", facts->jobs[0], facts->step, facts->node);
    log_prefix(prefix);
}

static int find_self(struct facts *facts, struct err *err)
{
    char path[sizeof(((struct sockaddr_un *)0)->sun_path) + 1];
    DIR *dir = opendir("/proc/self/fd");
    struct dirent *entry;
    bool found = false;
    while (dir && !found && (entry = readdir(dir))) {
        if (entry->d_name[0] != '.' && listening_path(atoi(entry->d_name), path, sizeof(path)))
            found = parse_step_socket(path, facts);
    }
    if (dir)
        closedir(dir);
    if (!found)
        return err_set(err, "slurmstepd's own socket <spool>/<node>_<job>.<step> is not among its "
                            "open files, so the step is not known: muster does not know this "
                            "build of Slurm");
    facts->jobs[0] = facts->job;
    facts->njobs = 1;
    speak_as(facts);
    return 0;
}

static void free_passwd(struct passwd *pw)
{
    slurm_abi_xfree((void **)&pw->pw_name);
    slurm_abi_xfree((void **)&pw->pw_passwd);
    slurm_abi_xfree((void **)&pw->pw_gecos);
    slurm_abi_xfree((void **)&pw->pw_dir);
    slurm_abi_xfree((void **)&pw->pw_shell);
    slurm_abi_xfree((void **)&pw);
}

static int find_groups(struct identity *user, const char *name)
{
    int n = 32;
    for (int tries = 0; tries < 3; tries++) {
        gid_t *groups = realloc(user->groups, (size_t)n * sizeof(*groups));
        int cap = n;
        if (!groups)
            return -1;
        user->groups = groups;
        /* says in n how many there are, also when there was no room */
        if (getgrouplist(name, user->gid, groups, &n) >= 0) {
            user->ngroups = (size_t)n;
            return 0;
        }
        if (n <= cap)
            break;
    }
    return -1;
}

/* The user as slurmstepd has it on record, not as a process claims. */
static int find_user(struct facts *facts, struct err *err)
{
    struct slurm_abi_step_id id = slurm_abi_step_id(facts->job, facts->step, facts->component);
    struct identity *user = &facts->user;
    struct passwd *pw = NULL;
    uint16_t version = 0;
    int fd = slurm_abi_stepd_connect(facts->spool, facts->node, &id, &version), rc = 0;
    if (fd < 0)
        return err_set(err, "cannot connect to slurmstepd of %u.%u on node %s: %s", facts->job,
                       facts->step, facts->node, strerror(errno));
    user->uid = slurm_abi_stepd_get_uid(fd, version);
    if (user->uid != (uid_t)-1)
        pw = slurm_abi_stepd_getpw(fd, version, SLURM_ABI_GETPW_MATCH_ALWAYS, user->uid, NULL);
    close(fd);
    if (!pw || pw->pw_uid != user->uid || pw->pw_gid == (gid_t)-1 || !pw->pw_name)
        rc = err_set(err, "slurmstepd of %u.%u on node %s does not say which user it runs for",
                     facts->job, facts->step, facts->node);
    user->drop = geteuid() == 0;
    if (rc == 0) {
        user->gid = pw->pw_gid;
        if (find_groups(user, pw->pw_name) < 0)
            rc = err_set(err,
                         "cannot list the groups of user %s on node %s: check getent initgroups",
                         pw->pw_name, facts->node);
    }
    if (rc == 0 && !user->drop && user->uid != geteuid())
        rc = err_set(err, "slurmstepd on node %s runs as uid %u and cannot serve a step of uid %u",
                     facts->node, geteuid(), user->uid);
    if (pw)
        free_passwd(pw);
    return rc;
}

/* The value of "key   = value" in text, copied, or NULL. */
static char *conf_value(const char *text, const char *key)
{
    size_t len = strlen(key);
    for (const char *line = text; line; line = strchr(line, '\n')) {
        line += *line == '\n';
        if (strncmp(line, key, len) != 0)
            continue;
        const char *p = line + len + strspn(line + len, " ");
        if (strncmp(p, "= /", 3) == 0)
            return strndup(p + 2, strcspn(p + 2, "\n"));
    }
    return NULL;
}

/* Replaces %n and %h by the node's name, as slurmd does with the address of a forwarded message. */
static char *expand(const char *path, const char *node)
{
    char *text = NULL;
    size_t len;
    FILE *out = open_memstream(&text, &len);
    if (!out)
        return NULL;
    for (; *path != '\0'; path++) {
        if (path[0] == '%' && (path[1] == 'n' || path[1] == 'h')) {
            fputs(node, out);
            path++;
        } else {
            fputc(*path, out);
        }
    }
    fclose(out);
    return text;
}

/* The spool directory's template must lead peers to the directory that we found. */
static int check_template(const struct facts *facts, const char *template, struct err *err)
{
    char *here = expand(template, facts->node);
    int rc = 0;
    if (!here)
        return err_set(err, "out of memory");
    if (facts->boot.nnodes > 1 && strcmp(here, facts->spool) != 0)
        rc = err_set(err,
                     "SlurmdSpoolDir=%s is %s for messages to node %s, but slurmd there uses %s: "
                     "use %%n and no %%h in SlurmdSpoolDir",
                     template, here, facts->node, facts->spool);
    free(here);
    return rc;
}

/* Asks slurmctld for SlurmdSpoolDir as it is written in slurm.conf. */
static char *ask_template(struct err *err)
{
    char *text = NULL, *template;
    void *conf = NULL;
    size_t len;
    if (slurm_abi_load_conf(0, &conf) != SLURM_ABI_SUCCESS || !conf) {
        err_set(err, "cannot get slurm.conf from slurmctld: %s", slurm_abi_strerror(errno));
        return NULL;
    }
    FILE *out = open_memstream(&text, &len);
    if (out) {
        slurm_abi_print_conf(out, conf);
        fclose(out);
    }
    slurm_abi_free_conf(conf);
    template = text ? conf_value(text, "SlurmdSpoolDir") : NULL;
    free(text);
    if (!template)
        err_set(err, "slurmctld's slurm.conf has no absolute path for SlurmdSpoolDir");
    return template;
}

/* How peers have to spell our spool directory, and we theirs. */
static char *find_template(const struct facts *facts, struct err *err)
{
    char host[256] = "", *template;
    gethostname(host, sizeof(host) - 1);
    host[strcspn(host, ".")] = '\0';
    if (strstr(facts->spool, facts->node) || (host[0] != '\0' && strstr(facts->spool, host)))
        template = ask_template(err);
    else if (!(template = strdup(facts->spool))) /* no %n or %h can be in it */
        err_set(err, "out of memory");
    if (template && check_template(facts, template, err) < 0) {
        free(template);
        template = NULL;
    }
    return template;
}

/* Where temporary directories are made: by muster.json if that says so, which is the file that the
 * server will read: see make_env() in launch.c. */
static int find_tmpfs(struct facts *facts, struct err *err)
{
    const char *path = geteuid() != 0 ? getenv("MUSTER_CONF") : NULL;
    char tmpdir[CONF_PATH_SIZE], *tmpfs;
    if (conf_file_tmpdir(path ? path : MUSTER_CONF_PATH, path ? getuid() : 0, tmpdir, err) < 0)
        return -1;
    if (tmpdir[0] != '\0') {
        facts->tmpfs_key = "tmpdir";
        facts->tmpfs = strdup(tmpdir);
        return facts->tmpfs ? 0 : err_set(err, "out of memory");
    }
    tmpfs = slurm_abi_get_tmp_fs(facts->node);
    facts->tmpfs_key = "TmpFS";
    if (tmpfs && tmpfs[0] == '/')
        facts->tmpfs = strdup(tmpfs);
    if (!facts->tmpfs)
        err_set(err, "slurm.conf on node %s has no absolute path for TmpFS", facts->node);
    slurm_abi_xfree((void **)&tmpfs);
    return facts->tmpfs ? 0 : -1;
}

/* "2,3" */
static char *list_jobs(const struct facts *facts)
{
    char *text = NULL;
    size_t len;
    FILE *out = open_memstream(&text, &len);
    for (uint32_t i = 0; out && i < facts->njobs; i++)
        fprintf(out, "%s%u", i > 0 ? "," : "", facts->jobs[i]);
    if (out)
        fclose(out);
    return text;
}

/* How users run muster-status on a node of the step; what musterrun plays has no srun. */
static void set_ask(struct facts *facts)
{
    if (strcmp(facts->boot.allocation.cluster, "musterrun") == 0)
        return;
    char *ask = text_format("srun --jobid=%u --overlap --mpi=none -N1 -n1 muster-status %s",
                            facts->jobs[0], facts->boot.label);
    if (ask)
        boot_set(&facts->boot, "ask", ask);
    free(ask);
}

static int describe(struct facts *facts, const char *template, struct err *err)
{
    struct boot *boot = &facts->boot;
    char *jobs = list_jobs(facts), *runs = step_run_list(facts->runs, facts->njobs), step[16];
    char *address = text_format("%s/" FACTS_SOCKET, template, facts->jobs[0], facts->step,
                                facts->runs[0].first);
    Dl_info info = {0};
    speak_as(facts);
    snprintf(step, sizeof(step), "%u", facts->step);
    boot->session = text_format("%u", facts->jobs[0]);
    boot->nspace = text_format("slurm.%u.%u", facts->jobs[0], facts->step);
    boot->label = text_format("%u.%u", facts->jobs[0], facts->step);
    boot->run = facts->runs[0].first;
    boot_set(boot, "step", step);
    if (jobs)
        boot_set(boot, "jobs", jobs);
    if (runs)
        boot_set(boot, "runs", runs);
    if (address)
        boot_set(boot, "address", address);
    free(runs);
    free(jobs);
    free(address);
    /* The server loads the same libslurm, to speak as this release does. */
    if (dladdr((void *)(uintptr_t)slurm_abi_forward_data, &info) == 0 || !info.dli_fname)
        return err_set(err, "cannot find the file that libslurm was loaded from");
    set_ask(facts);
    boot_set(boot, "backend", "slurm");
    boot_set(boot, "preload", info.dli_fname);
    if (!boot->session || !boot->nspace || !boot->label)
        return err_set(err, "out of memory");
    return 0;
}

/* The runs of all jobs that are known so far: at first of the own job alone, so that the killer
 * knows it when what comes next fails. */
static int find_runs(struct facts *facts, struct err *err)
{
    for (uint32_t i = 0; i < facts->njobs; i++) {
        if (step_run_read(facts->jobs[i], facts->step, &facts->runs[i]) < 0)
            return err_set(err, "node %s cannot get the record of step %u.%u from slurmctld: %s",
                           facts->node, facts->jobs[i], facts->step, slurm_abi_strerror(errno));
    }
    return 0;
}

int facts_read(struct facts *facts, char *const *env, struct err *err)
{
    char *template = NULL;
    int rc = -1;
    *facts = (struct facts){0};
    if (find_self(facts, err) == 0 && find_user(facts, err) == 0 && find_runs(facts, err) == 0 &&
        find_tmpfs(facts, err) == 0 && layout_read(facts, env, err) == 0 &&
        (facts->njobs == 1 || find_runs(facts, err) == 0) &&
        allocation_read(&facts->boot, facts->jobs, facts->njobs, err) == 0)
        template = find_template(facts, err);
    if (template)
        rc = describe(facts, template, err);
    free(template);
    return rc;
}

void facts_free(struct facts *facts)
{
    free(facts->node);
    free(facts->spool);
    free(facts->tmpfs);
    free(facts->user.groups);
    boot_free(&facts->boot);
    *facts = (struct facts){0};
}
