/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * What the processes of a spawned step run. One command line starts all of them, muster-exec; each
 * takes its own application out of the plan, which is in its environment.
 *
 * The plan is a list of strings, string I in the variable PLAN_ENV I:
 *
 *     number of applications
 *     where the output goes and the input comes from: "" is the RM, else its home, below
 *     which rank's input does: "", a rank, or "all"
 *     for each of them: number of its processes, working directory or "",
 *         number of arguments, program, arguments from argv[0] on,
 *         number of changes to the environment, these
 *
 * A change is a letter of enum plan_change and, for all but PLAN_UNSET, "NAME=VALUE"; for
 * PLAN_PREPEND and PLAN_APPEND the separator is before the name.
 *
 * muster-exec connects to its server's socket (PLAN_SOCKET_ENV), which its program does not
 * inherit, and writes, at once, the u32 rank, u32 length, u32 1 if its input comes from the home,
 * else 0, and the home. The server answers by one byte, enum plan_answer. The end of the connection
 * is the success of exec. Before a failure's end come u32 enum plan_step, u32 errno, u32 length and
 * a name. With PLAN_STOP a process beside muster-exec stops the program at its exec, says
 * PLAN_STOPPED in that form, and is gone.
 *
 * A home is "STREAMS NUMBER NODE NAMESPACE": which streams go there (PLAN_STDOUT and so on), the
 * number of the spawn on the server of that node of that namespace. With the home go descriptors,
 * two for each stream of output: the reading end of the pipe that the program will have, and what
 * it would have had (server/spawned/outputs.h). Behind them, if its input comes from there, goes
 * the writing end of the pipe that it will read (server/spawned/inputs.h).
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PLAN_ENV "MUSTER_EXEC_"
#define PLAN_SOCKET_ENV PLAN_ENV "SOCKET"
#define PLAN_SOCKET "exec" /* in the server's directory */

/** The process that has started the step: "RANK NAMESPACE". */
#define PLAN_PARENT_ENV "MUSTER_PARENT"
/** The tasks of each application: "2,3". */
#define PLAN_APPS_ENV "MUSTER_APPS"
/** The descriptor by which srun, or what plays it, speaks to the process that started it. */
#define PLAN_CHANNEL_ENV "MUSTER_CHANNEL"

#define PLAN_STDOUT 'o'
#define PLAN_STDERR 'e'
#define PLAN_BOTH 'm' /**< both streams in one, as standard output */
#define PLAN_OUTPUTS "oem"
#define PLAN_STDIN 'i' /**< comes from there; last of the streams */
#define PLAN_INPUT_ALL "all"

enum plan_change {
    PLAN_SET = '=',
    PLAN_ADD = '+', /**< set unless it is set */
    PLAN_UNSET = '-',
    PLAN_PREPEND = '<',
    PLAN_APPEND = '>',
};

/** The server's answer. */
enum plan_answer {
    PLAN_GO,
    PLAN_STOP, /**< at the exec: before the program's first instruction */
};

/** What has failed, or, PLAN_STOPPED, been done. */
enum plan_step { PLAN_AT_DIRECTORY = 1, PLAN_AT_EXEC, PLAN_AT_STOP, PLAN_STOPPED, PLAN_STEPS };

enum {
    PLAN_APPS_MAX = 4096,
    PLAN_STRINGS_MAX = 65536,
    PLAN_STRING_MAX = 120 << 10, /**< bytes; Linux takes 128 KiB of one variable */
    PLAN_BYTES_MAX = 1 << 20,    /**< of all */
    PLAN_NAME_MAX = 256,         /**< bytes of what a failure names */
    PLAN_AT_HOME = 1,            /**< which string of the plan the home is */
    PLAN_AT_INPUT = 2,           /**< and which one the rank that reads */
    PLAN_HOME_MAX = 320,         /**< bytes of a home */
    PLAN_FDS_MAX = 5,            /**< descriptors that go with it */
};

/** A list of strings; all zero is an empty one. */
struct plan {
    char **strings; /**< owned, as the strings are */
    uint32_t n, cap;
    size_t bytes;
    bool failed; /**< out of memory, or over a bound */
};

/** Appends a copy. @param text NULL: as "" */
void plan_add(struct plan *plan, const char *text);
void plan_add_number(struct plan *plan, size_t number);
/** Sets string @p at anew. */
void plan_set(struct plan *plan, uint32_t at, const char *text);
void plan_set_number(struct plan *plan, uint32_t at, size_t number);
void plan_free(struct plan *plan);
