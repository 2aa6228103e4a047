/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * Processes by their parents, as /proc has them.
 */
#include "shims/standin/procs.h"

#include "common/util/clock.h"

#include <ctype.h>
#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { BATCH = 256, TREE_MAX = 16384 };

/* @return the parent, 0 when the process is gone or a zombie */
static pid_t parent_of(const char *pid)
{
    char path[64], text[512];
    pid_t parent = 0;
    char state;
    snprintf(path, sizeof(path), "/proc/%.20s/stat", pid);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return 0;
    ssize_t n = read(fd, text, sizeof(text) - 1);
    close(fd);
    if (n <= 0)
        return 0;
    text[n] = '\0';
    /* the name in parentheses may hold anything */
    const char *end = strrchr(text, ')');
    if (!end || sscanf(end + 1, " %c %d", &state, &parent) != 2 || state == 'Z')
        return 0;
    return parent;
}

size_t procs_children(pid_t parent, pid_t *list, size_t cap)
{
    DIR *dir = opendir("/proc");
    struct dirent *entry;
    size_t n = 0;
    while (dir && (entry = readdir(dir))) {
        if (!isdigit((unsigned char)entry->d_name[0]) || parent_of(entry->d_name) != parent)
            continue;
        if (n < cap)
            list[n] = (pid_t)atoi(entry->d_name);
        n++;
    }
    if (dir)
        closedir(dir);
    return n;
}

/* Stops the tree below root and collects it. @return how many there are by now */
static size_t stop_tree(pid_t root, pid_t *all, size_t n)
{
    pid_t list[BATCH];
    if (n == TREE_MAX)
        return n;
    kill(root, SIGSTOP);
    all[n++] = root;
    size_t children = procs_children(root, list, BATCH);
    for (size_t i = 0; i < children && i < BATCH; i++)
        n = stop_tree(list[i], all, n);
    return n;
}

void procs_kill_tree(pid_t root)
{
    pid_t *all = calloc(TREE_MAX, sizeof(*all));
    size_t n = all ? stop_tree(root, all, 0) : 0;
    for (size_t i = 0; i < n; i++)
        kill(all[i], SIGKILL);
    free(all);
}

void procs_reap(void)
{
    siginfo_t info;
    for (;;) {
        info.si_pid = 0;
        if (waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) != 0 || info.si_pid == 0 ||
            getpgid(info.si_pid) == getpgrp() || waitpid(info.si_pid, NULL, WNOHANG) <= 0)
            return;
    }
}

void procs_signal_group(int sig)
{
    pid_t list[BATCH];
    size_t n = procs_children(getpid(), list, BATCH);
    for (size_t i = 0; i < n && i < BATCH; i++)
        if (getpgid(list[i]) == getpgrp())
            kill(list[i], sig);
}

static bool is_kept(pid_t pid, const pid_t *keep, size_t nkeep)
{
    for (size_t i = 0; i < nkeep; i++)
        if (keep[i] == pid)
            return true;
    return false;
}

void procs_kill_children(const pid_t *keep, size_t nkeep, int ms)
{
    const struct timespec nap = {.tv_nsec = 2000000};
    int64_t deadline = now_ms() + ms;
    pid_t list[BATCH];
    for (;;) {
        size_t n = procs_children(getpid(), list, BATCH), others = 0;
        for (size_t i = 0; i < n && i < BATCH; i++) {
            if (is_kept(list[i], keep, nkeep) || getpgid(list[i]) == getpgrp())
                continue;
            others++;
            kill(list[i], SIGKILL);
        }
        procs_reap();
        if (others == 0 || deadline_left(deadline) == 0)
            return;
        nanosleep(&nap, NULL); /* what they leave becomes ours when they are gone */
    }
}
