/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * What the files of view/ share. In the order in which they call each other: members, words,
 * gather, change, leavers, accuse, view. What a file has to say upwards is a mark in struct view,
 * which view.c looks at.
 */
#pragma once

#include "common/util/shared_bytes.h"
#include "common/view/view.h"

#include <sys/queue.h>

enum {
    VIEW_NOBODY = 0xffffffff,
    VIEW_WINDOW = 64,            /* words of the head that not all have heard */
    VIEW_WINDOW_BYTES = 1 << 20, /* of these, or one */
    VIEW_SENT_MAX = 16,          /* words of a server at the head that it has not heard */
    VIEW_SAID_MAX = 64 << 20,    /* bytes of words of a server that it has not heard */
    VIEW_EARLY_MAX = 16 << 20,   /* bytes of frames of a newer view, or one */
    VIEW_QUESTIONS_MAX = 64,     /* without all answers; the oldest is answered without the rest */
    VIEW_ANSWERS_MAX = 32 << 20, /* bytes of a subtree's answers */
    VIEW_PATIENCE_MS =
        10000,              /* for the state of a server below; then it is asked whether it lives */
    VIEW_RETRY_MS = 10,     /* until a proposal that was refused is made again; longer each time */
    VIEW_REFUSALS_MAX = 10, /* in a row, for which it becomes longer */
    VIEW_LEAVERS_MS = 250,  /* for all that leave together */
};

/** The body of a FRAME_VIEW begins with one of these. Those from VIEW_WORD on are of one view,
 * whose name follows. */
enum view_kind {
    VIEW_ACCUSE = 1, /**< some cannot reach others: name, u32 n, { u32 by, u32 node,
                     u8 whether it has ended in order }… */
    VIEW_PING,       /**< "do you live?", of an accused server: u32 by, u32 node */
    VIEW_PONG,       /**< the same bytes back */
    VIEW_REFUSED,    /**< the receiver was given up by the sender */
    VIEW_PROPOSE,    /**< ballot, ranges of whom the tree leaves out */
    VIEW_NACK,       /**< ballot, and a higher one */
    VIEW_STATE,      /**< ballot, and what the sender and those below it know: see known_write() */
    VIEW_COMMIT,     /**< ballot, ranges as in PROPOSE, ranges of the newly excluded, union */
    VIEW_OUTCAST, /**< the receiver is not in the sender's view: u8 whether it left in order, name,
                     ranges of those who are not in it */
    VIEW_WORD,    /**< something to say, to the head: u64 the origin's number, text */
    VIEW_SAID,  /**< a word, down the tree: u64 number, u64 1 + settled, u32 origin, u64 its number,
                   text */
    VIEW_HEARD, /**< up the tree, u64: the whole subtree has heard the words up to that one */
    VIEW_SETTLED, /**< down the tree, u64: all have */
    VIEW_WISH,    /**< up the tree, ranges: these want to leave */
    VIEW_EMPTY,   /**< down the tree: all have wanted to, and go */
    VIEW_ANSWERS, /**< up the tree: u64 number of the word that asks, then for each that answers:
                     u32 node, i32 status, block */
    VIEW_ANSWER,  /**< the same from the head to the asker, with u64 the asker's number of the word
                   */
};

/** A word's text begins with one of these. */
enum word_kind {
    WORD_SAYS,
    WORD_ASKS /**< u32 ms for the answers, 0: any time; then what env.answer() takes */
};

/** A view, and a ballot: the change that has made it. */
struct view_name {
    uint64_t number;
    uint32_t proposer;
};

/** Sorted servers, of which one stands in front as the root of a k-ary tree. */
struct span {
    uint32_t *v; /**< owned */
    uint32_t n, root, arity;
};

/** Something that was said to all. */
struct word {
    TAILQ_ENTRY(word) entry;
    struct view_name view; /**< where the head has numbered it */
    uint64_t number;
    uint32_t origin;
    uint64_t id; /**< the origin's number */
    struct shared_bytes *text;
};

TAILQ_HEAD(words, word);

/** What the servers of this one's subtree are asked, in this view. */
struct question {
    TAILQ_ENTRY(question) entry;
    uint64_t number, id; /**< of the word, and the origin's */
    uint32_t origin;
    struct shared_bytes *text;
    bool asked;            /**< this server, which has answered */
    struct ranges awaited; /**< children that have not */
    struct wire_out answers;
    int64_t due; /**< 0: never */
};

TAILQ_HEAD(questions, question);

