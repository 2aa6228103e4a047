# SPDX-License-Identifier: BSD-3-Clause
"""say and gather: words that all hear in one order, and questions to all. docs/view.md, "Words"."""
from trees import kids, parent

WINDOW = 3                                      # words that are not settled; 64 in docs/view.md


class Words:
    def begin_words(self):
        self.words = {}                         # (view, number) -> (origin, id, text): heard, not settled
        self.word_heard = ((0, -1), 0)          # the newest that I have heard
        self.my_words, self.my_count = {}, 0    # what I have said and not heard: id -> text
        self.asking = {}                        # questions of mine without an answer: question -> its word
        self.fresh_words()

    def fresh_words(self):
        """What lives no longer than a view."""
        self.number = 0                         # the head's: of the last word; the commit is word 0
        self.word_acks, self.word_acked = {}, -1
        self.waiting_words, self.settled_to = [], 0     # the head's
        self.questions, self.to_answer = {}, set()      # number -> [origin, question, who has answered, answers awaited]

    def view_order(self):
        return self.live

    def say(self, text):
        self.my_count += 1
        self.my_words[self.my_count] = text
        if not self.frozen:
            self.send(self.live[0], ('word', self.view, self.my_count, text))
        return self.my_count

    def ask(self, question):
        self.asking[question] = self.say(('gather', question))

    def word(self, frm, name, text):            # at the head
        self.waiting_words.append((frm, name, text))
        self.say_next()

    def say_next(self):
        while self.waiting_words and self.number - self.settled_to < WINDOW:
            self.number += 1
            self.said(self.me, self.number, *self.waiting_words.pop(0))

    def said(self, frm, number, origin, name, text):
        for m in kids(self.live, self.me):
            self.send(m, ('said', self.view, number, origin, name, text))
        self.hear((self.view, number), origin, name, text)
        if text[0] == 'gather':
            self.questions[number] = [origin, text[1], frozenset(), {self.me, *kids(self.live, self.me)}]
            self.to_answer.add(number)
        self.word_ack()

    def answer_now(self):
        """What the question asks for is known here, some time after it was heard."""
        number = min(self.to_answer)
        self.to_answer.discard(number)
        self.answers(self.me, number, frozenset([self.me]))

    def answers(self, frm, number, who):
        asked = self.questions[number]
        asked[2] |= who
        asked[3].discard(frm)
        if asked[3]:
            return
        origin, question, who, _ = self.questions.pop(number)
        if self.live[0] == self.me:
            self.send(origin, ('answer', self.view, question, who))
        else:
            self.send(parent(self.live, self.me), ('answers', self.view, number, who))

    def hear(self, at, origin, name, text):
        self.words[at] = (origin, name, text)
        self.word_heard = at
        if origin == self.me:
            self.my_words.pop(name, None)
        self.net.heard(self.me, (origin, name), at)
        if text[0] == 'gone':
            self.hear_gone(text[1])

    def word_ack(self):
        own = self.word_heard[1] if self.word_heard[0] == self.view else 0
        low = min([own] + [self.word_acks.get(m, -1) for m in kids(self.live, self.me)])
        if low <= self.word_acked:
            return
        self.word_acked = low
        if self.live[0] != self.me:
            self.send(parent(self.live, self.me), ('words_heard', self.view, low))
        else:
            self.word_settled(self.me, low)

    def words_heard(self, frm, low):
        self.word_acks[frm] = low
        self.word_ack()

    def word_settled(self, frm, low):
        """All have heard the words up to low, the commit at least: so all have what older views ended with."""
        for m in kids(self.live, self.me):
            self.send(m, ('word_settled', self.view, low))
        self.words = {at: w for at, w in self.words.items() if at[0] == self.view and at[1] > low}
        for m in sorted(self.go) if self.live[0] == self.me else ():
            self.tell_out(m)
        self.last_commit, self.go = None, set()
        self.forget_older()
        self.settled_to = low
        self.say_next()

    def answer(self, frm, question, who):
        if question in self.asking:
            del self.asking[question]
            self.net.gathered(self.me, question, who)

    def apply_words(self, union):
        self.words = {}
        for at in sorted(union) if self.on('word-union') else ():
            if at > self.word_heard:
                self.hear(at, *union[at])
            elif self.on('word-view'):
                self.words[at] = union[at]
        self.fresh_words()
        if self.on('word-view') is False:
            self.words = {}

    def words_again(self):
        for question, name in sorted(self.asking.items()):
            if name not in self.my_words and self.on('gather-again'):
                self.my_count += 1
                self.asking[question] = self.my_count
                self.my_words[self.my_count] = ('gather', question)
        for name, text in sorted(self.my_words.items()) if self.on('word-again') else ():
            self.send(self.live[0], ('word', self.view, name, text))
        self.word_ack()
