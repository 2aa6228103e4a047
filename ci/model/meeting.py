# SPDX-License-Identifier: BSD-3-Clause
"""The meeting: all calls of one group id. Participants who know each other come by the tree of their signature;
added members and the leaders of a bootstrap call the decider directly. docs/view.md, "The meeting".

A listed call is (server, process, id, number); an end names those that it answers."""
from operations import LISTED


class Meeting:
    def begin_meeting(self):
        self.single, self.singles = {}, {}      # (id, process) -> [number, expired, how]; calls so far
        self.fresh_meeting()

    def fresh_meeting(self):
        """What lives no longer than a view."""
        self.pool = {}                          # as a decider: id -> {(server, process): (number, how)}
        self.ready = {}                         # as a decider: signature -> complete, perhaps waiting for added members

    def decider(self, name):
        return self.live[self.net.hash(name) % len(self.live)]

    # ---- calls that know the id only
    def call_single(self, name, proc, how):
        number = self.singles[name, proc] = self.singles.get((name, proc), 0) + 1
        self.single[name, proc] = [number, False, how]
        if not self.frozen:
            self.send(self.decider(name), ('meet', self.view, name, proc, number, how))

    def expire_single(self, name, proc):
        call = self.single[name, proc]
        call[1] = True
        if not self.frozen:
            self.send(self.decider(name), ('late_single', self.view, name, proc, call[0]))

    def drop_listed_calls(self, proc):
        for key in [k for k in self.single if k[1] == proc]:
            self.net.dropped(self.me, key, self.single.pop(key)[0])

    def answer_listed(self, sig, end):
        for server, proc, name, number in end[LISTED]:
            call = self.single.get((name, proc))
            if server == self.me and call and (call[0] == number or not self.on('took')):
                del self.single[name, proc]
                self.net.answered(self.me, (name, proc), call[0], end)

    def meet_again(self):
        for (name, proc), (number, expired, how) in sorted(self.single.items()) if self.on('again') else ():
            self.send(self.decider(name), ('meet', self.view, name, proc, number, how))
            if expired:
                self.send(self.decider(name), ('late_single', self.view, name, proc, number))

    # ---- at the decider
    def meet(self, frm, name, proc, number, how):
        if self.lost(proc):
            return
        self.pool.setdefault(name, {})[frm, proc] = (number, how)
        self.evaluate(name)

    def boots(self, name):
        return [(m, p, name, number) for (m, p), (number, how) in self.pool.get(name, {}).items() if how[0] == 'leader']

    def waiting(self, name, procs):
        return [(m, p, name, number) for (m, p), (number, how) in self.pool.get(name, {}).items()
                if p in procs and how[0] == 'member']

    def complete(self, sig, calls, without):
        self.ready[sig] = (calls, without)
        self.try_ready(sig)

    def try_ready(self, sig):
        """All who know each other have called: are the members there that they add?"""
        plan, (calls, without) = self.net.sigs[sig], self.ready[sig]
        if not plan.survives and (without or any(self.lost(p) for p in plan.procs)):
            self.fail_all(sig, 'lost', without)
            return
        need = {p for p in plan.adds if p not in plan.procs}
        lost = {p for p in need if self.lost(p)}
        took = self.waiting(plan.name, need)
        if lost and not plan.survives:
            self.fail_all(sig, 'lost', without)
        elif {p for _, p, _, _ in took} >= need - lost:
            self.finish(sig, 'ok', without, calls, took)

    def fail_all(self, sig, status, lost):
        plan = self.net.sigs[sig]
        self.finish(sig, status, lost, frozenset(), self.waiting(plan.name, plan.adds))

    def finish(self, sig, status, lost, calls, took):
        self.ready.pop(sig, None)
        for server, proc, name, _ in took:
            del self.pool[name][server, proc]
            if not self.pool[name]:
                del self.pool[name]
        self.decide(sig, status, lost, calls | frozenset((m, p, g, k) for m, p, g, k in took), took)

    def evaluate(self, name):
        for sig in [g for g in sorted(self.ready, key=str) if self.net.sigs[g].name == name]:
            self.try_ready(sig)
        boots = self.boots(name)
        if not boots:
            return
        count = self.pool[name][boots[0][0], boots[0][1]][1][1]
        adds = {p for m, p, _, _ in boots for p in self.pool[name][m, p][1][2]} - {p for _, p, _, _ in boots}
        took = self.waiting(name, adds)
        if len(boots) >= count and any(self.lost(p) for p in adds):
            self.finish(('boot', name), 'lost', frozenset(), frozenset(), boots + took)
        elif len(boots) >= count and {p for _, p, _, _ in took} >= adds:
            self.finish(('boot', name), 'ok', frozenset(), frozenset(), boots + took)

    def late_single(self, frm, name, proc, number):
        """The deadline of one call; when that call is not here, it has ended."""
        number_here, how = self.pool.get(name, {}).get((frm, proc), (0, None))
        if number_here != number:
            return
        boots = self.boots(name)
        for sig in sorted(self.tally, key=str):
            if how[0] == 'member' and self.net.sigs[sig].name == name and proc in self.net.sigs[sig].adds:
                self.fail_all(sig, 'timeout', frozenset())
                return
        adds = {p for m, p, _, _ in boots for p in self.pool[name][m, p][1][2]}
        whom = boots + self.waiting(name, adds) if how[0] == 'leader' or proc in adds else [(frm, proc, name, number)]
        self.finish(('boot', name), 'timeout', frozenset(), frozenset(), whom)

    # ---- losses
    def meet_gone(self, proc):
        for name in sorted(self.pool):
            boots = self.boots(name)
            if proc in {p for _, p, _, _ in boots}:
                adds = {p for m, p, _, _ in boots for p in self.pool[name][m, p][1][2]}
                self.finish(('boot', name), 'lost', frozenset([proc]), frozenset(), boots + self.waiting(name, adds))
            else:
                for key in [k for k in self.pool[name] if k[1] == proc]:
                    del self.pool[name][key]
                if self.pool[name]:
                    self.evaluate(name)
                else:
                    del self.pool[name]
        for sig in [g for g in sorted(self.ready, key=str) if proc in self.net.sigs[g].adds]:
            if sig in self.ready:
                self.try_ready(sig)
