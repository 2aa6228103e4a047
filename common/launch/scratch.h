/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * The server's temporary directory, made and removed by the plugin.
 * @thread any, unless said
 */
#pragma once

#include "common/launch/identity.h"
#include "common/util/err.h"

#include <stdbool.h>

/** `<parent>/muster.<label>.<random>`: mode 0700, the job's user's. */
struct scratch {
    char *path;      /**< owned; NULL: there is none */
    const char *key; /**< the setting that says where it is, for messages; borrowed */
    int parent;      /**< the directory that it is in, open */
    int dir; /**< the directory itself, open, since its name is the user's to change; locked */
};

/** Makes this step's directory, and has a process of its own remove those of steps that ended
 * without us.
 * @param key the setting that @p tmpfs is from, for messages
 * @param siblings NULL: all steps have theirs in @p tmpfs. Otherwise @p tmpfs is this step's alone,
 * and those of others are beside it; their names begin like that
 * @param label the step's, as in boot.h
 * @return 0, or -1 with the reason in @p err and nothing left behind
 * @thread the launcher's main thread */
int scratch_make(struct scratch *scratch, const char *key, const char *tmpfs, const char *siblings,
                 const char *label, const struct identity *user, struct err *err);

/** Whether its path leads there for the calling process too, which may be in another mount
 * namespace than the launcher. One that has been removed already counts as seen. */
bool scratch_is_seen(const struct scratch *scratch);

/** Whether a server may have died for want of room where it is; then @p buf says it: "TmpFS=/tmp
 * has 12 KiB free". */
bool scratch_lacks_room(const struct scratch *scratch, char *buf, size_t cap);

/** Removes it with all that the server left in it; takes at most seconds. */
void scratch_remove(struct scratch *scratch, const struct identity *user);
