/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * What libpmix's answer to a connect tells a client of the other namespaces.
 *
 * RFC 0003: each process receives the job-level information of the namespaces other than its own.
 * libpmix's server packs it into the answer, but only that of namespaces which have a process in
 * the connect *on this server*. A server of muster has processes of one step alone.
 * So this names the others to libpmix while it makes the answer.
 *
 * Two functions of libpmix take part, and are found here by their names, as the program is searched
 * before its libraries: PMIx_Argv_append_nosize(), by which libpmix collects the namespaces, and
 * pmix_gds_shmem2_get_job_tracker(). The latter says that component shmem2 does not have a
 * namespace without processes here. Otherwise libpmix would read the namespace's shared memory,
 * which there is not; told so, it takes the copy of component hash. Component shmem3, which libpmix
 * has from 7.0 on in the place of shmem2, finds that out by itself. A libpmix with shmem2 that does
 * not come here for both is left alone, and its clients have to ask for these keys.
 */
#pragma once

#include <event2/event.h>
#include <stdbool.h>

/** Namespaces that the answer is to have. */
struct connect_reply;

/** @return an empty list */
struct connect_reply *connect_reply_new(void);

/** Adds a namespace that has no process on this server and that libpmix knows. */
void connect_reply_add(struct connect_reply *reply, const char *nspace);

void connect_reply_free(struct connect_reply *reply);

/** This thread gives libpmix a connect's result between these two: the answer that libpmix makes of
 * it, on its own thread, has what belongs to @p reply, which is taken over.
 * @param reply NULL: no other namespaces */
void connect_reply_begin(struct connect_reply *reply);
void connect_reply_end(void);

/** For event_assign(): libpmix has its own thread make the answer. @param callback what that thread
 * calls; may be changed, with @p arg */
void connect_reply_shift(evutil_socket_t fd, short events, event_callback_fn *callback, void **arg);
