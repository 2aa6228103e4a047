# SPDX-License-Identifier: BSD-3-Clause
"""The rules of docs/view.md that can be taken out, and what the protocol does without each."""

RULES = {
    # who is in
    'check': 'a head believes an accusation, and nobody asks another server before it proposes',
    'freeze': 'a server goes on between its promise and the commit',
    'early': 'frames of a newer view are dropped',
    'repeat': 'a server does not repeat an accusation to the next head',
    'behind': 'a server of an older view is not sent the commit again',
    'confirm': 'a server whose view lacks the accused does not say so to an accuser of an older view',
    'refuse': 'a commit that comes behind a higher promise is dropped in silence',
    'broken': 'who takes a higher ballot does not say so to the proposer whom it had promised a state',
    'out': 'a server that is left out is not told',
    'shared': 'of two views that exclude each other the one with more servers stays, whomever they share',
    'goes': 'a pair excludes its higher server although the lower one goes as well',
    'let-go': 'a leaver ends at the commit that lets it go, not when all have it',
    'leaver-state': 'a leaver ends at once, and takes no part in the change that lets it go',
    # words
    'word-union': 'a commit carries no words',
    'word-again': 'the origin of a word does not say it again in a new view',
    'word-view': 'words of older views are dropped at the commit, not when all have committed',
    'gather-again': 'a question is not asked again in a new view',
    # ends
    'late': 'contributions are not tested for lateness',
    'late-failure': 'failures are not tested for lateness',
    'clear': 'contributions outlive an end',
    'marks': 'ends of older views count as marks',
    'two-ends': 'only the last end of a signature is kept, not the last success as well',
    'union': 'a commit carries no ends',
    'old-ends': 'ends of older views are dropped at the commit, not when all have committed',
    'base': 'an end of a commit answers any call that is open',
    'own-forget': 'each server forgets an end as soon as it has heard it',
    'forget': 'nothing is forgotten',
    'top': "the commit has the ends of all states, not only of the newest view's",
    'again': 'open calls are not said again in a new view',
    # processes that are gone
    'gone-check': 'hearing that a process is gone does not look at the operations that wait',
    'gone-ask': 'a call that names a process that is gone is answered by its own server',
    'excused': 'a contribution does not name the processes that it does without',
    # the meeting
    'took-kept': 'an end that lists calls is dropped for the next end of its signature',
    'took': 'an end answers any call of an added member of that id',
}
