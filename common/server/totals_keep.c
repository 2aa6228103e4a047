/* SPDX-License-Identifier: BSD-3-Clause */
/* The counts of a step, in a file. It has the form of an answer to "all" (docs/wire.md), with one
 * state for all servers; so it is a few KB, whatever the step has done. */
#include "common/server/totals_keep.h"

#include "common/server/tallied.h"
#include "common/server/user_file.h"
#include "common/status/fields.h"
#include "common/util/clock.h"
#include "common/util/log.h"
#include "common/util/text.h"
#include "include/muster.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { KEPT_MAX = 100, KEPT_DAYS = 30 };

static json_object *counts(const struct server *server, const struct totals *totals)
{
    json_object *o = json_object_new_object(), *nodes = json_object_new_array(),
                *one = field_add(nodes);
    double s = (double)(now_ms() - server->started) / 1000;
    field_put_text(one, "step", server->boot.label);
    field_put_text(one, "unit", log_unit());
    json_object_object_add(one, "uptime", json_object_new_double(s));
    field_put_number(one, "servers", totals->servers);
    json_object_object_add(one, "collectives", tallied_json(server, &totals->tally));
    field_put_number(o, "version", MUSTER_JSON_VERSION);
    json_object_object_add(o, "ended", json_object_new_boolean(true));
    json_object_object_add(o, "nodes", nodes);
    json_object_object_add(o, "silent", json_object_new_array());
    field_put_number(o, "silent_servers", server->boot.nnodes - totals->servers);
    return o;
}

/* @return 0, or -1 with errno set @param fd closed */
static int write_counts(int fd, const struct server *server, const struct totals *totals)
{
    FILE *out = fdopen(fd, "w");
    if (out == NULL) {
        close(fd);
        return -1;
    }
    json_object *o = counts(server, totals);
    bool bad = fprintf(out, "%s\n", field_line(o)) < 0;
    json_object_put(o);
    bad |= fclose(out) != 0;
    return bad ? -1 : 0;
}

/* The file has its name when it is whole, and takes the place of one that an earlier step of the
 * same number has left. What a server that was killed leaves goes with the others. */
static int keep_at_home(const struct server *server, const struct totals *totals, const char *home)
{
    char dir[PATH_MAX], part[512], name[512];
    const char *unique = strrchr(server->boot.tmpdir, '/');
    snprintf(part, sizeof part, "%s.stats.part", unique != NULL ? unique + 1 : server->boot.tmpdir);
    snprintf(name, sizeof name, "muster.%s.stats.json", server->boot.label);
    int at = user_dir_make(home, BOOT_KEPT, dir, sizeof dir);
    int fd = at >= 0 ? user_file_make(dir, part) : -1, rc = -1;
    if (fd >= 0 && write_counts(fd, server, totals) == 0)
        rc = renameat(at, part, at, name);
    int saved = errno;
    if (fd >= 0 && rc != 0)
        unlinkat(at, part, 0);
    if (at >= 0)
        user_dir_thin(at, "muster.*.stats.*", KEPT_MAX, KEPT_DAYS);
    errno = saved;
    return rc;
}

/* Without a directory of the user's choice. */
static void keep(const struct server *server, const struct totals *totals, char *text, size_t cap)
{
    const char *home = boot_setting(&server->boot, BOOT_HOME);
    if (home == NULL || home[0] != '/')
        snprintf(
            text, cap,
            "no counts are kept: HOME is no absolute path; set it, or give " BOOT_STATS_DIR_ENV);
    else if (keep_at_home(server, totals, home) == 0)
        snprintf(text, cap, "counts are kept: muster-status --stats %s", server->boot.label);
    else
        snprintf(text, cap,
                 "no counts are kept: %.300s/" BOOT_KEPT ": %s; give " BOOT_STATS_DIR_ENV, home,
                 strerror(errno));
}

static void keep_in(const char *dir, const struct server *server, const struct totals *totals,
                    char *text, size_t cap)
{
    char name[512];
    snprintf(name, sizeof name, "muster.%s.stats.json", server->boot.label);
    int fd = user_file_make(dir, name);
    if (fd < 0)
        snprintf(text, cap, BOOT_STATS_DIR_ENV ": no counts are kept: %.300s/%.300s: %s%s", dir,
                 name, strerror(errno),
                 errno == EEXIST ? "; remove it, or give another directory"
                                 : "; give a directory of your own that the first node has");
    else if (write_counts(fd, server, totals) != 0)
        snprintf(text, cap, BOOT_STATS_DIR_ENV ": %.300s/%.300s is not whole: %s", dir, name,
                 strerror(errno));
    else
        snprintf(text, cap, "counts are kept: muster-status --stats %.300s/%.300s", dir, name);
}

void totals_keep(struct server *server, const struct totals *totals, char *buf, size_t cap)
{
    const char *dir = boot_setting(&server->boot, BOOT_STATS_DIR);
    char text[1500];
    if (dir != NULL)
        keep_in(dir, server, totals, text, sizeof text);
    else if (server->conf.stats == CONF_STATS_KEEP)
        keep(server, totals, text, sizeof text);
    else
        return;
    text_fit(buf, cap, buf[0] != '\0' ? "; " : "");
    text_fit(buf, cap, text);
}
