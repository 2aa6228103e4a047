/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * What a rank finds out by itself: from its environment, the kernel and its arguments. It puts
 * that, and after a fence reads what the others have put.
 */
#include "keys_known.h"

#include <sched.h>
#include <unistd.h>

struct known known;

/* What each rank puts of itself. */
struct self {
    uint32_t node, slot, app;
    int package;
    char host[64], cpus[256], wdir[300], argv[900];
};

/* The package of a processor, as the kernel numbers them; -1: it does not say. */
static int package_of(int cpu)
{
    char path[80];
    int package = -1;
    snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu%d/topology/physical_package_id", cpu);
    FILE *in = fopen(path, "r");
    if (in && fscanf(in, "%d", &package) != 1)
        package = -1;
    if (in)
        fclose(in);
    return package;
}

/* The package that all processors are of on which we may run, or -1. */
static int find_package(void)
{
    cpu_set_t set;
    int common = -1;
    if (sched_getaffinity(0, sizeof set, &set))
        return -1;
    for (int cpu = 0, n = 0; cpu < CPU_SETSIZE; cpu++) {
        if (!CPU_ISSET(cpu, &set))
            continue;
        if (n++ > 0 && package_of(cpu) != common)
            return -1;
        common = package_of(cpu);
    }
    return common;
}

/* Where we may run, unless that is everywhere: "0-3,8". */
static void find_cpus(char *text, size_t size)
{
    cpu_set_t set;
    CPU_ZERO(&set);
    if (sched_getaffinity(0, sizeof set, &set) || CPU_COUNT(&set) >= sysconf(_SC_NPROCESSORS_ONLN))
        return;
    for (int cpu = 0, last; cpu < CPU_SETSIZE; cpu = last + 1) {
        size_t at = strlen(text);
        last = cpu;
        if (!CPU_ISSET(cpu, &set))
            continue;
        while (last + 1 < CPU_SETSIZE && CPU_ISSET(last + 1, &set))
            last++;
        snprintf(text + at, size - at, last > cpu ? "%s%d-%d" : "%s%d", at ? "," : "", cpu, last);
    }
}

/* How we were started, unless the environment knows better. */
static void find_start(struct self *self, char *const *argv)
{
    const char *wdir = getenv("KEYS_WDIR"), *all = getenv("KEYS_APP_ARGV");
    size_t at = 0, size = sizeof self->argv;
    if (wdir)
        snprintf(self->wdir, sizeof self->wdir, "%s", wdir);
    else
        CHECK(getcwd(self->wdir, sizeof self->wdir), "no name of our directory");
    if (all)
        at = (size_t)snprintf(self->argv, size, "%s", all);
    for (int i = 0; !all && argv[i] && at < size; i++)
        at += (size_t)snprintf(self->argv + at, size - at, "%s%s", i ? " " : "", argv[i]);
    CHECK(at < size, "expected less than %zu bytes of arguments", size);
}

static struct self find_self(void)
{
    const char *node = getenv("SLURM_NODEID"), *slot = getenv("SLURM_LOCALID");
    const char *name = getenv("SLURMD_NODENAME");
    if (!name)
        name = getenv("MUSTERRUN_NODE");
    struct self self = {.node = UINT32_MAX, .slot = UINT32_MAX, .package = find_package()};
    if (node && slot) {
        self.node = (uint32_t)strtoul(node, NULL, 10);
        self.slot = (uint32_t)strtoul(slot, NULL, 10);
    }
    if (name)
        snprintf(self.host, sizeof self.host, "%s", name);
    else
        gethostname(self.host, sizeof self.host - 1);
    find_cpus(self.cpus, sizeof self.cpus);
    return self;
}

/* Without Slurm's number of a node: nodes are counted as they appear in the order of ranks. */
static uint32_t node_named(const char *host)
{
    for (uint32_t i = 0; i < known.nnodes; i++)
        if (known.nodes[i].name && !strcmp(known.nodes[i].name, host))
            return i;
    return known.nnodes;
}

static void place(pmix_rank_t rank, const struct self *self)
{
    uint32_t at = self->node != UINT32_MAX ? self->node : node_named(self->host);
    CHECK(at < client.size, "rank %u is on node %u of a job of %u", rank, at, client.size);
    struct known_node *node = &known.nodes[at];
    if (!node->name)
        node->name = strdup(self->host);
    if (at >= known.nnodes)
        known.nnodes = at + 1;
    CHECK(!strcmp(node->name, self->host), "node %u: expected the name %s, found %s", at,
          node->name, self->host);
    CHECK(self->slot == UINT32_MAX || self->slot == node->tasks,
          "rank %u: local id %u, expected %u", rank, self->slot, node->tasks);
    node->ranks = realloc(node->ranks, (node->tasks + 1) * sizeof *node->ranks);
    known.node_of[rank] = at;
    known.slot_of[rank] = node->tasks;
    node->ranks[node->tasks++] = rank;
}

/* After place(): a node is counted for the application of its first rank. */
static void enlist(pmix_rank_t rank, uint32_t number)
{
    CHECK(number < client.size, "rank %u is of application %u in a job of %u", rank, number,
          client.size);
    struct known_app *app = &known.apps[number];
    if (number >= known.napps)
        known.napps = number + 1;
    if (app->tasks == 0)
        app->first = rank;
    known.app_of[rank] = number;
    known.app_rank_of[rank] = app->tasks++;
    app->nodes += known.slot_of[rank] == 0;
}

