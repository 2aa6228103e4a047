/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * What the launcher's plugin and muster-server say to each other over the control socket.
 *
 *     boot message   str  version of muster, u32 FRAME_PROTOCOL: the same at both ends
 *                    str  session, nspace, label, tmpdir
 *                    u64  run, u32 node
 *                    u32  nnodes, then for each: str name, u32 ntasks, ntasks × u32 rank
 *                    u32  ntasks of the step
 *                    u32  napps, 0 for one application of all tasks; then napps × u32 tasks
 *                    u32  nsettings, then for each: str key, str value
 *                    str  the RM's name, release and cluster, nodes of the allocation
 *                    u32  nodes of the allocation, slots of the allocation
 *                    nnodes × u32 slots of a node
 *
 * The reader checks all that later code relies on, so that nothing behind it checks again.
 */
#include "common/launch/boot.h"
#include "common/util/version.h"

#include <stdlib.h>
#include <string.h>

enum {
    NAME_MAX_LEN = 255, /* PMIX_MAX_NSLEN, and plenty for a node's name */
    VALUE_MAX_LEN = 4096,
    LIST_MAX_LEN = 16 << 20, /* of what names all nodes of an allocation */
};

static void write_allocation(const struct boot *boot, struct wire_out *out)
{
    const struct boot_allocation *alloc = &boot->allocation;
    wire_put_str(out, alloc->rm);
    wire_put_str(out, alloc->rm_version);
    wire_put_str(out, alloc->cluster);
    wire_put_str(out, alloc->nodes);
    wire_put_u32(out, alloc->nnodes);
    wire_put_u32(out, alloc->slots);
    for (uint32_t i = 0; i < boot->nnodes; i++)
        wire_put_u32(out, boot->nodes[i].slots);
}

void boot_write(const struct boot *boot, struct wire_out *out)
{
    wire_put_str(out, muster_version);
    wire_put_u32(out, FRAME_PROTOCOL);
    wire_put_str(out, boot->session);
    wire_put_str(out, boot->nspace);
    wire_put_str(out, boot->label);
    wire_put_str(out, boot->tmpdir);
    wire_put_u64(out, boot->run);
    wire_put_u32(out, boot->node);
    wire_put_u32(out, boot->nnodes);
    for (uint32_t i = 0; i < boot->nnodes; i++) {
        const struct boot_node *node = &boot->nodes[i];
        wire_put_str(out, node->name);
        wire_put_u32(out, node->ntasks);
        for (uint32_t k = 0; k < node->ntasks; k++)
            wire_put_u32(out, node->ranks[k]);
    }
    wire_put_u32(out, boot->ntasks);
    wire_put_u32(out, boot->napps);
    for (uint32_t i = 0; i < boot->napps; i++)
        wire_put_u32(out, boot->apps[i]);
    wire_put_u32(out, boot->nsettings);
    for (uint32_t i = 0; i < boot->nsettings; i++) {
        wire_put_str(out, boot->settings[i].key);
        wire_put_str(out, boot->settings[i].value);
    }
    write_allocation(boot, out);
}

void boot_write_nspace(const struct boot *boot, struct wire_out *out)
{
    const char *const keys[] = {BOOT_PSETS, BOOT_PARENT};
    struct boot_setting settings[2];
    struct boot told = *boot;
    told.tmpdir = "/";
    told.node = 0;
    told.settings = settings;
    told.nsettings = 0;
    for (int i = 0; i < 2; i++) {
        char *value = (char *)boot_setting(boot, keys[i]);
        if (value != NULL)
            settings[told.nsettings++] = (struct boot_setting){(char *)keys[i], value};
    }
    boot_write(&told, out);
}

/* A name becomes part of paths, log lines and PMIx namespaces. */
static bool name_ok(const char *s)
{
    if (s == NULL || *s == '\0')
        return false;
    for (; *s != '\0'; s++) {
        if ((unsigned char)*s < 0x20 || *s == 0x7f || *s == '/')
            return false;
    }
    return true;
}

/* @param same whether it has to be of our own build */
static int read_version(struct wire_in *in, bool same, struct err *err)
{
    char version[64];
    wire_get_str(in, version, sizeof version);
    uint32_t protocol = wire_get_u32(in);
    if (in->bad)
        return err_set(err, "the boot message has no version");
    if (same && (strcmp(version, muster_version) != 0 || protocol != FRAME_PROTOCOL))
        return err_set(err,
                       "the launcher's plugin is muster %s with protocol %u and muster-server is "
                       "%s with protocol %u: install both of one build",
                       version, protocol, muster_version, (unsigned)FRAME_PROTOCOL);
    return 0;
}

static void read_nodes(struct boot *boot, struct wire_in *in)
{
    boot->nnodes = wire_get_count(in, 8);
    boot->nodes = calloc(boot->nnodes + 1, sizeof *boot->nodes);
    for (uint32_t i = 0; i < boot->nnodes; i++) {
        struct boot_node *node = &boot->nodes[i];
        node->name = wire_get_strdup(in, NAME_MAX_LEN);
        node->ntasks = wire_get_count(in, 4);
        node->ranks = calloc(node->ntasks + 1, sizeof *node->ranks);
        for (uint32_t k = 0; k < node->ntasks; k++)
            node->ranks[k] = wire_get_u32(in);
    }
    boot->ntasks = wire_get_u32(in);
}

