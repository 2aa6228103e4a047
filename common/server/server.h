/** @file
 * Everything that one muster-server owns: the loop, and what lives on it.
 */
#ifndef MUSTER_SERVER_SERVER_H
#define MUSTER_SERVER_SERVER_H

#include "common/conf/conf.h"
#include "common/handoff/handoff.h"
#include "common/nspace/nspace.h"
#include "common/nspace/registry.h"
#include "common/tracker/engine.h"
#include "common/transport/ask.h"
#include "common/transport/link.h"
#include "common/transport/rm.h"
#include "common/util/owner.h"

/** How far a task of this node has come. */
enum task_state {
    TASK_STARTED,   /**< it has not called PMIx_Init, and perhaps never will */
    TASK_CONNECTED, /**< between PMIx_Init and PMIx_Finalize */
    TASK_FINALIZED,
    TASK_ENDED, /**< the process is gone */
};

struct status;

struct task {
    enum task_state state;
    bool lost, told;    /**< it ended between PMIx_Init and PMIx_Finalize; that was said */
    uint32_t sig, code; /**< how it ended */
};

struct server {
    struct conf conf;
    struct boot boot;
    struct event_base *base;
    struct event *control; /**< the launcher's socket */
    struct event *timer;   /**< the earliest deadline of engine and asks */
    struct handoff *handoff;
    struct owner_cache owners; /**< clients' connections; libpmix's thread alone uses it */
    struct nspace *nspace;
    struct task *tasks;        /**< slot → task */
    uint32_t ntold;            /**< tasks whose start the launcher has told of */
    struct handoff_item *held; /**< requests that wait for tasks_loss_is_told() */
    int64_t report_losses;     /**< when losses are told, ms; 0: there are none */
    bool told_to_leave;        /**< the launcher shuts the control socket in order */
    bool ending;               /**< the step is being ended: more deaths are no news */
    struct registry *registry;
    struct collective *groups; /**< upcall/pending.c: group operations that libpmix waits for */
    struct engine *engine;
    struct asks *asks;
    struct link *link;
    const struct rm_ops *rm_ops;
    struct rm *rm;
    struct status *status;       /**< shows all this */
    int64_t started;             /**< now_ms() */
    struct evbuffer *control_in; /**< bytes of the launcher that make no message yet */
    uint32_t library;            /**< libpmix at run time, 0xMMmmrr */
};

/**
 * Builds the server from its boot message; libpmix is not started yet.
 * @param server all zero but for boot and conf
 * @return 0, or -1 with the reason in @p err; server_close() it either way
 * @thread the loop's
 */
int server_open(struct server *server, struct err *err);

/** Runs until the launcher shuts its side. @thread the loop's */
void server_run(struct server *server);

/** Has @p item run once a loss of tasks was told. @thread the loop's */
void server_hold(struct server *server, struct handoff_item *item);

/** Runs what was held. @thread the loop's */
void server_resume(struct server *server);

/**
 * Has the RM end the step, and tells the other servers that it does.
 * @param tell what they are to tell the user; NULL: it is told
 * @thread the loop's
 */
void server_end_step(struct server *server, const char *why, const char *tell);

/** Answers whoever still waits; requests that come later are refused. @thread the loop's, before
 * libpmix ends */
void server_leave(struct server *server);

/** Frees all. @thread the loop's */
void server_close(struct server *server);

#endif
