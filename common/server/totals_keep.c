/* SPDX-License-Identifier: BSD-3-Clause */
/* The counts of a step, in a file. It has the form of an answer to "all" (docs/wire.md), with one
 * state for all servers; so it is a few KB, whatever the step has done. */
#include "common/server/totals_keep.h"

#include "common/server/tallied.h"
#include "common/server/user_file.h"
#include "common/util/clock.h"
#include "common/util/log.h"
#include "common/util/text.h"
#include "include/muster.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static json_object *counts(const struct server *server, const struct totals *totals)
{
    json_object *o = json_object_new_object(), *nodes = json_object_new_array(),
                *one = json_object_new_object();
    double s = (double)(now_ms() - server->started) / 1000;
    json_object_object_add(one, "step", json_object_new_string(server->boot.label));
    json_object_object_add(one, "unit", json_object_new_string(log_unit()));
    json_object_object_add(one, "uptime", json_object_new_double(s));
    json_object_object_add(one, "servers", json_object_new_int64(totals->servers));
    json_object_object_add(one, "collectives", tallied_json(server, &totals->tally));
    json_object_array_add(nodes, one);
    json_object_object_add(o, "version", json_object_new_int(MUSTER_JSON_VERSION));
    json_object_object_add(o, "ended", json_object_new_boolean(true));
    json_object_object_add(o, "nodes", nodes);
    json_object_object_add(o, "silent", json_object_new_array());
    json_object_object_add(
        o, "silent_servers",
        json_object_new_int64((int64_t)server->boot.nnodes - (int64_t)totals->servers));
    return o;
}

static int write_counts(int fd, const struct server *server, const struct totals *totals)
{
    FILE *out = fdopen(fd, "w");
    if (out == NULL) {
        close(fd);
        return -1;
    }
    json_object *o = counts(server, totals);
    fprintf(
        out, "%s\n",
        json_object_to_json_string_ext(o, JSON_C_TO_STRING_PLAIN | JSON_C_TO_STRING_NOSLASHESCAPE));
    json_object_put(o);
    bool bad = ferror(out) != 0;
    return fclose(out) != 0 || bad ? -1 : 0;
}

void totals_keep(struct server *server, const struct totals *totals, char *buf, size_t cap)
{
    const char *dir = boot_setting(&server->boot, BOOT_STATS_DIR);
    char name[512], text[1500];
    if (dir == NULL)
        return;
    snprintf(name, sizeof name, "muster.%s.stats.json", server->boot.label);
    int fd = user_file_make(dir, name);
    if (fd < 0)
        snprintf(text, sizeof text, BOOT_STATS_DIR_ENV ": no counts are kept: %.300s/%.300s: %s%s",
                 dir, name, strerror(errno),
                 errno == EEXIST ? "; remove it, or give another directory"
                                 : "; give a directory of your own that the first node has");
    else if (write_counts(fd, server, totals) != 0)
        snprintf(text, sizeof text, BOOT_STATS_DIR_ENV ": %.300s/%.300s is not whole: %s", dir,
                 name, strerror(errno));
    else
        snprintf(text, sizeof text, "counts are kept: muster-status --stats %.300s/%.300s", dir,
                 name);
    text_fit(buf, cap, buf[0] != '\0' ? "; " : "");
    text_fit(buf, cap, text);
}