static void read_apps(struct boot *boot, struct wire_in *in)
{
    boot->napps = wire_get_count(in, 4);
    boot->apps = calloc(boot->napps + 1, sizeof *boot->apps);
    for (uint32_t i = 0; i < boot->napps; i++)
        boot->apps[i] = wire_get_u32(in);
}

static void read_settings(struct boot *boot, struct wire_in *in)
{
    boot->nsettings = wire_get_count(in, 8);
    boot->settings = calloc(boot->nsettings + 1, sizeof *boot->settings);
    for (uint32_t i = 0; i < boot->nsettings; i++) {
        boot->settings[i].key = wire_get_strdup(in, NAME_MAX_LEN);
        boot->settings[i].value = wire_get_strdup(in, LIST_MAX_LEN);
    }
}

static void read_allocation(struct boot *boot, struct wire_in *in)
{
    struct boot_allocation *alloc = &boot->allocation;
    alloc->rm = wire_get_strdup(in, NAME_MAX_LEN);
    alloc->rm_version = wire_get_strdup(in, NAME_MAX_LEN);
    alloc->cluster = wire_get_strdup(in, NAME_MAX_LEN);
    alloc->nodes = wire_get_strdup(in, LIST_MAX_LEN);
    alloc->nnodes = wire_get_u32(in);
    alloc->slots = wire_get_u32(in);
    for (uint32_t i = 0; i < boot->nnodes; i++)
        boot->nodes[i].slots = wire_get_u32(in);
}

static int check_names(const struct boot *boot, struct err *err)
{
    if (!name_ok(boot->session) || !name_ok(boot->nspace) || !name_ok(boot->label))
        return err_set(err, "the boot message has no proper session, namespace or label");
    if (boot->tmpdir[0] != '/')
        return err_set(err, "the boot message has no absolute path of a temporary directory");
    if (boot->node >= boot->nnodes)
        return err_set(err, "the boot message names node %u of %u", boot->node, boot->nnodes);
    for (uint32_t i = 0; i < boot->nnodes; i++)
        if (!name_ok(boot->nodes[i].name))
            return err_set(err, "the boot message has a node without a proper name");
    return 0;
}

/* Every rank of 0 to ntasks - 1 lives on one node. */
static int check_ranks(const struct boot *boot, struct err *err)
{
    uint64_t total = 0;
    int rc = 0;
    for (uint32_t i = 0; i < boot->nnodes; i++)
        total += boot->nodes[i].ntasks;
    if (total != boot->ntasks || total == 0)
        return err_set(err, "the boot message has %llu ranks for %u tasks",
                       (unsigned long long)total, boot->ntasks);
    /* total ranks were in the message, so this is no larger than what was received */
    unsigned char *seen = calloc(boot->ntasks, 1);
    for (uint32_t i = 0; i < boot->nnodes && rc == 0; i++) {
        const struct boot_node *node = &boot->nodes[i];
        for (uint32_t k = 0; k < node->ntasks && rc == 0; k++) {
            if (node->ranks[k] >= boot->ntasks || seen[node->ranks[k]]++)
                rc = err_set(err, "the boot message has rank %u twice or out of range",
                             node->ranks[k]);
        }
    }
    free(seen);
    return rc;
}

/* @return whether they are as many tasks as the step has */
static bool apps_fit(const struct boot *boot)
{
    uint64_t sum = 0;
    for (uint32_t i = 0; i < boot->napps; i++) {
        if (boot->apps[i] == 0)
            return false;
        sum += boot->apps[i];
    }
    return sum == boot->ntasks || boot->napps == 0;
}

static int read_boot(struct boot *boot, const void *data, size_t len, bool same, struct err *err)
{
    struct wire_in in;
    *boot = (struct boot){0};
    wire_in_init(&in, data, len);
    if (read_version(&in, same, err) < 0)
        return -1;
    boot->session = wire_get_strdup(&in, NAME_MAX_LEN);
    boot->nspace = wire_get_strdup(&in, NAME_MAX_LEN);
    boot->label = wire_get_strdup(&in, NAME_MAX_LEN);
    boot->tmpdir = wire_get_strdup(&in, VALUE_MAX_LEN);
    boot->run = wire_get_u64(&in);
    boot->node = wire_get_u32(&in);
    read_nodes(boot, &in);
    read_apps(boot, &in);
    read_settings(boot, &in);
    read_allocation(boot, &in);
    if (!wire_end(&in))
        return err_set(err, "the boot message is cut short, or longer than its content");
    if (check_names(boot, err) < 0 || check_ranks(boot, err) < 0)
        return -1;
    return apps_fit(boot)
               ? 0
               : err_set(err, "the boot message has applications that do not fit its tasks");
}

int boot_read(struct boot *boot, const void *data, size_t len, struct err *err)
{
    return read_boot(boot, data, len, true, err);
}

