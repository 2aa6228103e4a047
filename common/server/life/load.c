/* SPDX-License-Identifier: BSD-3-Clause */
/* What the server is put together from at run time: libpmix, and the back end for the RM. */
#include "common/server/life/life.h"

#include "common/nspace/library.h"

#include <dlfcn.h>
#include <pmix.h>
#include <stdio.h>
#include <string.h>

/* The back end's name comes from the launcher, which root trusts as little as we need to. */
static int backend_path(const struct boot *boot, char *path, size_t cap, struct err *err)
{
    const char *name = boot_setting(boot, "backend");
    if (name == NULL || name[0] == '\0' ||
        strspn(name, "abcdefghijklmnopqrstuvwxyz") != strlen(name))
        return err_set(err, "the boot message names no back end");
    snprintf(path, cap, MUSTER_BACKEND_DIR "/rm_%s.so", name);
    return 0;
}

static int load_backend(struct server *server, struct err *err)
{
    const char *preload = boot_setting(&server->boot, "preload");
    char path[4096];
    if (backend_path(&server->boot, path, sizeof path, err) != 0)
        return -1;
    /* GLOBAL: the RM's own plugins are not linked with its library. */
    if (preload != NULL && dlopen(preload, RTLD_NOW | RTLD_GLOBAL) == NULL)
        return err_set(err, "%s", dlerror());
    void *object = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (object == NULL)
        return err_set(err, "the back end does not load: %s; reinstall muster", dlerror());
    server->rm_ops = dlsym(object, RM_SYMBOL);
    if (server->rm_ops == NULL)
        return err_set(err, "%s is no back end of muster: it has no symbol %s", path, RM_SYMBOL);
    return 0;
}

int server_load(struct server *server, struct err *err)
{
    return library_read(PMIx_Get_version(), &server->library, err) != 0 ||
                   load_backend(server, err) != 0
               ? -1
               : 0;
}
