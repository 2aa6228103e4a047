/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * What the launcher's plugin and muster-server say to each other over the control socket.
 *
 * The plugin starts the server with the control socket as BOOT_FD_CONTROL and, where its RM needs
 * one, a listening socket as BOOT_FD_LISTEN, and writes one boot message. The server answers with
 * the environment of every local task, or with the reason why it cannot serve. Afterwards the
 * plugin tells of tasks that end, until it says BOOT_LEAVE and shuts its side: then the server
 * leaves. An end of file without it: the launcher was killed. The end of file on the plugin's side
 * is the server's end.
 *
 *     plugin → server   u32 length, boot message (boot_write)
 *     server → plugin   { u32 slot, block "K=V" }…, closed by slot BOOT_READY,
 *                       or slot BOOT_FAILED and a block with one sentence;
 *                       BOOT_FAILED_ALIKE where it is the same on all nodes of the step
 *     plugin → server   { u32 BOOT_WDIR, u32 length, u32 0 } and so many bytes: where tasks
 *                       start, their working directory; before the first of them, or in the
 *                       settings
 *                       { u32 slot | BOOT_TASK_STARTED, u32 pid, u32 BOOT_PID_OWN }, when a
 *                       task starts; with u32 0 pid is another process, which is bound as it
 *                       will be, and the task's own one follows
 *                       { u32 slot, u32 signal or 0, u32 exit code or BOOT_CODE_UNKNOWN }…
 *                       { u32 BOOT_SHOWN, u32 n, u32 0 }: n times BOOT_SAYS_SHOW is answered
 *                       { u32 BOOT_ASKS, u32 0, u32 0 }, now and then: does it answer?
 *                       closed by slot BOOT_LEAVE
 *     server → plugin   u8 BOOT_SAYS_BOUND, once it has seen where all tasks of the node are
 *                       bound
 *                       u8 BOOT_SAYS_USED, once: a process of the user has connected, so that
 *                       the step is one of PMIx and cannot do without this server any more
 *                       u8 BOOT_SAYS_SHOW: something waits until the plugin has logged the
 *                       lines that the server has written so far
 *                       u8 BOOT_SAYS_HERE, the answer to BOOT_ASKS
 *                       u8 BOOT_SAYS_STAYS, now and then after BOOT_LEAVE: it still has
 *                       something to deliver, or the step to end. The plugin waits longer for
 *                       it, within BOOT_STAY_MAX_MS
 *                       u8 BOOT_SAYS_LEFT, at the end: a server that ends without it has
 *                       died. The plugin removes the name of BOOT_FD_LISTEN, so that nothing
 *                       new comes, and the server takes what has come
 *
 * Needs nothing but the C library. Both ends are of one build: a version or FRAME_PROTOCOL that
 * differs is refused.
 */
#pragma once

#include "common/transport/frame.h"
#include "common/transport/wire.h"
#include "common/util/err.h"

enum {
    BOOT_FD_CONTROL = 3,
    BOOT_FD_LISTEN = 4,
    BOOT_READY = 0xffffffff,
    BOOT_FAILED = 0xfffffffe,
    BOOT_FAILED_ALIKE = 0xfffffffb,
    BOOT_LEAVE = 0xfffffffd,
    BOOT_WDIR = 0xfffffffc,
    BOOT_SHOWN = 0xfffffffb,
    BOOT_ASKS = 0xfffffffa,
    BOOT_CODE_UNKNOWN = 0xffffffff,
    BOOT_NO_NODE = 0xffffffff, /**< boot::node of another step */
    BOOT_TASK_STARTED = 0x80000000,
    BOOT_PID_OWN = 1,
    BOOT_SAYS_BOUND = 0,
    BOOT_SAYS_STAYS = 1,
    BOOT_SAYS_LEFT = 2,
    BOOT_SAYS_USED = 3,
    BOOT_SAYS_SHOW = 4,
    BOOT_SAYS_HERE = 5,
    BOOT_STAY_MS = 1000,      /**< from one BOOT_SAYS_STAYS to the next */
    BOOT_STAY_MAX_MS = 60000, /**< what a server may stay for deliveries */
    BOOT_MAX = 1 << 30,       /**< bytes of a boot message; 65,536 nodes of 256 tasks take 70 MB */
    BOOT_ENV_MAX = 64 << 10,  /**< bytes of one "K=V" */
    BOOT_ENV_COUNT = 256,     /**< strings of one task */
    BOOT_WDIR_MAX = 4096,     /**< bytes of a working directory */
    BOOT_ARGV_MAX = 64 << 10, /**< bytes of an application's arguments, joined */
};

/** One node of the step. */
struct boot_node {
    char *name;      /**< the RM's name of the node */
    uint32_t ntasks; /**< length of ranks */
    uint32_t *ranks; /**< ascending local order: slot → rank in the namespace */
    uint32_t slots;  /**< processors here that the allocation has; 0: not known */
};

/** The allocation that the step runs in. */
struct boot_allocation {
    char *rm, *rm_version; /**< the RM and its release */
    char *cluster;         /**< the RM's name of the cluster, or "" */
    char *nodes;           /**< names of all nodes, separated by commas; "": not known */
    uint32_t nnodes;       /**< how many; 0: not known */
    uint32_t slots;        /**< processors on all of them; 0: not known */
};

/** The setting that names the program which prints what the tasks of the step print, by its whole
 * path, and its arguments, with blanks between (common/upcall/printer.h). */
#define BOOT_PRINTER "printer"

/** The setting that names process sets (common/nspace/psets.h), the variable of the step's
 * environment that it is from, and its bytes at most. Servers of other steps are told it. */
