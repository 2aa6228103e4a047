/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * The process sets of the own step, and of other steps that have become known: what libpmix and the
 * registry are told of them. Names are not unique over several steps, and libpmix has only names:
 * of two sets of one name, the set that was known first counts.
 * @thread all of it: the loop's
 */
#pragma once

#include "common/nspace/register.h"
#include "common/server/server.h"

/** Reads the own step's sets, before libpmix is started. @return 0, or -1 with the remedy in @p err
 */
int sets_open(struct server *server, struct err *err);

/** Defines them, once the namespace is registered. @return 0, or -1 with the reason in @p err */
int sets_define(struct server *server, struct err *err);

/** Adds a set of processes of the own step. All servers do so in one order. @param members
 * canonical
 * @return PMIX_SUCCESS, also when there is that very set; PMIX_ERR_EXISTS: another one has its
 * name; or why it cannot be */
int32_t sets_add(struct server *server, const char *name, const struct procset *members);

/** Registers another step's namespace with libpmix, and its sets. @param later NULL, or where the
 * registration is put: the caller gives it to register_there()
 * @return 0, or -1 with the reason in @p err */
int sets_register(struct server *server, const struct nspace *ns, struct registration **later,
                  struct err *err);

/** That namespace has ended, and so have its sets: processes here are told. */
void sets_delete(struct server *server, const struct nspace *ns);

/** Has libpmix forget the namespace. */
void sets_end(struct server *server, const struct nspace *ns);

/** Frees what is known of sets and of registered namespaces. */
void sets_close(struct server *server);
