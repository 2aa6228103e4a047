/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * The signature of an operation, which begins most frames: one form for each operation, and its
 * servers and those who are missing are found without going astray.
 */
#include "common/nspace/nspace.h"
#include "fuzz/fuzz.h"

#include <stdlib.h>
#include <string.h>

enum { NODES = 3, TASKS = 4 };

static uint32_t ranks[NODES][TASKS];
static struct boot_node nodes[NODES];
static const struct boot boot = {
    .nspace = "job", .nnodes = NODES, .ntasks = NODES * TASKS, .nodes = nodes};

static struct nspace *make_nspace(void)
{
    for (uint32_t i = 0; i < NODES; i++) {
        nodes[i] = (struct boot_node){"c07", TASKS, ranks[i]};
        for (uint32_t k = 0; k < TASKS; k++)
            ranks[i][k] = k * NODES + i;
    }
    struct nspace *ns = nspace_new(&boot);
    FUZZ_CHECK(ns != NULL);
    return ns;
}

static void check_places(const struct nspace *ns, const struct signature *sig)
{
    struct places places = {0};
    uint32_t servers[NODES];
    char who[40];
    if (nspace_servers(ns, sig, &places) == 0) {
        FUZZ_CHECK(places.n >= 1 && places.n <= NODES);
        for (uint32_t i = 0; i < places.n; i++) {
            servers[i] = places_node(&places, i);
            FUZZ_CHECK(places_slot(&places, servers[i]) == i);
            FUZZ_CHECK(i == 0 || servers[i - 1] < servers[i]);
        }
        nspace_ranks(ns, sig, servers, places.n, true, who, sizeof who);
        FUZZ_CHECK(memchr(who, '\0', sizeof who) != NULL);
    }
    places_free(&places);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    static struct nspace *ns;
    struct signature sig;
    char text[320];
    if (ns == NULL)
        ns = make_nspace();
    signature_describe(data, len, text, sizeof text);
    FUZZ_CHECK(text[0] != '\0');
    if (signature_read(&sig, data, len) == 0) {
        struct wire_out out = {0};
        signature_write(&out, sig.kind, sig.id, &sig.members);
        FUZZ_CHECK(!out.failed && out.len == len && memcmp(out.data, data, len) == 0);
        wire_out_free(&out);
        FUZZ_CHECK(procset_size(&sig.members) > 0);
        check_places(ns, &sig);
    }
    signature_free(&sig);
    return 0;
}

static void seed(enum coll_kind kind, const char *id, const char *other, uint32_t step)
{
    struct procset members = {0};
    struct wire_out out = {0};
    for (uint32_t rank = 0; rank < NODES * TASKS; rank += step)
        procset_add(&members, "job", rank, rank);
    if (other != NULL)
        procset_add(&members, other, 0, UINT32_MAX);
    procset_canonical(&members);
    signature_write(&out, kind, id, &members);
    fuzz_seed(out.data, out.len);
    procset_free(&members);
    wire_out_free(&out);
}

void fuzz_seeds(void)
{
    char name[PROCSET_NAME_MAX + 2] = "";
    seed(COLL_FENCE, "", NULL, 1);
    seed(COLL_CONSTRUCT, "ocean", NULL, 2);
    seed(COLL_DESTRUCT, "ocean", NULL, 5);
    seed(COLL_CONSTRUCT, "two", "atmosphere", 3);
    memset(name, 'x', PROCSET_NAME_MAX); /* as long as may be, and a byte longer */
    seed(COLL_CONSTRUCT, name, name, 1);
    name[PROCSET_NAME_MAX] = 'x';
    seed(COLL_CONSTRUCT, name, NULL, 1);
}
