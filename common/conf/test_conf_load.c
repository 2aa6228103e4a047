/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * Settings from a file: missing, links, what is no file, who owns and may write it.
 */
#include "common/conf/conf_file.h"
#include "common/util/test_cmocka.h"
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char dir[] = "/tmp/muster-conf-XXXXXX";
static char path[64], other[64];

static int make_dir(void **state)
{
    (void)state;
    if (!mkdtemp(dir))
        return -1;
    snprintf(path, sizeof(path), "%s/muster.json", dir);
    snprintf(other, sizeof(other), "%s/other.json", dir);
    return 0;
}

static int remove_dir(void **state)
{
    (void)state;
    return rmdir(dir);
}

static int remove_files(void **state)
{
    (void)state;
    if (unlink(path) < 0 && errno == EISDIR)
        rmdir(path);
    unlink(other);
    return 0;
}

static void write_file(const char *name, const char *text, mode_t mode)
{
    FILE *out = fopen(name, "w");
    assert_non_null(out);
    fputs(text, out);
    assert_int_equal(fclose(out), 0);
    assert_int_equal(chmod(name, mode), 0);
}

/* Expects path to be refused with "PATH" and the message behind it, and conf to stay. */
static void refuse(uid_t trusted_uid, const char *message)
{
    char expected[600];
    struct conf conf = {.tree_arity = 77};
    struct err err = {0};
    snprintf(expected, sizeof(expected), "%s%s", path, message);
    assert_int_equal(conf_load(&conf, path, trusted_uid, conf_keep_first, &err), -1);
    assert_string_equal(err.text, expected);
    assert_int_equal(conf.tree_arity, 77);
}

static void test_chosen_and_missing(void **state)
{
    (void)state;
    refuse(12345, ": there is no such file; give the whole path of one that is there");
}

static void test_missing(void **state)
{
    struct conf conf, defaults;
    struct err err = {0};
    (void)state;
    conf_defaults(&defaults);
    memset(&conf, 0x55, sizeof(conf));
    assert_int_equal(conf_load(&conf, path, 0, conf_keep_first, &err), 0);
    assert_memory_equal(&conf, &defaults, sizeof(conf));
    memset(&conf, 0x55, sizeof(conf));
    assert_int_equal(conf_load(&conf, "/nowhere/at/all/muster.json", 0, conf_keep_first, &err), 0);
    assert_memory_equal(&conf, &defaults, sizeof(conf));
    assert_string_equal(err.text, "");
}

static void test_file_over_defaults(void **state)
{
    struct conf conf = {.tree_arity = 77};
    struct err err = {0};
    (void)state;
    write_file(path, "{\"stall_report\": 5}\n", 0644);
    assert_int_equal(conf_load(&conf, path, geteuid(), conf_keep_first, &err), 0);
    assert_int_equal(conf.stall_report, 5);
    assert_int_equal(conf.tree_arity, 16);
}

static void test_link(void **state)
{
    struct conf conf;
    struct err err = {0};
    (void)state;
    write_file(other, "{\"stall_report\": 5}\n", 0644);
    assert_int_equal(symlink(other, path), 0);
    assert_int_equal(conf_load(&conf, path, geteuid(), conf_keep_first, &err), 0);
    assert_int_equal(conf.stall_report, 5);
    unlink(other);
    refuse(geteuid(), ": a symbolic link that leads nowhere; correct or remove it");
    unlink(path);
    assert_int_equal(symlink(path, path), 0);
    refuse(geteuid(),
           ": cannot be opened: Too many levels of symbolic links; correct or remove it");
}

static void test_mistake_names_path_and_line(void **state)
{
    (void)state;
    write_file(path, "{\n\"stall_report\": -5}\n", 0644);
    refuse(geteuid(), " line 2: key \"stall_report\": -5 is out of range; give 0 to 86400 seconds, "
                      "for example \"stall_report\": 60");
}

static void test_not_regular(void **state)
{
    (void)state;
    assert_int_equal(mkdir(path, 0755), 0);
    refuse(geteuid(), ": a directory, not a regular file; put a file in its place or remove it");
    rmdir(path);
    assert_int_equal(mkfifo(path, 0644), 0);
    refuse(geteuid(), ": a device, pipe or socket, not a regular file; put a file in its place or "
                      "remove it");
}

static void test_writable(void **state)
{
    (void)state;
    write_file(path, "{}", 0664);
    refuse(geteuid(), ": group or others may write it (mode 0664); chmod go-w it");
    write_file(path, "{}", 0602);
    refuse(geteuid(), ": group or others may write it (mode 0602); chmod go-w it");
}

static void test_too_large(void **state)
{
    (void)state;
    write_file(path, "{}", 0644);
    FILE *out = fopen(path, "a");
    assert_non_null(out);
    for (int i = 0; i < CONF_FILE_MAX; i++)
        putc('\n', out);
    assert_int_equal(fclose(out), 0);
    refuse(geteuid(), ": larger than 1048576 bytes, the most that settings may take; is it the "
                      "right file?");
}

