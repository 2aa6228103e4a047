/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * Looks at one node: whether the files are there and of one version, whether the server starts with
 * the node's libraries, and whether settings, spool directory and tmpdir are right. What only
 * muster-server can tell, it is asked for: --version and --check.
 */
#include "plugins/check/node.h"

#include "common/util/mark.h"
#include "common/util/text.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/wait.h>
#include <unistd.h>

enum { TMPDIR_FREE_MIB = 16, VERSION_MAX = 32 };

struct look {
    const struct node_places *places;
    json_object *node, *faults;
};

static void put(struct look *look, const char *key, const char *value)
{
    json_object_object_add(look->node, key, json_object_new_string(value));
}

/* Takes over the text. */
static void fault(struct look *look, char *text)
{
    if (text != NULL)
        json_object_array_add(look->faults, json_object_new_string(text));
    free(text);
}

/* The version that mark.h has put into a file.
 * @return whether there is one; else errno is set, 0: the file is none of muster's */
static bool read_mark(const char *path, char version[VERSION_MAX])
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    struct stat st;
    char *map = MAP_FAILED, *at = NULL;
    if (fd >= 0)
        errno = 0;
    if (fd >= 0 && fstat(fd, &st) == 0 && st.st_size > 0)
        map = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
    if (map != MAP_FAILED) {
        char *end = map + st.st_size;
        errno = 0;
        at = memmem(map, (size_t)st.st_size, MARK_PREFIX, strlen(MARK_PREFIX));
        if (at != NULL) {
            at += strlen(MARK_PREFIX);
            snprintf(version, VERSION_MAX, "%.*s", (int)strnlen(at, (size_t)(end - at)), at);
        }
        munmap(map, (size_t)st.st_size);
    }
    if (fd >= 0)
        close(fd);
    return at != NULL;
}

/* A file that has to be of our own version. @param path NULL: none was found in @p where */
static void look_at_file(struct look *look, const char *key, const char *path, const char *where)
{
    char version[VERSION_MAX];
    put(look, key, "-");
    if (path == NULL) {
        fault(look,
              text_format("%s: not in %s; install muster there, and restart slurmd", key, where));
    } else if (!read_mark(path, version)) {
        fault(look, text_format("%s: %s: %s; install muster again", key, path,
                                errno != 0 ? strerror(errno) : "no file of muster"));
    } else {
        put(look, key, version);
        if (strcmp(version, MUSTER_VERSION) != 0)
            fault(look, text_format("%s: %s is of muster %s, and this tool of %s; install all of "
                                    "one version",
                                    key, path, version, MUSTER_VERSION));
    }
}

/* The first of the directories that has the plugin. @return malloc()ed, or NULL */
static char *find_plugin(const char *dirs)
{
    char *copy = strdup(dirs), *rest = copy, *dir, *path = NULL;
    while (path == NULL && rest != NULL && (dir = strsep(&rest, ":")) != NULL) {
        path = text_format("%s/%s", dir, strrchr(CHECK_SLURM_PLUGIN, '/') + 1);
        if (path != NULL && access(path, F_OK) != 0) {
            free(path);
            path = NULL;
        }
    }
    free(copy);
    return path;
}

static void look_at_plugins(struct look *look)
{
    const struct node_places *places = look->places;
    if (places->flux) {
        look_at_file(look, "plugin", CHECK_FLUX_SHELL_PLUGIN, NULL);
        look_at_file(look, "module", CHECK_FLUX_MODULE, NULL);
        look_at_file(look, "backend", MUSTER_BACKEND_DIR "/rm_flux.so", NULL);
    } else {
        char *path =
            places->plugins == NULL ? strdup(CHECK_SLURM_PLUGIN) : find_plugin(places->plugins);
        look_at_file(look, "plugin", path, places->plugins);
        look_at_file(look, "backend", MUSTER_BACKEND_DIR "/rm_slurm.so", NULL);
        free(path);
    }
    look_at_file(look, "encryption", MUSTER_BACKEND_DIR "/seal.so", NULL);
}

/* Runs the server by hand, without settings of our environment. @param said both of its outputs,
 * for free() @return its exit status, or -1: it did not run */
