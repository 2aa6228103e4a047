/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * Which servers of which jobs are on this broker, and what is under way to them.
 *
 * A broker knows its own servers only, and takes messages for them from processes of the same user.
 * What users send is bounded: a window from each connection, and as many messages and bytes as the
 * server's job has nodes and some beyond that, until the server has taken them. A job has one
 * server on a broker, as it has one shell.
 *
 * Knows nothing of Flux: the module gives requests as opaque pointers, which the directory gives
 * back once, by answer() or drop().
 * @thread all of it: the broker module's
 */
#pragma once

#include "common/tracker/values/tree.h"
#include "common/util/err.h"
#include "plugins/flux/packet.h"

struct directory;

/** The server that speaks, by the credential of the request. */
struct client {
    const char *uuid; /**< of the connection, borrowed */
    uint32_t uid;
    bool owner; /**< of the instance */
};

/** What the directory wants done. None of these calls back into it. */
struct directory_env {
    void *arg;
    uint32_t rank, size; /**< of our broker, and of the instance */
    int64_t (*now)(void *arg);
    /** Sends one response to muster.register. @return 0 or an errno */
    int (*respond)(void *arg, const void *request, const void *data, size_t len);
    /** Ends a request, and lets go of it. @param errnum 0: it succeeded, and @p text, if any, is
     * the answer; else why it did not */
    void (*answer)(void *arg, const void *request, int errnum, const char *text);
    /** Lets go of a request that is not answered, since the answer to a later one counts for it. */
    void (*drop)(void *arg, const void *request);
    /** Tells another module by muster.gone. */
    void (*tell)(void *arg, uint32_t rank, const void *data, size_t len);
    /** Calls directory_alarm() in @p ms milliseconds; what was to come of an earlier call does not
     * come. @return 0, or -1: there is no timer */
    int (*alarm)(void *arg, unsigned ms);
};

/** A request to register, checked for its form. */
struct registration {
    uint64_t job;
    uint32_t node, nnodes;
    uint32_t *brokers; /**< owned; one for each node */
};

/** @return a directory, or NULL when out of memory. @param env copied */
struct directory *directory_new(const struct directory_env *env);

/** How brokers hang together, which servers are told of the nodes of their job. @param shape taken
 * over, with what it has; there was none before */
void directory_shape(struct directory *dir, struct tree_shape *shape);

/** @return how many servers are registered here */
unsigned directory_servers(const struct directory *dir);

/** Ends every request and frees all. @param why what the answers say */
void directory_free(struct directory *dir, int errnum, const char *why);

/**
 * Reads a request to register.
 * @param reg filled in; free its brokers also after an error
 * @return 0, or an errno with the reason in @p err
 */
int directory_read(const struct directory *dir, const void *data, size_t len,
                   struct registration *reg, struct err *err);

/**
 * Registers a server; whose job it is has been checked by the caller.
 * @param reg     taken over where it succeeds
 * @param request the stream to the server, taken over where it succeeds
 * @return 0, or an errno with the reason in @p err
 */
int directory_register(struct directory *dir, const struct client *client, struct registration *reg,
                       const void *request, struct err *err);

/** muster.send of any user's server, wherever it is, for one of ours. @param request taken over */
void directory_send(struct directory *dir, const struct client *client, const void *data,
                    size_t len, const void *request);

typedef void directory_fn(struct directory *dir, const struct client *client, const void *data,
                          size_t len);

/** muster.took of a server. */
directory_fn directory_took;

/** muster.leave of a server. */
directory_fn directory_leave;

/** A client's connection has closed. */
void directory_disconnect(struct directory *dir, const struct client *client);

/** muster.gone of another module. */
directory_fn directory_gone;

/** A broker is not online any more. */
void directory_offline(struct directory *dir, uint32_t rank);

/**
 * Reads muster.find of a server, in directory_meet.c as the next five.
 * @param job filled in: the job that is looked for
 * @return 0 or an errno
 */
int directory_find(const struct directory *dir, const struct client *client, const void *data,
                   size_t len, uint64_t *job);

/** A server of ours may send to that broker from now on, on behalf of what it has found: it is told
 * when the server is gone. @param data of muster.find */
void directory_found(struct directory *dir, const struct client *client, const void *data,
                     size_t len, uint32_t rank);

/** A job that a server looked for has ended: no server can meet at it any more. */
void directory_ended(struct directory *dir, uint32_t owner, uint64_t job);

/** Reads muster.meet of a server. @param out filled in with muster.home, for rank 0; to be freed
 * also after an error @return 0 or an errno */
int directory_meet(const struct directory *dir, const struct client *client, const void *data,
                   size_t len, struct wire_out *out);

/** muster.home of another module, at rank 0. @param out filled in with the answer; to be freed also
 * after an error @return 0 or an errno */
int directory_home(struct directory *dir, const void *data, size_t len, struct wire_out *out);

/** stats-get: answers, now or later, with servers, messages and operations under way as JSON. In
 * directory_stats.c as the next two. @param request taken over */
void directory_stats(struct directory *dir, const void *request);

/** muster.state of a server. */
directory_fn directory_state;

/** What env.alarm() was told has come. */
void directory_alarm(struct directory *dir);
