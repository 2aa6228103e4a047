/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * Slurm's mpi.conf, in which muster takes no settings.
 */
#include "plugins/slurm/mpi_conf.h"

#include "shims/slurm/slurm_abi.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define OURS "muster"

/* A key of ours in one line, "A=1 MusterB=2 # MusterC=3". @return its length, 0: there is none */
static size_t find_key(const char *line, const char **key)
{
    size_t len;
    for (const char *p = line; *p != '\0' && *p != '#'; p += len) {
        p += strspn(p, " \t\r\n");
        len = strcspn(p, " \t\r\n=#");
        if (strncasecmp(p, OURS, strlen(OURS)) == 0 && p[len + strspn(p + len, " \t")] == '=') {
            *key = p;
            return len;
        }
        len = strcspn(p, " \t\r\n#"); /* its value, too */
    }
    return 0;
}

int mpi_conf_check(struct err *err)
{
    char *path = slurm_abi_extra_conf_path("mpi.conf"), *line = NULL;
    FILE *in = path ? fopen(path, "re") : NULL; /* Slurm itself says when it cannot be read */
    const char *key;
    unsigned at = 0;
    size_t cap = 0, len;
    int rc = 0;
    while (in && rc == 0 && getline(&line, &cap, in) >= 0) {
        at++;
        len = find_key(line, &key);
        if (len > 0)
            rc = err_set(err,
                         "%s line %u: key \"%.*s\": muster takes no settings in mpi.conf; move it "
                         "to " MUSTER_CONF_PATH,
                         path, at, len > 64 ? 64 : (int)len, key);
    }
    if (in)
        fclose(in);
    free(line);
    slurm_abi_xfree((void **)&path);
    return rc;
}
