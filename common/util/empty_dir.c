#include "common/util/empty_dir.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

enum { DEPTH_MAX = 64 /* each level takes a descriptor */ };

static void empty_tree(int fd, int depth)
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
        int sub;

        if (strcmp(name, ".") == 0 || strcmp(name, "..") == 0)
            continue;
        if (unlinkat(fd, name, 0) == 0 || (errno != EISDIR && errno != EPERM))
            continue;
        sub = openat(fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (sub >= 0 && depth < DEPTH_MAX)
            empty_tree(sub, depth + 1);
        else if (sub >= 0)
            close(sub);
        unlinkat(fd, name, AT_REMOVEDIR);
    }
    closedir(dir);
}

void empty_dir(int fd)
{
    empty_tree(fd, 0);
}
