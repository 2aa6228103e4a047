/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * Loads the hardware with hwloc as the first task sees it, and writes it to a file in the form
 * that libpmix's clients map into their memory.
 */
#include "common/nspace/topology.h"

#include "common/nspace/register.h"
#include "common/util/log.h"
#include "common/util/text.h"

#include <errno.h>
#include <fcntl.h>
#include <hwloc.h>
#include <hwloc/shmem.h>
#include <inttypes.h>
#include <pmix.h>
#include <pmix_server.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <unistd.h>

struct topology {
    pmix_topology_t pmix;
};

/* @param pid whose view, 0: ours. @param small only what processors and memory there are */
static hwloc_topology_t load(pid_t pid, bool small)
{
    hwloc_topology_t t;
    if (hwloc_topology_init(&t) != 0)
        return NULL;
    /* As libpmix itself does. */
    int rc = small ? hwloc_topology_set_all_types_filter(t, HWLOC_TYPE_FILTER_KEEP_NONE)
                   : hwloc_topology_set_io_types_filter(t, HWLOC_TYPE_FILTER_KEEP_IMPORTANT);
    if (rc == 0 && pid != 0)
        rc = hwloc_topology_set_pid(t, pid);
    if (rc == 0 && hwloc_topology_load(t) == 0)
        return t;
    hwloc_topology_destroy(t);
    return NULL;
}

struct topology *topology_new(void)
{
    hwloc_topology_t found = load(0, false);
    if (found == NULL) {
        log_warning("the node's hardware is not found out (hwloc): each task does it by itself");
        return NULL;
    }
    struct topology *t = calloc(1, sizeof *t);
    t->pmix.topology = found;
    t->pmix.source = text_format("hwloc:%s", HWLOC_VERSION);
    return t;
}

void topology_free(struct topology *t)
{
    if (t == NULL)
        return;
    hwloc_topology_destroy(t->pmix.topology);
    free(t->pmix.source);
    free(t);
}

void topology_info(struct topology *t, pmix_info_t *info)
{
    PMIX_LOAD_KEY(info->key, PMIX_TOPOLOGY2);
    info->value.type = PMIX_TOPO;
    info->value.data.topo = &t->pmix;
}

/* hwloc takes it for no limit when it cannot be read. */
static bool is_seen(pid_t pid)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/cgroup", (int)pid);
    return access(path, R_OK) == 0;
}

/* @return what a task may use of the hardware, to be destroyed; NULL: it is not known, or more than
 * we may use */
static hwloc_topology_t view_of(hwloc_topology_t ours, pid_t pid)
{
    hwloc_topology_t theirs = is_seen(pid) ? load(pid, true) : NULL, view = NULL;
    if (theirs == NULL)
        return NULL;
    hwloc_const_bitmap_t cpus = hwloc_topology_get_allowed_cpuset(theirs),
                         nodes = hwloc_topology_get_allowed_nodeset(theirs);
    bool same = hwloc_bitmap_isequal(cpus, hwloc_topology_get_allowed_cpuset(ours)) &&
                hwloc_bitmap_isequal(nodes, hwloc_topology_get_allowed_nodeset(ours));
    bool less = hwloc_bitmap_isincluded(cpus, hwloc_topology_get_allowed_cpuset(ours)) &&
                hwloc_bitmap_isincluded(nodes, hwloc_topology_get_allowed_nodeset(ours));
    if (less && hwloc_topology_dup(&view, ours) == 0 && !same &&
        (hwloc_topology_restrict(view, cpus, 0) != 0 ||
         hwloc_topology_restrict(view, nodes, HWLOC_RESTRICT_FLAG_BYNODESET) != 0)) {
        hwloc_topology_destroy(view);
        view = NULL;
    }
    hwloc_topology_destroy(theirs);
    return view;
}

/* @return the middle of the largest hole of our address space. Clients are laid out like us, and so
 * most likely have nothing there either. */
static uint64_t find_hole(size_t len)
{
    char line[512];
    uint64_t begin, end, last = 0, best = 0, at = 0;
    FILE *in = fopen("/proc/self/maps", "re");
    while (in != NULL && fgets(line, sizeof line, in) != NULL) {
        if (sscanf(line, "%" SCNx64 "-%" SCNx64, &begin, &end) != 2 ||
            strstr(line, "[vsyscall]") != NULL) /* the kernel's, beyond what we may have */
            continue;
        if (last != 0 && begin > last && begin - last > best) {
            best = begin - last;
            at = last + best / 2;
        }
        last = end;
    }
    if (in != NULL)
        fclose(in);
    return best / 2 > len + (4 << 20) ? at & ~(uint64_t)((2 << 20) - 1) : 0;
}

/* @return 0, or the errno of what failed */
static int copy(int from, const char *path, size_t len)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600), error = 0;
    if (fd < 0)
        return errno;
    for (off_t at = 0; (size_t)at < len && error == 0;) {
        ssize_t n = sendfile(fd, from, &at, len - (size_t)at);
        if (n <= 0 && (n == 0 || errno != EINTR))
            error = n == 0 ? EIO : errno;
    }
    close(fd);
    if (error != 0)
        unlink(path);
    return error;
}

/* By way of memory that is ours alone: hwloc maps the file, and one that is in the directory the
 * user could cut meanwhile, which would end us by a signal. @return as copy() */
static int write_file(hwloc_topology_t t, const char *path, uint64_t at, size_t len)
{
    int fd = memfd_create("hwloc", MFD_CLOEXEC);
    if (fd < 0)
        return errno;
    errno = 0;
    int error = hwloc_shmem_topology_write(t, fd, 0, (void *)(uintptr_t)at, len, 0) == 0
                    ? copy(fd, path, len)
                : errno != 0 ? errno
                             : EIO;
    close(fd);
    return error;
}

static pmix_value_t number(size_t n)
{
    return (pmix_value_t){.type = PMIX_SIZE, .data.size = n};
}

/* A client takes the file when it is told of all three. */
static void offer(hwloc_topology_t t, const struct boot *boot, char *path, uint64_t at, size_t len)
{
    pmix_value_t name = {.type = PMIX_STRING, .data.string = path};
    pmix_proc_t all;
    PMIX_LOAD_PROCID(&all, boot->nspace, PMIX_RANK_WILDCARD);
    int error = write_file(t, path, at, len);
    if (error != 0)
        log_warning("%s cannot be written, so each task looks for the node's hardware by itself: "
                    "%s",
                    path, strerror(error));
    else if (register_store(&all, PMIX_HWLOC_SHMEM_ADDR, number(at)) &&
             register_store(&all, PMIX_HWLOC_SHMEM_SIZE, number(len)) &&
             register_store(&all, PMIX_HWLOC_SHMEM_FILE, name))
        log_debug("tasks find the node's hardware in %s, %zu bytes", path, len);
}

void topology_share(const struct topology *t, const struct boot *boot, pid_t pid)
{
    size_t len = 0;
    if (t == NULL)
        return;
    char *path = text_format("%s/hwloc.sm", boot->tmpdir);
    hwloc_topology_t view = view_of(t->pmix.topology, pid);
    uint64_t at =
        view != NULL && hwloc_shmem_topology_get_length(view, &len, 0) == 0 ? find_hole(len) : 0;
    if (at == 0)
        log_info("what task process %d may use of the node's hardware is not known: each task "
                 "looks for it by itself",
                 (int)pid);
    else
        offer(view, boot, path, at, len);
    free(path);
    if (view != NULL)
        hwloc_topology_destroy(view);
}
