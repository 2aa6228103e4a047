/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * Spawns whose output comes to this server. Private to forward.c, and to pull.c, which forward.c
 * calls.
 */
#pragma once

#include "common/upcall/forward.h"
#include "common/upcall/pullers.h"

#include <pthread.h>
#include <sys/queue.h>

enum forward_state {
    FORWARD_HELD, /* PMIx_Spawn has not been answered */
    FORWARD_OPEN, /* PMIx_Spawn was answered */
};

/* One spawn. */
struct forward {
    LIST_ENTRY(forward) entry;
    uint64_t number;
    enum forward_state state;
    pmix_proc_t parent;
    pmix_nspace_t child;                 /* "": not known yet */
    bool tool;                           /* the parent is a tool: its libpmix prints what comes */
    pmix_iof_channel_t channels, silent; /* silent: a stream that is merged into another one */
    /* What PMIx_IOF_pull has asked for. forwards_forget_pulls() clears it. */
    pmix_iof_channel_t pulled;     /* of all processes */
    pmix_iof_channel_t *pulled_of; /* of each one; NULL: none was named */
    uint32_t ntasks, nopen;        /* processes; streams that have not ended */
    void (*then)(void *arg);
    void *arg;
    struct timer over; /* when `then` is called at the latest */
};

struct forwards {
    struct server *server;
    uint64_t last; /* number of the last spawn; only PMIx's thread uses it */
    LIST_HEAD(, forward) list;
    LIST_HEAD(, piece) pieces;
    struct timer look;
    int64_t pass_from; /* when the congestion has lasted too long, ms; 0: there is none */
    struct pullers pullers;
    pthread_mutex_t lock; /* of list, and of child and pulls in it */
    struct forward
        *own; /* in list, number 0: the own step, which no call has spawned; NULL: none */
    forwards_own_fn *pulled, *printed;
};

/** A pull has stopped, or a process is gone that may have pulled: libpmix tells neither whose the
 * pull was, nor that it has dropped those of a process. @thread any */
void forwards_forget_pulls(struct forwards *all);
