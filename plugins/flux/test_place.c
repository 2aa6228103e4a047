/* SPDX-License-Identifier: BSD-3-Clause */
/* Job ids as people write them, and the directories of jobs. */
#include "common/nspace/nspace.h"
#include "common/status/reach.h"
#include "common/util/test_cmocka.h"
#include "plugins/flux/jobid.h"
#include "plugins/flux/place.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* As flux-job(1) writes them. */
static void all_forms(void **state)
{
    static const struct {
        uint64_t id;
        const char *forms[5];
    } cases[] = {
        {0,
         {"f1",
          "\xc6\x92"
          "1",
          "0", "0x0", "0000.0000.0000.0000"}},
        {57,
         {"fz",
          "\xc6\x92"
          "z",
          "57", "0x39", "job.0000.0000.0000.0039"}},
        {1234567890123,
         {"fZRwY92z",
          "\xc6\x92"
          "ZRwY92z",
          "1234567890123", "0x11f71fb04cb", "job.0000.011f.71fb.04cb"}},
        {UINT64_MAX,
         {"fjpXCZedGfVQ",
          "\xc6\x92"
          "jpXCZedGfVQ",
          "18446744073709551615", "0xffffffffffffffff", "ffff.ffff.ffff.ffff"}},
        {58,
         {"f21",
          "\xc6\x92"
          "21",
          "58", "0x3a", "0000.0000.0000.003a"}},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        for (size_t k = 0; k < 5; k++) {
            char text[JOBID_SIZE];
            uint64_t id = 1;
            assert_true(jobid_parse(cases[i].forms[k], &id));
            assert_int_equal(id, cases[i].id);
            jobid_write(id, text);
            assert_string_equal(text, cases[i].forms[0]);
        }
}

static void what_is_none(void **state)
{
    static const char *const texts[] = {
        "",
        "f",
        "\xc6\x92",
        "f0",
        "fO",
        "f2 ",
        "fjpXCZedGfVR",
        "f1234567890123456",
        "-1",
        "4711.0",
        "0x",
        "0x10000000000000000",
        "18446744073709551616",
        "0000.0000.0000.000",
        "job.12",
        "0000.0000.0000.000g",
        "../f1",
        "f1/",
    };
    (void)state;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        uint64_t id;
        assert_false(jobid_parse(texts[i], &id));
    }
}

/* ---- directories ---- */

static char seen[16][512];
static size_t nseen;

static void visit(void *arg, const char *dir, const char *step)
{
    (void)arg;
    assert_true(nseen < 16);
    snprintf(seen[nseen++], sizeof *seen, "%s %s", dir != NULL ? dir : "-", step);
}

static bool saw(const char *line)
{
    for (size_t i = 0; i < nseen; i++)
        if (strcmp(seen[i], line) == 0)
            return true;
    return false;
}

static char rundir[64], where[512];

static void look_for(const char *step)
{
    nseen = 0;
    flux_place.each(step, visit, NULL, where, sizeof where);
}

/* Two jobs on a broker, and two shells of one on brokers with the same rundir: those of the job
 * alone are looked at, however it is named. */
static void one_of_two_jobs(void **state)
{
    static const char *const names[] = {"jobtmp-0-\xc6\x92"
                                        "B9Ybtcf",
                                        "jobtmp-12-\xc6\x92"
                                        "B9Ybtcf",
                                        "jobtmp-0-\xc6\x92"
                                        "BNUmdD9",
                                        "jobtmp-x-\xc6\x92"
                                        "B9Ybtcf",
                                        "jobtmp-0-",
                                        "local-0"};
    char first[512], second[512], other[512], decimal[32], uri[128], name[JOBID_SIZE];
    uint64_t id;
    (void)state;
    snprintf(rundir, sizeof rundir, "/tmp/muster-test.XXXXXX");
    assert_non_null(mkdtemp(rundir));
    snprintf(uri, sizeof uri, "local://%s/local-0", rundir);
    setenv("FLUX_URI", uri, 1);
    unsetenv("TMPDIR");
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        char path[256];
        snprintf(path, sizeof path, "%s/%s", rundir, names[i]);
        assert_int_equal(mkdir(path, 0700), 0);
    }
    assert_true(jobid_parse("fB9Ybtcf", &id));
    snprintf(decimal, sizeof decimal, "%llu", (unsigned long long)id);
    snprintf(first, sizeof first, "%s/%s fB9Ybtcf", rundir, names[0]);
    snprintf(second, sizeof second, "%s/%s fB9Ybtcf", rundir, names[1]);
    snprintf(other, sizeof other, "%s/%s fBNUmdD9", rundir, names[2]);
    const char *const forms[] = {"\xc6\x92"
                                 "B9Ybtcf",
                                 "fB9Ybtcf", decimal};
    for (size_t i = 0; i < 3; i++) {
        look_for(forms[i]);
        assert_true(saw("- fB9Ybtcf"));
        assert_true(saw(first));
        assert_true(saw(second));
        assert_int_equal(nseen, 3);
        assert_non_null(strstr(where, rundir));
    }
    look_for(NULL);
    assert_true(saw(first));
    assert_true(saw(second));
    assert_true(saw(other));
    for (size_t i = 0; i < 3; i++) {
        assert_true(flux_place.name(forms[i], name, sizeof name));
        assert_string_equal(name, "fB9Ybtcf");
    }
    assert_false(flux_place.name("4711.0", name, sizeof name));
    look_for("4711.0"); /* no job of Flux */
    assert_int_equal(nseen, 0);
    assert_string_equal(where, "");
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        char path[256];
        snprintf(path, sizeof path, "%s/%s", rundir, names[i]);
        rmdir(path);
    }
    rmdir(rundir);
}

