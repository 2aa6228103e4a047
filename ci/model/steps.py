# SPDX-License-Identifier: BSD-3-Clause
"""Operations over several steps, docs/view.md, "Several steps". A step is one object here: what the other files show of a
step, that its words survive the loss of its head once a server has heard them, is taken for granted. What a head knows besides
is lost with it, and so are frames on their way to it. One operation, called again and again, by all steps."""
import random
from checks import Bad

RULES = {
    'steps-settle-first': 'the deciding head tells other steps before its own has heard the end',
    'steps-greet': 'a new head does not greet the other steps',
    'steps-adopt': 'the next decider does not ask what the others have',
    'steps-one-at-a-time': 'the decider names the next end before all have acknowledged the last',
}


class Step:
    def __init__(self, net, me, steps):
        self.net, self.me, self.steps = net, me, steps
        self.head, self.heads = 0, {}                   # incarnations of heads: mine, and those I have heard of
        self.said = []                                  # words on their way; [word, whether a server has heard it]
        self.ended, self.call, self.calls, self.got = set(), None, 0, {}
        self.gone, self.gone_end = 0, None              # the last end that was heard: its number, and
        self.count = 0                                  # (number, decider, count, status, calls)
        self.new_head()

    def on(self, rule):
        return self.net.without != rule

    def new_head(self):
        self.open, self.went, self.asked, self.states = {}, set(), False, {}
        self.failed = set()

    # ---- words of this step
    def say(self, *word):
        if list(word) not in [w for w, _ in self.said]:
            self.said.append([list(word), False])

    def hear(self):
        """One server, at least, hears the next word: from now on it survives. Calls are answered."""
        entry = next(e for e in self.said if not e[1])
        entry[1] = True
        kind, what = entry[0]
        if kind == 'ended':
            self.ended.add(what)
        elif what[0] == self.gone + 1 and (what[1] not in self.ended or what[5]):
            self.gone, self.gone_end = what[0], what
            self.count = max(self.count, what[2])
            self.open, self.failed, self.went = {}, set(), set()
            self.answer(what)

    def answer(self, end):
        if self.me in self.net.alive:
            if self.got.setdefault(end[0], end[3]) != end[3]:
                raise Bad(f'agree: {self.me} answers {end} after {self.got[end[0]]}')
            if self.call and end[3] == 'ok' and (self.me, self.call[0]) not in end[4]:
                raise Bad(f'foreign: {end} answers call {self.call} of {self.me}')
            self.net.trace(f'{self.me}: {end} answers {self.call}')
            self.call = None

    def settle(self):
        (kind, what), _ = self.said.pop(0)
        decider = self.decider()
        if kind == 'end' and self.gone_end == what:
            self.tell_end() if decider == self.me else self.send(decider, 'acked', what[0])
        elif kind == 'ended':
            self.new_head_after(what)
        self.act()

    # ---- the head
    def decider(self):
        return min(s for s in self.steps if s not in self.ended)

    def others(self):
        return [s for s in self.steps if s != self.me and s not in self.ended]

    def send(self, to, *message):
        self.net.send(self.me, to, (self.head, *message))

    def crash(self):
        """The head is lost: words that no server has heard, and all that only the head knew."""
        for word, heard in self.said:
            if word[0] == 'ended' and not heard:
                self.net.notices.append((self.me, word[1]))     # the next head learns of it as this one did
        self.said = [e for e in self.said if e[1]]
        self.head += 1
        self.new_head()
        for s in self.others() if self.on('steps-greet') else ():
            self.send(s, 'greet')
        self.repeat(self.decider())
        if self.decider() == self.me:
            self.contribute()
        self.act()

    def greet(self, frm):
        self.repeat(frm)
        self.act()

    def repeat(self, to):
        """What the head of that step may not have."""
        if self.decider() == self.me:
            self.asked = self.asked and to in self.states
            self.tell_end()
        elif to == self.decider():
            self.contribute()
            if self.gone_end and self.settled():
                self.send(to, 'acked', self.gone)

    def settled(self):
        return ['end', self.gone_end] not in [w for w, _ in self.said]

    def tell_end(self):
        for s in self.others() if self.gone_end and self.settled() else ():
            self.send(s, 'end', self.gone_end)

    def contribute(self):
        if self.call:
            number, late = self.call
            if self.decider() == self.me:
                self.contribution(self.me, self.gone, number, late)
            else:
                self.send(self.decider(), 'contribution', self.gone, number, late)

    def contribution(self, frm, gone, number, late):
        if gone == self.gone:
            self.open[frm] = number
            if late:
                self.failed.add(frm)
            self.act()

    def act(self):
        """As the deciding head: name the next end when all is there."""
        if self.decider() != self.me or any(w[0] in ('end', 'ended') for w, _ in self.said):
            return
        if self.ended and not self.asked:
            self.asked = True                           # another has decided before me
            self.states = {}
            for s in self.others():
                self.send(s, 'what', frozenset(self.ended))
        if self.ended and not set(self.others()) <= set(self.states):
            return
        if self.ended and self.states.get('done') is None:
            self.states['done'] = True
            if self.take_over():
                return
        waits = self.on('steps-one-at-a-time') and self.gone and not set(self.others()) <= self.went
        if waits or not self.open:
            return
        lost = len(self.others()) + 1 < len(self.steps)
        if lost or self.failed or set(self.open) >= set(self.others()) | {self.me}:
            status = 'lost' if lost else 'timeout' if self.failed else 'ok'
            self.name(status, frozenset(self.open.items()))

    def name(self, status, calls):
        self.count += 1
        end = (self.gone + 1, self.me, self.count, status, calls, False)
        self.say('end', end)
        if not self.on('steps-settle-first'):
            for s in self.others():
                self.send(s, 'end', end)

    def end(self, frm, end):
        if end[0] == self.gone + 1:
            self.say('end', end)
        elif end[0] <= self.gone and self.settled():
            self.send(frm, 'acked', end[0])

    def acked(self, frm, number):
        if number == self.gone:
            self.went.add(frm)
        self.act()

    # ---- a step has ended
    def step_ended(self, step):
        self.say('ended', step)

    def new_head_after(self, step):
        self.asked, self.states = False, {}
        self.contribute()

    def what(self, frm, ended):
        known = {w[1] for w, _ in self.said if w[0] == 'ended'}
        if not ended <= self.ended or ended & known:
            self.net.later(self.me, frm, ended)         # when my step has heard it, too
        else:
            self.send(frm, 'state', ended, self.gone, self.gone_end)

    def state(self, frm, ended, gone, gone_end):
        if ended == self.ended:
            self.states[frm] = (gone, gone_end)
            self.act()

    def take_over(self):
        """As the next decider, when all have said what they have: the newest end that any has is everybody's."""
        states = {s: self.states[s] for s in self.others()} | {self.me: (self.gone, self.gone_end)}
        gone, end = max(states.values(), key=lambda state: state[0])
        if not self.on('steps-adopt') or all(state[0] == gone for state in states.values()):
            self.went = set(self.others())
            return False
        end = (*end[:5], True)                          # taken, though its decider has ended
        for s in self.others():
            self.send(s, 'end', end)
        if self.gone < gone:
            self.say('end', end)
        self.asked, self.states = False, {}
        self.net.later(self.me, None, None)
        return True


