/* SPDX-License-Identifier: BSD-3-Clause */
/* What munged does in musterrun. */
#include "shims/slurm/standin/credentials.h"

#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <string.h>
#include <sys/random.h>

enum { KEPT = 64 /* the oldest gives way */ };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* guards all below */
static struct {
    unsigned char token[STANDIN_TOKEN];
    uid_t uid, reader;
    uint32_t len;
    char data[STANDIN_CREDENTIAL_MAX];
    bool there;
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
    pthread_mutex_unlock(&lock);
    return 0;
}

int credentials_read(uid_t reader, const unsigned char *token, uint32_t *uid, void *data,
                     uint32_t *len)
{
    int rc = EPERM;
    pthread_mutex_lock(&lock);
    for (unsigned i = 0; i < KEPT && rc != 0; i++) {
        if (!kept[i].there || kept[i].reader != reader ||
            memcmp(kept[i].token, token, STANDIN_TOKEN) != 0)
            continue;
        kept[i].there = false;
        *uid = kept[i].uid;
        *len = kept[i].len;
        memcpy(data, kept[i].data, kept[i].len);
        rc = 0;
    }
    pthread_mutex_unlock(&lock);
    return rc;
}
