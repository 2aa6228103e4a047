/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * Events about processes that are lost: PMIX_ERR_PROC_TERM_WO_SYNC and the like for the processes
 * of the step, PMIX_GROUP_MEMBER_FAILED for members of groups that the process was in and has not
 * left (PMIx standard, PMIX_GROUP_NOTIFY_TERMINATION).
 *
 * The server of a task that is lost raises them everywhere, by event.h; of a server that is lost
 * each server tells its own clients. Members are told once of each process in groups of an id.
 * @thread all of it: the loop's
 */
#pragma once

#include "common/server/server.h"

/** The task in @p slot of this node is lost: tells the step, and members of its groups, which may
 * be in other steps. @param text what happened */
void loss_task(struct server *server, uint32_t slot, const char *text);

/** Server @p node, of any step, is lost and its tasks with it: tells the processes here.
 * @param why what happened */
void loss_server(struct server *server, uint32_t node, const char *why);

/** Tells the members here that an operation of group @p id has gone on without a process.
 * @param members those of its members that are left */
void loss_tell_members(struct server *server, const char *id, const struct procset *members,
                       const char *nspace, uint32_t rank);

/** Tells the members on the node of a lost process, from here: its own server does not know the
 * construct. */
void loss_tell_node(struct server *server, const char *id, const struct procset *members,
                    const char *nspace, uint32_t rank);

/** A group was registered whose members are told of losses: a task of this node may be lost since
 * it has contributed, or a server before the result came. */
void loss_group_formed(struct server *server, const char *id, const struct procset *members);

/** A destruct was handed up that lacks a task of this node: when it succeeds, libpmix tells the
 * clients here, so we do not. */
void loss_group_ends(struct server *server, const char *id, const struct procset *members);

/** That destruct has succeeded: tells the clients here of those that libpmix does not tell of.
 * @param lacking tasks of this node that had not called when it was handed up, as far as libpmix
 *                knows them
 * @param at      now_ms() of that */
void loss_group_ended(struct server *server, const char *id, const struct procset *members,
                      uint32_t lacking, int64_t at);

/** That destruct has failed: tells them, as libpmix does not. */
void loss_group_stays(struct server *server, const char *id, const struct procset *members);