/* A command "flux" that knows one id, and what it was asked. */
static void make_flux(char *dir, const char *exits)
{
    char path[128];
    snprintf(path, sizeof path, "%s/flux", dir);
    FILE *script = fopen(path, "w");
    assert_non_null(script);
    fprintf(script,
            "#!/bin/sh\n"
            "echo \"$*\" >%s/asked\n"
            "echo fZRwY92z\n"
            "exit %s\n",
            dir, exits);
    fclose(script);
    assert_int_equal(chmod(path, 0700), 0);
}

/* Forms that need Flux's own tables, and namespaces. */
static void forms_that_flux_reads(void **state)
{
    static const char words[] = "cat-dog-owl--cow-hen-bee", emoji[] = "\xf0\x9f\x98\x83";
    char dir[] = "/tmp/muster-test.XXXXXX", name[JOBID_SIZE], path[128], line[128], old[4096];
    (void)state;
    assert_non_null(mkdtemp(dir));
    make_flux(dir, "0");
    snprintf(old, sizeof old, "%s", getenv("PATH"));
    snprintf(path, sizeof path, "%s:/usr/bin:/bin", dir);
    setenv("PATH", path, 1);
    snprintf(path, sizeof path, "%s/asked", dir);
    for (int i = 0; i < 2; i++) {
        assert_true(flux_place.name(i == 0 ? words : emoji, name, sizeof name));
        assert_string_equal(name, "fZRwY92z");
        FILE *asked = fopen(path, "r");
        assert_non_null(asked);
        assert_non_null(fgets(line, sizeof line, asked));
        fclose(asked);
        unlink(path);
        assert_non_null(strstr(line, i == 0 ? words : emoji));
        assert_non_null(strstr(line, "job id --to=f58plain -- "));
    }
    look_for(words);
    assert_true(saw("- fZRwY92z"));
    unlink(path);
    assert_true(flux_place.name("flux.fB9Ybtcf", name, sizeof name));
    assert_string_equal(name, "fB9Ybtcf");
    assert_false(flux_place.name("4711.0", name, sizeof name)); /* no question: a step of Slurm */
    assert_int_equal(access(path, F_OK), -1);
    make_flux(dir, "1");
    assert_false(flux_place.name(words, name, sizeof name));
    unlink(path);
    snprintf(path, sizeof path, "%s/flux", dir);
    unlink(path);
    assert_false(flux_place.name(words, name, sizeof name)); /* there is no Flux, it may be */
    rmdir(dir);
    setenv("PATH", old, 1);
}

/* Asks a flux that knows one job, of @p uid in @p state, with these ranks and hosts. @return of the
 * place */
static int reach_job(struct reach *reach, const char *uid, const char *state, const char *ranks,
                     const char *hosts, struct err *err)
{
    char dir[] = "/tmp/muster-test.XXXXXX", path[128], old[4096];
    assert_non_null(mkdtemp(dir));
    snprintf(path, sizeof path, "%s/flux", dir);
    FILE *script = fopen(path, "w");
    assert_non_null(script);
    fprintf(script,
            "#!/bin/sh\ncase $1$3 in jobsfB9Ybtcf) printf "
            "'USERID|STATE|RANKS|NODELIST\\n%s|%s|%s|x\\n' ;;\n"
            "hostlistx) echo %s ;; *) echo \"JobID unknown\" >&2; exit 1 ;; esac\n",
            uid, state, ranks, hosts);
    fclose(script);
    assert_int_equal(chmod(path, 0700), 0);
    snprintf(old, sizeof old, "%s", getenv("PATH"));
    setenv("PATH", strcat(strcpy(path, dir), ":/usr/bin:/bin"), 1);
    int rc = flux_place.reach("fB9Ybtcf", reach, err);
    setenv("PATH", old, 1);
    unlink(strcat(strcpy(path, dir), "/flux"));
    rmdir(dir);
    return rc;
}

