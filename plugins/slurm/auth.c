/* SPDX-License-Identifier: BSD-3-Clause */
/* Credentials of the cluster's own authentication, as Slurm's daemons use them. */
#include "plugins/slurm/auth.h"

#include "shims/slurm/slurm_abi.h"

#include <stdlib.h>
#include <string.h>

enum { BUFFER_BYTES = 1024 /* at first; Slurm's buffers grow */ };

bool auth_write(struct wire_out *out, uid_t reader, const void *payload, size_t len)
{
    char *info = slurm_abi_auth_info(); /* where munged's socket is */
    void *cred = slurm_abi_auth_create(SLURM_ABI_AUTH_DEFAULT, info, reader,
                                       (void *)(uintptr_t)payload, (int)len);
    free(info);
    struct slurm_abi_buffer *packed = cred != NULL ? slurm_abi_buffer_new(BUFFER_BYTES) : NULL;
    bool made = packed != NULL &&
                slurm_abi_auth_pack(cred, packed, slurm_abi_protocol()) == SLURM_ABI_SUCCESS;
    if (made) {
        wire_put_u32(out, slurm_abi_protocol());
        wire_put_block(out, packed->head, packed->processed);
    }
    if (packed != NULL)
        slurm_abi_buffer_free(packed);
    if (cred != NULL)
        slurm_abi_auth_destroy(cred);
    return made && !out->failed;
}

static bool holds(void *cred, const void *payload, size_t len)
{
    char *data = NULL;
    uint32_t found = 0;
    bool same = slurm_abi_auth_get_data(cred, &data, &found) == SLURM_ABI_SUCCESS && found == len &&
                data != NULL && memcmp(data, payload, len) == 0;
    slurm_abi_xfree((void **)&data);
    return same;
}

bool auth_read(struct wire_in *in, uid_t writer, const void *payload, size_t len)
{
    uint32_t protocol = wire_get_u32(in);
    size_t size;
    const void *block = wire_get_block(in, &size);
    struct slurm_abi_buffer *packed;
    if (in->bad || size == 0 || protocol > UINT16_MAX ||
        (packed = slurm_abi_buffer_new((uint32_t)size)) == NULL)
        return false;
    memcpy(packed->head, block, size);
    void *cred = slurm_abi_auth_unpack(packed, (uint16_t)protocol);
    bool good = false;
    if (cred != NULL) {
        char *info = slurm_abi_auth_info();
        good = slurm_abi_auth_verify(cred, info) == SLURM_ABI_SUCCESS &&
               slurm_abi_auth_get_uid(cred) == writer && holds(cred, payload, len);
        free(info);
        slurm_abi_auth_destroy(cred);
    }
    slurm_abi_buffer_free(packed);
    return good;
}
