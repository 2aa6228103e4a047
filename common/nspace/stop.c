/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * Which processes of a step wait for a debugger.
 */
#include "common/nspace/stop.h"

#include "common/nspace/library.h"
#include "common/util/log.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TARGET "target:"

static const char *const names[] = {[STOP_IN_INIT] = "stop-in-init",
                                    [STOP_IN_APP] = "stop-in-app",
                                    [STOP_ON_EXEC] = "stop-on-exec"};

static int bad(const char *text, struct err *err)
{
    char shown[64];
    snprintf(shown, sizeof shown, "%s", text);
    log_mask(shown);
    return err_set(err,
                   BOOT_DEBUG_ENV
                   ": found \"%s\"; give stop-in-init or stop-in-app, and with it, "
                   "if one process alone is to stop, its rank, for example " BOOT_DEBUG_ENV
                   "=stop-in-init:0",
                   shown);
}

bool stop_target(const struct boot *boot, char *nspace, uint32_t *rank)
{
    const char *text = boot_setting(boot, BOOT_DEBUG);
    char *end;
    if (text == NULL || strncmp(text, TARGET, strlen(TARGET)) != 0)
        return false;
    text += strlen(TARGET);
    *rank = STOP_ALL;
    end = (char *)text + 1;
    if (text[0] != '*') {
        unsigned long n = strtoul(text, &end, 10);
        if (!isdigit((unsigned char)text[0]) || n >= STOP_ALL)
            return false;
        *rank = (uint32_t)n;
    }
    size_t len = *end == ' ' ? strlen(end + 1) : 0;
    if (len == 0 || len >= STOP_NSPACE_SIZE)
        return false;
    memcpy(nspace, end + 1, len + 1);
    return true;
}

void stop_put_target(char *text, const char *nspace, uint32_t rank)
{
    if (rank == STOP_ALL)
        snprintf(text, STOP_TEXT_SIZE, TARGET "* %s", nspace);
    else
        snprintf(text, STOP_TEXT_SIZE, TARGET "%u %s", rank, nspace);
}

int stop_read(struct stop *stop, const struct boot *boot, struct err *err)
{
    const char *text = boot_setting(boot, BOOT_DEBUG);
    char nspace[STOP_NSPACE_SIZE];
    *stop = (struct stop){.rank = STOP_ALL};
    if (text == NULL || stop_target(boot, nspace, &(uint32_t){0}))
        return 0;
    size_t len = strcspn(text, ":");
    for (enum stop_where where = STOP_IN_INIT; where <= STOP_ON_EXEC; where++)
        if (strlen(names[where]) == len && memcmp(text, names[where], len) == 0)
            stop->where = where;
    if (stop->where == STOP_NOWHERE)
        return bad(text, err);
    if (stop->where == STOP_ON_EXEC && !boot_parent(boot, nspace, &(uint32_t){0}))
        return err_set(err,
                       BOOT_DEBUG_ENV ": stop-on-exec is for processes that PMIx_Spawn starts "
                                      "(PMIX_DEBUG_STOP_ON_EXEC); give stop-in-init here, or start "
                                      "the %s under a debugger that uses MPIR",
                       log_unit());
    if (text[len] == '\0')
        return 0;
    char *end;
    unsigned long rank = strtoul(text + len + 1, &end, 10);
    if (!isdigit((unsigned char)text[len + 1]) || *end != '\0')
        return bad(text, err);
    if (rank >= boot->ntasks)
        return err_set(err, BOOT_DEBUG_ENV ": there is no rank %lu among the %u tasks of the %s",
                       rank, boot->ntasks, log_unit());
    stop->rank = (uint32_t)rank;
    return 0;
}

int stop_judge(const struct stop *stop, uint32_t library, struct err *err)
{
    char release[LIBRARY_TEXT_SIZE];
    if (stop->where != STOP_IN_INIT || stop->rank == STOP_ALL ||
        library_has(library, LIBRARY_STOPS_RANKS))
        return 0;
    return err_set(err,
                   "to stop one rank alone in PMIx_Init %s; this is libpmix %s, which would "
                   "stop all",
                   library_advice(LIBRARY_STOPS_RANKS), library_text(library, release));
}

const char *stop_text(const struct stop *stop, char *text)
{
    if (stop->where == STOP_NOWHERE)
        return NULL;
    if (stop->rank == STOP_ALL)
        snprintf(text, STOP_TEXT_SIZE, "%s", names[stop->where]);
    else
        snprintf(text, STOP_TEXT_SIZE, "%s:%u", names[stop->where], stop->rank);
    return text;
}
