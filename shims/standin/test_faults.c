/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * Faults: what --fault takes, and that a seed makes the same choices again.
 */
#include "shims/standin/faults.h"

#include "common/util/test_cmocka.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void takes_kinds_and_keys(void **state)
{
    struct faults faults = {0};
    struct err err = {0};
    (void)state;
    assert_int_equal(faults_add(&faults, "late:percent=7,ms=30,node=2", &err), 0);
    assert_int_equal(faults_add(&faults, "die:message=9", &err), 0);
    assert_int_equal(faults_add(&faults, "refused", &err), 0);
    assert_int_equal(faults.n, 3);
    assert_int_equal(faults.list[0].kind, FAULT_LATE);
    assert_int_equal(faults.list[0].percent, 7);
    assert_int_equal(faults.list[0].ms, 30);
    assert_int_equal(faults.list[0].node, 2);
    assert_int_equal(faults.list[1].kind, FAULT_DIE);
    assert_int_equal(faults.list[1].message, 9);
    assert_int_equal(faults.list[1].after, FAULT_ANY);
    assert_int_equal(faults.list[2].percent, 20);
}

/* Servers read what they are to do wrong on direct connections, and say what they have done. */
static void tells_servers(void **state)
{
    char dir[] = "/tmp/test_faults.XXXXXX", beside[64], path[80];
    struct faults faults = {.seed = 5};
    struct faults_direct ask;
    struct err err = {0};
    (void)state;
    assert_non_null(mkdtemp(dir));
    snprintf(beside, sizeof(beside), "%s/node", dir);
    snprintf(path, sizeof(path), "%s.ask", beside);
    assert_int_equal(faults_add(&faults, "late", &err), 0);
    assert_false(faults_direct_any(&faults));
    assert_true(faults_direct_write(&faults, 1, beside));
    assert_int_equal(access(path, F_OK), -1);
    assert_int_equal(faults_add(&faults, "flipped:percent=9", &err), 0);
    assert_int_equal(faults_add(&faults, "unreachable", &err), 0);
    assert_true(faults_direct_write(&faults, 1, beside));
    FILE *in = fopen(path, "re");
    assert_int_equal(fread(&ask, sizeof(ask), 1, in), 1);
    fclose(in);
    assert_int_equal(ask.percent[FAULT_CUT - FAULT_CUT], 0);
    assert_int_equal(ask.percent[FAULT_FLIPPED - FAULT_CUT], 9);
    assert_int_equal(ask.percent[FAULT_UNREACHABLE - FAULT_CUT], 50);
    assert_int_equal(unlink(path), 0);
    snprintf(path, sizeof(path), "%s.done", beside);
    FILE *out = fopen(path, "we");
    fputs("bbdaz", out);
    fclose(out);
    faults_direct_read(&faults, beside);
    assert_int_equal(faults.list[0].count, 0);
    assert_int_equal(faults.list[1].count, 2);
    assert_int_equal(faults.list[2].count, 1);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(rmdir(dir), 0);
}

static void refuses_mistakes(void **state)
{
    static const struct {
        const char *text, *says;
    } mistakes[] = {
        {"", "there are late"},
        {"lat", "there are late"},
        {"later", "there are late"},
        {"late:", "none of"},
        {"late:ms", "none of"},
        {"late:ms=", "ms has to be 1 to 60000"},
        {"late:ms=0", "ms has to be 1 to 60000"},
        {"late:ms=-1", "ms has to be 1 to 60000"},
        {"late:ms=5x", "ms has to be 1 to 60000"},
        {"late:ms=99999999999999999999", "ms has to be 1 to 60000"},
        {"late:ms=5,", "none of"},
        {"late:message=5", "none of"},
        {"lost:ms=5", "none of"},
        {"uid:percent=101", "percent has to be 0 to 100"},
        {"die", "give after="},
        {"die:node=1", "give after="},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(mistakes) / sizeof(*mistakes); i++) {
        struct faults faults = {0};
        struct err err = {0};
        assert_int_equal(faults_add(&faults, mistakes[i].text, &err), -1);
        if (!strstr(err.text, mistakes[i].says))
            fail_msg("\"%s\": expected \"%s\", found \"%s\"", mistakes[i].text, mistakes[i].says,
                     err.text);
        assert_int_equal(faults.n, 0);
    }
}

