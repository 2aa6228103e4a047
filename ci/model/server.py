# SPDX-License-Identifier: BSD-3-Clause
"""One server of a step. Each part keeps its own state and knows the parts above it by a few functions only."""
from change import Change
from meeting import Meeting
from operations import Operations
from words import Words

OF_A_VIEW = {'word', 'said', 'words_heard', 'word_settled', 'answer', 'answers', 'contribution', 'failure', 'end', 'heard_by',
             'settled', 'meet', 'late_single'}


class Server(Change, Words, Operations, Meeting):
    def __init__(self, net, me, n):
        self.net, self.me, self.n, self.applying = net, me, n, False
        self.begin_change()
        self.begin_operations()
        self.begin_words()
        self.begin_meeting()

    def on(self, rule):
        return self.net.without != rule

    def send(self, to, message):
        self.net.send(self.me, to, message)

    def take(self, frm, message):
        """A frame has come. Of an older view: dropped. Of a newer one: kept. From outside: answered so."""
        if frm in self.out and message[0] != 'outcast':
            self.tell_out(frm)
        elif frm in self.unreachable and message[0] != 'outcast':
            self.net.refuse(self.me, frm)
        elif message[0] not in OF_A_VIEW:
            getattr(self, message[0])(frm, *message[1:])
        elif message[1] > self.view:
            if self.on('early'):
                self.early.append((frm, message))
        elif message[1] == self.view and not self.frozen:
            getattr(self, message[0])(frm, *message[2:])

    def ask_again(self, frm):
        if self.leaving:
            self.ask_to_leave()
