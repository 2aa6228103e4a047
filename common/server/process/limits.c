/* SPDX-License-Identifier: BSD-3-Clause */
/* Memory and descriptors that are used up. malloc(), calloc(), realloc() and pthread_create() are
 * those of all libraries here, as the program is searched first. */
#include "common/server/process/limits.h"

#include "common/server/process/share.h"
#include "common/util/log.h"

#include <dlfcn.h>
#include <errno.h>
#include <malloc.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

/* Without tasks a server has some 30 descriptors open, and takes more for a moment. Each task adds
 * its client's connection; each spawned task adds a connection until exec, and two streams with
 * both ends. */
enum { DESCRIPTORS = 64, OF_TASK = 1, OF_SPAWNED = 6 };

static uint64_t needed(uint32_t ntasks, bool spawned)
{
    return DESCRIPTORS + (uint64_t)ntasks * (spawned ? OF_SPAWNED : OF_TASK);
}

int limits_descriptors(uint32_t ntasks, bool spawned, struct err *err)
{
    struct rlimit files;
    uint64_t need = needed(ntasks, spawned);
    if (getrlimit(RLIMIT_NOFILE, &files) != 0 || files.rlim_cur >= need)
        return 0;
    return err_set(err,
                   "it may open %llu files, and needs %llu for %u tasks: raise the hard limit of "
                   "open files of the daemon that starts %ss",
                   (unsigned long long)files.rlim_cur, (unsigned long long)need, ntasks,
                   log_unit());
}

/* @return how many descriptors the tasks leave */
static uint64_t spare(uint32_t ntasks, bool spawned)
{
    struct rlimit files;
    uint64_t need = needed(ntasks, spawned);
    if (getrlimit(RLIMIT_NOFILE, &files) != 0)
        return UINT32_MAX;
    return files.rlim_cur > need ? files.rlim_cur - need : 0;
}

static unsigned least(uint64_t a, uint64_t b)
{
    return (unsigned)(a < b ? a : b);
}

unsigned limits_connections(unsigned arity, uint32_t ntasks, bool spawned)
{
    enum { OF_CHILD = 4, LEAST = 4, MOST = 1024 };
    unsigned n = least((uint64_t)OF_CHILD * arity, least(MOST, spare(ntasks, spawned) / 2));
    return n > LEAST ? n : LEAST;
}

unsigned limits_held(uint32_t ntasks, bool spawned)
{
    return least(LIMITS_HELD_MAX, spare(ntasks, spawned) / 4);
}

void limits_no_descriptors(void)
{
    struct rlimit files = {0};
    getrlimit(RLIMIT_NOFILE, &files);
    log_cause("no descriptor is left for a connection, of the %llu that the server may have: raise "
              "the hard limit of open files of the daemon that starts %ss",
              (unsigned long long)files.rlim_cur, log_unit());
    _exit(1);
}

/* @return bytes of memory that the node can give, 0: not known */
static uint64_t available(void)
{
    char line[128];
    unsigned long long kib = 0;
    FILE *in = fopen("/proc/meminfo", "re");
    while (in != NULL && kib == 0 && fgets(line, sizeof line, in) != NULL)
        if (sscanf(line, "MemAvailable: %llu", &kib) != 1)
            kib = 0;
    if (in != NULL)
        fclose(in);
    return (uint64_t)kib << 10;
}

int limits_step(uint64_t bytes, uint32_t nnodes, uint32_t ntasks, struct err *err)
{
    uint64_t have = available();
    if (have == 0 || bytes <= have)
        return 0;
    return err_set(
        err,
        "a %s of %u tasks on %u nodes takes up to %llu MiB of each node's memory, for what "
        "libpmix keeps of each task, and %llu MiB are left: start fewer tasks",
        log_unit(), ntasks, nnodes, (unsigned long long)(bytes >> 20),
        (unsigned long long)(have >> 20));
}

void limits_keep_memory(void)
{
    enum { BLOCK = 8 << 20, KEPT = 16 << 20, PAD = 4 << 20 };
    mallopt(M_MMAP_THRESHOLD, BLOCK); /* larger ones are given back at once */
    mallopt(M_TRIM_THRESHOLD, KEPT);
    mallopt(M_TOP_PAD, PAD); /* what the heap grows by: one system call for many blocks */
    mallopt(M_ARENA_MAX, 1); /* the others grow by mprotect(), for each block */
}

#ifdef MUSTER_SANITIZED

int limits_memory(int mib, uint64_t besides, const char *who, struct err *err)
{
    (void)mib, (void)besides, (void)who, (void)err;
    return 0;
}

#else

enum {
    MIB = 1 << 20,
    LEAST_MIB = 1024,
    SHARE = 8,             /* of the node's memory */
    LOOK_BYTES = 16 * MIB, /* what a server grows by until it looks at the others */
};

/* By which servers find each other in /proc (share.h). So muster-server must never run under
 * another name, and no other program of muster under this one. */
#define SERVER_NAME "muster-server"

void *__libc_malloc(size_t size);
void *__libc_calloc(size_t n, size_t size);
void *__libc_realloc(void *p, size_t size);

/* Made beforehand, as there will be no memory for it. */
static char words[512] = "muster-server: memory is used up\n";

