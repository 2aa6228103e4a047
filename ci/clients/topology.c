/* SPDX-License-Identifier: BSD-3-Clause */
/* topology: the node's hardware as PMIx has it for a task is what the task itself would find,
 * whoever has looked for it. With --shared 1 another process must have done so.
 */
#include "client.h"

#include <hwloc.h>

static long shared = 0;

static bool is_shared(void)
{
    char line[4096];
    bool found = false;
    FILE *in = fopen("/proc/self/maps", "re");
    while (in != NULL && !found && fgets(line, sizeof line, in) != NULL)
        found = strstr(line, "/hwloc.sm") != NULL;
    if (in != NULL)
        fclose(in);
    return found;
}

static void check_set(hwloc_const_bitmap_t found, hwloc_const_bitmap_t expected, const char *what)
{
    char *f = NULL, *e = NULL;
    hwloc_bitmap_list_asprintf(&f, found);
    hwloc_bitmap_list_asprintf(&e, expected);
    CHECK(hwloc_bitmap_isequal(found, expected), "%s: expected %s, found %s", what, e, f);
    free(f);
    free(e);
}

int main(int argc, char **argv)
{
    const struct option_number options[] = {
        {"shared", &shared, "whether it must be shared with others", NULL}, {0}};
    client_init("topology", options, argc, argv);
    bool was_shared = is_shared();
    pmix_topology_t pmix = {0};
    step("PMIx_Load_topology");
    CHECK_OK(PMIx_Load_topology(&pmix), "PMIx_Load_topology");
    if (LIBPMIX < 50000) /* it has not looked in PMIx_Init */
        was_shared = is_shared();
    CHECK(!shared || was_shared, "expected hardware that the server has found, found none");
    hwloc_topology_t own, theirs = pmix.topology;
    step("hwloc");
    CHECK_EQ(hwloc_topology_init(&own), 0, "hwloc_topology_init");
    CHECK_EQ(hwloc_topology_load(own), 0, "hwloc_topology_load");
    check_set(hwloc_topology_get_allowed_cpuset(theirs), hwloc_topology_get_allowed_cpuset(own),
              "processors");
    check_set(hwloc_topology_get_allowed_nodeset(theirs), hwloc_topology_get_allowed_nodeset(own),
              "memory nodes");
    static const struct {
        hwloc_obj_type_t type;
        const char *name;
    } kinds[] = {{HWLOC_OBJ_PU, "hardware threads"},
                 {HWLOC_OBJ_CORE, "cores"},
                 {HWLOC_OBJ_PACKAGE, "packages"},
                 {HWLOC_OBJ_NUMANODE, "memory nodes"},
                 {HWLOC_OBJ_L2CACHE, "L2 caches"}};
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
        CHECK_EQ(hwloc_get_nbobjs_by_type(theirs, kinds[i].type),
                 hwloc_get_nbobjs_by_type(own, kinds[i].type), kinds[i].name);
    hwloc_topology_destroy(own);
    return client_pass("%u ranks have the hardware that they would find%s", client.size,
                       was_shared ? ", from their server" : "");
}