/** What this server asks all. */
struct asking {
    TAILQ_ENTRY(asking) entry;
    uint64_t id; /**< of the word that has asked last */
    struct shared_bytes *text;
    int64_t due; /**< 0: never */
    view_answers_fn *done;
    void *arg;
};

/** What a server knows that others may not: a state, and the union of several. All zero, but for
 * its list, is empty. */
struct known {
    struct view_name view;
    struct ranges out, left; /**< left is a part of out */
    struct words words;      /**< ascending by view and number */
};

/** "by cannot reach node" */
struct pair {
    uint32_t by, node;
    uint32_t told; /**< the server that was told last */
    bool left;     /**< by says that node has ended in order */
    bool pinged, reached;
};

struct kept_frame {
    STAILQ_ENTRY(kept_frame) entry;
    uint32_t from;
    size_t len;
    unsigned char body[];
};

STAILQ_HEAD(kept_frames, kept_frame);

struct view {
    struct view_env env;
    struct kept_frames own,
        early; /* to this server itself; of a view that it has not entered yet */
    size_t early_bytes;
    uint32_t confused; /* a server that sends more than any may; VIEW_NOBODY: none does */
    uint32_t entered;  /* functions that have been called and have not returned */
    bool over;
    bool look; /* for accuse_act(), soon: there are new pairs, or a new view */
    struct timer act;
    bool settled_news; /* all have heard more, and so entered this view */
    /* members.c */
    struct view_name name;
    struct ranges out, left;
    struct span live;
    uint32_t above, *below,
        nbelow; /* this server's place in its tree: VIEW_NOBODY or parent, children
                 */
    /* accuse.c */
    struct ranges unreachable;
    struct pair *pairs; /* ascending by the lower and the higher of the two */
    uint32_t npairs, pairs_cap;
    /* change.c */
    struct view_name promised, highest; /* highest: the highest ballot that was heard of */
    bool frozen;
    struct span members; /* of the promised proposal */
    struct ranges members_out;
    struct known known;                 /* states of the children */
    struct ranges awaited;              /* children whose state has not come */
    struct view_name mine;              /* my proposal; number 0: none */
    struct ranges mine_lost, mine_left; /* whom it newly leaves out, and lets go */
    struct shared_bytes *last_commit;   /* until all have it */
    struct ranges go;                   /* those let go with this view, until all have entered it */
    unsigned refusals;                  /* of proposals of this server, in a row */
    struct ranges asked; /* of those awaited, whom this server has asked whether they live */
    struct timer patience;
    struct timer retry;
    bool leaving;          /* this server wants to */
    struct ranges leavers; /* of the subtree: who wants to */
    struct timer flush;
    /* words.c */
    struct words words;          /* heard, and perhaps not by all */
    struct view_name heard_view; /* of the newest word that was heard */
    uint64_t heard;
    uint64_t nheard;   /* ever */
    struct words said; /* by this server, and not heard yet */
    size_t said_bytes;
    uint32_t nsent;       /* of these to the head of this view */
    uint64_t nsaid;       /* ever */
    struct words waiting; /* the head's: for the window */
    uint64_t nwaiting;
    uint64_t number; /* the head's: of the last word; the commit is word 0 */
    int64_t settled; /* the head's: -1: not even the commit */
    int64_t *acks;   /* by child: what its subtree has heard; -1: not even the commit */
    int64_t acked;
    /* gather.c */
    struct questions questions; /* ascending */
    uint32_t nquestions;
    bool question_news; /* for gather_act(): one has not been put to this server */
    TAILQ_HEAD(, asking) asking;
    bool mute; /* this server asks no more */
    struct timer answer_due;
};

/* ---- members.c ---- */

bool view_name_is(struct view_name a, struct view_name b);
bool view_name_above(struct view_name a, struct view_name b); /**< a > b */
void view_put_name(struct wire_out *out, struct view_name name);
struct view_name view_get_name(struct wire_in *in);

/** Makes the order of all servers but @p without. @param root VIEW_NOBODY: the lowest @return
 * whether there is memory, and the root in it */
bool span_make(struct span *span, uint32_t nnodes, const struct ranges *without, uint32_t root,
               uint32_t arity);
void span_free(struct span *span);
/** Makes the tree of the view, and finds this server in it. @return whether there is memory */
bool view_plant(struct view *view);
uint32_t span_parent(const struct span *span, uint32_t node); /**< or VIEW_NOBODY */
uint32_t span_below(const struct span *span,
                    uint32_t node); /**< servers of its subtree, itself included */
uint32_t span_child(const struct span *span, uint32_t node, uint32_t i); /**< or VIEW_NOBODY */
bool span_has(const struct span *span, uint32_t node);

