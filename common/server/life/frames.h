/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * Frames on their way out and in. The functions are entries of the environments that core.c gives
 * to the engine, the questions and the link; each is described there.
 * @thread all of it: the loop's
 */
#pragma once

#include "common/server/server.h"

/** Opens the RM's back end and the port for direct connections, and takes the shape of the trees
 * that the RM gives. @return 0, or -1 with the reason in @p err */
int frames_open(struct server *server, struct err *err);

/** Of the engine and the questions. @param frame taken over */
void frames_send(void *arg, uint32_t node, struct wire_out *frame);
void frames_send_shared(void *arg, uint32_t node, struct wire_out *frame,
                        struct shared_bytes *body);

/** Of the link. */
void frames_native(void *arg, uint32_t node);
bool frames_connect(void *arg, uint32_t node);
void frames_ready(void *arg, uint32_t node);
void frames_stuck(void *arg, uint32_t node);

/** Hands a frame to the part that it is for. */
void frames_deliver(void *arg, uint32_t from, enum frame_type type, const void *body, size_t len,
                    struct shared_bytes *whole);
/** Hands on a message that server @p speaker has sent to all servers of the step. */
void frames_deliver_said(struct server *server, uint32_t speaker, const void *message, size_t len);

/** @return a server's name, for the log; borrowed */
const char *frames_name(void *arg, uint32_t node);