/* The bound of all servers of this user together, and when it is looked at. */
static char self[128];                       /* the step and the node, for the message */
static uint64_t together;                    /* bytes */
static uint64_t base;                        /* what this server had at its start */
static uint64_t looked_at;                   /* what it had at the last look */
static _Atomic uint64_t asked;               /* bytes that were asked for since */
static atomic_flag looks = ATOMIC_FLAG_INIT; /* a thread looks; it may ask for memory, too */

static _Noreturn void end(const char *text, size_t len)
{
    _exit(write(STDERR_FILENO, text, len) < 0 ? 2 : 1);
}

/* Ends the server when it wants more and the user's servers on this node have all that they may. */
static void look_at_all(uint64_t own)
{
    struct share others = share_look(geteuid(), SERVER_NAME, base);
    uint64_t mine = own > base ? own - base : 0;
    char text[512];
    if (others.servers == 0 || others.bytes + mine <= together)
        return;
    int n =
        snprintf(text, sizeof text,
                 "<%d>%s: memory is used up: the %u servers of this user on this node want %llu "
                 "MiB together, this one %llu MiB of it, and %llu MiB is what they may have "
                 "(memory_max in muster.json)\n",
                 LOG_LEVEL_CAUSE, self, others.servers + 1,
                 (unsigned long long)((others.bytes + mine) / MIB),
                 (unsigned long long)(mine / MIB), (unsigned long long)(together / MIB));
    end(text, n < (int)sizeof text ? (size_t)n : sizeof text - 1);
}

/* Counts what is asked for; now and then looks how much has come of that, and when the server has
 * grown, at all servers of the user. */
static void count(size_t size)
{
    if (together == 0 || atomic_fetch_add(&asked, size) + size < LOOK_BYTES ||
        atomic_flag_test_and_set(&looks))
        return;
    int saved = errno;
    uint64_t own = share_own();
    atomic_store(&asked, 0);
    if (size > LOOK_BYTES) /* is not there yet */
        own += size;
    if (own >= looked_at + LOOK_BYTES) {
        looked_at = own;
        look_at_all(own);
    }
    atomic_flag_clear(&looks);
    errno = saved;
}

static void *checked(void *p, size_t size)
{
    if (p == NULL && size != 0)
        end(words, strlen(words));
    return p;
}

void *malloc(size_t size)
{
    count(size);
    return checked(__libc_malloc(size), size);
}

void *calloc(size_t n, size_t size)
{
    count(n != 0 && size <= SIZE_MAX / n ? n * size : 0);
    return checked(__libc_calloc(n, size), n != 0 ? size : 0);
}

void *realloc(void *p, size_t size)
{
    count(size);
    return checked(__libc_realloc(p, size), size);
}

/* Whether a thread's stack does not fit into the bound any more. */
static bool no_stack_fits(const pthread_attr_t *attr)
{
    size_t stack = 0;
    struct rlimit limit;
    pthread_attr_t usual;
    if (together == 0 || getrlimit(RLIMIT_DATA, &limit) != 0)
        return false;
    if (attr != NULL) {
        pthread_attr_getstacksize(attr, &stack);
    } else if (pthread_getattr_default_np(&usual) == 0) {
        pthread_attr_getstacksize(&usual, &stack);
        pthread_attr_destroy(&usual);
    }
    return share_own() + stack > limit.rlim_cur;
}

/* Libslurm ends the process when it gets no thread, with words that do not say why. */
int pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*run)(void *), void *arg)
{
    typedef int create_fn(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);
    create_fn *create = (create_fn *)(uintptr_t)dlsym(RTLD_NEXT, "pthread_create");
    int rc = create != NULL ? create(thread, attr, run, arg) : EAGAIN;
    if (rc == EAGAIN && no_stack_fits(attr))
        end(words, strlen(words));
    return rc;
}

static uint64_t share_of_node(void)
{
    uint64_t bytes = (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE) / SHARE;
    return bytes / MIB > LEAST_MIB ? bytes / MIB : LEAST_MIB;
}

int limits_memory(int mib, uint64_t besides, const char *who, struct err *err)
{
    uint64_t more = mib > 0 ? (uint64_t)mib : share_of_node(), now = share_own();
    struct rlimit limit = {0};
    if (now == 0 || getrlimit(RLIMIT_DATA, &limit) != 0)
        return err_set(err, "what memory the server has is not known: %s", strerror(errno));
    now += besides;
    if (limit.rlim_max == RLIM_INFINITY || limit.rlim_max > now + more * MIB)
        limit.rlim_max = now + more * MIB;
    limit.rlim_cur = limit.rlim_max;
    if (setrlimit(RLIMIT_DATA, &limit) != 0)
        return err_set(err, "the server's memory cannot be bounded: %s", strerror(errno));
    snprintf(words, sizeof words,
             "<%d>%s: memory is used up: more was put into PMIx than fits into the "
             "%llu MiB of a server (memory_max in muster.json)\n",
             LOG_LEVEL_CAUSE, who, (unsigned long long)more);
    snprintf(self, sizeof self, "%s", who);
    base = looked_at = now;
    together = more * MIB;
    return 0;
}

#endif
