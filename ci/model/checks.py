# SPDX-License-Identifier: BSD-3-Clause
"""What has to hold in every schedule. A schedule that breaks it raises Bad, with the invariant and its place."""
from collections import defaultdict


class Bad(Exception):
    pass


class Checks:
    def begin_checks(self):
        self.names = {}                         # (view, counter, decider) -> signature, end, calls that it counts
        self.answers = defaultdict(set)         # the same -> calls that were answered by it
        self.gone_calls = set()                 # calls whose processes have ended
        self.wins, self.fails = defaultdict(int), defaultdict(int)      # (server, signature or id and process)
        self.stories = defaultdict(list)        # server -> words, in the order in which it heard them
        self.in_step = set()
        self.failures = self.answered_questions = 0

    # ---- while it runs
    def decided(self, server, sig, end, calls):
        """A decider names an end. calls: (server, number), or (server, process, id, number) for listed ones."""
        if server.me not in self.alive:
            return
        name, plan = end[:3], self.sigs[sig]
        if name in self.names:
            raise Bad(f'id: {name} was given twice')
        self.names[name] = (sig, end, calls)
        self.failures += end[3] != 'ok'
        for call in calls:
            at = self.servers[call[0]]
            if call in self.gone_calls or (sig, call) in self.gone_calls or at.me not in self.alive or at.view != server.view:
                continue
            open_call = at.single.get((call[2], call[1])) if len(call) == 4 else at.call.get(sig)
            if not open_call or open_call[0] != call[-1]:
                raise Bad(f'count: {name} counts {call} of {sig}, which is not open')
        if end[3] == 'ok':
            have = {call[0] for call in calls if len(call) == 2}
            came = {call[1] for call in calls if len(call) == 4}
            for proc in plan.procs:
                if proc[0] not in have and proc not in end[4]:
                    raise Bad(f'complete: {name} of {sig} succeeds, and {proc} is neither there nor lost')
            for proc in plan.adds - plan.procs:
                if proc not in came and proc not in end[4]:
                    raise Bad(f'complete: {name} of {sig} succeeds without the added {proc}')
            if end[4] and not plan.survives:
                raise Bad(f'complete: {name} of {sig} succeeds, though {end[4]} are lost')
            if sig[0] == 'boot' and len([c for c in calls if c[1] in self.plans[sig[1]]['leaders']]) != self.plans[sig[1]]['count']:
                raise Bad(f'complete: {name} of {sig} has leaders {sorted(came)}')
            if self.calm:
                self.in_step.add((sig, server.view))
        elif end[3] == 'timeout' and (sig, server.view) in self.in_step:
            raise Bad(f'step: {name} of {sig} fails, though all call and none gives up')

    def answered(self, me, key, number, end):
        """key: a signature, or (id, process) for a call that knows the id only."""
        if me not in self.alive:
            return
        if end is None:
            self.fails[me, key] += 1
            self.answers[me, key, number].add((me, number))
            self.alone.add((me, key, number))
            return
        sig, decided, calls = self.names[end[:3]]
        single = key not in self.sigs
        call = (me, key[1], key[0], number) if single else (me, number)
        if decided != end:
            raise Bad(f'agree: {end} at {me} is {decided} elsewhere')
        if (not single and sig != key) or (end[3] == 'ok' and call not in calls) or (single and call not in end[5]):
            raise Bad(f'foreign: call {call} of {key} is answered by {end[:3]} of {sig}, which did not count it')
        self.answers[end[:3]].add(call)
        self.latest = me if end[3] == 'ok' else self.latest
        (self.wins if end[3] == 'ok' else self.fails)[me, key] += 1
        self.trace(f'{me}: call {number} of {key} ends with {end}')

    def dropped(self, me, key, number):
        """The processes of a call have ended: nobody waits for its answer."""
        if key in self.sigs:
            self.gone_calls.add((key, (me, number)))
        else:
            self.gone_calls.add((me, key[1], key[0], number))

    def heard(self, me, word, at):
        if me in self.alive:
            self.stories[me].append(word)
            self.trace(f'{me}: hears word {word} at {at}')

    def gathered(self, me, question, who):
        if me in self.alive:
            self.answered_questions += 1
            if who != set(self.servers[me].live):
                raise Bad(f'gather: {question} has the answers of {sorted(who)}, and {self.servers[me].live} are in the view')

    # ---- at rest
    def check(self):
        if not self.alive:
            return
        whole = {self.servers[i].view for i in self.alive}
        if len(whole) > 1:
            raise Bad(f'hang: views {[(i, self.servers[i].view) for i in sorted(self.alive)]}')
        for i in sorted(self.alive):
            self.check_server(self.servers[i])
        seen = {view for i in self.alive for view in self.servers[i].views}
        if self.cuts or self.hangs:             # not from a part that was cut off
            self.left_in_order = {i for i in self.left_in_order if self.servers[i].views[-1] in seen}
        longest = max((self.stories[i] for i in self.alive), key=len, default=[])
        for i in self.alive | self.left_in_order:
            if self.stories[i] != longest[:len(self.stories[i])] or (i in self.alive and self.stories[i] != longest):
                raise Bad(f'words: {i} heard {self.stories[i]}, others {longest}')
        if len(longest) != len(set(longest)):
            raise Bad(f'words: one was heard twice in {longest}')
        for name, calls in self.answers.items():
            self.check_end(name, calls)
        if self.only_cut and len(self.n_list) - len(self.alive) - len(self.left_in_order) > self.cuts + self.parts:
            raise Bad(f'cut: {self.cuts} cuts have ended {len(self.n_list) - len(self.alive)} servers')

    def check_server(self, s):
        if s.call or s.frozen:
            raise Bad(f'hang: {s.me} waits: {s.call} in view {s.view}, frozen {s.frozen}')
        if s.my_words or s.asking:
            raise Bad(f'hang: {s.me} has said {s.my_words} and asks {s.asking}')
        for (name, proc), call in s.single.items():
            if not self.may_wait(s, name, proc):
                raise Bad(f'hang: call {call} of {proc} for {name} at {s.me}')
        wait = {sig: got for sig, got in s.tally.items()
                if any((sig, call) not in self.gone_calls for calls, _ in got.values() for call in calls)}
        tables = {'ends': s.ends, 'tally': wait, 'ready': [g for g in s.ready if g in wait], 'words': s.words, 'early': s.early, 'acks': s.acks,
                  'heard': s.heard, 'acked': s.acked, 'listed': s.listed, 'questions': s.questions, 'waiting': s.waiting_words, 'sent': s.sent & set(wait)}
        for word, table in tables.items():
            if table:
                raise Bad(f'memory: {word} of {s.me} at rest: {table}')

    def may_wait(self, s, name, proc):
        """An added member may wait for leaders that call no more; a leader for one that is lost."""
        plan = self.plans[name]
        return proc not in plan['leaders'] or any(self.is_gone(p) for p in plan['leaders'] | plan['adds'])

    def check_end(self, name, calls):
        """A success that anybody has who is left, all have whom it counts; a failure, all whom it lists."""
        if name not in self.names:
            return
        sig, end, counted = self.names[name]
        left = self.alive | self.left_in_order
        if not any(call[0] in left for call in calls):
            return
        for call in counted if end[3] == 'ok' else end[5]:
            if call[0] in self.alive and call not in calls and call not in self.gone_calls and (sig, call) not in self.gone_calls:
                raise Bad(f'agree: {call} of {sig} is counted by {name}, which answered {sorted(calls)}, and got another answer')