/** This server is in no view any more. */
void view_end(struct view *view, enum view_over how, const char *why);
/** Memory is out: this server can take part no more. */
void view_broken(struct view *view);
/** Add to canonical sets. */
void view_unite(struct view *view, struct ranges *set, const struct ranges *more);
void view_put(struct view *view, struct ranges *set, uint32_t node);
/** ranges_canonical() must follow the last one: for many in no order. */
void view_add(struct view *view, struct ranges *set, uint32_t node);
void view_take_out(struct view *view, struct ranges *set, uint32_t node);
/** Sends a frame; to this server itself it is kept until the function that was called first
 * returns. */
void view_send(struct view *view, uint32_t node, struct wire_out *body);
void view_send_bytes(struct view *view, uint32_t node, const void *body, size_t len);
/** @return levels of its subtree: 1 of a leaf */
uint32_t span_levels(const struct span *span, uint32_t node);
/** Sends the same bytes to all children in a tree. */
void view_send_down(struct view *view, const struct span *span, const struct wire_out *body);
void view_begin(const struct view *view, struct wire_out *body,
                enum view_kind kind); /**< kind, and the view's name */
void view_tell_out(struct view *view, uint32_t node);
/** @return the lowest server of the view that this one reaches; itself at most */
uint32_t view_lowest(const struct view *view);

/* ---- words.c ---- */

void view_words_init(struct view *view);
void view_words_free(struct words *words);
/** @return its number of this server */
uint64_t view_words_say(struct view *view, enum word_kind kind, const void *text, size_t len);
/** @return whether this server's word has not been heard here yet */
bool view_words_is_out(const struct view *view, uint64_t id);
void view_words_read(struct words *words, uint32_t nnodes, struct wire_in *in);
void view_words_write(const struct words *words, struct wire_out *out);
/** Adds those of @p more that are not there; @p more is empty afterwards. */
void view_words_unite(struct words *words, struct words *more);
/** Hears what the union of a commit has, and begins the words of a new view. */
void view_words_enter(struct view *view, struct words *of_union);
/** Says again what this server has said and not heard. */
void view_words_again(struct view *view);
void view_words_take(struct view *view, uint32_t from, enum view_kind kind, struct wire_in *in);

/* ---- gather.c ---- */

void gather_ask(struct view *view, const void *text, size_t len, uint32_t ms, view_answers_fn *done,
                void *arg);
/** In a new view: asks again what has no answer. */
void gather_again(struct view *view);
/** Forgets what was asked in the old view. */
void gather_forget(struct view *view);
/** Puts to this server what it was not asked yet. */
void gather_act(struct view *view);
/** Ends what was to be answered by now. */
void gather_look(struct view *view);
void gather_take(struct view *view, uint32_t from, enum view_kind kind, struct wire_in *in);
/** Ends what this server asks, without answers; it asks no more. */
void gather_close(struct view *view);

/* ---- change.c ---- */

void change_init(struct view *view);
void change_free(struct view *view);
/** Proposes a view without @p lost, of whom @p ended have ended in order; canonical, borrowed. */
void change_propose(struct view *view, const struct ranges *lost, const struct ranges *ended);
void change_take(struct view *view, uint32_t from, enum view_kind kind, struct wire_in *in,
                 const void *body, size_t len);
/** A refused proposal is made again, with another ballot. */
void change_retry(struct view *view);
/** Asks servers whose state is awaited for too long whether they live. @param silent all zero;
 * gets those that have not answered since they were asked */
void change_look(struct view *view, struct ranges *silent);
/** Server @p node lives. */
void change_lives(struct view *view, uint32_t node);

/* ---- leavers.c ---- */

/** This server wants to leave. */
void leavers_add_own(struct view *view);
/** Those who want to leave are let go, or told of to the server above, though others stay. */
void leavers_flush(struct view *view);
void leavers_take(struct view *view, enum view_kind kind, struct wire_in *in, const void *body,
                  size_t len);
/** All servers have entered this view: those that left with it may end. */
void leavers_let_go(struct view *view);

/* ---- accuse.c ---- */

/** Forgets pairs with servers that are out; tells the lowest server that this one reaches what is
 * new, or proposes. */
void accuse_act(struct view *view);
void accuse_add(struct view *view, uint32_t by, uint32_t node, bool left);
/** This server does not reach @p node, for good. */
void accuse_own(struct view *view, uint32_t node, bool left);
void accuse_take(struct view *view, uint32_t from, enum view_kind kind, struct wire_in *in);
