/** @file
 * What slurmstepd's plugin has to know of its step, from sources that the user cannot influence.
 */
#ifndef MUSTER_SLURM_FACTS_H
#define MUSTER_SLURM_FACTS_H

#include "common/server/boot.h"
#include "common/util/err.h"
#include "plugins/slurm/identity.h"

/** A step on this node. */
struct facts {
    char *node;            /**< Slurm's name of this node */
    char *spool;           /**< slurmd's spool directory here */
    char *tmpfs;           /**< where temporary directories are made */
    const char *tmpfs_key; /**< the setting that it is from, "TmpFS" or "tmpdir" */
    uint32_t job;          /**< job id; a heterogeneous job's component has its own */
    uint32_t step;         /**< step id */
    struct identity user;  /**< whose step it is */
    struct boot boot;      /**< for the server: all but tmpdir and the setting "socket" */
};

/**
 * Finds out all of it; takes two round trips to slurmctld.
 * @param facts filled in; facts_free() it also after an error
 * @return 0, or -1 with the reason in @p err
 * @thread slurmstepd's main thread, in prefork
 */
int facts_read(struct facts *facts, struct err *err);

void facts_free(struct facts *facts);

#endif
