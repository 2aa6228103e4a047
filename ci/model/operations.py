# SPDX-License-Identifier: BSD-3-Clause
"""Operations: contributions go up a tree, ends go down it, then they are forgotten. docs/view.md, "Operations".

An end is (view, counter of the decider, decider, status, lost processes, calls that it lists)."""
from trees import below, kids, parent

LISTED = 5                                      # where an end has its list of calls


class Operations:
    def begin_operations(self):
        self.count, self.call = {}, {}          # signature -> calls so far; the open call: number, expired, base
        self.ends = {}                          # signature -> ends that not all have heard
        self.ended, self.gone = set(), set()    # own processes that have ended; processes that a word has named
        self.fresh_operations()

    def fresh_operations(self):
        """What lives no longer than a view."""
        self.tally, self.sent = {}, set()       # signature -> {child or me: (calls, processes done without)}
        self.counter, self.top = 0, {}          # mine as a decider; decider -> the highest that I have heard
        self.heard, self.acks, self.acked = {}, {}, {}
        self.listed = {}                        # as a decider: signature -> {counter: servers outside of the tree}

    # ---- the tree of a signature
    def root(self, sig):
        return self.live[self.net.sigs[sig].hash % len(self.live)]

    def order(self, sig):
        root = self.root(sig)
        return [root] + [m for m in self.net.sigs[sig].servers if m in self.live and m != root]

    def lost(self, proc):
        return proc[0] in self.out or proc in self.gone or proc in self.ended

    # ---- the program calls, and is answered
    def begin(self, sig):
        self.count[sig] = self.count.get(sig, 0) + 1
        self.call[sig] = [self.count[sig], False, (self.view, self.top.get(self.root(sig), 0))]
        if not self.frozen:
            self.contribute(sig)

    def expire(self, sig):
        self.call[sig][1] = True
        if not self.frozen:
            self.fail(sig, 'timeout')

    def process_ended(self, proc):
        self.ended.add(proc)
        for sig in [g for g in self.call if all(p in self.ended for p in self.net.sigs[g].at(self.me))]:
            self.net.dropped(self.me, sig, self.call.pop(sig)[0])
        self.drop_listed_calls(proc)
        self.say(('gone', proc))

    def hear_gone(self, proc):
        self.gone.add(proc)
        if self.frozen or self.applying or not self.on('gone-check'):
            return
        for sig in sorted(self.net.naming(proc)):
            if sig in self.call:
                self.contribute(sig)
            elif sig in self.tally:
                self.look(sig)
        self.meet_gone(proc)

    # ---- up
    def mark(self, sig):
        """The last end of this view that I have heard and not forgotten."""
        return max((e[1] for e in self.ends.get(sig, ()) if e[0] == self.view or not self.on('marks')), default=0)

    def contribute(self, sig):
        call = self.call[sig]
        lost = [p for p in self.net.sigs[sig].procs if self.lost(p)]
        if lost and not self.net.sigs[sig].survives:
            if not self.on('gone-ask'):
                self.net.answered(self.me, sig, self.call.pop(sig)[0], None)
                return
            self.fail(sig, 'lost')
        else:
            self.tally.setdefault(sig, {})[self.me] = (frozenset([(self.me, call[0])]),
                                                       frozenset(p for p in lost if p[0] == self.me))
            self.look(sig)
        if call[1] and self.call.get(sig) is call:
            self.fail(sig, 'timeout')

    def contribution(self, frm, sig, mark, calls, without):
        if mark < self.mark(sig) and self.on('late'):
            return
        self.tally.setdefault(sig, {})[frm] = (calls, without)
        self.look(sig)

    def look(self, sig):
        """Is my subtree complete: has each server contributed, or none of its processes left?"""
        order, got = self.order(sig), self.tally.get(sig, {})
        calls, without = frozenset(), frozenset()
        for slot, servers in [(self.me, {self.me})] + [(m, below(order, m)) for m in kids(order, self.me)]:
            here = [p for p in self.net.sigs[sig].procs if p[0] in servers]
            if slot in got:
                calls, without = calls | got[slot][0], without | got[slot][1]
            elif all(self.lost(p) for p in here):
                without |= frozenset(here)
            else:
                return
        if not self.on('excused'):
            without = frozenset()
        if order[0] == self.me:
            self.complete(sig, calls, without)
        elif sig not in self.sent:
            self.sent.add(sig)
            self.send(parent(order, self.me), ('contribution', self.view, sig, self.mark(sig), calls, without))

    def fail(self, sig, status):
        lost = frozenset(p for p in self.net.sigs[sig].procs if self.lost(p))
        self.failure(self.me, sig, self.mark(sig), status, lost)

    def failure(self, frm, sig, mark, status, lost):
        if mark < self.mark(sig) and self.on('late-failure'):
            return
        order = self.order(sig)
        if order[0] == self.me:
            self.fail_all(sig, status, lost)
        else:
            self.send(parent(order, self.me), ('failure', self.view, sig, self.mark(sig), status, lost))

    # ---- down
    def decide(self, sig, status, lost, calls, listed=()):
        self.counter += 1
        procs = self.net.sigs[sig].procs | self.net.sigs[sig].adds
        lost = frozenset(p for p in procs if self.lost(p)) | lost
        end = (self.view, self.counter, self.me, status, tuple(sorted(lost)), tuple(sorted(listed)))
        self.net.decided(self, sig, end, calls)
        others = {m for m, _, _, _ in listed if m in self.live} - set(self.order(sig))
        if others:
            self.listed.setdefault(sig, {})[self.counter] = set(others)
        for m in sorted(others):
            self.send(m, ('end', self.view, sig, end))
        self.end(self.me, sig, end)

    def end(self, frm, sig, end):
        order = self.order(sig)
        for m in kids(order, self.me) if self.me in order else ():
            self.send(m, ('end', self.view, sig, end))
        if self.on('clear'):
            self.tally.pop(sig, None)
        self.sent.discard(sig)
        self.heard[sig] = end[1]
        self.top[end[2]] = max(self.top.get(end[2], 0), end[1])
        self.ends[sig] = self.add_end(self.ends.get(sig, []), end)
        if not self.on('own-forget'):
            del self.ends[sig]
        if sig in self.call:
            self.net.answered(self.me, sig, self.call.pop(sig)[0], end)
        self.answer_listed(sig, end)
        self.ack(sig)

    def add_end(self, ends, end):
        """Kept: the last success, the last failure behind it, and each that lists calls."""
        if not self.on('two-ends'):
            return [end]
        ok = end[3] == 'ok'
        return [e for e in ends if (e[LISTED] and self.on('took-kept')) or (e[3] == 'ok' and not ok)] + [end]

    # ---- heard goes up, settled comes down; then an end may be forgotten
    def ack(self, sig):
        order = self.order(sig)
        acks = self.acks.get(sig, {})
        low = min([self.heard.get(sig, 0)] + [acks.get(m, 0) for m in kids(order, self.me)] if self.me in order
                  else [self.heard[sig]])
        for counter, servers in self.listed.get(sig, {}).items():
            low = min(low, counter - 1) if servers else low
        if low <= self.acked.get(sig, 0) or not self.on('forget'):
            return
        self.acked[sig] = low
        if order[0] == self.me:
            self.settled(self.me, sig, low)
        else:
            self.send(parent(order, self.me) if self.me in order else order[0], ('heard_by', self.view, sig, low))

    def heard_by(self, frm, sig, low):
        if frm in kids(self.order(sig), self.me):
            self.acks.setdefault(sig, {})[frm] = low
        for counter, servers in self.listed.get(sig, {}).items():
            if counter <= low:
                servers.discard(frm)
        self.ack(sig)

    def settled(self, frm, sig, low):
        order = self.order(sig)
        to = set(kids(order, self.me)) if self.me in order else set()
        listed = self.listed.get(sig, {})
        for end in self.ends.get(sig, ()):
            if order[0] == self.me and end[0] == self.view and end[1] <= low:
                to |= {m for m, _, _, _ in end[LISTED] if m in self.live and m not in order}
                listed.pop(end[1], None)
        for m in sorted(to):
            self.send(m, ('settled', self.view, sig, low))
        self.keep_ends(sig, [e for e in self.ends.get(sig, ()) if e[0] != self.view or e[1] > low])
        if self.heard.get(sig, 0) <= low:
            for table in (self.heard, self.acks, self.acked, self.listed):
                table.pop(sig, None)

    def keep_ends(self, sig, ends):
        if ends:
            self.ends[sig] = ends
        else:
            self.ends.pop(sig, None)

    def forget_older(self):
        for sig in list(self.ends) if self.on('forget') else ():
            self.keep_ends(sig, [e for e in self.ends[sig] if e[0] == self.view])

    # ---- a new view
    def apply(self, union):
        """Words first, then ends; then all that is still open is said again."""
        self.applying = True
        self.fresh_operations()
        self.fresh_meeting()
        self.apply_words(union['words'])
        ends = union['ends'] if self.on('union') else {}
        self.ends = {}
        for sig in sorted(ends, key=str):
            self.ends[sig] = list(ends[sig]) if self.on('old-ends') and self.on('own-forget') else []
            for end in sorted(ends[sig]):
                call = self.call.get(sig)
                if call and (end[:2] > call[2] or not self.on('base')):
                    self.net.answered(self.me, sig, self.call.pop(sig)[0], end)
                self.answer_listed(sig, end)
            self.keep_ends(sig, self.ends[sig])
        self.applying = False
        self.words_again()
        for sig in sorted(self.call, key=str) if self.on('again') else ():
            if sig in self.call:
                self.contribute(sig)
        self.meet_again()
