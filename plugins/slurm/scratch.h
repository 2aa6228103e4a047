/** @file
 * The server's temporary directory, made and removed by the plugin.
 */
#ifndef MUSTER_SLURM_SCRATCH_H
#define MUSTER_SLURM_SCRATCH_H

#include "common/util/err.h"
#include "plugins/slurm/identity.h"

/** `<TmpFS or tmpdir>/muster.<job>.<step>.<random>`: mode 0700, the job's user's. */
struct scratch {
    char *path; /**< owned; NULL: there is none */
    int parent; /**< the directory that it is in, open */
    int dir;    /**< the directory itself, open, since its name is the user's to change; locked */
};

/**
 * Removes the directories of steps that ended without us, and makes this step's.
 * @param key   the setting that @p tmpfs is from, for messages
 * @param label "<job>.<step>"
 * @return 0, or -1 with the reason in @p err and nothing left behind
 * @thread slurmstepd's main thread
 */
int scratch_make(struct scratch *scratch, const char *key, const char *tmpfs, const char *label,
                 const struct identity *user, struct err *err);

/** Removes it with all that the server left in it; takes at most seconds. */
void scratch_remove(struct scratch *scratch, const struct identity *user);

#endif
