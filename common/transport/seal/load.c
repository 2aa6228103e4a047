/* SPDX-License-Identifier: BSD-3-Clause */
/* Loads seal.so; see load.h. */
#include "common/transport/seal/load.h"

#include <dlfcn.h>

#ifndef MUSTER_SEAL_PATH
#define MUSTER_SEAL_PATH MUSTER_BACKEND_DIR "/seal.so"
#endif

const struct seal_ops *seal_load(struct err *err)
{
    void *module = dlopen(MUSTER_SEAL_PATH, RTLD_NOW | RTLD_LOCAL);
    const struct seal_ops *ops = module != NULL ? dlsym(module, "muster_seal") : NULL;
    if (ops == NULL)
        err_set(err, "connections cannot be encrypted: %s", dlerror());
    return ops;
}
