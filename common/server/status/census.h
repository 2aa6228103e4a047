/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * What a server knows of its own node's tasks and memory, taken for each question: see
 * docs/keys.md, "Queries". Other servers get it in the answer to ASK_QUERY.
 * @thread any, unless said
 */
#pragma once

#include "common/server/server.h"

/** What can be asked for; a set of these is the body of ASK_QUERY. */
enum census_part {
    CENSUS_GROUPS = 1, /**< groups and process sets; the registry has them, not the census */
    CENSUS_TASKS = 2,
    CENSUS_COMMAND = 4,
    CENSUS_MEMORY = 8,
    CENSUS_ALL = 15,
};

/** A task of that node. */
struct census_task {
    uint32_t rank;
    uint32_t pid;  /**< 0: not known */
    uint8_t state; /**< a pmix_proc_state_t */
    int32_t code;  /**< exit code, or 128 and the signal; -1: not known; 0 before its end */
    char *program; /**< path of what it runs, owned; "": not known */
};

/** All zero is an empty one. */
struct census {
    uint32_t ntasks;
    struct census_task *tasks;
    char *command;       /**< how the tasks were started, owned; NULL or "": not known */
    uint64_t server_kib; /**< resident memory of muster-server */
    uint64_t tasks_kib;  /**< that of the tasks together */
    uint32_t counted;    /**< tasks that this is the sum of */
};

/** Looks at the tasks of this node. Only parts that are asked for are looked at.
 * @param parts of enum census_part
 * @thread the loop's */
void census_take(const struct server *server, unsigned parts, struct census *census);

/** Appends those parts:
 *     tasks    u32 count, { u32 rank, u32 pid, u8 state, i32 code, str program }…
 *     command  str
 *     memory   u64 KiB of the server, u64 KiB of the tasks, u32 tasks that were counted */
void census_write(const struct census *census, unsigned parts, struct wire_out *out);

/** Reads what census_write() wrote. @return 0, or -1 when the bytes are malformed; census_free() it
 * either way. */
int census_read(struct census *census, unsigned parts, struct wire_in *in);

void census_free(struct census *census);
