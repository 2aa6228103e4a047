/* SPDX-License-Identifier: BSD-3-Clause */
/* The release of the Flux that loads the broker module and the shell's plugin. */
#include "plugins/flux/release.h"

#include "shims/flux/flux_abi.h"

enum { OLDEST_MAJOR = 0, OLDEST_MINOR = 83 };

int release_check(struct err *err)
{
    int major, minor, patch;
    flux_core_version(&major, &minor, &patch);
    if (major > OLDEST_MAJOR || (major == OLDEST_MAJOR && minor >= OLDEST_MINOR))
        return 0;
    return err_set(err, "this is Flux %d.%d.%d, and muster needs %d.%d or newer: upgrade flux-core",
                   major, minor, patch, OLDEST_MAJOR, OLDEST_MINOR);
}
