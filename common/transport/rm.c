/* SPDX-License-Identifier: BSD-3-Clause */
/* How a server comes to be given up. Back ends hear of it in several ways and in any order, so
 * everything can happen in every state, and the first word counts. */
#include "common/transport/rm.h"

#include "common/util/states.h"

static const char *const state_names[RM_PEER_STATES] = {"open", "away", "left", "lost", "died"};
static const char *const event_names[RM_PEER_EVENTS] = {"part", "lose", "die"};

static const int table[RM_PEER_STATES][RM_PEER_EVENTS] = {
    /*                PART          LOSE          DIE */
    [RM_PEER_OPEN] = {RM_PEER_AWAY, RM_PEER_LOST, RM_PEER_DIED},
    [RM_PEER_AWAY] = {RM_PEER_AWAY, RM_PEER_LEFT, RM_PEER_LEFT},
    [RM_PEER_LEFT] = {RM_PEER_LEFT, RM_PEER_LEFT, RM_PEER_LEFT},
    [RM_PEER_LOST] = {RM_PEER_LOST, RM_PEER_LOST, RM_PEER_LOST},
    [RM_PEER_DIED] = {RM_PEER_DIED, RM_PEER_DIED, RM_PEER_DIED},
};

static const struct states life = {state_names, event_names, &table[0][0], RM_PEER_EVENTS};

bool rm_peer_move(enum rm_peer_state *state, enum rm_peer_event event, const char *name)
{
    bool was = rm_peer_is_lost(*state);
    *state = (enum rm_peer_state)states_next(&life, (int)*state, (int)event, "transport: server %s",
                                             name);
    return !was && rm_peer_is_lost(*state);
}
