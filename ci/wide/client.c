/* SPDX-License-Identifier: BSD-3-Clause */
/* The one client of a wide step. */
#include "ci/wide/wide.h"

#include <pmix.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

int64_t client_now_us(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * (int64_t)1000000 + t.tv_nsec / 1000;
}

static void wait_for_parent(void)
{
    char byte;
    fflush(stdout);
    if (read(0, &byte, 1) != 1)
        _exit(1);
}

static void get(const pmix_proc_t *proc, const char *key)
{
    pmix_value_t *value = NULL;
    int64_t begin = client_now_us();
    pmix_status_t rc = PMIx_Get(proc, key, NULL, 0, &value);
    int64_t took = client_now_us() - begin;
    char *text = rc == PMIX_SUCCESS ? PMIx_Value_string(value) : NULL;
    printf("client get %s of rank %u: %lld us, %s\n", key, proc->rank, (long long)took,
           text != NULL ? text : PMIx_Error_string(rc));
    free(text);
    if (value != NULL)
        PMIX_VALUE_RELEASE(value);
}

int client_main(void)
{
    static const char *const keys[] = {
        PMIX_HOSTNAME, PMIX_NODEID,      PMIX_LOCAL_RANK,    PMIX_NODE_RANK, PMIX_APPNUM,
        PMIX_APP_RANK, PMIX_GLOBAL_RANK, PMIX_REINCARNATION, PMIX_SPAWNED,   PMIX_LOCAL_PEERS};
    pmix_proc_t me, last;
    pmix_value_t *size;
    int64_t begin = client_now_us();
    pmix_status_t rc = PMIx_Init(&me, NULL, 0);
    int64_t init = client_now_us() - begin;
    if (rc != PMIX_SUCCESS) {
        printf("client: PMIx_Init: %s\n", PMIx_Error_string(rc));
        return 1;
    }
    struct memory memory = memory_of(getpid());
    printf("client init %lld us, own %ld KiB, resident %ld KiB\n", (long long)init, memory.own,
           memory.now);
    wait_for_parent();
    PMIX_LOAD_PROCID(&last, me.nspace, PMIX_RANK_WILDCARD);
    if (PMIx_Get(&last, PMIX_JOB_SIZE, NULL, 0, &size) != PMIX_SUCCESS)
        return 1;
    last.rank = size->data.uint32 - 1;
    PMIX_VALUE_RELEASE(size);
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        get(&last, keys[i]);
    wait_for_parent();
    return PMIx_Finalize(NULL, 0) == PMIX_SUCCESS ? 0 : 1;
}
