/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * Tests of psets.c: who is in which set, and what is said of a text that makes no sense.
 */
#include "common/nspace/psets.h"

#include "common/util/test_cmocka.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TASKS = 8 };

/* Eight ranks on four nodes, of as many components as asked for: 1, 2 or 4. */
static struct boot *make(uint32_t napps, const char *text)
{
    static uint32_t ranks[TASKS] = {0, 1, 2, 3, 4, 5, 6, 7};
    static struct boot_node nodes[4];
    static struct boot_setting setting;
    static uint32_t apps[4];
    static struct boot boot;
    setting = (struct boot_setting){BOOT_PSETS, (char *)text};
    boot = (struct boot){.nspace = "slurm.1.0",
                         .nodes = nodes,
                         .nnodes = 4,
                         .ntasks = TASKS,
                         .napps = napps,
                         .apps = apps,
                         .settings = &setting,
                         .nsettings = text != NULL};
    for (uint32_t i = 0; i < 4; i++)
        nodes[i] = (struct boot_node){.name = "n", .ntasks = 2, .ranks = ranks + 2 * i};
    for (uint32_t i = 0; i < napps; i++)
        apps[i] = TASKS / napps;
    return &boot;
}

/* @param expected "name:ranks" of each, as "ocean:0123 ice:4567" */
static void check(uint32_t napps, const char *text, const char *expected)
{
    struct psets psets;
    struct err err = {0};
    char found[1024] = "";
    const struct boot *boot = make(napps, text);
    if (psets_read(&psets, boot, &err) != 0)
        fail_msg("%s: %s", text, err.text);
    for (uint32_t i = 0; i < psets.n; i++) {
        size_t used = strlen(found);
        used += (size_t)snprintf(found + used, sizeof found - used, "%s%s:", i > 0 ? " " : "",
                                 psets.sets[i].name);
        for (uint32_t rank = 0; rank < TASKS; rank++)
            if (procset_has(&psets.sets[i].members, boot->nspace, rank))
                used += (size_t)snprintf(found + used, sizeof found - used, "%u", rank);
    }
    assert_string_equal(found, expected);
    psets_free(&psets);
}

static void refuse(uint32_t napps, const char *text, const char *why)
{
    struct psets psets;
    struct err err = {0};
    if (psets_read(&psets, make(napps, text), &err) == 0)
        fail_msg("%s was taken", text);
    if (strstr(err.text, why) == NULL)
        fail_msg("%s: said %s, expected %s", text, err.text, why);
    psets_free(&psets);
}

static void names_with_ranks(void **state)
{
    (void)state;
    check(1, NULL, "");
    check(1, "ocean=0-3:ice=4-7", "ocean:0123 ice:4567");
    check(1, "a=0,2,4-5,7", "a:02457");
    check(1, "a=7,0-1,0", "a:017");
    check(2, "mpi/ocean=3:b=3-4", "mpi/ocean:3 b:34");
    check(1,
          "gr\xc3\xbc\xc3\x9f"
          "e=0:\xe6\xb5\xb7=1",
          "gr\xc3\xbc\xc3\x9f"
          "e:0 \xe6\xb5\xb7:1");
}

static void components(void **state)
{
    (void)state;
    check(2, NULL, "component0:0123 component1:4567");
    check(4, NULL, "component0:01 component1:23 component2:45 component3:67");
    check(2, "ocean:ice", "ocean:0123 ice:4567");
    check(1, "all", "all:01234567");
    check(2, "all=0-7", "all:01234567");
}

static void mistakes(void **state)
{
    char longer[PROCSET_NAME_MAX + 8], many[BOOT_PSETS_MAX + 8], *huge;
    (void)state;
    refuse(1, "", "no name");
    refuse(1, "=0", "no name");
    refuse(1, "a=0:", "no name");
    refuse(1, "a b=0", "no name");
    refuse(1, "a,b=0", "no name");
    refuse(1, "\xc3=0", "no name");
    refuse(1, "gr\xc3=0", "no name");
    refuse(1, "a\x1b[2J=0", "no name");
    refuse(1, "a\xc2\x9b=0", "no name"); /* a control character of eight bits */
    refuse(1, "a=0:a=1", "two of the name \"a\"");
    refuse(1, "slurm.1.0=0", "name of the namespace");
    refuse(1, "a=", "no list of ranks for \"a\"");
    refuse(1, "a=1-", "no list of ranks");
    refuse(1, "a=-1", "no list of ranks");
    refuse(1, "a=3-2", "no list of ranks");
    refuse(1, "a=1;2", "no list of ranks");
    refuse(1, "a=1,", "no list of ranks");
    refuse(1, "a=0-8", "rank 8, and the last rank of the step is 7");
    refuse(1, "a=99999999999999999999", "no list of ranks");
    refuse(1, "a=0x1", "no list of ranks");
    refuse(1, "a:b", "the step has 1 component, and 2 names without ranks");
    refuse(2, "a", "the step has 2 components, and 1 name without ranks");
    refuse(2, "a:b=0", "some have ranks and some have not");
    memset(longer, 'x', sizeof longer);
    strcpy(longer + PROCSET_NAME_MAX + 1, "=0");
    refuse(1, longer, "no name");
    memset(many, 'x', sizeof many - 1);
    many[sizeof many - 1] = '\0';
    refuse(1, many, "longer than 4096 bytes");
    huge = calloc(1, BOOT_PSETS_MAX);
    for (uint32_t i = 0; i <= PSETS_MAX; i++)
        sprintf(huge + strlen(huge), "%ss%u=0", i > 0 ? ":" : "", i);
    refuse(1, huge, "more than 256");
    free(huge);
}

static void the_set_of_all(void **state)
{
    struct psets psets;
    struct err err = {0};
    const struct boot *boot = make(2, "a=0-3:b=4-7:all=0-7");
    (void)state;
    assert_int_equal(psets_read(&psets, boot, &err), 0);
    assert_string_equal(psets_whole(&psets, boot)->name, "all");
    psets_free(&psets);
    boot = make(2, "few=0-6");
    assert_int_equal(psets_read(&psets, boot, &err), 0);
    assert_null(psets_whole(&psets, boot));
    psets_free(&psets);
}

/* A process defines it while the step runs. */
static void one_more(void **state)
{
    struct psets psets;
    struct procset members = {0};
    struct err err = {0};
    const struct boot *boot = make(2, "a=0-3");
    (void)state;
    assert_int_equal(psets_read(&psets, boot, &err), 0);
    procset_add(&members, boot->nspace, 2, 5);
    procset_canonical(&members);
    assert_int_equal(psets_add(&psets, boot, "reef", &members, &err), 0);
    assert_true(procset_equal(&psets_find(&psets, "reef", 4)->members, &members));
    assert_int_equal(psets_add(&psets, boot, "a", &members, &err), -1);
    assert_int_equal(psets_add(&psets, boot, boot->nspace, &members, &err), -1);
    assert_int_equal(psets_add(&psets, boot, "no name", &members, &err), -1);
    assert_int_equal(psets.n, 2);
    psets_take_back(&psets);
    assert_null(psets_find(&psets, "reef", 4));
    assert_int_equal(psets_add(&psets, boot, "reef", &members, &err), 0);
    procset_free(&members);
    psets_free(&psets);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_with_ranks), cmocka_unit_test(components),
        cmocka_unit_test(mistakes),         cmocka_unit_test(the_set_of_all),
        cmocka_unit_test(one_more),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
