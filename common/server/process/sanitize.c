/* SPDX-License-Identifier: BSD-3-Clause */
/* Linked into sanitized builds only: the server's environment is clean, so the sanitizers cannot be
 * told anything there. */
#include "common/nspace/built.h"

#include <dlfcn.h>
#include <stdlib.h>

const char *__lsan_default_suppressions(void);
int __lsan_is_turned_off(void);
const char *__tsan_default_suppressions(void);

/* libpmix stops its listening thread through a pipe that either closes without a lock, and waits
 * for it only when the pipe is still there. */
const char *__tsan_default_suppressions(void)
{
    return "race:libpmix.so\nmutex:libpmix.so\nthread:libpmix.so\n";
}

/* What libpmix, libslurm and pciaccess (by hwloc) leak is not ours to mend. */
const char *__lsan_default_suppressions(void)
{
    return "leak:libpmix.so\nleak:libslurm\nleak:libpciaccess\n";
}

#ifdef __SANITIZE_ADDRESS__
/* Of a machine with PCI devices hwloc asks pciaccess for names, which then reads those of all
 * vendors that there are: for ten seconds, as each one moves an array. */
__attribute__((constructor)) static void look_for_no_devices(void)
{
    setenv("HWLOC_COMPONENTS", "-pci", 1);
}

/* Leaks of a library that was unloaded have no name by which they could be left out. */
__attribute__((visibility("default"))) int dlclose(void *library)
{
    (void)library;
    return 0;
}
#endif

/* See LIBRARY_UNLOADED_LEAKS: they have no name by which they could be left out. */
int __lsan_is_turned_off(void)
{
    return BUILT_WITH(UNLOADED_LEAKS);
}

#ifdef __SANITIZE_THREAD__
/* libpmix 7 looks in /proc for a place for its shared memory. Among the sanitizer's own it may find
 * none, and then maps address 0, by which the sanitizer ends the process. */
__attribute__((constructor)) static void without_shared_memory(void)
{
    setenv("PMIX_MCA_gds", "hash", 1);
}
#endif
