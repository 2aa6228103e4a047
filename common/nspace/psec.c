/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * Takes all modules but native out of the list that libpmix hands to its clients.
 */
#include "common/nspace/psec.h"

#include <stdbool.h>
#include <string.h>

#define NAME "PMIX_SECURITY_MODE="
#define NATIVE "native"

/* @param list names with commas between them */
static bool has_native(const char *list)
{
    for (size_t len; *list != '\0'; list += len + (list[len] == ',')) {
        len = strcspn(list, ",");
        if (len == strlen(NATIVE) && strncmp(list, NATIVE, len) == 0)
            return true;
    }
    return false;
}

void psec_choose(char **env)
{
    for (; *env != NULL; env++)
        if (strncmp(*env, NAME, strlen(NAME)) == 0 && has_native(*env + strlen(NAME)))
            memcpy(*env + strlen(NAME), NATIVE, sizeof NATIVE);
}
