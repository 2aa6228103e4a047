/* SPDX-License-Identifier: BSD-3-Clause */
/* Where the servers' directories of each resource manager are, for muster-status. */
#include "common/status/place.h"

#include "plugins/slurm/place.h"
#include "shims/standin/place.h"

#ifdef MUSTER_FLUX
#include "plugins/flux/place.h"
#endif

const struct place *const status_places[] = {
#ifdef MUSTER_FLUX
    &flux_place,
#endif
    &slurm_place,
    &standin_place,
    NULL,
};