int boot_read_nspace(struct boot *boot, const void *data, size_t len, struct err *err)
{
    return read_boot(boot, data, len, false, err);
}

void boot_take_apps(struct boot *boot)
{
    const char *text = boot_setting(boot, "apps");
    struct boot told = {.ntasks = boot->ntasks};
    size_t n = 1;
    char *end;
    for (const char *p = text; p != NULL && *p != '\0'; p++)
        n += *p == ',';
    if (text == NULL || boot->napps > 1 || n > boot->ntasks)
        return;
    told.apps = calloc(n, sizeof *told.apps);
    for (;; text = end + 1) {
        unsigned long tasks = strtoul(text, &end, 10);
        told.apps[told.napps++] = tasks <= boot->ntasks ? (uint32_t)tasks : 0;
        if (*end != ',' || told.napps == n)
            break;
    }
    if (!apps_fit(&told)) {
        free(told.apps);
        return;
    }
    free(boot->apps);
    boot->apps = told.apps;
    boot->napps = told.napps;
}

uint32_t boot_napps(const struct boot *boot)
{
    return boot->napps > 0 ? boot->napps : 1;
}

uint32_t boot_app_of(const struct boot *boot, uint32_t rank, uint32_t *first)
{
    uint32_t app = 0;
    *first = 0;
    for (; app + 1 < boot->napps && rank - *first >= boot->apps[app]; app++)
        *first += boot->apps[app];
    return app;
}

bool boot_app_on(const struct boot *boot, uint32_t app, uint32_t node)
{
    const struct boot_node *on = &boot->nodes[node];
    bool found = boot->napps <= 1;
    uint32_t first;
    for (uint32_t k = 0; k < on->ntasks && !found; k++)
        found = boot_app_of(boot, on->ranks[k], &first) == app;
    return found;
}

struct boot_app boot_app(const struct boot *boot, uint32_t app)
{
    struct boot_app found = {.ntasks = boot->napps > 0 ? boot->apps[app] : boot->ntasks};
    for (uint32_t i = 0; i < app; i++)
        found.first += boot->apps[i];
    for (uint32_t i = 0; i < boot->nnodes; i++)
        found.nnodes += boot_app_on(boot, app, i);
    return found;
}

const char *boot_setting(const struct boot *boot, const char *key)
{
    for (uint32_t i = 0; i < boot->nsettings; i++) {
        if (strcmp(boot->settings[i].key, key) == 0)
            return boot->settings[i].value;
    }
    return NULL;
}

bool boot_parent(const struct boot *boot, char *nspace, uint32_t *rank)
{
    const char *text = boot_setting(boot, BOOT_PARENT);
    char *end;
    if (text == NULL || *text < '0' || *text > '9')
        return false;
    unsigned long number = strtoul(text, &end, 10);
    if (number >= UINT32_MAX || *end != ' ' || end[1] == '\0' || strlen(end + 1) > NAME_MAX_LEN)
        return false;
    *rank = (uint32_t)number;
    strcpy(nspace, end + 1);
    return true;
}

bool boot_spawned(const struct boot *boot)
{
    char nspace[NAME_MAX_LEN + 1];
    uint32_t rank;
    return boot_parent(boot, nspace, &rank);
}

const char *boot_launcher(const struct boot *boot)
{
    const char *launcher = boot_setting(boot, "launcher");
    return launcher != NULL ? launcher : "launcher";
}

void boot_set(struct boot *boot, const char *key, const char *value)
{
    struct boot_setting *settings =
        realloc(boot->settings, (boot->nsettings + 1) * sizeof *settings);
    struct boot_setting add = {strdup(key), strdup(value)};
    if (settings != NULL)
        boot->settings = settings;
    if (settings == NULL || add.key == NULL || add.value == NULL) {
        /* The reader names a setting that it misses, which says enough when memory ran out. */
        free(add.key);
        free(add.value);
        return;
    }
    settings[boot->nsettings++] = add;
}

void boot_replace(struct boot *boot, const char *key, const char *value)
{
    for (uint32_t i = 0; i < boot->nsettings; i++) {
        if (strcmp(boot->settings[i].key, key) != 0)
            continue;
        char *copy = strdup(value);
        if (copy != NULL) {
            free(boot->settings[i].value);
            boot->settings[i].value = copy;
        }
        return;
    }
    boot_set(boot, key, value);
}

void boot_free(struct boot *boot)
{
    for (uint32_t i = 0; boot->nodes != NULL && i < boot->nnodes; i++) {
        free(boot->nodes[i].name);
        free(boot->nodes[i].ranks);
    }
    for (uint32_t i = 0; i < boot->nsettings; i++) {
        free(boot->settings[i].key);
        free(boot->settings[i].value);
    }
    free(boot->nodes);
    free(boot->apps);
    free(boot->settings);
    free(boot->session);
    free(boot->nspace);
    free(boot->label);
    free(boot->tmpdir);
    free(boot->allocation.rm);
    free(boot->allocation.rm_version);
    free(boot->allocation.cluster);
    free(boot->allocation.nodes);
    *boot = (struct boot){0};
}
