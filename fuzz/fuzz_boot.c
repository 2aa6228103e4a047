/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * The boot message, plugin to server: what is accepted is what boot_write() writes, and what later
 * code relies on holds.
 */
#include "common/nspace/nspace.h"
#include "fuzz/fuzz.h"

#include <stdlib.h>
#include <string.h>

static void check_good(const struct boot *boot, const uint8_t *data, size_t len)
{
    struct wire_out out = {0};
    boot_write(boot, &out);
    FUZZ_CHECK(!out.failed && out.len == len && memcmp(out.data, data, len) == 0);
    wire_out_free(&out);
    FUZZ_CHECK(boot->node < boot->nnodes);
    struct nspace *ns = nspace_new(boot);
    FUZZ_CHECK(ns != NULL);
    for (uint32_t rank = 0; rank < boot->ntasks; rank++) {
        uint32_t node;
        FUZZ_CHECK(nspace_node(ns, boot->nspace, rank, &node) == 0 && node < boot->nnodes);
        FUZZ_CHECK(boot->nodes[node].ranks[ns->local_of[rank]] == rank);
        uint32_t first, number = boot_app_of(boot, rank, &first);
        struct boot_app app = boot_app(boot, number);
        FUZZ_CHECK(number < boot_napps(boot) && app.first == first);
        FUZZ_CHECK(app.nnodes > 0 && rank >= app.first && rank - app.first < app.ntasks);
    }
    nspace_free(ns);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    struct boot boot;
    struct err err = {0};
    if (boot_read(&boot, data, len, &err) == 0)
        check_good(&boot, data, len);
    else
        FUZZ_CHECK(err.text[0] != '\0');
    boot_free(&boot);
    return 0;
}

/* @param apps as many as there are nodes, or one */
static void seed(uint32_t nnodes, uint32_t tasks_each, const char *setting, bool apps)
{
    struct boot_node nodes[4];
    uint32_t ranks[64], counts[4];
    struct boot_setting settings[] = {{"backend", "slurm"}, {"socket", (char *)setting}};
    struct boot boot = {.session = "4711",
                        .nspace = "slurm.4711.0",
                        .label = "4711.0",
                        .tmpdir = "/tmp/muster",
                        .node = nnodes - 1,
                        .nnodes = nnodes,
                        .ntasks = nnodes * tasks_each,
                        .nodes = nodes,
                        .napps = apps ? nnodes : 0,
                        .apps = counts,
                        .nsettings = setting != NULL ? 2 : 0,
                        .settings = settings};
    struct wire_out out = {0};
    for (uint32_t i = 0; i < nnodes; i++) {
        nodes[i] = (struct boot_node){"c07", tasks_each, ranks + i * tasks_each, 0};
        counts[i] = tasks_each;
        for (uint32_t k = 0; k < tasks_each; k++)
            nodes[i].ranks[k] = apps ? i * tasks_each + k : k * nnodes + i;
    }
    boot_write(&boot, &out);
    fuzz_seed(out.data, out.len);
    wire_out_free(&out);
}

void fuzz_seeds(void)
{
    seed(1, 1, NULL, false);
    seed(2, 3, "/var/spool/slurmd/node1/muster.4711.0.6923aa00", false);
    seed(4, 16, "", false);
    seed(3, 2, NULL, true);
}