static void append(char **list, const char *name, size_t length)
{
    size_t old = *list ? strlen(*list) : 0;
    *list = realloc(*list, old + length + 2);
    snprintf(*list + old, length + 2, "%s%.*s", old ? "," : "", (int)length, name);
}

/* "a[1-3,5],b" → "a1,a2,a3,a5,b", with leading zeros kept; one bracket a name. */
static char *expand(const char *text)
{
    char *list = NULL, name[256];
    while (*text) {
        size_t prefix = strcspn(text, "[,");
        if (text[prefix] != '[') {
            append(&list, text, prefix);
            text += prefix + (text[prefix] == ',');
            continue;
        }
        const char *p = text + prefix + 1;
        while (*p != ']') {
            char *end;
            int width = (int)strspn(p, "0123456789");
            unsigned long first = strtoul(p, &end, 10), last = first;
            CHECK(end > p, "cannot read the host list at %s", p);
            if (*end == '-')
                last = strtoul(end + 1, &end, 10);
            for (; first <= last; first++) {
                int n = snprintf(name, sizeof name, "%.*s%0*lu", (int)prefix, text, width, first);
                append(&list, name, (size_t)n);
            }
            p = end + (*end == ',');
        }
        text = p + 1 + (p[1] == ',');
    }
    return list;
}

/* The slots of the allocation's nodes: "16(x2),8". */
static void read_slots(const char *text)
{
    char *list = strdup(known.session_list), *save = NULL;
    char *name = strtok_r(list, ",", &save);
    while (*text && name) {
        char *end;
        unsigned long slots = strtoul(text, &end, 10), times = 1;
        if (!strncmp(end, "(x", 2))
            times = strtoul(end + 2, &end, 10), end += *end == ')';
        for (; times > 0 && name; times--, name = strtok_r(NULL, ",", &save)) {
            uint32_t at = node_named(name);
            known.session_slots += (uint32_t)slots;
            if (at < known.nnodes) {
                known.nodes[at].slots = (uint32_t)slots;
                known.step_slots += (uint32_t)slots;
            }
        }
        text = end + (*end == ',');
    }
    free(list);
}

/* In a heterogeneous step srun puts the step's nodes into the variables of the job; whoever starts
 * one keeps the job's own under KEYS_. */
static const char *of_job(const char *name)
{
    char kept[64];
    snprintf(kept, sizeof kept, "KEYS_%s", name);
    return getenv(kept) ? getenv(kept) : getenv(name);
}

static void find_session(void)
{
    const char *nodes = of_job("SLURM_JOB_NODELIST"), *cpus = of_job("SLURM_JOB_CPUS_PER_NODE");
    const char *n = of_job("SLURM_JOB_NUM_NODES"), *step_id = getenv("SLURM_STEP_ID");
    known.session_id = getenv("SLURM_JOB_ID");
    known.cluster = getenv("SLURM_CLUSTER_NAME");
    if (known.session_id && step_id) {
        size_t size = strlen(known.session_id) + strlen(step_id) + 2;
        known.job_id = malloc(size);
        snprintf(known.job_id, size, "%s.%s", known.session_id, step_id);
    }
    if (!nodes || !n)
        return;
    known.session_list = expand(nodes);
    known.session_nodes = (uint32_t)strtoul(n, NULL, 10);
    if (cpus)
        read_slots(cpus);
}

void known_find(uint32_t app, char *const *argv)
{
    struct self self = find_self();
    self.app = app;
    find_start(&self, argv);
    step("exchange of what each rank knows of itself");
    put_bytes(PMIX_GLOBAL, &self, sizeof self, "keys.self");
    commit();
    fence_all(true);
    known.nodes = calloc(client.size, sizeof *known.nodes);
    known.node_of = calloc(client.size, sizeof *known.node_of);
    known.slot_of = calloc(client.size, sizeof *known.slot_of);
    known.apps = calloc(client.size, sizeof *known.apps);
    known.app_of = calloc(client.size, sizeof *known.app_of);
    known.app_rank_of = calloc(client.size, sizeof *known.app_rank_of);
    known.wdir = calloc(client.size, sizeof *known.wdir);
    known.argv = calloc(client.size, sizeof *known.argv);
    known.cpus = calloc(client.size, sizeof *known.cpus);
    known.package_of = calloc(client.size, sizeof *known.package_of);
    for (pmix_rank_t r = 0; r < client.size; r++) {
        struct self *other = get_bytes(r, sizeof *other, "keys.self");
        other->host[sizeof other->host - 1] = '\0';
        place(r, other);
        enlist(r, other->app);
        known.wdir[r] = strndup(other->wdir, sizeof other->wdir);
        known.argv[r] = strndup(other->argv, sizeof other->argv);
        known.package_of[r] = other->package;
        if (other->cpus[0])
            known.cpus[r] = strndup(other->cpus, sizeof other->cpus);
        free(other);
    }
    for (uint32_t i = 0; i < known.nnodes; i++) {
        CHECK(known.nodes[i].name, "node %u has no task", i);
        append(&known.step_list, known.nodes[i].name, strlen(known.nodes[i].name));
    }
    for (uint32_t i = 0; i < known.napps; i++)
        CHECK(known.apps[i].tasks > 0, "application %u has no task", i);
    find_session();
}
