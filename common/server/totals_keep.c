/* SPDX-License-Identifier: BSD-3-Clause */
/* The counts of a step, in a file. It has the form of an answer to "all" (docs/wire.md), with one
 * state for all servers; so it is a few KB, whatever the step has done. */
#include "common/server/totals_keep.h"

#include "common/server/tallied.h"
#include "common/server/user_write.h"
#include "common/status/fields.h"
#include "common/util/clock.h"
#include "common/util/log.h"
#include "common/util/text.h"
#include "include/muster.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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

/* @return what the file has, for free() */
static char *write_counts(const struct server *server, const struct totals *totals, size_t *len)
{
    json_object *o = counts(server, totals);
    char *text = text_format("%s\n", field_line(o));
    json_object_put(o);
    *len = strlen(text);
    return text;
}

static const char *reason(int error)
{
    return error == ETIMEDOUT ? "the file system does not answer" : strerror(error);
}

/* It takes the place of one that an earlier step of the same number has left. */
static int keep_at_home(struct server *server, const struct totals *totals, const char *home)
{
    char part[512], name[512];
    size_t len;
    const char *unique = strrchr(server->boot.tmpdir, '/');
    snprintf(part, sizeof part, "%s.stats.part", unique != NULL ? unique + 1 : server->boot.tmpdir);
    snprintf(name, sizeof name, "muster.%s.stats.json", server->boot.label);
    char *data = write_counts(server, totals, &len);
    return user_keep(server, home, part, name, data, len);
}

/* Without a directory of the user's choice. */
static void keep(struct server *server, const struct totals *totals, char *text, size_t cap)
{
    const char *home = boot_setting(&server->boot, BOOT_HOME);
    int error;
    if (home == NULL || home[0] != '/')
        snprintf(
            text, cap,
            "no counts are kept: HOME is no absolute path; set it, or give " BOOT_STATS_DIR_ENV);
    else if ((error = keep_at_home(server, totals, home)) == 0)
        snprintf(text, cap, "counts are kept: muster-status --stats %s", server->boot.label);
    else
        snprintf(text, cap,
                 "no counts are kept: %.300s/" BOOT_KEPT ": %s; give " BOOT_STATS_DIR_ENV, home,
                 reason(error));
}

static void keep_in(const char *dir, struct server *server, const struct totals *totals, char *text,
                    size_t cap)
{
    char name[512];
    size_t len;
    bool made;
    snprintf(name, sizeof name, "muster.%s.stats.json", server->boot.label);
    char *data = write_counts(server, totals, &len);
    int error = user_write(server, dir, name, data, len, &made);
    if (error == 0)
        snprintf(text, cap, "counts are kept: muster-status --stats %.300s/%.300s", dir, name);
    else if (made)
        snprintf(text, cap, BOOT_STATS_DIR_ENV ": %.300s/%.300s is not whole: %s", dir, name,
                 reason(error));
    else
        snprintf(text, cap, BOOT_STATS_DIR_ENV ": no counts are kept: %.300s/%.300s: %s%s", dir,
                 name, reason(error),
                 error == EEXIST ? "; remove it, or give another directory"
                                 : "; give a directory of your own that the first node has");
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