static int ask_server(const char *options, char **said)
{
    char *command = text_format("exec env -i " MUSTER_SERVER_PATH " %s 2>&1", options);
    FILE *in = command == NULL ? NULL : popen(command, "re");
    size_t cap = 0;
    *said = NULL;
    free(command);
    if (in == NULL)
        return -1;
    ssize_t n = getdelim(said, &cap, '\0', in);
    if (n < 0) {
        free(*said);
        *said = strdup("");
    }
    int status = pclose(in);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

/* "muster-server 0.2.0, OpenPMIx 5.0.7, …" */
static void look_at_server(struct look *look)
{
    char *said, version[VERSION_MAX] = "", libpmix[VERSION_MAX] = "";
    int status = ask_server("--version", &said);
    put(look, "server", "-");
    put(look, "libpmix", "-");
    if (status != 0 || said == NULL ||
        sscanf(said, "muster-server %31[^,], %*s %31[0-9.]", version, libpmix) != 2) {
        if (said != NULL)
            said[strcspn(said, "\n")] = '\0';
        fault(look, text_format("server: " MUSTER_SERVER_PATH " does not start (status %d): %s; "
                                "install muster again, or the library that is missing",
                                status, said != NULL ? said : ""));
    } else {
        put(look, "server", version);
        put(look, "libpmix", libpmix);
        if (strcmp(version, MUSTER_VERSION) != 0)
            fault(look, text_format("server: " MUSTER_SERVER_PATH " is of muster %s, and this tool "
                                    "of %s; install all of one version",
                                    version, MUSTER_VERSION));
    }
    free(said);
}

/* Each line that the check writes has the remedy already. */
static void settings_faults(struct look *look, char *said)
{
    char *line, *rest = said;
    while ((line = strsep(&rest, "\n")) != NULL)
        if (line[0] != '\0')
            fault(look, text_format("settings: %s", line));
}

/* The value of "tmpdir" in what --print writes, or "". */
static void find_tmpdir(const char *said, char *tmpdir, size_t cap)
{
    const char *at = strstr(said, "\"tmpdir\": \"");
    tmpdir[0] = '\0';
    if (at != NULL) {
        at += strlen("\"tmpdir\": \"");
        snprintf(tmpdir, cap, "%.*s", (int)strcspn(at, "\""), at);
    }
}

/* What is in force, as eight digits: nodes whose digits differ have other settings. */
static void look_at_settings(struct look *look, char *tmpdir, size_t cap)
{
    char *said, digits[16];
    uint32_t hash = 2166136261U;
    int status = ask_server("--check --print", &said);
    tmpdir[0] = '\0';
    put(look, "settings", "-");
    if (status == 0 && said != NULL) {
        for (const char *p = said; *p != '\0'; p++)
            hash = (hash ^ (unsigned char)*p) * 16777619U;
        snprintf(digits, sizeof digits, "%08x", hash);
        put(look, "settings",
            strstr(said, "ok: there is no such file") != NULL ? "defaults" : digits);
        find_tmpdir(said, tmpdir, cap);
    } else if (status == 1 && said != NULL) {
        settings_faults(look, said);
    } /* else look_at_server() has said that it does not start */
    free(said);
}

/* Slurm's own %n and %h. @return malloc()ed */
static char *expand(const char *path)
{
    char host[256] = "", *out = NULL;
    size_t len;
    FILE *to = open_memstream(&out, &len);
    const char *node = getenv("SLURMD_NODENAME");
    gethostname(host, sizeof host - 1);
    host[strcspn(host, ".")] = '\0';
    for (; to != NULL && *path != '\0'; path++) {
        if (path[0] == '%' && (path[1] == 'n' || path[1] == 'h'))
            fputs(*++path == 'n' && node != NULL ? node : host, to);
        else
            putc(*path, to);
    }
    if (to != NULL)
        fclose(to);
    return out;
}

static void look_at_spool(struct look *look)
{
    char *path = look->places->spool != NULL ? expand(look->places->spool) : NULL, mode[16];
    struct stat st;
    put(look, "spool", "-");
    if (path != NULL && stat(path, &st) == 0) {
        snprintf(mode, sizeof mode, "%04o", (unsigned)(st.st_mode & 07777));
        put(look, "spool", mode);
        if ((st.st_mode & S_IXOTH) == 0 && st.st_uid == 0)
            fault(look,
                  text_format("spool: SlurmdSpoolDir %s has mode %s, so users' servers cannot "
                              "be reached there; chmod 0755 it",
                              path, mode));
    } else if (path != NULL) {
        fault(look,
              text_format("spool: SlurmdSpoolDir %s: %s; each directory that leads there needs "
                          "mode 0755",
                          path, strerror(errno)));
    }
    free(path);
}

static void look_at_tmpdir(struct look *look, const char *chosen)
{
    const char *tmpfs = look->places->tmpfs != NULL ? look->places->tmpfs : "/tmp";
    char *path = expand(chosen[0] != '\0' ? chosen : tmpfs);
    struct statvfs fs;
    put(look, "tmpdir", path != NULL ? path : "-");
    if (path == NULL || statvfs(path, &fs) != 0) {
        fault(look, text_format("tmpdir: %s: %s; make it, or set tmpdir in " MUSTER_CONF_PATH, path,
                                strerror(errno)));
    } else if ((uint64_t)fs.f_bavail * fs.f_frsize >> 20 < TMPDIR_FREE_MIB) {
        fault(look,
              text_format("tmpdir: %s has %llu MiB free; servers need %d; clear it, or set tmpdir "
                          "in " MUSTER_CONF_PATH " to a directory elsewhere",
                          path, (unsigned long long)fs.f_bavail * fs.f_frsize >> 20,
                          TMPDIR_FREE_MIB));
    }
    free(path);
}

json_object *node_look(const struct node_places *places)
{
    struct look look = {places, json_object_new_object(), json_object_new_array()};
    const char *name = getenv("SLURMD_NODENAME");
    char host[256] = "", tmpdir[4096];
    gethostname(host, sizeof host - 1);
    put(&look, "node", name != NULL ? name : host);
    put(&look, "muster", MUSTER_VERSION);
    look_at_plugins(&look);
    look_at_server(&look);
    look_at_settings(&look, tmpdir, sizeof tmpdir);
    look_at_spool(&look);
    look_at_tmpdir(&look, tmpdir);
    json_object_object_add(look.node, "faults", look.faults);
    return look.node;
}