static void takes_so_many(void **state)
{
    struct faults faults = {0};
    struct err err = {0};
    (void)state;
    for (int i = 0; i < FAULTS_MAX; i++)
        assert_int_equal(faults_add(&faults, "late", &err), 0);
    assert_int_equal(faults_add(&faults, "late", &err), -1);
    assert_int_equal(faults.n, FAULTS_MAX);
}

static struct faults make(const char *text, uint64_t seed)
{
    struct faults faults = {.seed = seed};
    struct err err = {0};
    assert_int_equal(faults_add(&faults, text, &err), 0);
    return faults;
}

/* 4 nodes, 100 messages each way; in another order of nodes if reverse. */
static void judge_all(struct faults *faults, bool reverse, unsigned late[16][100])
{
    for (uint32_t i = 0; i < 16; i++) {
        uint32_t pair = reverse ? 15 - i : i;
        for (uint64_t number = 1; number <= 100; number++)
            late[pair][number - 1] = faults_judge(faults, pair / 4, pair % 4, number).late;
    }
}

static void a_seed_repeats_itself(void **state)
{
    struct faults first = make("late:percent=50,ms=1000", 5), again = first,
                  other = make("late:percent=50,ms=1000", 6);
    static unsigned a[16][100], b[16][100], c[16][100];
    (void)state;
    judge_all(&first, false, a);
    judge_all(&again, true, b);
    judge_all(&other, false, c);
    assert_memory_equal(a, b, sizeof(a));
    assert_memory_not_equal(a, c, sizeof(a));
}

static void percent_is_kept(void **state)
{
    static const struct {
        const char *text;
        unsigned min, max; /* of 1600 */
    } rates[] = {
        {"late:percent=0", 0, 0},
        {"late:percent=20", 240, 400},
        {"late:percent=100", 1600, 1600},
        {"late:percent=100,node=1", 400, 400},
    };
    static unsigned late[16][100];

    (void)state;
    for (size_t i = 0; i < sizeof(rates) / sizeof(*rates); i++) {
        struct faults faults = make(rates[i].text, 1);
        judge_all(&faults, false, late);
        assert_in_range(faults.list[0].count, rates[i].min, rates[i].max);
        for (uint32_t pair = 0; pair < 16; pair++)
            for (int n = 0; n < 100; n++)
                assert_in_range(late[pair][n], 0, 100);
    }
}

static void faults_come_together(void **state)
{
    struct faults faults = {.seed = 1};
    struct err err = {0};
    (void)state;
    assert_int_equal(faults_add(&faults, "late:percent=100", &err), 0);
    assert_int_equal(faults_add(&faults, "lost:percent=100", &err), 0);
    assert_int_equal(faults_add(&faults, "uid:percent=100", &err), 0);
    assert_int_equal(faults_add(&faults, "duplicate:percent=100", &err), 0);
    assert_int_equal(faults_add(&faults, "die:after=1", &err), 0);
    struct verdict verdict = faults_judge(&faults, 0, 1, 1);
    assert_true(verdict.late > 0 && verdict.duplicate > 0 && verdict.lost && verdict.forged);
    assert_false(verdict.refused);
    assert_int_equal(faults.list[4].count, 0); /* its count is of nodes that died */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(takes_kinds_and_keys),  cmocka_unit_test(tells_servers),
        cmocka_unit_test(refuses_mistakes),      cmocka_unit_test(takes_so_many),
        cmocka_unit_test(a_seed_repeats_itself), cmocka_unit_test(percent_is_kept),
        cmocka_unit_test(faults_come_together),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
