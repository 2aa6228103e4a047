/* Memory and descriptors that are used up. malloc(), calloc() and realloc() are those of all
 * libraries here, as the program is searched first. */
#include "common/server/limits.h"

#include "common/util/log.h"

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

/* Without tasks a server has some 30, and takes more for a moment. */
enum { DESCRIPTORS = 64 };

int limits_descriptors(uint32_t ntasks, struct err *err)
{
    struct rlimit files;
    uint64_t need = DESCRIPTORS + (uint64_t)ntasks;
    if (getrlimit(RLIMIT_NOFILE, &files) != 0 || files.rlim_cur >= need)
        return 0;
    return err_set(err,
                   "it may open %llu files, and needs %llu for %u tasks: raise the hard limit of "
                   "open files of the daemon that starts steps",
                   (unsigned long long)files.rlim_cur, (unsigned long long)need, ntasks);
}

void limits_no_descriptors(void)
{
    struct rlimit files = {0};
    getrlimit(RLIMIT_NOFILE, &files);
    log_error("no descriptor is left for a connection, of the %llu that the server may have: raise "
              "the hard limit of open files of the daemon that starts steps",
              (unsigned long long)files.rlim_cur);
    _exit(1);
}

#ifdef MUSTER_SANITIZED

int limits_memory(int mib, const char *who, struct err *err)
{
    (void)mib;
    (void)who;
    (void)err;
    return 0;
}

#else

enum { MIB = 1 << 20, LEAST_MIB = 1024, SHARE = 8 /* of the node's memory */ };

void *__libc_malloc(size_t size);
void *__libc_calloc(size_t n, size_t size);
void *__libc_realloc(void *p, size_t size);

/* Made beforehand, as there will be no memory for it. */
static char words[512];
static size_t words_len; /* 0: there is no bound yet */

static void *checked(void *p, size_t size)
{
    if (p == NULL && size != 0 && words_len != 0) {
        if (write(STDERR_FILENO, words, words_len) < 0)
            _exit(2);
        _exit(1);
    }
    return p;
}

void *malloc(size_t size)
{
    return checked(__libc_malloc(size), size);
}

void *calloc(size_t n, size_t size)
{
    return checked(__libc_calloc(n, size), n != 0 ? size : 0);
}

void *realloc(void *p, size_t size)
{
    return checked(__libc_realloc(p, size), size);
}

/* @return bytes that this process may write to and shares with nobody, 0: not known */
static uint64_t written_by_us(void)
{
    unsigned long long pages = 0;
    FILE *in = fopen("/proc/self/statm", "re");
    if (in == NULL)
        return 0;
    if (fscanf(in, "%*u %*u %*u %*u %*u %llu", &pages) != 1)
        pages = 0;
    fclose(in);
    return pages * (uint64_t)sysconf(_SC_PAGESIZE);
}

static uint64_t share_of_node(void)
{
    uint64_t bytes = (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE) / SHARE;
    return bytes / MIB > LEAST_MIB ? bytes / MIB : LEAST_MIB;
}

int limits_memory(int mib, const char *who, struct err *err)
{
    uint64_t more = mib > 0 ? (uint64_t)mib : share_of_node(), now = written_by_us();
    struct rlimit limit = {0};
    if (now == 0 || getrlimit(RLIMIT_DATA, &limit) != 0)
        return err_set(err, "what memory the server has is not known: %s", strerror(errno));
    if (limit.rlim_max == RLIM_INFINITY || limit.rlim_max > now + more * MIB)
        limit.rlim_max = now + more * MIB;
    limit.rlim_cur = limit.rlim_max;
    int n =
        snprintf(words, sizeof words,
                 "<%d>%s: memory is used up: the step has put more into PMIx than fits into the "
                 "%llu MiB of a server (memory_max in muster.json)\n",
                 LOG_LEVEL_ERROR, who, (unsigned long long)more);
    if (setrlimit(RLIMIT_DATA, &limit) != 0)
        return err_set(err, "the server's memory cannot be bounded: %s", strerror(errno));
    words_len = n < (int)sizeof words ? (size_t)n : sizeof words - 1;
    return 0;
}

#endif