/* A file of uid 1234: as root by chown, else it is ours that is not trusted. */
static void test_owner(void **state)
{
    uid_t owner = geteuid() == 0 ? 1234 : geteuid();
    struct conf conf;
    struct err err = {0};
    char message[200];
    (void)state;
    write_file(path, "{}", 0644);
    if (geteuid() == 0)
        assert_int_equal(chown(path, owner, (gid_t)-1), 0);
    snprintf(message, sizeof(message), ": belongs to uid %u, must belong to root; chown it to root",
             (unsigned)owner);
    refuse(0, message);
    snprintf(message, sizeof(message),
             ": belongs to uid %u, must belong to root or uid 4321; chown it", (unsigned)owner);
    refuse(4321, message);
    assert_int_equal(conf_load(&conf, path, owner, conf_keep_first, &err), 0);
}

/* Root reads everything, so as root this is done as another. */
static void test_not_readable(void **state)
{
    uid_t uid = geteuid() == 0 ? 1234 : geteuid();
    bool was_root = geteuid() == 0;
    char message[200];
    (void)state;
    write_file(path, "{}", 0);
    assert_int_equal(chmod(dir, 0755), 0);
    if (was_root)
        assert_int_equal(seteuid(uid), 0);
    snprintf(message, sizeof(message),
             ": not readable for uid %u; chmod a+r the file and a+x its directories",
             (unsigned)uid);
    refuse(uid, message);
    if (was_root)
        assert_int_equal(seteuid(0), 0);
}

/* What the launcher's plugin takes out of the file, as root. */
static void test_tmpdir(void **state)
{
    static const struct {
        const char *text, *tmpdir;
    } rows[] = {
        {"{}", ""},
        {"{\"tmpdir\": \"\"}", ""},
        {"{\"tmpdir\": \"/var/tmp\"}", "/var/tmp"},
        {"{ // \"tmpdir\": \"/no\"\n \"stall_report\": 3, \"tmpdir\"\n:\n \"/a b\" }", "/a b"},
        {"{\"timeouts\": {\"tmpdir\": \"/no\"}}", ""}, /* for the server to refuse */
        {"{\"x\": \"tmpdir\", \"tmpdirs\": \"/no\"}", ""},
        {"[[[\"tmpdir\": \"/no\"", ""},
        {"", ""},
    };
    static const char *const wrong[] = {
        "{\"tmpdir\": 3}",       "{\"tmpdir\": \"tmp\"}", "{\"tmpdir\": \"/t\\u006dp\"}",
        "{\"tmpdir\": [\"/\"]}", "{\"tmpdir\":",
    };
    char tmpdir[CONF_PATH_SIZE], expected[300];
    struct err err = {0};

    (void)state;
    assert_int_equal(conf_file_tmpdir(path, 0, tmpdir, &err), 0); /* no file */
    assert_string_equal(tmpdir, "");
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        write_file(path, rows[i].text, 0644);
        assert_int_equal(conf_file_tmpdir(path, geteuid(), tmpdir, &err), 0);
        assert_string_equal(tmpdir, rows[i].tmpdir);
    }
    snprintf(expected, sizeof(expected),
             "%s line 1: key \"tmpdir\": give an absolute path of at most 255 bytes without "
             "backslash, for example \"tmpdir\": \"/tmp\"",
             path);
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        write_file(path, wrong[i], 0644);
        err = (struct err){0};
        assert_int_equal(conf_file_tmpdir(path, geteuid(), tmpdir, &err), -1);
        assert_string_equal(err.text, expected);
    }
    write_file(path, "{\"tmpdir\": \"/tmp\"}", 0666);
    err = (struct err){0};
    assert_int_equal(conf_file_tmpdir(path, geteuid(), tmpdir, &err), -1);
    assert_non_null(strstr(err.text, "may write it"));
    assert_string_equal(tmpdir, "");
}

/* The plugin looks at text that nothing has parsed: whatever comes, there is an answer. */
static void test_tmpdir_in_anything(void **state)
{
    static const char text[] =
        "{\"a\": [{}], \"tmpdir\" : \"/x\", /* */ \"b\": {\"tmpdir\": \"\\n\"}}";
    static const char signs[] = "{}[]\"\\:,/*\n ";
    char copy[sizeof(text)], tmpdir[CONF_PATH_SIZE];
    (void)state;
    for (size_t i = 0; i < strlen(text); i++) {
        for (size_t k = 0; k < sizeof(signs); k++) { /* with the NUL, which cuts it */
            struct err err = {0};

            memcpy(copy, text, sizeof(text));
            copy[i] = signs[k];
            write_file(path, copy, 0644);
            int rc = conf_file_tmpdir(path, geteuid(), tmpdir, &err);
            assert_int_equal(rc, err.text[0] ? -1 : 0);
            assert_true(rc < 0 || tmpdir[0] == '/' || tmpdir[0] == '\0');
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(test_missing, remove_files),
        cmocka_unit_test(test_chosen_and_missing),
        cmocka_unit_test_teardown(test_file_over_defaults, remove_files),
        cmocka_unit_test_teardown(test_link, remove_files),
        cmocka_unit_test_teardown(test_mistake_names_path_and_line, remove_files),
        cmocka_unit_test_teardown(test_not_regular, remove_files),
        cmocka_unit_test_teardown(test_writable, remove_files),
        cmocka_unit_test_teardown(test_too_large, remove_files),
        cmocka_unit_test_teardown(test_owner, remove_files),
        cmocka_unit_test_teardown(test_not_readable, remove_files),
        cmocka_unit_test_teardown(test_tmpdir, remove_files),
        cmocka_unit_test_teardown(test_tmpdir_in_anything, remove_files),
    };

    return cmocka_run_group_tests(tests, make_dir, remove_dir);
}
