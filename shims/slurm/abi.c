/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * The functions of slurm_abi.h that differ between Slurm's releases, by the release that runs.
 *
 * slurm_api_version() tells it in every process. A process of an unknown release comes no further
 * than slurm_release(): Slurm does not use a plugin that has no version (abi_version.c), and
 * muster-server's back end does not open.
 */
#include "shims/slurm/release.h"

#include <errno.h>
#include <stdlib.h>

/* SLURM_RELEASES is "X(slurm_release_1605) X(slurm_release_1702) …", by meson.build. */
#define X(name) extern const struct slurm_release name;
SLURM_RELEASES
#undef X
#define X(name) &name,
static const struct slurm_release *const known[] = {SLURM_RELEASES};
#undef X

const struct slurm_release *slurm_release_known(unsigned i)
{
    return i < sizeof(known) / sizeof(*known) ? known[i] : NULL;
}

const struct slurm_release *slurm_release(void)
{
    long api = slurm_abi_api_version() >> 16;
    for (unsigned i = 0; i < sizeof(known) / sizeof(*known); i++)
        if (known[i]->api == api)
            return known[i];
    return NULL;
}

uint16_t slurm_abi_protocol(void)
{
    return (uint16_t)(slurm_release()->api << 8);
}

struct slurm_abi_step_id slurm_abi_step_of(const struct slurm_abi_step_info *info)
{
    return slurm_release()->step_of(info);
}

int slurm_abi_stepd_connect(const char *directory, const char *nodename,
                            const struct slurm_abi_step_id *step_id, uint16_t *protocol_version)
{
    return slurm_release()->stepd_connect(directory, nodename, step_id, protocol_version);
}

char *slurm_abi_cluster_name(void)
{
    return slurm_release()->cluster_name();
}

char *slurm_abi_auth_info(void)
{
    return slurm_release()->auth_info();
}

void slurm_abi_free_conf(void *conf)
{
    slurm_release()->free_conf(conf);
}

/* What a structure of ours is in. @return NULL with errno set */
static void *make(size_t size)
{
    void *made = calloc(1, size);
    if (!made)
        errno = ENOMEM;
    return made;
}

/* Frees it when it was not filled in. @return it, or NULL with errno as it was */
static void *filled(void *made, int rc)
{
    int saved = errno;
    if (rc == 0)
        return made;
    free(made);
    errno = saved;
    return NULL;
}

struct slurm_abi_step_layout *slurm_abi_step_layout_get(const struct slurm_abi_step_id *step_id)
{
    struct slurm_abi_step_layout *layout = make(sizeof(*layout));
    return layout ? filled(layout, slurm_release()->layout_get(step_id, layout)) : NULL;
}

void slurm_abi_step_layout_free(struct slurm_abi_step_layout *layout)
{
    slurm_release()->layout_free(layout->raw);
    free(layout);
}

int slurm_abi_get_step(uint32_t job, uint32_t step, struct slurm_abi_step_records **records)
{
    *records = make(sizeof(**records));
    if (*records)
        *records = filled(*records, slurm_release()->get_step(job, step, *records));
    return *records ? SLURM_ABI_SUCCESS : SLURM_ABI_ERROR;
}

void slurm_abi_free_steps(struct slurm_abi_step_records *records)
{
    if (records->raw)
        slurm_release()->steps_free(records->raw);
    free(records->steps);
    free(records);
}

int slurm_abi_allocation_lookup(uint32_t job, struct slurm_abi_allocation **allocation)
{
    *allocation = make(sizeof(**allocation));
    if (*allocation)
        *allocation = filled(*allocation, slurm_release()->allocation_lookup(job, *allocation));
    return *allocation ? SLURM_ABI_SUCCESS : SLURM_ABI_ERROR;
}

void slurm_abi_free_allocation(struct slurm_abi_allocation *allocation)
{
    slurm_release()->allocation_free(allocation->raw);
    free(allocation);
}

long slurm_abi_time_left(uint32_t job)
{
    return slurm_release()->time_left(job);
}

int slurm_abi_kill_step(uint32_t job, uint32_t step, uint16_t sig, bool fails)
{
    return slurm_release()->kill_step(job, step, sig, fails);
}
