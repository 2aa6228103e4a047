#include "keys_known.h"

#include <sched.h>
#include <unistd.h>

struct known known;

/* What each rank puts of itself. */
struct self {
    uint32_t node, slot;
    char host[64], cpus[256];
};

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

static struct self find_self(void)
{
    const char *node = getenv("SLURM_NODEID"), *slot = getenv("SLURM_LOCALID");
    const char *name = getenv("SLURMD_NODENAME");
    struct self self = {UINT32_MAX, UINT32_MAX, "", ""};
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

static void find_session(void)
{
    const char *nodes = getenv("SLURM_JOB_NODELIST"), *cpus = getenv("SLURM_JOB_CPUS_PER_NODE");
    const char *n = getenv("SLURM_JOB_NUM_NODES"), *step_id = getenv("SLURM_STEP_ID");
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

void known_find(void)
{
    struct self self = find_self();
    step("exchange of what each rank knows of itself");
    put_bytes(PMIX_GLOBAL, &self, sizeof self, "keys.self");
    commit();
    fence_all(true);
    known.nodes = calloc(client.size, sizeof *known.nodes);
    known.node_of = calloc(client.size, sizeof *known.node_of);
    known.slot_of = calloc(client.size, sizeof *known.slot_of);
    known.cpus = calloc(client.size, sizeof *known.cpus);
    for (pmix_rank_t r = 0; r < client.size; r++) {
        struct self *other = get_bytes(r, sizeof *other, "keys.self");
        other->host[sizeof other->host - 1] = '\0';
        place(r, other);
        if (other->cpus[0])
            known.cpus[r] = strndup(other->cpus, sizeof other->cpus);
        free(other);
    }
    for (uint32_t i = 0; i < known.nnodes; i++) {
        CHECK(known.nodes[i].name, "node %u has no task", i);
        append(&known.step_list, known.nodes[i].name, strlen(known.nodes[i].name));
    }
    find_session();
}
