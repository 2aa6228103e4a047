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
 *                       or slot BOOT_FAILED and a block with one sentence
 *     plugin → server   { u32 slot | BOOT_TASK_STARTED, u32 pid, u32 0 }, when a task starts
 *                       { u32 slot, u32 signal or 0, u32 exit code or BOOT_CODE_UNKNOWN }…
 *                       closed by slot BOOT_LEAVE
 *     server → plugin   u8 0, once it has seen where all tasks of the node are bound
 *
 * Needs nothing but the C library. Both ends are of one build: a version that differs is refused.
 */
#ifndef MUSTER_SERVER_BOOT_H
#define MUSTER_SERVER_BOOT_H

#include "common/transport/wire.h"
#include "common/util/err.h"

enum {
    BOOT_FD_CONTROL = 3,
    BOOT_FD_LISTEN = 4,
    BOOT_READY = 0xffffffff,
    BOOT_FAILED = 0xfffffffe,
    BOOT_LEAVE = 0xfffffffd,
    BOOT_CODE_UNKNOWN = 0xffffffff,
    BOOT_TASK_STARTED = 0x80000000,
    BOOT_MAX = 64 << 20,     /**< bytes of a boot message */
    BOOT_ENV_MAX = 64 << 10, /**< bytes of one "K=V" */
    BOOT_ENV_COUNT = 256,    /**< strings of one task */
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

/** A setting for the server's RM back end. Two are the server's own: "backend", the back end's
 * name, and "preload", a shared object that the back end needs, if any. */
struct boot_setting {
    char *key, *value;
};

/** The step as the launcher knows it, from trusted sources. */
struct boot {
    char *session; /**< the allocation: scope of context ids, "4711" */
    char *nspace;  /**< the step's PMIx namespace */
    char *label;   /**< how messages name the step, "4711.0" */
    char *tmpdir;  /**< made for the server, mode 0700, owned by the job's user; its name is
                      "muster.<label>.<8 hex digits>", by which muster-status finds it */
    uint32_t step; /**< number of the step in its session */
    uint32_t node; /**< index of this node in nodes */
    uint32_t nnodes, ntasks;
    struct boot_node *nodes;
    struct boot_allocation allocation;
    uint32_t nsettings;
    struct boot_setting *settings; /**< for the RM back end */
};

/** Appends @p boot to @p out. */
void boot_write(const struct boot *boot, struct wire_out *out);

/**
 * Reads what boot_write() wrote and checks it: every rank once, indices in range.
 * @param boot filled in; boot_free() it also after an error
 * @return 0, or -1 with the reason in @p err
 */
int boot_read(struct boot *boot, const void *data, size_t len, struct err *err);

/** @return the value of @p key, borrowed, or NULL */
const char *boot_setting(const struct boot *boot, const char *key);

/** Appends a setting; both strings are copied. */
void boot_set(struct boot *boot, const char *key, const char *value);

void boot_free(struct boot *boot);

#endif
