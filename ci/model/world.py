# SPDX-License-Identifier: BSD-3-Clause
"""One schedule: chaos, in which servers and processes are lost, links are cut, deadlines pass and servers leave; then calm,
in which nothing more is lost and all call until each signature has succeeded three times more."""
import random
from checks import Bad, Checks
from server import Server


class Plan:
    """What the program knows of a signature: its participants, whom its leaders add, whether it goes on without the lost."""
    def __init__(self, procs, survives, name, adds, number):
        self.procs, self.survives, self.name, self.adds, self.hash = frozenset(procs), survives, name, frozenset(adds), number
        self.servers = sorted({p[0] for p in procs})
        self.here = {}
        for proc in procs:
            self.here.setdefault(proc[0], []).append(proc)

    def at(self, server):
        return self.here.get(server, [])


class World(Checks):
    def __init__(self, seed, without='', tracing=False):
        self.r = r = random.Random(seed)
        self.without, self.tracing, self.n = without, tracing, r.randint(3, 9)
        self.n_list = list(range(self.n))
        self.begin_checks()
        self.alone, self.latest = set(), None
        self.procs = [[(i, j) for j in range(r.choice([1, 1, 2]))] for i in range(self.n)]
        self.alive, self.left_in_order, self.hung = set(self.n_list), set(), {}
        self.queues, self.cut_links, self.notices, self.cuts, self.hangs, self.parts, self.steps, self.calm = {}, set(), [], 0, 0, 0, 0, False
        self.draw(r)
        self.servers = [Server(self, i, self.n) for i in self.n_list]

    def draw(self, r):
        everybody = [p for ps in self.procs for p in ps]
        self.sigs, self.plans = {}, {}
        for g in range(r.randint(0, 2)):
            self.sigs['fence', g] = Plan(r.sample(everybody, r.randint(1, len(everybody))), r.random() < .5, None, (), r.randrange(97))
        for g in range(r.randint(0, 2)):
            self.draw_meeting(r, f'group{g}', everybody[:])
        for name in self.plans:
            self.sigs['boot', name] = Plan((), False, name, (), self.hash(name))
        self.chaos = r.choice([100, 300, 900])
        what = r.random()                       # a quarter of the schedules: cut links only
        self.only_cut = what < .25
        self.rates = {'quick': r.choice([.01, .03, .1, .3]), 'deadline': r.choice([0, .003, .02, .08]), 'call': r.choice([.03, .1, .3]),
                      'cut': r.choice([0, .003, .01]), 'gone': r.choice([0, 0, .003, .02]), 'leave': r.choice([0, 0, .005, .03]),
                      'hang': r.choice([0, 0, .003]), 'say': r.choice([0, .01, .05]), 'ask': r.choice([0, .01]), 'flush': .1, 'retry': .1, 'answer': r.choice([.01, .1, .5])}
        self.budget = {c: r.randrange(self.chaos // 2) for c in r.sample(self.n_list, r.randint(0, self.n // r.choice([2, 3, 4])))}
        if self.only_cut:
            self.rates.update(cut=.01, gone=0, leave=0, hang=0)
            self.budget = {}

    def draw_meeting(self, r, name, free):
        """One or two groups of one id, of different processes; or a bootstrap."""
        r.shuffle(free)
        count = r.randint(1, max(1, len(free) // 2))
        leaders, rest = frozenset(free[:count]), free[count:]
        adds = frozenset(rest[:r.randint(0, min(2, len(rest)))])
        boot = r.random() < .5
        self.plans[name] = {'leaders': leaders if boot else frozenset(), 'adds': adds, 'count': count, 'sigs': []}
        if not boot:
            self.sigs[name, 0] = Plan(leaders, r.random() < .5, name, adds, self.hash(name))
            self.plans[name]['sigs'].append((name, 0))
            others = [p for p in rest if p not in adds]
            if others and r.random() < .5:
                self.sigs[name, 1] = Plan(others[:2], r.random() < .5, name, (), self.hash(name))
                self.plans[name]['sigs'].append((name, 1))

    def hash(self, name):
        return sum(map(ord, name))

    def naming(self, proc):
        return [g for g, plan in self.sigs.items() if proc in plan.procs]

    def trace(self, words):
        if self.tracing:
            print(f'{self.steps:6} {words}')

    # ---- the network
    def send(self, a, b, message):
        if a not in self.alive:
            return
        if a in self.budget:
            self.budget[a] -= 1
            if self.budget[a] < 0:
                self.kill(a)
                return
        if (a, b) not in self.cut_links:
            self.queues.setdefault((a, b), []).append(message)

    def kill(self, a):
        if a in self.alive:
            self.trace(f'{a} ends')
            self.alive.discard(a)
            self.budget.pop(a, None)
            self.hung.pop(a, None)
            self.notices += [(x, a) for x in self.n_list if x != a]
            self.end_parts()

    def leave(self, a):
        if a in self.alive:
            self.kill(a)
            self.left_in_order.add(a)

    def cut(self, a, b):
        self.trace(f'the link of {a} and {b} is cut')
        self.cuts += 1
        for pair in ((a, b), (b, a)):
            self.cut_links.add(pair)
            if self.queues.get(pair):
                del self.queues[pair][self.r.randint(0, len(self.queues[pair])):]
        self.notices += [(a, b), (b, a)]
        self.end_parts()

    def end_parts(self):
        """Cut links may not leave two parts that hear nothing of each other: the resource manager ends all but the lowest."""
        part, more = set(), sorted(self.alive)[:1]
        while more:
            part.update(more)
            more = [b for b in self.alive - part if any((a, b) not in self.cut_links for a in part)]
        for a in sorted(self.alive - part):
            self.parts += a in self.alive
            self.kill(a)

    def hang(self, a):
        self.trace(f'{a} hangs')
        self.hangs += 1
        self.hung[a] = self.steps + self.r.choice([20, 100, 400])
        self.notices += [(x, a) for x in self.n_list if x != a and self.r.random() < .9]

    def refuse(self, a, b):
        """a has given b up, and takes nothing from it: so b does not reach a."""
        if (b, a) not in self.notices and a not in self.servers[b].unreachable:
            self.notices.append((b, a))

    # ---- the program
    def is_gone(self, proc):
        return proc[0] not in self.alive or proc in self.servers[proc[0]].ended

    def doomed(self, sig):
        plan = self.sigs[sig]
        return not plan.survives and any(self.is_gone(p) for p in plan.procs | plan.adds)

    def may_call(self):
        """Calls that the program could make now."""
        found = []
        for sig, plan in self.sigs.items():
            for i in plan.servers:
                s = self.servers[i]
                if i in self.alive and sig not in s.call and not s.leaving and any(p not in s.ended for p in plan.at(i)) and \
                        (not self.calm or self.wants_more(i, sig)):
                    found.append((i, sig))
        for name, plan in self.plans.items():
            for proc in plan['leaders'] | plan['adds']:
                s = self.servers[proc[0]]
                if proc[0] in self.alive and (name, proc) not in s.single and not s.leaving and proc not in s.ended and self.wants(name, proc):
                    found.append((proc[0], (name, proc)))
        return sorted(found, key=str)

    def wants_more(self, i, sig):
        if not self.doomed(sig):
            return self.wins[i, sig] < self.goal[sig]
        others = any(j in self.alive and sig in self.servers[j].call for j in self.sigs[sig].servers)
        return others or self.fails[i, sig] < self.enough[i, sig]

    def wants(self, name, proc):
        if not self.calm:
            return True
        plan = self.plans[name]
        if plan['leaders']:
            if any(self.is_gone(p) for p in plan['leaders'] | plan['adds']):
                return self.fails[proc[0], (name, proc)] < self.enough[proc[0], (name, proc)]
            return self.wins[proc[0], (name, proc)] < self.goal['boot', name]
        return any(sig not in self.finished and proc in self.sigs[sig].adds for sig in plan['sigs'])

    def begin_call(self, i, key):
        if key in self.sigs:
            self.servers[i].begin(key)
        else:
            plan = self.plans[key[0]]
            how = ('leader', plan['count'], plan['adds']) if key[1] in plan['leaders'] else ('member',)
            self.servers[i].call_single(key[0], key[1], how)

    def numbers(self):
        return {'schedules': 1, 'steps': self.steps, 'servers': self.n, 'left': len(self.left_in_order), 'cuts': self.cuts,
                'ended': self.n - len(self.alive) - len(self.left_in_order), 'ends': len(self.names), 'failures': self.failures,
                'views': len({s.view for s in self.servers}), 'answers': self.answered_questions}

    # ---- the schedule
    def begin_calm(self):
        self.calm, self.budget, self.hung = True, {}, {}
        self.goal, self.enough = {}, {}
        for sig, plan in self.sigs.items():
            keys = [(i, sig) for i in plan.servers]
            if sig[0] == 'boot':
                keys = [(p[0], (sig[1], p)) for p in self.plans[sig[1]]['leaders'] | self.plans[sig[1]]['adds']]
            self.goal[sig] = 3 + max([self.wins[k] for k in keys], default=0)
            self.enough.update({k: self.fails[k] + 3 for k in keys})

    @property
    def finished(self):
        """Signatures whose leaders call no more."""
        return {sig for sig, plan in self.sigs.items() if all(
            i not in self.alive or (sig not in self.servers[i].call and (self.doomed(sig) or self.wins[i, sig] >= self.goal[sig])
                                    or all(p in self.servers[i].ended for p in plan.at(i))) for i in plan.servers)}

    def chance(self, what):
        return not self.calm and self.r.random() < self.rates[what]

    def faults(self):
        r, up = self.r, sorted(self.alive - set(self.hung))
        if len(up) > 2:
            a, b = sorted(r.sample(up, 2))
            if self.chance('cut') and (a, b) not in self.cut_links:
                self.cut(a, b)
            if self.chance('hang'):
                self.hang(a)
            elif self.chance('leave') and not self.servers[b := self.latest if self.latest in up and r.random() < .7 else b].leaving:
                self.trace(f'{b} leaves')
                self.servers[b].leave()
        if not up:
            return
        s = self.servers[r.choice(up)]
        if self.chance('gone'):
            left = [p for p in self.procs[s.me] if p not in s.ended]
            if left and not s.leaving:
                self.trace(f'process {left[0]} ends')
                s.process_ended(left[0])
        if self.chance('say'):
            s.say(('text',))
        if self.chance('ask'):
            s.ask(f'{s.me}/{self.steps}')
        busy = [g for g in s.call if not s.call[g][1]] + [k for k in s.single if not s.single[k][1]]
        if busy and self.chance('deadline'):
            key = r.choice(sorted(busy, key=str))
            s.expire(key) if key in self.sigs else s.expire_single(*key)

    def timers(self, quiet):
        for i in sorted(self.alive - set(self.hung)):
            s = self.servers[i]
            if s.retry and (quiet or self.r.random() < self.rates['retry']):
                s.propose_again()
                return True
            if s.to_answer and not s.frozen and (quiet or self.r.random() < self.rates['answer']):
                s.answer_now()
                return True
            if s.leavers and not s.mine and not s.frozen and (quiet or self.r.random() < self.rates['flush']):
                s.flush()
                return True
        return False

    def run(self):
        r = self.r
        for self.steps in range(40000):
            if self.steps == self.chaos:
                self.begin_calm()
            self.hung = {a: until for a, until in self.hung.items() if until > self.steps}
            self.faults()
            pairs = [p for p in self.queues if self.queues[p] and p[1] in self.alive and p[1] not in self.hung]
            notes = [x for x in self.notices if x[0] in self.alive and x[0] not in self.hung]
            if self.timers(not pairs):
                continue
            if notes and (not pairs or r.random() < self.rates['quick']):
                note = r.choice(notes)
                self.notices.remove(note)
                self.trace(f'{note[0]} notices that it cannot reach {note[1]}')
                self.servers[note[0]].notice(note[1])
                continue
            if not pairs or r.random() < self.rates['call']:
                calls = [c for c in self.may_call() if c[0] not in self.hung]
                if calls:
                    self.begin_call(*r.choice(calls))
                    continue
            if pairs:
                a, b = r.choice(pairs)
                message = self.queues[a, b].pop(0)
                if self.tracing:
                    self.trace(f'{a} -> {b}: {message}')
                self.servers[b].take(a, message)
            elif self.calm:
                self.check()
                return
        raise Bad('hang: the schedule does not come to rest')
