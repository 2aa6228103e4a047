/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * Walks a tree by descriptors and never follows a link, so that its owner cannot lead the walk
 * elsewhere. What is nested too deeply is moved to the top and removed by the next walk.
 */
#include "common/util/empty_dir.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum {
    DEPTH_MAX = 64,   /* each level takes a descriptor */
    ROUNDS_MAX = 4096 /* by which the deepest tree that a path can name has gone */
};

/* One walk through a tree. What is too deep for it is moved to the top, for the next one. */
struct walk {
    int top;        /* borrowed */
    unsigned round; /* from 0 */
    unsigned names; /* that were tried in this round, for what is moved */
    unsigned moved; /* in this round */
};

/* A walk that was ended half-way has left some of the names. */
static void move_up(struct walk *walk, int from, const char *name)
{
    char to[64];
    int rc;
    do {
        snprintf(to, sizeof(to), "deep.%u.%u", walk->round, walk->names++);
        rc = renameat(from, name, walk->top, to);
    } while (rc != 0 && (errno == ENOTEMPTY || errno == EEXIST));
    walk->moved += rc == 0;
}

static void empty_tree(struct walk *walk, int fd, int depth)
{
    DIR *dir = fdopendir(fd);
    struct dirent *entry;
    if (!dir) {
        close(fd);
        return;
    }
    rewinddir(dir);
    while ((entry = readdir(dir))) {
        const char *name = entry->d_name;
        if (strcmp(name, ".") == 0 || strcmp(name, "..") == 0)
            continue;
        if (unlinkat(fd, name, 0) == 0 || (errno != EISDIR && errno != EPERM))
            continue;
        if (unlinkat(fd, name, AT_REMOVEDIR) == 0)
            continue;
        if (depth == DEPTH_MAX) {
            move_up(walk, fd, name);
            continue;
        }
        int sub = openat(fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (sub >= 0)
            empty_tree(walk, sub, depth + 1);
        unlinkat(fd, name, AT_REMOVEDIR);
    }
    closedir(dir);
}

void empty_dir(int fd)
{
    struct walk walk = {.top = fd};
    for (; walk.round < ROUNDS_MAX; walk.round++) {
        int copy = openat(fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        walk.names = walk.moved = 0;
        if (copy >= 0)
            empty_tree(&walk, copy, 0);
        if (walk.moved == 0)
            break;
    }
    close(fd);
}
