/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * Tests of the boot message: what is written is read, and nothing else is.
 */
#include "common/launch/boot.h"
#include "common/util/test_cmocka.h"
#include "muster_version.h"

#include <stdlib.h>
#include <string.h>

static uint32_t ranks0[] = {0, 2}, ranks1[] = {1, 3, 4};
static struct boot_node nodes[] = {{"c07", 2, ranks0, 8}, {"c08", 3, ranks1, 16}};
static struct boot_setting settings[] = {{"job", "4711"}, {"step", "0"}};

static struct boot sample(void)
{
    return (struct boot){
        .session = "4711",
        .nspace = "slurm.4711.0",
        .label = "4711.0",
        .tmpdir = "/tmp/muster.4711.0.abcdef",
        .run = 0x123456789abcdef0,
        .node = 1,
        .nnodes = 2,
        .ntasks = 5,
        .nodes = nodes,
        .allocation = {"slurm", "24.11.5", "ci", "c07,c08,c09", 3, 40},
        .nsettings = 2,
        .settings = settings,
    };
}

/* Whether what boot says is refused, with a reason. */
static bool refused(const struct boot *boot)
{
    struct wire_out out = {0};
    struct boot read;
    struct err err = {0};
    boot_write(boot, &out);
    int rc = boot_read(&read, out.data, out.len, &err);
    assert_true((rc < 0) == (err.text[0] != '\0'));
    boot_free(&read);
    wire_out_free(&out);
    return rc < 0;
}

static void round_trip(void **state)
{
    struct boot boot = sample(), read;
    struct wire_out out = {0};
    struct err err = {0};
    (void)state;
    boot_write(&boot, &out);
    assert_int_equal(boot_read(&read, out.data, out.len, &err), 0);
    assert_string_equal(read.session, "4711");
    assert_string_equal(read.nspace, "slurm.4711.0");
    assert_string_equal(read.label, "4711.0");
    assert_string_equal(read.tmpdir, "/tmp/muster.4711.0.abcdef");
    assert_true(read.run == 0x123456789abcdef0);
    assert_int_equal(read.node, 1);
    assert_int_equal(read.nnodes, 2);
    assert_int_equal(read.ntasks, 5);
    assert_string_equal(read.nodes[1].name, "c08");
    assert_int_equal(read.nodes[1].ntasks, 3);
    assert_int_equal(read.nodes[1].ranks[2], 4);
    assert_int_equal(read.nodes[0].slots, 8);
    assert_int_equal(read.nodes[1].slots, 16);
    assert_string_equal(read.allocation.rm, "slurm");
    assert_string_equal(read.allocation.rm_version, "24.11.5");
    assert_string_equal(read.allocation.cluster, "ci");
    assert_string_equal(read.allocation.nodes, "c07,c08,c09");
    assert_int_equal(read.allocation.nnodes, 3);
    assert_int_equal(read.allocation.slots, 40);
    assert_string_equal(boot_setting(&read, "job"), "4711");
    assert_null(boot_setting(&read, "absent"));
    boot_set(&read, "absent", "now");
    assert_string_equal(boot_setting(&read, "absent"), "now");
    boot_free(&read);
    wire_out_free(&out);
}

static void every_truncation_is_refused(void **state)
{
    struct boot boot = sample(), read;
    struct wire_out out = {0};
    (void)state;
    boot_write(&boot, &out);
    for (size_t len = 0; len < out.len; len++) {
        /* a block of just that size, so that a sanitizer sees a read behind it */
        unsigned char *copy = malloc(len ? len : 1);
        struct err err = {0};
        memcpy(copy, out.data, len);
        assert_int_equal(boot_read(&read, copy, len, &err), -1);
        assert_true(err.text[0] != '\0');
        boot_free(&read);
        free(copy);
    }
    wire_put_u8(&out, 0);
    assert_int_equal(boot_read(&read, out.data, out.len, &(struct err){0}), -1);
    boot_free(&read);
    wire_out_free(&out);
}

static void bit_flips_do_no_harm(void **state)
{
    struct boot boot = sample(), read;
    struct wire_out out = {0};
    (void)state;
    boot_write(&boot, &out);
    for (size_t bit = 0; bit < out.len * 8; bit++) {
        struct err err = {0};
        out.data[bit / 8] ^= (unsigned char)(1U << bit % 8);
        if (boot_read(&read, out.data, out.len, &err) == 0) {
            assert_true(read.node < read.nnodes);
            for (uint32_t i = 0; i < read.nnodes; i++) {
                for (uint32_t k = 0; k < read.nodes[i].ntasks; k++)
                    assert_true(read.nodes[i].ranks[k] < read.ntasks);
            }
        }
        boot_free(&read);
        out.data[bit / 8] ^= (unsigned char)(1U << bit % 8);
    }
    wire_out_free(&out);
}