#define BOOT_PSETS "psets"
#define BOOT_PSETS_ENV "MUSTER_PSETS"
/** The user's own log: an absolute path, in which "%n" is the node. */
#define BOOT_LOG "log"
#define BOOT_LOG_ENV "MUSTER_LOG"
/** Where the user wants a trace of all operations: the absolute path of a directory. */
#define BOOT_TRACE "trace"
#define BOOT_TRACE_ENV "MUSTER_TRACE"
/** Where the user wants to keep what was counted: the absolute path of a directory. */
#define BOOT_STATS_DIR "stats_dir"
#define BOOT_STATS_DIR_ENV "MUSTER_STATS_DIR"
/** Where the user's home is, and the directory in it that keeps counts of steps that have ended. */
#define BOOT_HOME "home"
#define BOOT_KEPT ".local/state/muster/stats"
enum { BOOT_PSETS_MAX = 4096 };
/** Which processes wait for a debugger (common/nspace/stop.h), and the variable that it is from. */
#define BOOT_DEBUG "debug"
#define BOOT_DEBUG_ENV "MUSTER_DEBUG"

/** The setting "RANK NAMESPACE" of the process that has started the step. Servers of other steps
 * are told it. */
#define BOOT_PARENT "parent"

/** A setting for the server's RM back end. What the step's user has set for it stands here under
 * the name that he has given it (conf_step.h). Ten are the server's own: "backend", the back end's
 * name; if any, "preload", a shared object that the back end needs, "ask", the command by which
 * users ask for the state of the step (muster-status), "other_pmi", the one by which they start
 * programs of an MPI without PMIx, "options", settings of the step's user as a JSON object,
 * "conf", settings as in muster.json that win over those there, and "wdir" and "argv", where and
 * by what command line the one application is started (PMIX_WDIR, PMIX_APP_ARGV), BOOT_PARENT, and
 * "apps" (boot_take_apps). */
struct boot_setting {
    char *key, *value;
};

/** The step as the launcher knows it, from trusted sources. */
struct boot {
    char *session; /**< the allocation, "4711" */
    char *nspace;  /**< the step's PMIx namespace */
    char *label;   /**< how messages name the step, "4711.0" */
    char *tmpdir;  /**< made for the server, mode 0700, owned by the job's user; its name is
                      "muster.<label>.<8 hex digits>", by which muster-status finds it */
    uint64_t run;  /**< tells this run of the step from others of the same number, on all nodes
                      alike; 0: the RM never gives a number twice */
    uint32_t node; /**< index of this node in nodes */
    uint32_t nnodes, ntasks;
    struct boot_node *nodes;
    uint32_t napps; /**< length of apps; 0: one application of all tasks */
    uint32_t *apps; /**< tasks of each application, in the order of ranks */
    struct boot_allocation allocation;
    uint32_t nsettings;
    struct boot_setting *settings; /**< for the RM back end */
};

/** @return the node that the server or plugin is on */
static inline const struct boot_node *boot_here(const struct boot *boot)
{
    return &boot->nodes[boot->node];
}

/** Appends @p boot to @p out. */
void boot_write(const struct boot *boot, struct wire_out *out);

/** Sets or replaces a setting. */
void boot_replace(struct boot *boot, const char *key, const char *value);

/** Appends what servers of other steps are told: the same message of node 0, with "/" instead of
 * the directory, and of the settings BOOT_PSETS and BOOT_PARENT alone. So it is the same bytes on
 * every server of the step. */
void boot_write_nspace(const struct boot *boot, struct wire_out *out);

/** Reads what boot_write() wrote and checks it: every rank once, indices in range, applications of
 * all tasks.
 * @param boot filled in; boot_free() it also after an error
 * @return 0, or -1 with the reason in @p err */
int boot_read(struct boot *boot, const void *data, size_t len, struct err *err);

/** The same of what boot_write_nspace() wrote, perhaps by another version of muster: whether
 * servers fit together is the greeting's business (greeting.h). */
int boot_read_nspace(struct boot *boot, const void *data, size_t len, struct err *err);

/** An application: one program line of the launcher's command. Its ranks are in a row. */
struct boot_app {
    uint32_t nnodes;
    uint32_t first; /**< its lowest rank */
    uint32_t ntasks;
};

/** Sets boot::apps from the setting "apps", "TASKS,TASKS,…", which is the user's word. Not
 * where the launcher itself knows of several, or when it is of another number of tasks. */
void boot_take_apps(struct boot *boot);

/** @return the application of a task, and in @p first its lowest rank */
uint32_t boot_app_of(const struct boot *boot, uint32_t rank, uint32_t *first);

/** @return whether tasks of application @p app are on @p node */
bool boot_app_on(const struct boot *boot, uint32_t app, uint32_t node);

/** @return how many applications @p boot has: 1 or more */
uint32_t boot_napps(const struct boot *boot);

/** @return the application of that number */
struct boot_app boot_app(const struct boot *boot, uint32_t app);

/** Which process has started the step (PMIx_Spawn), by the setting BOOT_PARENT, the user's word.
 * @param nspace 256 bytes @return whether a process has: it is a spawned step */
bool boot_parent(const struct boot *boot, char *nspace, uint32_t *rank);

/** @return whether a process has started the step (PMIx_Spawn) */
bool boot_spawned(const struct boot *boot);

/** @return the value of @p key, borrowed, or NULL */
const char *boot_setting(const struct boot *boot, const char *key);

/** @return what they call what started its tasks on a node and muster's server: the setting
 * "launcher", such as "shell" */
const char *boot_launcher(const struct boot *boot);

/** Appends a setting; both strings are copied. */
void boot_set(struct boot *boot, const char *key, const char *value);

void boot_free(struct boot *boot);
