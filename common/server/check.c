/** @file
 * What muster-server does when an admin starts it by hand: it checks settings.
 */
#include "common/server/check.h"

#include "common/conf/conf.h"

#include <errno.h>
#include <pmix.h>
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
    "A FILE may also be your own.\n"
    "\n"
    "  --print  writes all settings that are in force, in the form of the file, and \"ok\"\n"
    "           to standard error\n"
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

static int check(const char *given, bool print)
{
    const char *path = given ? given : MUSTER_CONF_PATH;
    struct mistakes mistakes = {0};
    struct conf conf;
    struct stat st;
    bool missing = lstat(path, &st) < 0 && errno == ENOENT;

    if (given && missing) {
        fprintf(stderr, "%s: there is no such file\n", path);
        return 1;
    }
    if (conf_load_all(&conf, path, given ? getuid() : 0, print_mistake, &mistakes) < 0) {
        if (mistakes.n > 1)
            fprintf(stderr, "%s: %u mistakes\n", path, mistakes.n);
        return 1;
    }
    fprintf(print ? stderr : stdout, "%s: %s\n", path,
            missing ? "ok: there is no such file, so the defaults are in force" : "ok");
    if (print)
        conf_dump(&conf, stdout);
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
        } else if (file) {
            return wrong("more than one file: ", argv[i]);
        } else {
            file = argv[i];
        }
    }
    return checks ? check(file, print) : wrong("--check is missing", "");
}
