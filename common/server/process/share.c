/* SPDX-License-Identifier: BSD-3-Clause */
/* A server is not dumpable, so its files in /proc are root's, but these three may be read by all.
 * Where /proc is mounted with hidepid, they may not be: then this process counts as the only one.
 */
#include "common/server/process/share.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { TEXT_MAX = 4096 };

/* @return whether the file of a process could be read, as far as it fits */
static bool read_text(const char *process, const char *file, char text[static TEXT_MAX])
{
    char path[64];
    snprintf(path, sizeof path, "/proc/%.20s/%s", process, file);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd >= 0 ? read(fd, text, TEXT_MAX - 1) : -1;
    if (fd >= 0)
        close(fd);
    text[n > 0 ? n : 0] = '\0';
    return n > 0;
}

/* @return bytes that a process may write to and does not share: the sixth number of statm */
static uint64_t data_of(const char *process)
{
    char text[TEXT_MAX], *at = text;
    uint64_t pages = 0;
    if (!read_text(process, "statm", text))
        return 0;
    for (int i = 0; i < 6; i++)
        pages = strtoull(at, &at, 10);
    return pages * (uint64_t)sysconf(_SC_PAGESIZE);
}

static bool is_called(const char *process, const char *name)
{
    char text[TEXT_MAX];
    if (!read_text(process, "comm", text))
        return false;
    text[strcspn(text, "\n")] = '\0';
    return strcmp(text, name) == 0;
}

static bool is_of(const char *process, uid_t uid)
{
    static const char field[] = "\nUid:";
    char text[TEXT_MAX];
    const char *at = read_text(process, "status", text) ? strstr(text, field) : NULL;
    return at != NULL && strtoul(at + sizeof field - 1, NULL, 10) == uid;
}

uint64_t share_own(void)
{
    return data_of("self");
}

struct share share_look(uid_t uid, const char *name, uint64_t base)
{
    struct share share = {0};
    const struct dirent *entry;
    DIR *proc = opendir("/proc");
    while (proc != NULL && (entry = readdir(proc)) != NULL) {
        const char *process = entry->d_name;
        if (process[0] < '1' || process[0] > '9' || atoi(process) == getpid() ||
            !is_called(process, name) || !is_of(process, uid))
            continue;
        uint64_t data = data_of(process);
        share.servers++;
        share.bytes += data > base ? data - base : 0;
    }
    if (proc != NULL)
        closedir(proc);
    return share;
}
