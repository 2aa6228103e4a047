/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * What muster-server does when an admin starts it by hand: it checks settings.
 */
#include "common/server/life/check.h"

#include "common/conf/conf.h"
#include "common/conf/conf_step.h"
#include "common/nspace/library.h"
#include "muster_version.h"

#include <errno.h>
#include <pmix.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const char usage[] =
    "usage: muster-server --check [--print] [FILE]\n"
    "       muster-server --help | --version\n"
    "\n"
    "Checks settings of muster: says \"FILE: ok\", or each mistake with its line, key and\n"
    "remedy. Without FILE the installed settings are checked, as a step would read them:\n"
    "  " MUSTER_CONF_PATH "\n"
    "A FILE may also be your own. Variables of the environment that a step would take, such as\n"
    "MUSTER_ON_TASK_LOSS, are looked at, too.\n"
    "\n"
    "  --print  writes all settings that are in force and where each is from, in the form of\n"
    "           the file, and \"ok\" to standard error\n"
    "\n"
    "Exit status: 0 the settings are right, 1 they are not, 2 wrong arguments.\n"
    "For a job step it is started by muster's plugin in the resource manager, never by hand.\n";

struct mistakes {
    unsigned n;
};

static void print_mistake(void *arg, const char *mistake)
{
    struct mistakes *mistakes = arg;
    mistakes->n++;
    fprintf(stderr, "%s\n", mistake);
}

static void __attribute__((format(printf, 2, 3)))
mistake(struct mistakes *mistakes, const char *fmt, ...)
{
    struct err err = {0};
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(err.text, sizeof err.text, fmt, ap);
    va_end(ap);
    print_mistake(mistakes, err.text);
}

/* Each server reads the file with the rights of its job's user; the admin who checks it often has
 * others. */
static void check_readable(const char *path, bool installed, struct mistakes *mistakes)
{
    char dir[4096];
    struct stat st;
    if (stat(path, &st) < 0 || st.st_uid != 0)
        return; /* an ordinary user's, whose slurmd serves that user alone */
    if ((st.st_mode & S_IROTH) == 0)
        mistake(mistakes,
                "%s: mode %04o: each server reads it as the user of its job; chmod a+r it", path,
                (unsigned)(st.st_mode & 07777));
    snprintf(dir, sizeof dir, "%s", installed ? path : "");
    for (char *end = strrchr(dir, '/'); end != NULL && end > dir; end = strrchr(dir, '/')) {
        *end = '\0';
        if (stat(dir, &st) == 0 && (st.st_mode & S_IXOTH) == 0)
            mistake(mistakes, "%s: mode %04o: users cannot get to %s in it; chmod a+x it", dir,
                    (unsigned)(st.st_mode & 07777), path);
    }
}

/* As the plugin will look at it, which is root's where the file is. */
static void check_tmpdir(const char *path, const char *tmpdir, struct mistakes *mistakes)
{
    struct stat st, file;
    if (tmpdir[0] == '\0')
        return;
    if (stat(tmpdir, &st) < 0)
        mistake(mistakes, "%s: key \"tmpdir\": %s: %s; make it, on every node, or name another",
                path, tmpdir, strerror(errno));
    else if (!S_ISDIR(st.st_mode))
        mistake(mistakes, "%s: key \"tmpdir\": %s is no directory; name one", path, tmpdir);
    else if (stat(path, &file) == 0 && file.st_uid != 0)
        return;
    else if (st.st_uid != 0 ||
             ((st.st_mode & (S_IWGRP | S_IWOTH)) != 0 && (st.st_mode & S_ISVTX) == 0))
        mistake(mistakes,
                "%s: key \"tmpdir\": %s belongs to uid %u and has mode %04o; it has to be root's "
                "and, where others may write, sticky: chown root and chmod +t it",
                path, tmpdir, (unsigned)st.st_uid, (unsigned)(st.st_mode & 07777));
    else if ((st.st_mode & S_IXOTH) == 0)
        mistake(mistakes,
                "%s: key \"tmpdir\": %s has mode %04o, so tasks cannot get into it; chmod a+x it",
                path, tmpdir, (unsigned)(st.st_mode & 07777));
}

/* What a step that is started from here would take of the environment. */
static void check_environment(struct conf *conf, struct conf_sources *sources,
                              struct mistakes *mistakes)
{
    const struct conf before = *conf;
    char name[CONF_STEP_NAME_SIZE];
    for (char **e = environ; *e != NULL; e++) {
        size_t len = strcspn(*e, "=");
        struct err err = {0};
        if ((*e)[len] != '=' || !conf_step_concerns(*e, len))
            continue;
        snprintf(name, sizeof name, "%.*s", (int)len, *e);
        if (conf_step_set(conf, name, *e + len + 1, &err) < 0)
            print_mistake(mistakes, err.text);
    }
    conf_mark(sources, &before, conf, CONF_STEP);
}

static int check(const char *given, bool print)
{
    const char *path = given != NULL ? given : MUSTER_CONF_PATH;
    struct mistakes mistakes = {0};
    struct conf_sources sources = {0};
    struct conf conf, defaults;
    struct stat st;
    bool missing = lstat(path, &st) < 0 && errno == ENOENT;
    struct err err = {0};
    uint32_t library;
    if (given != NULL && missing) {
        fprintf(stderr, "%s: there is no such file\n", path);
        return 1;
    }
    conf_defaults(&defaults);
    if (conf_load(&conf, path, given != NULL ? getuid() : 0, print_mistake, &mistakes) == 0) {
        conf_mark(&sources, &defaults, &conf, CONF_FILE);
        check_tmpdir(path, conf.tmpdir, &mistakes);
        check_environment(&conf, &sources, &mistakes);
    }
    if (!missing)
        check_readable(path, given == NULL, &mistakes);
    if (given == NULL && library_read(PMIx_Get_version(), &library, &err) < 0)
        print_mistake(&mistakes, err.text);
    if (mistakes.n > 0) {
        if (mistakes.n > 1)
            fprintf(stderr, "%s: %u mistakes\n", path, mistakes.n);
        return 1;
    }
    fprintf(print ? stderr : stdout, "%s: %s\n", path,
            missing ? "ok: there is no such file, so the defaults are in force" : "ok");
    if (print)
        conf_dump(&conf, &sources, stdout);
    if (fflush(stdout) != 0 || ferror(stdout)) {
        fprintf(stderr, "muster-server: cannot write: %s\n", strerror(errno));
        return 1;
    }
    return 0;
}

static int wrong(const char *what, const char *arg)
{
    fprintf(stderr, "muster-server: %s%s; see muster-server --help\n", what, arg);
    return 2;
}

int check_main(int argc, char **argv)
{
    bool checks = false, print = false;
    const char *file = NULL;
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--help") == 0) {
            fputs(usage, stdout);
            return 0;
        } else if (strcmp(argv[i], "--version") == 0) {
            printf("muster-server " MUSTER_VERSION ", %s\n", PMIx_Get_version());
            return 0;
        } else if (strcmp(argv[i], "--check") == 0) {
            checks = true;
        } else if (strcmp(argv[i], "--print") == 0) {
            print = true;
        } else if (argv[i][0] == '-' || argv[i][0] == '\0') {
            return wrong("unknown option ", argv[i]);
        } else if (file != NULL) {
            return wrong("more than one file: ", argv[i]);
        } else {
            file = argv[i];
        }
    }
    return checks ? check(file, print) : wrong("--check is missing", "");
}
