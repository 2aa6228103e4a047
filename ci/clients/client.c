/* SPDX-License-Identifier: BSD-3-Clause */
/* What the test clients share; see client.h. */
#include "client.h"

#include <signal.h>
#include <stdarg.h>
#include <time.h>
#include <unistd.h>

struct client client;

/* What the watchdog says: written whole by step(), read by the signal handler. */
static char now_doing[512] = "starting\n";

static void watchdog(int signal_number)
{
    (void)signal_number;
    size_t length = strnlen(now_doing, sizeof now_doing);
    if (write(STDERR_FILENO, now_doing, length) < 0)
        _exit(EXIT_WATCHDOG + 1);
    _exit(EXIT_WATCHDOG);
}

void step(const char *format, ...)
{
    char what[400];
    va_list args;
    va_start(args, format);
    vsnprintf(what, sizeof what, format, args);
    va_end(args);
    snprintf(now_doing, sizeof now_doing, "%s: rank %u: watchdog: still in: %s\n", client.name,
             client.me.rank, what);
}

_Noreturn void client_die(void)
{
    raise(SIGUSR1);
    abort();
}

_Noreturn void check_failed(const char *file, int line, const char *format, ...)
{
    char what[1000];
    va_list args;
    va_start(args, format);
    vsnprintf(what, sizeof what, format, args);
    va_end(args);
    const char *base = strrchr(file, '/'), *doing = strstr(now_doing, "in: ");
    fprintf(stderr, "FAIL %s: %s:%d: rank %u: %s (in: %.*s)\n", client.name, base ? base + 1 : file,
            line, client.me.rank, what, doing ? (int)strcspn(doing + 4, "\n") : 0,
            doing ? doing + 4 : "");
    fflush(NULL);
    _exit(1);
}

/* @return the position of @p word in "a|b|c", or -1 */
static long word_index(const char *words, const char *word)
{
    long index = 0;
    for (size_t length; words; words = words[length] ? words + length + 1 : NULL, index++) {
        length = strcspn(words, "|");
        if (strlen(word) == length && !strncmp(words, word, length))
            return index;
    }
    return -1;
}

static _Noreturn void usage(const struct option_number *options, int status)
{
    FILE *out = status ? stderr : stdout;
    fprintf(out, "usage: %s [--OPTION VALUE]...\n", client.name);
    for (const struct option_number *o = options; o && o->name; o++)
        fprintf(out, "  --%-10s %s%s%s (%ld)\n", o->name, o->help, o->words ? ": " : "",
                o->words ? o->words : "", *o->value);
    fprintf(out, "  --%-10s until the watchdog ends the process (120)\n", "seconds");
    exit(status);
}

/* Fills in the option that argv[at] names. */
static void read_option(const struct option_number *options, char **argv, int at, long *seconds)
{
    const struct option_number watch = {"seconds", seconds, "", NULL};
    const struct option_number *found = strcmp(argv[at] + 2, "seconds") ? NULL : &watch;
    for (const struct option_number *o = options; !found && o && o->name; o++)
        if (!strcmp(argv[at] + 2, o->name))
            found = o;
    char *end = NULL;
    if (!found || !argv[at + 1])
        usage(options, 2);
    *found->value = word_index(found->words, argv[at + 1]);
    if (*found->value >= 0)
        return;
    *found->value = strtol(argv[at + 1], &end, 0);
    if (end == argv[at + 1] || *end || found->words)
        usage(options, 2);
}

void client_init(const char *name, const struct option_number *options, int argc, char **argv)
{
    long seconds = 120;
    client.name = name;
    for (int i = 1; i < argc; i += 2) {
        if (!strcmp(argv[i], "--help"))
            usage(options, 0);
        if (strncmp(argv[i], "--", 2))
            usage(options, 2);
        read_option(options, argv, i, &seconds);
    }
    setvbuf(stdout, NULL, _IOLBF, 0);
    signal(SIGALRM, watchdog);
    alarm((unsigned)seconds);
    step("PMIx_Init");
    CHECK_OK(PMIx_Init(&client.me, NULL, 0), "PMIx_Init");
    client.all = client.me;
    client.all.rank = PMIX_RANK_WILDCARD;
    step("PMIx_Get of the job's size");
    client.size = (uint32_t)get_u64(PMIX_RANK_WILDCARD, PMIX_JOB_SIZE);
    CHECK(client.me.rank < client.size, "my rank %u, expected less than the job's size %u",
          client.me.rank, client.size);
}

static int finish(const char *verdict, int status, const char *format, va_list args)
{
    char what[1000];
    vsnprintf(what, sizeof what, format, args);
    step("PMIx_Finalize");
    CHECK_OK(PMIx_Finalize(NULL, 0), "PMIx_Finalize");
    alarm(0);
    if (client.me.rank == 0)
        printf("%s %s: %s\n", verdict, client.name, what);
    return status;
}

int client_pass(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    int status = finish("PASS", 0, format, args);
    va_end(args);
    return status;
}

int client_skip(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    int status = finish("SKIP", EXIT_SKIP, format, args);
    va_end(args);
    return status;
}

uint64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

void sleep_ms(long ms)
{
    struct timespec left = {ms / 1000, ms % 1000 * 1000000};
    while (nanosleep(&left, &left))
        ;
}

pmix_proc_t proc_of(pmix_rank_t rank)
{
    pmix_proc_t proc = client.me;
    proc.rank = rank;
    return proc;
}

uint64_t mix(uint64_t x) /* splitmix64 */
{
    x += 0x9e3779b97f4a7c15u;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}

