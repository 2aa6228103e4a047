/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * Servers of other steps of the same user: which there are, where a bootstrap's leaders meet, and
 * what counts of what they say.
 *
 * The first frame to a server of another step is our namespace's registration, and so is its first
 * one to us. Whatever names processes that a server may not know is preceded by their
 * registrations, each once for a server. libpmix gets a registration when a group has members
 * there. A server that ends in order says so to the servers that it had to do with.
 * @thread all of it: the loop's
 */
#pragma once

#include "common/server/server.h"
#include "common/server/steps/seek.h"
#include "common/server/steps/spread.h"

enum {
    STEPS_KEEP_MS = 10000, /**< a namespace is kept for so long after its last server has gone */
    STEPS_KEEP_MAX = 64,   /**< the one that has ended first is forgotten when there are more */
};

/** Prepares our own registration, once server::nspace is there. */
void steps_open(struct server *server);

/** Sends a frame, after our registration where that is due; takes the bytes out of @p frame.
 * @param body as in link_send_shared() */
void steps_send(struct server *server, uint32_t node, struct wire_out *frame,
                struct shared_bytes *body);

/** Whether a server of another step may ask this. @param body of its FRAME_ASK */
bool steps_may_ask(const void *body, size_t len);

/** Takes the body of a FRAME_NSPACE of server @p from. */
void steps_nspace(struct server *server, uint32_t from, const void *body, size_t len);

/** Learns the registration of a step that processes here have started. @return its namespace,
 * borrowed, or NULL: it was logged why not */
const char *steps_learn(struct server *server, const void *registration, size_t len);

/** Takes the body of a FRAME_LEAVING of server @p from. */
void steps_leaving(struct server *server, uint32_t from, const void *body, size_t len);

/** Takes what server @p speaker of the own step has said to all: another step has ended. */
void steps_ended(struct server *server, uint32_t speaker, const void *body, size_t len);

/** A server is lost. @return whether that is news: it has not left in order */
bool steps_lost(struct server *server, uint32_t node);

/** A server of another step is gone, and nothing of it is under way: what waits for it fails. */
void steps_lose(struct server *server, uint32_t node);

/** A server is gone, and the engine knows it: what waits for it here goes on. Its namespace has
 * ended when it was the last one of another step. */
void steps_tidy(struct server *server, uint32_t node);

/* How long a namespace that has ended is known: steps_known.c. */

/** A namespace has ended: keeps it for STEPS_KEEP_MS. One that is forgotten too early would not be
 * told of again. */
void steps_keep(struct server *server, struct nspace *ns);

/** A group has ended: forgets the namespaces that were held for it alone. To be called once libpmix
 * has the answer to its destruct. */
void steps_group_ended(struct server *server);

/** A step of that name and run is there: forgets one of that name and of another run that has
 * ended, even when a group has members there. The job was requeued. */
void steps_replace(struct server *server, const char *name, uint64_t run);

/** @return whether all servers of that namespace have gone, or it is not known */
bool steps_has_ended(const struct server *server, const char *name);

/** Takes server @p from, which does not fit to us, for lost, and introduces this server: the other
 * finds the same. */
void steps_refuse(struct server *server, uint32_t from);

/* link_env's and engine_env's; @p arg is the server */

int steps_find(void *arg, uint64_t step, uint32_t index, uint32_t *node);
bool steps_introduce(void *arg, uint64_t step, const void *body, size_t len);
void steps_home(void *arg, const char *id, uint64_t call);
void steps_acquaint(void *arg, uint32_t node, const struct procset *set);

/** Has libpmix know all namespaces of @p set, also those that have ended and are still kept.
 * @return 0, or -1: it was logged why not */
int steps_register(struct server *server, const struct procset *set);

/** As steps_register() of one namespace, but the caller has libpmix told.
 * @return what register_there() takes, or NULL: libpmix knows it, it is forgotten, or it was logged
 * why not */
struct registration *steps_registration(struct server *server, const char *name);

/* For the files of this folder: attach.c, introduce.c, learn.c */

/** A namespace was learnt. @param step its hash, as frames have it; 0: any @param body its
 * registration @return the namespace, or NULL: it was logged why not */
struct nspace *steps_take(struct server *server, uint64_t step, const void *body, size_t len);
/** @param met a server that we have had to do with: it knows of us @return one there that has not
 * left, as far as we know, or TREE_NONE */
uint32_t steps_server_there(const struct server *server, const struct nspace *ns, bool met);
/** Gives handles to the step of a server that the RM has named. @return its namespace, or NULL with
 * the reason in @p err */
struct nspace *steps_attach(struct server *server, const struct rm_server *found, struct err *err);
/** Makes handles of a namespace known to the back end, and where its servers are once that is
 * known. @param handles how many there were before */
void steps_name_servers(struct server *server, struct nspace *ns, uint32_t handles);
/** Tells server @p node of a namespace, once. */
void steps_tell(struct server *server, struct nspace *ns, uint32_t node);
/** @return the first server of the own step that hosts a process of @p set: all of these know as
 * much. @param arg the server */
uint32_t steps_speaker(void *arg, const struct procset *set);

/** Has all that waits for other steps go on: the server leaves. */
void steps_go_on(struct server *server);

/** libpmix has come to know the namespace of another step: has a server there know of us, so that
 * we hear of that step's end. One server of the own step does so for all. */
void steps_be_known(struct server *server, const struct nspace *ns);

/** Tells a server of the own step what only this one may know: which other steps are to hear of our
 * step's end. */
void steps_hand_over(struct server *server, uint32_t node);

/** Tells the servers of other steps that we leave. */
void steps_leave(struct server *server);

/** Tells other steps that the own one has ended, each by one or two of its servers; these tell the
 * others there. @param last all other servers of the own step have left; false: the step is being
 * ended, and its first server that is there tells it */
void steps_end(struct server *server, bool last);

/** Frees what is known of other steps. */
void steps_close(struct server *server);
