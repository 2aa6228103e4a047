/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of how a server comes to be given up. */
#include "common/transport/rm.h"

#include "common/util/test_cmocka.h"

/* What a back end hears of a server, and where that is then. */
static void lives_of_peers(void **state)
{
    static const struct {
        enum rm_peer_event events[3];
        int n;
        enum rm_peer_state end;
    } lives[] = {
        {{0}, 0, RM_PEER_OPEN},
        {{RM_PEER_PART}, 1, RM_PEER_AWAY},
        {{RM_PEER_PART, RM_PEER_PART}, 2, RM_PEER_AWAY},
        {{RM_PEER_PART, RM_PEER_LOSE}, 2, RM_PEER_LEFT},
        {{RM_PEER_PART, RM_PEER_DIE}, 2, RM_PEER_LEFT}, /* its job ended first */
        {{RM_PEER_LOSE, RM_PEER_PART}, 2, RM_PEER_LOST},
        {{RM_PEER_LOSE, RM_PEER_DIE}, 2, RM_PEER_LOST}, /* it was silent before */
        {{RM_PEER_DIE, RM_PEER_LOSE, RM_PEER_PART}, 3, RM_PEER_DIED},
    };
    (void)state;
    for (size_t i = 0; i < sizeof lives / sizeof *lives; i++) {
        enum rm_peer_state peer = RM_PEER_OPEN;
        unsigned given_up = 0;
        for (int k = 0; k < lives[i].n; k++)
            given_up += rm_peer_move(&peer, lives[i].events[k], "c07");
        assert_int_equal(peer, lives[i].end);
        assert_int_equal(given_up, rm_peer_is_lost(peer)); /* once at most */
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(lives_of_peers)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
