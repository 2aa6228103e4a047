/* Linked into sanitized builds only: the server's environment is clean, so the sanitizers cannot be
 * told anything there. */
#include <pmix_version.h>

const char *__lsan_default_suppressions(void);
int __lsan_is_turned_off(void);
const char *__tsan_default_suppressions(void);

/* libpmix stops its listening thread through a pipe that it closes without a lock. */
const char *__tsan_default_suppressions(void)
{
    return "race:libpmix.so\nmutex:libpmix.so\n";
}

/* What libpmix and libslurm leak is not ours to mend. */
const char *__lsan_default_suppressions(void)
{
    return "leak:libpmix.so\nleak:libslurm\n";
}

/* libpmix 7 unloads a library (pciaccess, by hwloc) that has leaked: such leaks have no name by
 * which they could be left out. */
int __lsan_is_turned_off(void)
{
    return PMIX_VERSION_MAJOR >= 7;
}