static const char *const program[] = {"/opt/tool", "--here", NULL};

static void all_nodes_are_reached(void **state)
{
    static const char *const expected[] = {"flux",    "exec",      "--jobid=fB9Ybtcf", "--noinput",
                                           "--quiet", "/opt/tool", "--here",           "fB9Ybtcf"};
    struct reach reach = {.program = program, .uid = 4711};
    struct err err = {0};
    (void)state;
    unsetenv("FLUX_URI");
    assert_int_equal(reach_job(&reach, "4711", "RUN", "[3-4,7]", "c1 c2 c3", &err), 0);
    assert_int_equal(reach.n, 1);
    char **argv = reach.lines[0].argv;
    for (size_t i = 0; i < sizeof expected / sizeof *expected; i++, argv++) {
        if (geteuid() == 0 && strcmp(expected[i], "fB9Ybtcf") == 0) {
            assert_string_equal(*argv++, "--user");
            assert_string_equal(*argv++, "4711");
        }
        assert_string_equal(*argv, expected[i]);
    }
    assert_string_equal(reach.lines[0].nodes[0], "c1");
    assert_string_equal(reach.lines[0].nodes[2], "c3");
    assert_null(reach.lines[0].nodes[3]);
    assert_int_equal(reach.owner, 4711);
    reach_free(&reach);
    /* several brokers on a host */
    assert_int_equal(reach_job(&reach, "4711", "RUN", "[3-4,7]", "c1 c2 c1", &err), 0);
    assert_string_equal(reach.lines[0].nodes[0], "c1_3");
    assert_string_equal(reach.lines[0].nodes[2], "c1_7");
    reach_free(&reach);
}

static void not_all_are_reached(void **state)
{
    struct reach reach = {.program = program, .uid = 4711};
    struct err err = {0};
    (void)state;
    assert_int_equal(reach_job(&reach, "4712", "RUN", "3", "c1", &err), -1);
    assert_non_null(strstr(err.text, "only its owner and root"));
    err = (struct err){0};
    assert_int_equal(reach_job(&reach, "4711", "SCHED", "", "", &err), -1);
    assert_non_null(strstr(err.text, "its state is SCHED"));
    assert_int_equal(flux_place.reach("4711.0", &reach, &err), 0);
    assert_int_equal(reach.n, 0);
}

static int compare(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return x < y ? -1 : x > y;
}

/* Context ids of jobs, the spawned ones included: a job's number has the time in ms and in the
 * lowest bits a counter. */
static void context_ids_are_far_apart(void **state)
{
    enum { TIMES = 4000, AT_ONCE = 5, ALL = TIMES * AT_ONCE };
    static uint64_t ids[ALL];
    char name[sizeof "flux." + JOBID_SIZE] = "flux.";
    (void)state;
    for (uint64_t i = 0; i < ALL; i++) {
        jobid_write((3600000 + i / AT_ONCE) << 24 | i % AT_ONCE, name + strlen("flux."));
        ids[i] = nspace_ids(name, 0);
    }
    qsort(ids, ALL, sizeof *ids, compare);
    for (uint32_t i = 1; i < ALL; i++)
        assert_true(ids[i] - ids[i - 1] > UINT64_C(1) << 26);
}

/* Whatever FLUX_URI is. */
static void no_instance(void **state)
{
    static const char *const uris[] = {"", "local://", "ssh://node/run/local", "local://x", "/"};
    (void)state;
    for (size_t i = 0; i < sizeof uris / sizeof *uris; i++) {
        setenv("FLUX_URI", uris[i], 1);
        look_for("f2");
        assert_int_equal(nseen, 1);
    }
    unsetenv("FLUX_URI");
    look_for("f2");
    assert_non_null(strstr(where, "/run/flux"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_forms),
        cmocka_unit_test(what_is_none),
        cmocka_unit_test(one_of_two_jobs),
        cmocka_unit_test(no_instance),
        cmocka_unit_test(forms_that_flux_reads),
        cmocka_unit_test(all_nodes_are_reached),
        cmocka_unit_test(not_all_are_reached),
        cmocka_unit_test(context_ids_are_far_apart),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
