/* SPDX-License-Identifier: BSD-3-Clause */
/* Slurm's functions for credentials, and a table in munged's place. */
#include "plugins/slurm/test_munge.h"

#include "common/util/test_cmocka.h"
#include "shims/slurm/slurm_abi.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { CREDENTIALS = 255 /* a byte has their number */, DATA_MAX = 1024 };

struct munge munge;

static struct {
    uid_t uid;
    size_t len;
    char data[DATA_MAX];
    bool used;
} credentials[CREDENTIALS];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* of the credentials */

void *slurm_abi_auth_create(int index, char *info, uid_t reader, void *data, int len)
{
    (void)index;
    (void)info;
    assert_int_equal(reader, munge.reader != 0 ? munge.reader : getuid());
    void (*during)(void) = munge.while_asked;
    if (during != NULL)
        during();
    pthread_mutex_lock(&lock);
    assert_true(munge.made < CREDENTIALS && len <= DATA_MAX);
    unsigned i = munge.made++;
    memcpy(credentials[i].data, data, (size_t)len);
    credentials[i].len = (size_t)len;
    credentials[i].uid = munge.writer;
    credentials[i].used = false;
    pthread_mutex_unlock(&lock);
    return (void *)(uintptr_t)(i + 1);
}

void slurm_abi_auth_destroy(void *cred)
{
    (void)cred;
}

int slurm_abi_auth_pack(void *cred, struct slurm_abi_buffer *buffer, uint16_t protocol)
{
    assert_int_equal(protocol, PROTOCOL);
    buffer->head[buffer->processed++] = (char)(uintptr_t)cred;
    return SLURM_ABI_SUCCESS;
}

void *slurm_abi_auth_unpack(struct slurm_abi_buffer *buffer, uint16_t protocol)
{
    assert_int_equal(protocol, PROTOCOL);
    unsigned number = (unsigned char)buffer->head[0];
    return number > 0 && number <= munge.made ? (void *)(uintptr_t)number : NULL;
}

int slurm_abi_auth_verify(void *cred, char *info)
{
    void (*during)(void) = munge.while_verified;
    if (during != NULL)
        during();
    unsigned i = (unsigned)(uintptr_t)cred - 1;
    (void)info;
    munge.verified++;
    pthread_mutex_lock(&lock);
    bool used = credentials[i].used;
    credentials[i].used = true;
    pthread_mutex_unlock(&lock);
    return used && !munge.takes_twice ? SLURM_ABI_ERROR : SLURM_ABI_SUCCESS;
}

uid_t slurm_abi_auth_get_uid(void *cred)
{
    pthread_mutex_lock(&lock);
    uid_t uid = credentials[(uintptr_t)cred - 1].uid;
    pthread_mutex_unlock(&lock);
    return uid;
}

int slurm_abi_auth_get_data(void *cred, char **data, uint32_t *len)
{
    unsigned i = (unsigned)(uintptr_t)cred - 1;
    pthread_mutex_lock(&lock);
    *len = (uint32_t)credentials[i].len;
    *data = malloc(*len + 1);
    memcpy(*data, credentials[i].data, *len);
    pthread_mutex_unlock(&lock);
    return SLURM_ABI_SUCCESS;
}

struct slurm_abi_buffer *slurm_abi_buffer_new(uint32_t size)
{
    struct slurm_abi_buffer *buffer = calloc(1, sizeof *buffer);
    buffer->head = calloc(1, size + 1);
    buffer->size = size;
    return buffer;
}

void slurm_abi_buffer_free(struct slurm_abi_buffer *buffer)
{
    free(buffer->head);
    free(buffer);
}

void slurm_abi_xfree(void **p)
{
    free(*p);
    *p = NULL;
}
