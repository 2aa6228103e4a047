# SPDX-License-Identifier: BSD-3-Clause
"""A k-ary tree over a list of servers: its first is the root. Two is the arity here, so that few servers make deep trees."""

ARITY = 2


def parent(order, me):
    return order[(order.index(me) - 1) // ARITY]


def kids(order, me):
    first = ARITY * order.index(me) + 1
    return order[first:first + ARITY]


def below(order, me):
    """The servers of the subtree of me, me included."""
    found = {me}
    for kid in kids(order, me):
        found |= below(order, kid)
    return found
