/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * What is under way to one server: the messages that it was given and has not said to have taken,
 * and how much of that each sender has.
 *
 * A broker does this for all users at once, so no call walks the messages or the senders of others:
 * messages stand in the order of their tickets, a sender is found by a hash of its connection, and
 * a message knows the next one of the same sender.
 * @thread all of it: the broker module's
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct sender;

/** One message. */
struct transfer {
    struct transfer *next;  /**< the one after it */
    struct transfer *later; /**< the one after it of the same sender */
    struct sender *sender;  /**< borrowed: it lives as long as it has messages */
    uint64_t ticket;
    uint64_t job; /**< of the sender, as it says; as the next two */
    uint32_t node, broker;
    const void *request; /**< the directory's */
    size_t len;          /**< of the bytes that it hands over: the sender counts the same */
    int64_t since;
};

/** All messages to one server. */
struct transfers {
    struct transfer *first, **end; /**< in the order of their tickets */
    uint64_t messages, bytes;
    uint64_t max_messages, max_bytes;
    struct sender *
        *senders;    /**< by a hash of their connections; as many chains as messages, or more */
    uint32_t mask;   /**< of that hash */
    uint64_t looked; /**< at how many messages and senders, ever: for tests of what this costs */
};

/**
 * Begins with none.
 * @param nnodes of the server's job, which says how much may be under way
 * @return 0 or an errno
 */
int transfers_open(struct transfers *transfers, uint32_t nnodes);

/** Frees all; transfers_take() has come to its end. */
void transfers_close(struct transfers *transfers);

/** @return whether a sender has to wait: it has a window under way, or there is too much of others.
 * @param uuid of its connection, borrowed */
bool transfers_full(struct transfers *transfers, const char *uuid);

/** @return a message that is not under way yet, or NULL when out of memory; for transfers_add() or
 * transfers_drop(). @param from job, node and broker are copied @param uuid copied */
struct transfer *transfers_new(struct transfers *transfers, const struct transfer *from,
                               const char *uuid);

/** From now on it is under way. Its ticket, length and request are set, and the ticket is higher
 * than those before. */
void transfers_add(struct transfers *transfers, struct transfer *t);

/** Frees one that did not get under way. */
void transfers_drop(struct transfers *transfers, struct transfer *t);

/**
 * Takes the oldest one with a ticket up to @p ticket.
 * @param covered set to whether there is a later one of the same sender, up to @p ticket too
 * @return its request, or NULL: there is none
 */
const void *transfers_take(struct transfers *transfers, uint64_t ticket, bool *covered);
