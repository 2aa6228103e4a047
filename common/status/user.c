/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * MUSTER_CONF counts for users alone: root believes no variable.
 */
#include "common/status/user.h"

#include <pwd.h>
#include <stdlib.h>
#include <unistd.h>

bool user_read(const char *text, uid_t *uid)
{
    const struct passwd *user = getpwnam(text);
    char *end;
    unsigned long number = user != NULL ? user->pw_uid : strtoul(text, &end, 10);
    if (user == NULL && (text[0] < '0' || text[0] > '9' || *end != '\0' || number >= (uid_t)-1))
        return false;
    *uid = (uid_t)number;
    return true;
}

const char *user_dir(char tmpdir[static CONF_PATH_SIZE], struct err *err)
{
    const char *path = geteuid() != 0 ? getenv("MUSTER_CONF") : NULL;
    if (conf_file_tmpdir(path != NULL ? path : MUSTER_CONF_PATH, path != NULL ? getuid() : 0,
                         tmpdir, err) != 0)
        return NULL;
    return tmpdir[0] != '\0' ? tmpdir : "/tmp";
}
