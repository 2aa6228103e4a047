# SPDX-License-Identifier: BSD-3-Clause
"""Who is in the view: accusations, propose, state, commit, leaving. docs/view.md, "The view"."""
from trees import kids, parent


class Change:
    def begin_change(self):
        self.view, self.out, self.left = (0, -1), frozenset(), frozenset()
        self.live = list(range(self.n))
        self.views = [self.view]                # for the checks only
        self.ballot = self.asked = (0, -1)      # promised; the highest that I know of
        self.frozen, self.members, self.states = False, (), {}
        self.mine = None                        # my own proposal: ballot, whom it excludes, whom it lets go
        self.unreachable, self.pairs = set(), set()
        self.told, self.pinged, self.reached = set(), set(), set()
        self.last_commit = None                 # until all have it
        self.leavers, self.leaving, self.retry = set(), False, False
        self.go = set()                         # have left with this view; the head lets them go when it is settled
        self.goodbyes = set()                   # only without the rule leaver-state
        self.early = []

    # ---- accusations
    def notice(self, node):
        """The link says that node cannot be reached, for good."""
        if node not in self.unreachable and node not in self.out:
            self.unreachable.add(node)
            self.pairs.add((self.me, node))
            self.act()

    def accuse(self, frm, pairs, view):
        if view < self.view and self.last_commit and self.on('behind'):
            self.send(frm, self.last_commit)    # the server that should have handed it on is lost
        known = frozenset((self.me, node) for _, node in pairs if node in self.out)
        if view < self.view and known and self.on('confirm'):
            self.send(frm, ('accuse', known, self.view))    # if it may not take that commit, it proposes itself
        self.pairs |= pairs
        self.act()

    def act(self):
        """Passes what I know to the lowest server that I reach, or decides as the head."""
        self.pairs = {pair for pair in self.pairs if not self.out & set(pair)}
        reach = [m for m in self.live if m not in self.unreachable]
        to = reach[0]
        if to == self.me and len(reach) > 1 and self.on('check'):
            confirmed = {node for by, node in self.pairs if by != self.me}
            if any(m in self.unreachable and m not in confirmed for m in self.live if m < self.me):
                to = reach[1]                   # perhaps I alone do not reach the head
        if to == self.me:
            self.consider()
            return
        news = {pair for pair in self.pairs if (to, pair) not in self.told}
        if news:
            self.told |= {(to if self.on('repeat') else m, pair) for pair in news for m in self.live}
            self.send(to, ('accuse', frozenset(news), self.view))

    def consider(self):
        """As the head: who is excluded. Of two that do not reach each other the lower stays, unless it goes anyway."""
        outs = {node if by == self.me else by for by, node in self.pairs if self.me in (by, node)}
        for by, node in sorted(self.pairs, key=lambda pair: (min(pair), max(pair))):
            if self.me in (by, node) or (outs if self.on('goes') else self.unreachable) & {by, node}:
                continue
            if (by, node) in self.reached or not self.on('check'):
                outs.add(max(by, node) if self.on('check') else node)
            elif (by, node) not in self.pinged:
                self.pinged.add((by, node))
                self.send(node, ('ping', (by, node)))
        if outs - (self.mine[1] if self.mine else set()):
            self.proposal(outs)

    def ping(self, frm, pair):
        self.send(frm, ('pong', pair))

    def pong(self, frm, pair):
        self.reached.add(pair)
        self.act()

    # ---- leaving in order
    def leave(self):
        """All processes of this server have ended."""
        self.leaving = True
        for proc in self.net.procs[self.me]:
            if proc not in self.ended:
                self.process_ended(proc)
        if self.on('leaver-state'):
            self.ask_to_leave()
        else:
            for m in self.live:
                self.send(m, ('goodbye',))
            self.net.leave(self.me)

    def ask_to_leave(self):
        self.send([m for m in self.live if m not in self.unreachable][0], ('wish',))

    def wish(self, frm):
        self.leavers.add(frm)

    def goodbye(self, frm):                     # only without the rule leaver-state
        self.goodbyes.add(frm)
        self.notice(frm)

    def flush(self):
        """A batch of leavers is let go."""
        reach = [m for m in self.live if m not in self.unreachable]
        if reach[0] != self.me:
            for m in self.leavers:              # these were told an old head
                self.send(m, ('ask_again',))
            self.leavers = set()
        elif not self.mine and not self.frozen:
            self.proposal(set())

    # ---- propose, state, commit: each along the tree of the proposed servers
    def proposal(self, outs):
        self.retry = False
        self.asked = (max(self.ballot, self.asked)[0] + 1, self.me)
        self.mine = (self.asked, frozenset(outs), frozenset(self.leavers) - outs)
        members = [self.me] + [m for m in self.live if m != self.me and m not in outs]
        self.send(self.me, ('propose', self.asked, tuple(members)))

    def propose_again(self):
        self.retry = False
        if [m for m in self.live if m not in self.unreachable][0] == self.me:
            self.proposal(self.mine[1] if self.mine else set())

    def propose(self, frm, ballot, members):
        if ballot[1] in self.out:
            self.tell_out(ballot[1])
        elif ballot[1] == self.me and not (self.mine and self.mine[0] == ballot):
            return                              # I have proposed again since
        elif ballot <= self.ballot:
            self.send(ballot[1], ('nack', ballot, self.ballot))
        else:
            self.break_promise(ballot)
            self.ballot, self.members, self.states = ballot, members, {}
            self.frozen = self.on('freeze')
            if self.mine and self.mine[0] != ballot:
                self.mine = None
            for m in kids(members, self.me):
                self.send(m, ('propose', ballot, members))
            self.merge_states()

    def break_promise(self, ballot):
        """I have promised another proposer to wait for its commit, and take a higher ballot: it would wait for my state."""
        if self.ballot not in (self.view, ballot) and self.ballot[1] != ballot[1] and self.on('broken'):
            self.send(self.ballot[1], ('nack', self.ballot, ballot))

    def nack(self, frm, ballot, higher):
        if ballot == self.view or (self.mine and ballot == self.mine[0]):
            self.asked, self.retry = max(self.asked, higher), True

    def state(self, frm, ballot, state):
        if ballot == self.ballot and ballot != self.view:
            self.states[frm] = state
            self.merge_states()

    def merge_states(self):
        if any(m not in self.states for m in kids(self.members, self.me)):
            return
        mine = {'view': self.view, 'out': self.out, 'left': self.left, 'words': dict(self.words),
                'ends': {sig: list(e) for sig, e in self.ends.items()}}
        merged = self.union([mine] + [self.states[m] for m in kids(self.members, self.me)])
        if self.members[0] != self.me:
            self.send(parent(self.members, self.me), ('state', self.ballot, merged))
        elif self.mine and self.mine[0] == self.ballot:
            merged['out'] |= self.mine[1] | self.mine[2]
            merged['left'] |= self.mine[2] | (self.mine[1] & self.goodbyes)
            merged['newly'] = self.mine[1]
            self.send(self.me, ('commit', self.ballot, self.members, merged))

    def union(self, states):
        """Only states of the newest view count: what others know, its commit has carried."""
        top = max(s['view'] for s in states)
        union = {'view': top, 'out': frozenset(), 'left': frozenset(), 'words': {}, 'ends': {}}
        for s in states:
            if s['view'] == top:
                union['out'] |= s['out']
                union['left'] |= s['left']
                union['words'].update(s['words'])
            if s['view'] == top or not self.on('top'):
                for sig, ends in s['ends'].items():
                    for end in sorted(ends):
                        if end not in union['ends'].setdefault(sig, []):
                            union['ends'][sig].append(end)
        for sig, ends in union['ends'].items():
            kept = []
            for end in sorted(ends):
                kept = self.add_end(kept, end)
            union['ends'][sig] = kept
        return union

    def commit(self, frm, ballot, members, union):
        if ballot < self.ballot:
            for m in {frm, ballot[1]} if self.on('refuse') else ():
                self.send(m, ('nack', ballot, self.ballot))
            return
        if ballot == self.view:
            return
        for m in kids(members, self.me):
            self.send(m, ('commit', ballot, members, union))
        if self.me in union['out']:
            if self.me not in union['left']:
                self.net.kill(self.me)
            elif len(union['out']) == self.n or not self.on('let-go'):
                self.views.append(ballot)
                self.net.leave(self.me)
            return                              # who leaves stays until the view is settled: its commit may be lost
        self.break_promise(ballot)
        near = self.me in (members[0], *kids(members, members[0]))
        whom = {by for by, _ in self.pairs} | (union['newly'] if near else set())
        self.ballot, self.frozen, self.view, self.mine = ballot, False, ballot, None
        self.views.append(ballot)
        self.last_commit = ('commit', ballot, members, union)
        self.go |= union['left'] - self.left
        self.out, self.left = union['out'], union['left']
        self.live = [m for m in range(self.n) if m not in self.out]
        for m in whom & self.out:
            self.tell_out(m)
        for m in {by for by, node in self.pairs if node in self.out} - self.out - {self.me} if self.on('behind') else ():
            self.send(m, self.last_commit)      # when it accused a server that handed the commit on, it may lack it
        self.told, self.leavers = set(), self.leavers - self.out
        self.apply(union)
        if self.leaving:
            self.ask_to_leave()
        early, self.early = self.early, []
        for sender, message in early:
            self.take(sender, message)
        self.act()

    def tell_out(self, node):
        if self.on('out'):
            self.send(node, ('outcast', node in self.left, self.view, tuple(self.live)))

    def outweighs(self, view, live):
        """Of two views that exclude each other the heavier stays. A server of both counts for the higher ballot: it has
        promised that one, so it cannot enter the other any more."""
        mine, other = set(self.live), set(live)
        if self.on('shared'):
            mine, other = (mine, other - mine) if self.view > view else (mine - other, other)
        return (len(mine), -self.live[0]) > (len(other), -live[0])

    def outcast(self, frm, let_go, view, live):
        """I am not in the view of the others: I end, with my tasks, unless I wanted to leave anyway."""
        if frm in self.out and self.outweighs(view, live):
            self.tell_out(frm)
        elif let_go:
            self.views.append(view)
            self.net.leave(self.me)
        else:
            self.net.kill(self.me)
