/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * Reads /proc/PID/cmdline, of processes of the own user only.
 */
#include "common/util/cmdline.h"

#include "common/util/io_all.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

/* The file is root's when the process has other rights than its user has, or hides. */
static int open_cmdline(pid_t pid)
{
    char path[32];
    struct stat st;
    snprintf(path, sizeof(path), "/proc/%d/cmdline", (int)pid);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd >= 0 && (fstat(fd, &st) < 0 || st.st_uid != geteuid())) {
        close(fd);
        return -1;
    }
    return fd;
}

char *cmdline_read(pid_t pid, size_t max)
{
    int fd = pid > 0 ? open_cmdline(pid) : -1;
    char *text = fd >= 0 ? malloc(max + 2) : NULL;
    ssize_t len = text ? read_all(fd, text, max + 2) : 0;
    if (fd >= 0)
        close(fd);
    /* Each argument ends with a NUL, unless the process has written something else there. */
    if (len > 0 && text[len - 1] == '\0')
        len--;
    if (len <= 0 || (size_t)len > max) {
        free(text);
        return NULL;
    }
    for (ssize_t i = 0; i < len; i++) {
        if (text[i] == '\0')
            text[i] = ' ';
    }
    text[len] = '\0';
    return text;
}
