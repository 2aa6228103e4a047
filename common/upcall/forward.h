/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * What spawned processes print, for the process that has spawned them. Their servers bring it
 * (server/spawned/outputs.h).
 *
 *     PMIx_Spawn with PMIX_FWD_STDOUT, or by a tool
 *       │ upcall: forwards_number() goes into the plan; loop: forwards_add()
 *     HELD    what comes waits: libpmix does not know the namespace yet
 *       │ the namespace is known: forwards_name(); the call was answered: forwards_open()
 *     OPEN    what comes is delivered to libpmix, if a tool has spawned, or a process pulls;
 *       │     else it goes to the terminal, a piece at a time
 *       │ every stream has ended; or the process that has spawned them; or their servers
 *     freed   what comes is refused, and goes to the terminal
 *
 * libpmix keeps what no process pulls, and what a process does not read, without a bound. So
 * nothing is delivered once the process that has spawned is gone, nor while a connection of a
 * process here is congested or has just closed (rounds.h). Where that lasts, which may be no fault
 * of the process that the output is for, it goes to the terminal after FORWARD_HOLD_MS, until it is
 * over.
 *
 * Any process of the node may pull, and libpmix tells neither which one does nor when it drops the
 * pull of one that is gone. So when a pull stops, or a process goes that may have pulled
 * (pullers.h), all pulls count as gone: what is to come again has to be pulled again.
 * @thread the loop's, unless said
 */
#pragma once

#include "common/server/server.h"

#include <pmix_common.h>

enum {
    FORWARD_LOOK_MS = 20,    /**< between two looks whether connections are still congested */
    FORWARD_HOLD_MS = 10000, /**< connections are congested so long before output passes by them */
    FORWARD_END_MS = 5000,   /**< time that streams have to end after their spawned step has */
};

/** @thread the loop's, before libpmix starts */
void forwards_new(struct server *server);
/** @thread the loop's, after libpmix has ended */
void forwards_free(struct server *server);

/** @return a number for a spawn, never the same twice @thread PMIx's */
uint64_t forwards_number(struct server *server);

/** A process spawns others, whose output comes here.
 * @param streams which: of PLAN_STDOUT and so on */
void forwards_add(struct server *server, uint64_t number, const pmix_proc_t *parent,
                  const char *streams, uint32_t ntasks);

/** The spawn is about to be answered: the process that has called may pull as soon as it reads
 * that. @param nspace the spawned one */
void forwards_name(struct server *server, uint64_t number, const char *nspace);

/** The spawn was answered, and libpmix knows that the tool that has called gets what comes. */
void forwards_open(struct server *server, uint64_t number);

/** The spawn has failed. */
void forwards_drop(struct server *server, uint64_t number);

/** The spawned step has ended. Its last words may be under way.
 * @param then called once they are delivered, or after FORWARD_END_MS; not from forwards_free()
 * @return false: there are none; @p then is not called */
bool forwards_await_end(struct server *server, uint64_t number, void (*then)(void *arg), void *arg);

/** A connection of a process is gone, and the process may have others: what it may have pulled. */
void forwards_connection_gone(struct server *server, const char *nspace, uint32_t rank);

/** A process or tool has finalized or is lost: what it has spawned, and may have pulled. */
void forwards_parent_gone(struct server *server, const char *nspace, uint32_t rank);

typedef void forwards_own_fn(struct server *server);

/** What tasks of the own step print may be pulled, too, though no call has spawned them.
 * @param pulled somebody has pulled it @thread PMIx's
 * @param printed a piece of forwards_print() has gone its way
 * @thread the loop's, before libpmix starts */
void forwards_own(struct server *server, forwards_own_fn *pulled, forwards_own_fn *printed);

/** @return whether anything of the own step is pulled now @thread any */
bool forwards_own_is_pulled(struct forwards *forwards);

/** Takes what task @p rank of the own step has printed; forwards_own_fn `printed` follows, perhaps
 * before this returns. @param len at most OUTPUTS_PIECE */
void forwards_print(struct server *server, uint32_t rank, pmix_iof_channel_t channel,
                    const void *data, size_t len);

/** @return what is pulled; the callers tell it when a process has connected */
struct pullers *forwards_pullers(struct server *server);

/** The servers of a namespace are gone. @param forwards NULL: nothing happens */
void forwards_nspace_ended(struct forwards *forwards, const char *nspace);

/** Serves ASK_OUTPUT (ask.h): takes a piece of output from another server.
 * @param arg the server */
void upcall_serve_output(void *arg, uint32_t from, uint64_t id, const void *body, size_t len);
