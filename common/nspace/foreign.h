/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * Namespaces of other steps of the same user: learnt from their servers, and forgotten.
 *
 * A registration is what boot_write_nspace() writes. The RM vouches that its sender is a
 * process of the job's user; that it makes sense is checked here.
 * @thread the loop's
 */
#pragma once

#include "common/nspace/nspace.h"

enum {
    FOREIGN_MAX = 16384,           /**< namespaces that are known at once */
    FOREIGN_HANDLES_MAX = 1 << 24, /**< servers of all steps */
};

/** How well a namespace is known. foreign.c has the table of how it moves. */
enum foreign_state {
    FOREIGN_NAMED,      /**< only name and size are known: its servers have handles */
    FOREIGN_LEARNT,     /**< its registration is here */
    FOREIGN_LEFT,       /**< its servers have gone; it is kept for some seconds */
    FOREIGN_REGISTERED, /**< libpmix knows it, too */
    FOREIGN_OVER,       /**< as LEFT, and libpmix knows it */
    FOREIGN_HELD,       /**< these seconds have passed; a group has members there */
    FOREIGN_FORGOTTEN,  /**< only its handles are left */
    FOREIGN_STATES,
};

/** What can happen to it. */
enum foreign_event {
    FOREIGN_LEARN,
    FOREIGN_REGISTER,
    FOREIGN_END,  /**< all of its servers have gone */
    FOREIGN_HOLD, /**< it would be forgotten, but a group has members there */
    FOREIGN_FORGET,
    FOREIGN_EVENTS,
};

/** What is known of a namespace beside its registration. A program may spawn for days: of a
 * namespace that was forgotten, no more than this is kept, and the names, for the log. */
struct foreign {
    const char *name; /**< owned; "" once it was forgotten */
    uint64_t step;    /**< nspace_hash(), as frames have it */
    uint64_t run;     /**< boot::run of its step */
    bool placed;      /**< the back end knows the names of its nodes */
    bool *gone; /**< node → its server has left, or is lost; NULL: all of them: foreign_gone() */
    enum foreign_state state;
    int64_t until;     /**< LEFT, OVER: until when it is kept, ms */
    char **names;      /**< node → "NAMESPACE/NODE" */
    struct boot *boot; /**< what nspace::boot points to; NULL: no more than its size is known */
};

/** Gives handles to a namespace of which only the size is known, unless it has some.
 * @param run boot::run of its step
 * @return it, or NULL with the reason in @p err */
struct nspace *foreign_attach(struct nspace *own, const char *name, uint64_t run, uint32_t nnodes,
                              struct err *err);

/**
 * Learns a registration, which may be known already.
 * @param step hash that its name and run must have; 0: any
 * @param boot what boot_read_nspace() has read of @p data; may be taken over
 * @return the namespace, or NULL with the reason in @p err: it makes no sense, or the name is known
 *         with other contents
 */
struct nspace *foreign_learn(struct nspace *own, uint64_t step, struct boot *boot, const void *data,
                             size_t len, struct err *err);

/** @return 0 and the handle of server @p index of another step, -1: that is not known, or 1: the
 * step was forgotten */
int foreign_server(const struct nspace *own, uint64_t step, uint32_t index, uint32_t *node);

/** @return whether server @p node of another step has left, or is lost */
bool foreign_gone(const struct nspace *ns, uint32_t node);

/** @return whether all of its servers have gone, and it is not forgotten; false for the own one */
bool foreign_has_ended(const struct nspace *ns);

/** Notes that @p node was told of @p ns. @return whether it had to be told: it did not know */
bool foreign_tell(struct nspace *ns, uint32_t node);

/** Notes what has happened to a namespace. */
void foreign_move(struct nspace *ns, enum foreign_event event);

/** Forgets all of a namespace but its handles, which no other one gets. */
void foreign_forget(struct nspace *ns);

/** Frees the own namespace, and those of other steps behind it. @param own NULL: nothing happens */
void nspaces_free(struct nspace *own);