int compare_u64(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

/* Every function that takes a key as a format starts with this. */
#define FORMAT_KEY(format)                                                                         \
    char key_[PMIX_MAX_KEYLEN];                                                                    \
    do {                                                                                           \
        va_list args_;                                                                             \
        va_start(args_, format);                                                                   \
        int length_ = vsnprintf(key_, sizeof key_, format, args_);                                 \
        va_end(args_);                                                                             \
        CHECK(length_ >= 0 && (size_t)length_ < sizeof key_, "a key of %d bytes", length_);        \
    } while (0)

static void put(pmix_scope_t scope, const char *key, pmix_value_t *value)
{
    pmix_status_t status = PMIx_Put(scope, key, value);
    CHECK(status == PMIX_SUCCESS, "PMIx_Put of %s: expected SUCCESS, found %s", key,
          PMIx_Error_string(status));
}

void put_u64(pmix_scope_t scope, uint64_t number, const char *key, ...)
{
    FORMAT_KEY(key);
    pmix_value_t value = {.type = PMIX_UINT64, .data.uint64 = number};
    put(scope, key_, &value);
}

void put_string(pmix_scope_t scope, const char *text, const char *key, ...)
{
    FORMAT_KEY(key);
    pmix_value_t value = {.type = PMIX_STRING, .data.string = (char *)text};
    put(scope, key_, &value);
}

void put_bytes(pmix_scope_t scope, const void *bytes, size_t size, const char *key, ...)
{
    FORMAT_KEY(key);
    pmix_value_t value = {.type = PMIX_BYTE_OBJECT, .data.bo = {(char *)bytes, size}};
    put(scope, key_, &value);
}

void commit(void)
{
    CHECK_OK(PMIx_Commit(), "PMIx_Commit");
}

pmix_value_t *get_value_with(pmix_rank_t rank, const pmix_info_t *info, size_t ninfo,
                             const char *key)
{
    pmix_proc_t proc = proc_of(rank);
    pmix_value_t *value = NULL;
    pmix_status_t status = PMIx_Get(&proc, key, info, ninfo, &value);
    CHECK(status == PMIX_SUCCESS && value, "PMIx_Get of %s of rank %d: expected a value, found %s",
          key, (int)rank, PMIx_Error_string(status));
    return value;
}

pmix_value_t *get_value(pmix_rank_t rank, const char *key, ...)
{
    FORMAT_KEY(key);
    return get_value_with(rank, NULL, 0, key_);
}

uint64_t number_in(const pmix_value_t *value, const char *what)
{
    switch (value->type) {
    case PMIX_UINT16:
        return value->data.uint16;
    case PMIX_UINT32:
        return value->data.uint32;
    case PMIX_UINT64:
        return value->data.uint64;
    case PMIX_SIZE:
        return value->data.size;
    case PMIX_INT:
        return (uint64_t)value->data.integer;
    case PMIX_PROC_RANK:
        return value->data.rank;
    default:
        check_failed(__FILE__, __LINE__, "%s: expected a number, found %s", what,
                     PMIx_Data_type_string(value->type));
    }
}

uint64_t get_u64(pmix_rank_t rank, const char *key, ...)
{
    FORMAT_KEY(key);
    pmix_value_t *value = get_value_with(rank, NULL, 0, key_);
    uint64_t number = number_in(value, key_);
    PMIX_VALUE_RELEASE(value);
    return number;
}

char *get_string(pmix_rank_t rank, const char *key, ...)
{
    FORMAT_KEY(key);
    pmix_value_t *value = get_value_with(rank, NULL, 0, key_);
    CHECK(value->type == PMIX_STRING && value->data.string,
          "%s of rank %d: expected a string, "
          "found %s",
          key_, (int)rank, PMIx_Data_type_string(value->type));
    char *text = strdup(value->data.string);
    PMIX_VALUE_RELEASE(value);
    return text;
}

void *get_bytes(pmix_rank_t rank, size_t size, const char *key, ...)
{
    FORMAT_KEY(key);
    pmix_value_t *value = get_value_with(rank, NULL, 0, key_);
    CHECK(value->type == PMIX_BYTE_OBJECT, "%s of rank %u: expected a byte object, found %s", key_,
          rank, PMIx_Data_type_string(value->type));
    CHECK(value->data.bo.size == size, "%s of rank %u: expected %zu bytes, found %zu", key_, rank,
          size, value->data.bo.size);
    void *bytes = malloc(size + 1);
    memcpy(bytes, value->data.bo.bytes, size);
    PMIX_VALUE_RELEASE(value);
    return bytes;
}

pmix_status_t try_get(pmix_rank_t rank, const char *key, const pmix_info_t *info, size_t ninfo)
{
    pmix_proc_t proc = proc_of(rank);
    pmix_value_t *value = NULL;
    pmix_status_t status = PMIx_Get(&proc, key, info, ninfo, &value);
    if (status == PMIX_SUCCESS && value)
        PMIX_VALUE_RELEASE(value);
    return status;
}

void fence_of(const pmix_proc_t *procs, size_t nprocs, bool collect)
{
    pmix_info_t info;
    PMIX_INFO_LOAD(&info, PMIX_COLLECT_DATA, &collect, PMIX_BOOL);
    CHECK_OK(PMIx_Fence(procs, nprocs, &info, 1), collect ? "fence with data" : "fence");
    PMIX_INFO_DESTRUCT(&info);
}

void fence_all(bool collect)
{
    fence_of(&client.all, 1, collect);
}

const uint64_t *nodes_of_ranks(void)
{
    static uint64_t *nodes;
    if (nodes)
        return nodes;
    step("exchange of node ids");
    nodes = calloc(client.size, sizeof *nodes);
    put_u64(PMIX_GLOBAL, get_u64(client.me.rank, PMIX_NODEID), "client.node");
    commit();
    fence_all(true);
    for (pmix_rank_t r = 0; r < client.size; r++)
        nodes[r] = get_u64(r, "client.node");
    return nodes;
}
