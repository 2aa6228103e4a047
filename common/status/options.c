/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * MUSTER_CONF counts for users alone: root believes no variable.
 */
#include "common/status/options.h"

#include "common/util/log.h"
#include "muster_version.h"

#include <pwd.h>
#include <stdlib.h>
#include <unistd.h>

enum { ROWS_MAX = 16, SHARED = 4, EXIT_USAGE = 2 };

/* Reads a user's name, or number on a node that does not know the name. */
static bool read_user(const char *text, uid_t *uid)
{
    const struct passwd *user = getpwnam(text);
    char *end;
    unsigned long number = user != NULL ? user->pw_uid : strtoul(text, &end, 10);
    if (user == NULL && (text[0] < '0' || text[0] > '9' || *end != '\0' || number >= (uid_t)-1))
        return false;
    *uid = (uid_t)number;
    return true;
}

static int take_row(const struct options_tool *tool, const struct options_row *row)
{
    if (optarg != NULL && row->fits != NULL && !row->fits(optarg)) {
        fprintf(stderr, "%s: --%s: %s is %s\n", tool->name, row->name, optarg, row->else_is);
        return 1 + EXIT_USAGE;
    }
    if (row->given != NULL)
        *row->given = true;
    if (row->text != NULL)
        *row->text = optarg;
    return 0;
}

/* @param c the option: 'u', 'd', 'V' and 'h' are of all tools, from 256 on it is a row */
static int take(const struct options_tool *tool, int c, struct find *find)
{
    switch (c) {
    case 'u':
        if (read_user(optarg, &find->uid))
            return 0;
        fprintf(stderr, "%s: --user: there is no user %s\n", tool->name, optarg);
        return 1 + EXIT_USAGE;
    case 'd':
        find->dir = optarg;
        find->only = true;
        return 0;
    case 'V':
        printf("%s " MUSTER_VERSION "\n", tool->name);
        return 1;
    case 'h':
        tool->usage(stdout);
        return 1;
    default:
        return c < 256 ? options_refuse(tool) : take_row(tool, &tool->rows[c - 256]);
    }
}

int options_read(const struct options_tool *tool, int argc, char **argv, struct find *find)
{
    struct option options[ROWS_MAX] = {{"user", required_argument, NULL, 'u'},
                                       {"dir", required_argument, NULL, 'd'},
                                       {"version", no_argument, NULL, 'V'},
                                       {"help", no_argument, NULL, 'h'}};
    char letters[4];
    int c, done = 0;
    for (int i = 0; tool->rows[i].name != NULL && i < ROWS_MAX - SHARED - 1; i++)
        options[SHARED + i] =
            (struct option){tool->rows[i].name, tool->rows[i].argument, NULL, 256 + i};
    snprintf(letters, sizeof letters, "%sh", tool->order);
    find->uid = geteuid() == 0 ? (uid_t)-1 : geteuid();
    while (done == 0 && (c = getopt_long(argc, argv, letters, options, NULL)) != -1)
        done = take(tool, c, find);
    return done;
}

int options_refuse(const struct options_tool *tool)
{
    tool->usage(stderr);
    return 1 + EXIT_USAGE;
}

int options_complete(struct find *find, struct options_room *room, struct err *err)
{
    const char *path = geteuid() != 0 ? getenv("MUSTER_CONF") : NULL;
    if (find->step != NULL && find_job(find, find->step, room->step, sizeof room->step))
        find->step = room->step;
    if (find->dir != NULL)
        return 0;
    find->dir = room->tmpdir;
    if (conf_file_tmpdir(path != NULL ? path : MUSTER_CONF_PATH, path != NULL ? getuid() : 0,
                         room->tmpdir, err) != 0)
        return -1;
    if (room->tmpdir[0] == '\0')
        find->dir = "/tmp";
    return 0;
}

int options_fail(const char *tool, struct err *err)
{
    log_mask(err->text);
    fprintf(stderr, "%s: %s\n", tool, err->text);
    return 1;
}