static void oversized_counts_are_refused(void **state)
{
    struct boot boot = sample(), read;
    struct wire_out out = {0};
    struct err err = {0};
    (void)state;
    boot_write(&boot, &out);
    /* behind version, protocol, four strings, run and node stands the number of nodes */
    size_t at = 4 + strlen(MUSTER_VERSION) + 4 + 4 + 4 + 4 + 12 + 4 + 6 + 4 + 25 + 12;
    assert_memory_equal(out.data + at, "\0\0\0\2", 4);
    wire_set_u32(&out, at, 0xffffffff);
    assert_int_equal(boot_read(&read, out.data, out.len, &err), -1);
    boot_free(&read);
    wire_set_u32(&out, at, 2);
    wire_set_u32(&out, at + 4 + 7 + 4, 0x40000000); /* ranks of the first node */
    assert_int_equal(boot_read(&read, out.data, out.len, &err), -1);
    boot_free(&read);
    wire_out_free(&out);
}

static void nonsense_is_refused(void **state)
{
    uint32_t twice[] = {0, 1}, range[] = {0, 5};
    struct boot_node bad[2];
    struct boot boot = sample();
    char nspace[300];
    (void)state;
    assert_false(refused(&boot));
    boot.node = 2;
    assert_true(refused(&boot));
    boot = sample();
    boot.ntasks = 6;
    assert_true(refused(&boot));
    boot = sample();
    boot.tmpdir = "tmp";
    assert_true(refused(&boot));
    boot = sample();
    memset(nspace, 'n', sizeof(nspace));
    nspace[256] = '\0';
    boot.nspace = nspace;
    assert_true(refused(&boot));
    nspace[255] = '\0';
    assert_false(refused(&boot));

    memcpy(bad, nodes, sizeof(bad));
    boot = sample();
    boot.nodes = bad;
    bad[0].ranks = twice;
    assert_true(refused(&boot));
    bad[0].ranks = range;
    assert_true(refused(&boot));
    bad[0].ranks = ranks0;
    bad[0].name = "";
    assert_true(refused(&boot));
    bad[0].name = "../c07";
    assert_true(refused(&boot));
    bad[0].name = "c\n07";
    assert_true(refused(&boot));
    boot.nnodes = 0;
    boot.node = 0;
    boot.ntasks = 0;
    assert_true(refused(&boot));
}

/* Three nodes: ranks 0 and 1 of application 0, ranks 2 to 4 of application 1 on two nodes. */
static uint32_t r0[] = {0, 1}, r1[] = {2, 4}, r2[] = {3}, apps[] = {2, 3};
static struct boot_node three[] = {{"c07", 2, r0, 0}, {"c08", 2, r1, 0}, {"c09", 1, r2, 0}};

static struct boot of_two(void)
{
    struct boot boot = sample();
    boot.nodes = three;
    boot.nnodes = 3;
    boot.apps = apps;
    boot.napps = 2;
    return boot;
}

static void applications(void **state)
{
    struct boot boot = of_two(), read;
    struct wire_out out = {0};
    struct err err = {0};
    uint32_t first;
    (void)state;
    boot_write(&boot, &out);
    assert_int_equal(boot_read(&read, out.data, out.len, &err), 0);
    assert_int_equal(boot_napps(&read), 2);
    assert_int_equal(boot_app(&read, 0).first, 0);
    assert_int_equal(boot_app(&read, 0).ntasks, 2);
    assert_int_equal(boot_app(&read, 0).nnodes, 1);
    assert_int_equal(boot_app(&read, 1).first, 2);
    assert_int_equal(boot_app(&read, 1).ntasks, 3);
    assert_int_equal(boot_app(&read, 1).nnodes, 2);
    assert_int_equal(boot_app_of(&read, 1, &first), 0);
    assert_int_equal(boot_app_of(&read, 4, &first), 1);
    assert_int_equal(first, 2);
    boot_free(&read);
    wire_out_free(&out);
}

static void applications_of_other_tasks_are_refused(void **state)
{
    static uint32_t wrong[][2] = {{2, 2}, {0, 5}, {5, 0}, {UINT32_MAX, 6}};
    struct boot boot = of_two();
    (void)state;
    assert_false(refused(&boot));
    for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
        boot.apps = wrong[i];
        assert_true(refused(&boot));
    }
}

static void another_version_is_refused(void **state)
{
    struct boot boot = sample(), read;
    struct wire_out out = {0};
    struct err err = {0};
    (void)state;
    boot_write(&boot, &out);
    out.data[4] ^= 1;
    assert_int_equal(boot_read(&read, out.data, out.len, &err), -1);
    assert_non_null(strstr(err.text, "install both of one build"));
    boot_free(&read);
    out.data[4] ^= 1;
    out.data[4 + strlen(MUSTER_VERSION) + 3] ^= 0x80; /* the protocol */
    assert_int_equal(boot_read(&read, out.data, out.len, &err), -1);
    assert_non_null(strstr(err.text, "install both of one build"));
    boot_free(&read);
    /* of another step's, the greeting says more */
    assert_int_equal(boot_read_nspace(&read, out.data, out.len, &err), 0);
    boot_free(&read);
    wire_out_free(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(round_trip),
        cmocka_unit_test(every_truncation_is_refused),
        cmocka_unit_test(bit_flips_do_no_harm),
        cmocka_unit_test(oversized_counts_are_refused),
        cmocka_unit_test(nonsense_is_refused),
        cmocka_unit_test(another_version_is_refused),
        cmocka_unit_test(applications),
        cmocka_unit_test(applications_of_other_tasks_are_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
