/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * The sink that writes to a file of the user's.
 */
#include "common/util/log_own.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* @return 0, or -1: it is too long */
static int expand(const char *path, const char *node, char out[static LOG_OWN_PATH_SIZE])
{
    size_t used = 0;
    for (const char *p = path; *p != '\0' && used < LOG_OWN_PATH_SIZE;) {
        bool named = strncmp(p, "%n", 2) == 0;
        int n = named ? snprintf(out + used, LOG_OWN_PATH_SIZE - used, "%s", node)
                      : snprintf(out + used, LOG_OWN_PATH_SIZE - used, "%c", *p);
        used += (size_t)n;
        p += named ? 2 : 1;
    }
    return used < LOG_OWN_PATH_SIZE ? 0 : -1;
}

/* A pipe or a device could hold the server; another user's file is not for our lines. */
static const char *unfit(int fd)
{
    struct stat st;
    if (fstat(fd, &st) != 0)
        return strerror(errno);
    if (S_ISREG(st.st_mode) && st.st_uid != geteuid())
        return "it is another user's file";
    return S_ISREG(st.st_mode) || isatty(fd) ? NULL : "it is neither a file nor a terminal";
}

int log_own_open(struct log_own *own, const char *path, const char *node, struct err *err)
{
    char name[LOG_OWN_PATH_SIZE] = "";
    own->fd = -1;
    if (path[0] != '/')
        return err_set(err, "\"%.200s\": give an absolute path", path);
    if (expand(path, node, name) != 0)
        return err_set(err, "\"%.200s...\": give a path of less than %d bytes", path,
                       LOG_OWN_PATH_SIZE);
    int fd = open(
        name, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW | O_NOCTTY | O_NONBLOCK, 0600);
    const char *why = fd < 0 ? strerror(errno) : unfit(fd);
    if (fd < 0 && errno == ELOOP)
        why = "it is a symbolic link";
    if (why != NULL) {
        if (fd >= 0)
            close(fd);
        return err_set(err, "%.400s: %s; give the path of a file of your own", name, why);
    }
    own->fd = fd;
    return 0;
}

static void write_line(const struct log_own *own, enum log_level level, const char *text)
{
    static const char *const words[] = {[LOG_LEVEL_CAUSE] = "error",
                                        [LOG_LEVEL_ERROR] = "error",
                                        [LOG_LEVEL_WARNING] = "warning",
                                        [LOG_LEVEL_INFO] = "info",
                                        [LOG_LEVEL_DEBUG] = "debug"};
    char line[1200], when[32] = "";
    struct timespec now;
    struct tm tm;
    clock_gettime(CLOCK_REALTIME, &now);
    if (localtime_r(&now.tv_sec, &tm) != NULL)
        strftime(when, sizeof when, "%Y-%m-%dT%H:%M:%S", &tm);
    int len = snprintf(line, sizeof line, "%s.%03ld %s: %s\n", when, now.tv_nsec / 1000000,
                       words[level], text);
    if (len >= (int)sizeof line)
        len = (int)sizeof line - 1;
    /* One write, so that lines of several servers do not mix. A full disk is no reason to wait. */
    while (write(own->fd, line, (size_t)len) < 0 && errno == EINTR)
        ;
}

void log_own(void *arg, enum log_level level, const char *text)
{
    const struct log_own *own = arg;
    if (own->fd >= 0 && level <= own->level)
        write_line(own, level, text);
    if (level > own->next_level)
        return;
    if (own->next != NULL)
        own->next(own->arg, level, text);
    else
        log_stderr(NULL, level, text);
}

enum log_level log_own_level(const struct log_own *own)
{
    return own->fd >= 0 && own->level > own->next_level ? own->level : own->next_level;
}

void log_own_close(struct log_own *own)
{
    if (own->fd >= 0)
        close(own->fd);
    own->fd = -1;
}
