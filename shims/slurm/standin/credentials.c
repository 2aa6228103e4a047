/* SPDX-License-Identifier: BSD-3-Clause */
/* What munged does in musterrun. */
#include "shims/slurm/standin/credentials.h"

#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <string.h>
#include <sys/random.h>

enum { KEPT = 1024, /* the oldest gives way */ NODES = 1024 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* guards all below */
static struct {
    unsigned char token[STANDIN_TOKEN];
    uid_t uid, reader;
    uint32_t len;
    char data[STANDIN_CREDENTIAL_MAX];
    bool there;
    unsigned char read[NODES / 8]; /* a bit for each node */
} kept[KEPT];
static unsigned next;

int credentials_make(uid_t uid, uid_t reader, const void *data, uint32_t len, unsigned char *token)
{
    if (len > STANDIN_CREDENTIAL_MAX)
        return EMSGSIZE;
    if (getrandom(token, STANDIN_TOKEN, 0) != STANDIN_TOKEN)
        return errno;
    pthread_mutex_lock(&lock);
    unsigned i = next++ % KEPT;
    memcpy(kept[i].token, token, STANDIN_TOKEN);
    memcpy(kept[i].data, data, len);
    kept[i].uid = uid;
    kept[i].reader = reader;
    kept[i].len = len;
    kept[i].there = true;
    memset(kept[i].read, 0, sizeof kept[i].read);
    pthread_mutex_unlock(&lock);
    return 0;
}

int credentials_read(uid_t reader, uint32_t node, const unsigned char *token, uint32_t *uid,
                     void *data, uint32_t *len)
{
    unsigned char bit = (unsigned char)(1u << node % 8);
    int rc = EPERM;
    pthread_mutex_lock(&lock);
    for (unsigned i = 0; i < KEPT && rc != 0; i++) {
        unsigned char *read = &kept[i].read[node % NODES / 8];
        if (!kept[i].there || (*read & bit) || kept[i].reader != reader ||
            memcmp(kept[i].token, token, STANDIN_TOKEN) != 0)
            continue;
        *read |= bit;
        *uid = kept[i].uid;
        *len = kept[i].len;
        memcpy(data, kept[i].data, kept[i].len);
        rc = 0;
    }
    pthread_mutex_unlock(&lock);
    return rc;
}