class Steps:
    """One schedule."""
    def __init__(self, seed, without='', tracing=False):
        self.r = r = random.Random(seed)
        self.without, self.tracing, self.now = without, tracing, 0
        self.n = r.randint(2, 4)
        self.alive, self.queues, self.notices, self.delayed = set(range(self.n)), {}, [], []
        self.steps_lost = 0
        self.crash, self.loss, self.late = r.choice([0, .01, .03]), r.choice([0, .002, .006]), r.choice([0, .01])
        self.steps = [Step(self, i, list(range(self.n))) for i in range(self.n)]

    def numbers(self):
        return {'schedules': 1, 'moves': self.now, 'steps': self.n, 'lost': self.n - len(self.alive),
                'heads lost': sum(s.head for s in self.steps), 'ends': max(s.gone for s in self.steps)}

    def trace(self, words):
        if self.tracing:
            print(f'{self.now:6} {words}')

    def send(self, a, b, message):
        if a in self.alive:
            self.queues.setdefault((a, b), []).append((self.steps[b].head, message))

    def later(self, step, frm, ended):
        self.delayed.append((step, self.steps[step].head, frm, ended))

    def deliver(self, a, b):
        to_head, (head, kind, *rest) = self.queues[a, b].pop(0)
        s = self.steps[b]
        self.trace(f'{a} -> {b}: {kind} {rest}')
        known = s.heads.get(a, 0)
        if a in s.ended or any(w == ['ended', a] and heard for w, heard in s.said) or to_head != s.head or head < known:
            return
        s.heads[a] = max(head, known)
        getattr(s, kind)(a, *rest)

    def run(self):
        r, chaos = self.r, self.r.choice([200, 600])
        for self.now in range(6000):
            calm = self.now >= chaos
            if self.now == chaos:
                goal = 2 + max(self.steps[s].gone for s in self.alive)
            s = self.steps[r.choice(sorted(self.alive))]
            if not calm and r.random() < self.crash:
                self.trace(f'the head of {s.me} is lost')
                s.crash()
            if not calm and len(self.alive) > 1 and r.random() < self.loss:
                self.trace(f'step {s.me} is lost')
                self.alive.discard(s.me)
                self.notices += [(x, s.me) for x in self.alive]
                continue
            if not calm and s.call and not s.call[1] and r.random() < self.late:
                s.call[1] = True
                s.contribute()
            moves = [('hear', x) for x in self.alive if any(not e[1] for e in self.steps[x].said)]
            moves += [('settle', x) for x in self.alive if self.steps[x].said and self.steps[x].said[0][1]]
            moves += [('call', x) for x in self.alive if not self.steps[x].call and (not calm or self.steps[x].gone < goal)]
            moves += [('frame', p) for p in self.queues if self.queues[p] and p[1] in self.alive]
            moves += [('notice', x) for x in self.notices if x[0] in self.alive]
            moves += [('later', x) for x in self.delayed if x[0] in self.alive]
            if not moves and not calm:
                continue
            if not moves:
                return self.check(goal)
            kind, what = r.choice(sorted(moves, key=str))
            if kind == 'hear':
                self.steps[what].hear()
            elif kind == 'settle':
                self.steps[what].settle()
            elif kind == 'frame':
                self.deliver(*what)
            elif kind == 'notice':
                self.notices.remove(what)
                self.steps[what[0]].step_ended(what[1])
            elif kind == 'later':
                self.delayed.remove(what)
                if what[1] == self.steps[what[0]].head:
                    self.steps[what[0]].act() if what[2] is None else self.steps[what[0]].what(what[2], what[3])
            else:
                s = self.steps[what]
                s.calls += 1
                s.call = [s.calls, False]
                s.contribute()
        raise Bad('hang: the schedule does not come to rest')

    def check(self, goal):
        for s in self.alive:
            for t in self.alive:
                for number, status in self.steps[s].got.items():
                    if self.steps[t].got.get(number, status) != status:
                        raise Bad(f'agree: end {number} is {status} in step {s} and {self.steps[t].got[number]} in {t}')
            if self.steps[s].gone < goal:
                raise Bad(f'hang: step {s} has {self.steps[s].gone} ends of {goal}')
