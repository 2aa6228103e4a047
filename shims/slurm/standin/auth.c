/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * Slurm's credentials and the buffers that these are packed into. musterrun's slurmds play munged
 * (credentials.h): a credential is a number that a slurmd has given out, and can be read once on
 * each node.
 */
#include "shims/slurm/slurm_abi.h"
#include "shims/slurm/standin/slurm_standin.h"

#include <stdlib.h>
#include <string.h>

struct credential {
    unsigned char token[STANDIN_TOKEN];
    uint32_t uid, len;
    char data[STANDIN_CREDENTIAL_MAX];
};

void *slurm_abi_auth_create(int index, char *info, uid_t reader, void *data, int len)
{
    struct credential *cred = calloc(1, sizeof *cred);
    (void)index;
    (void)info;
    if (cred != NULL &&
        (len < 0 || standin_ask_token(reader, data, (uint32_t)len, cred->token) != 0)) {
        free(cred);
        cred = NULL;
    }
    return cred;
}

void slurm_abi_auth_destroy(void *cred)
{
    free(cred);
}

int slurm_abi_auth_pack(void *cred, struct slurm_abi_buffer *buffer, uint16_t protocol)
{
    (void)protocol;
    if (buffer->size - buffer->processed < STANDIN_TOKEN)
        return SLURM_ABI_ERROR;
    memcpy(buffer->head + buffer->processed, ((struct credential *)cred)->token, STANDIN_TOKEN);
    buffer->processed += STANDIN_TOKEN;
    return SLURM_ABI_SUCCESS;
}

void *slurm_abi_auth_unpack(struct slurm_abi_buffer *buffer, uint16_t protocol)
{
    struct credential *cred = NULL;
    (void)protocol;
    if (buffer->size - buffer->processed >= STANDIN_TOKEN &&
        (cred = calloc(1, sizeof *cred)) != NULL)
        memcpy(cred->token, buffer->head + buffer->processed, STANDIN_TOKEN);
    return cred;
}

int slurm_abi_auth_verify(void *cred, char *info)
{
    struct credential *c = cred;
    (void)info;
    return standin_ask_credential(c->token, &c->uid, c->data, &c->len) == 0 ? SLURM_ABI_SUCCESS
                                                                            : SLURM_ABI_ERROR;
}

uid_t slurm_abi_auth_get_uid(void *cred)
{
    return ((struct credential *)cred)->uid;
}

int slurm_abi_auth_get_data(void *cred, char **data, uint32_t *len)
{
    const struct credential *c = cred;
    *len = c->len;
    *data = malloc(c->len + 1);
    if (*data == NULL)
        return SLURM_ABI_ERROR;
    memcpy(*data, c->data, c->len);
    return SLURM_ABI_SUCCESS;
}

struct slurm_abi_buffer *slurm_abi_buffer_new(uint32_t size)
{
    struct slurm_abi_buffer *buffer = calloc(1, sizeof *buffer);
    if (buffer != NULL && (buffer->head = calloc(1, size + 1)) == NULL) {
        free(buffer);
        buffer = NULL;
    }
    if (buffer != NULL)
        buffer->size = size;
    return buffer;
}

void slurm_abi_buffer_free(struct slurm_abi_buffer *buffer)
{
    free(buffer->head);
    free(buffer);
}

uint16_t *slurm_abi_srun_ports(void)
{
    return NULL; /* no SrunPortRange */
}
