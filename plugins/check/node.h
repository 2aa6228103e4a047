/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * What muster-check looks at on one node.
 */
#pragma once

#include <json-c/json.h>
#include <stdbool.h>

/** Where to look, as the resource manager is configured. All borrowed. */
struct node_places {
    bool flux;           /**< else Slurm */
    const char *plugins; /**< PluginDir, "A:B"; NULL: where the plugin was installed */
    const char *spool;   /**< SlurmdSpoolDir, with %n and %h; NULL: not looked at */
    const char *tmpfs;   /**< TmpFS, the same */
};

/**
 * Looks at this node. @return an object: "node", then "muster", "plugin", "server", "backend",
 * "libpmix", "settings", "spool" and "tmpdir", each a text that is "-" where there is nothing to
 * look at, and "faults", a list of texts with the remedy; the caller puts it.
 * @thread any
 */
json_object *node_look(const struct node_places *places);
