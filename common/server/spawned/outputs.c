/* SPDX-License-Identifier: BSD-3-Clause */
/* Streams of spawned processes, a piece at a time. */
#include "common/server/spawned/outputs.h"

#include "common/transport/wire.h"
#include "common/util/log.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

/* The home is the server of the process that has spawned the step. After the end of its program a
 * stream is freed where this says READS.
 *
 *     READS ── a piece ──► SEEKS ── the home is known ──► ASKED ── taken ──► READS
 *       │                    └─ it does not become known ──┬─ refused, lost
 *       └─ a piece, once the home has refused ──► WRITES ◄─┘ ── written ──► READS
 */
enum stream_state {
    STREAM_READS,  /* waits for bytes of the program */
    STREAM_SEEKS,  /* has a piece; its home is not known yet */
    STREAM_ASKED,  /* the home has the piece, and has not confirmed it */
    STREAM_WRITES, /* the piece goes to the own output */
};

struct stream {
    LIST_ENTRY(stream) entry;
    struct outputs *outputs;
    enum stream_state state;
    bool refused; /* by the home: the rest goes to the own output */
    uint32_t rank;
    char which; /* PLAN_STDOUT and so on */
    int in, own;
    mode_t kind; /* of the own output: S_IFIFO and so on */
    struct event *readable, *writable;
    struct timer hold;    /* the beginning of a line goes on without its end */
    unsigned char *piece; /* owned */
    size_t len, at;       /* bytes of the piece, 0: the stream ends; bytes of it that are written */
    unsigned char *held;  /* the beginning of a line; owned, OUTPUTS_PIECE bytes, or NULL */
    size_t nheld;
};

struct outputs {
    struct outputs_env env;
    struct outputs_home home; /* empty until there is a stream */
    LIST_HEAD(, stream) streams;
    int way[2];         /* a pipe, empty, through which pieces go to pipes */
    struct timer look;  /* while a stream seeks */
    int64_t seek_until; /* ms; 0: none has sought */
    bool home_gone, closing;
};

bool outputs_read_home(const char *text, struct outputs_home *home)
{
    int end = -1;
    *home = (struct outputs_home){0};
    bool good = sscanf(text, "%3[" PLAN_OUTPUTS "i] %" SCNu64 " %" SCNu32 " %255s%n", home->streams,
                       &home->number, &home->node, home->nspace, &end) == 4 &&
                end >= 0 && text[end] == '\0';
    size_t n = strspn(home->streams, PLAN_OUTPUTS);
    if (home->streams[n] != '\0' && strcmp(home->streams + n, (char[]){PLAN_STDIN, '\0'}) != 0)
        return false;
    home->streams[n] = '\0';
    return good;
}

/* ---- a stream's end ---- */

static void drop(struct stream *s)
{
    LIST_REMOVE(s, entry);
    timer_stop(&s->hold);
    if (s->readable != NULL)
        event_free(s->readable);
    if (s->writable != NULL)
        event_free(s->writable);
    close(s->in);
    close(s->own);
    free(s->piece);
    free(s->held);
    free(s);
}

static void await_more(struct stream *s)
{
    s->state = STREAM_READS;
    event_add(s->readable, NULL);
    if (s->nheld > 0)
        timer_after(&s->hold, OUTPUTS_HOLD_MS);
}

/* ---- pieces ---- */

static void go(struct stream *s);

/* The piece is where it belongs. */
static void done(struct stream *s)
{
    if (s->len == 0) {
        drop(s);
        return;
    }
    free(s->piece);
    s->piece = NULL;
    await_more(s);
}

/* ---- the own output ---- */

/* Replaces the descriptor of a terminal by one of its own, in which O_NONBLOCK is set for us alone.
 */
static void reopen(struct stream *s)
{
    char path[32];
    snprintf(path, sizeof path, "/proc/self/fd/%d", s->own);
    int fd = open(path, O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    if (fd >= 0) {
        close(s->own);
        s->own = fd;
        return;
    }
    log_info(
        "output of rank %u cannot be opened anew, and what the program itself writes there may "
        "fail with EAGAIN: %s",
        s->rank, strerror(errno));
    evutil_make_socket_nonblocking(s->own);
}

/* A pipe hands pages on to a pipe without a wait. What does not find room is thrown away here, and
 * comes again. */
static ssize_t splice_own(const struct stream *s, const unsigned char *bytes, size_t len)
{
    const int *way = s->outputs->way;
    unsigned char rest[OUTPUTS_PIECE];
    ssize_t whole = write(way[1], bytes, len);
    if (whole < 0)
        return -1;
    ssize_t n = splice(way[0], NULL, s->own, NULL, (size_t)whole, SPLICE_F_NONBLOCK);
    int error = errno;
    if (n < whole && read(way[0], rest, sizeof rest) < 0)
        log_error("output of a spawned process is lost: %s", strerror(errno));
    errno = error;
    return n;
}

/* As write(), but it does not wait. The program may have the same open file, as where its standard
 * error is the same terminal. O_NONBLOCK would be in force for the program, too: so it is not set.
 */
static ssize_t write_now(const struct stream *s, const unsigned char *bytes, size_t len)
{
    switch (s->kind) {
    case S_IFIFO:
        return splice_own(s, bytes, len);
    case S_IFSOCK:
        return send(s->own, bytes, len, MSG_DONTWAIT | MSG_NOSIGNAL);
    default:
        return write(s->own, bytes, len);
    }
}

/* The reader of the own output may be slow, too. */
static void write_own(struct stream *s)
{
    s->state = STREAM_WRITES;
    while (s->at < s->len) {
        ssize_t n = write_now(s, s->piece + s->at, s->len - s->at);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0 && errno == EAGAIN) {
            event_add(s->writable, NULL);
            return;
        }
        if (n < 0) { /* the reader has gone: the program is to see that, too */
            log_info("output of rank %u cannot be written: %s", s->rank, strerror(errno));
            drop(s);
            return;
        }
        s->at += (size_t)n;
    }
    done(s);
}

static void on_writable(evutil_socket_t fd, short what, void *arg)
{
    (void)fd, (void)what;
    write_own(arg);
}

/* ask_done_fn */
static void on_answer(void *arg, int32_t status, const void *data, size_t len)
{
    struct stream *s = arg;
    (void)data, (void)len;
    if (status == 0) {
        done(s);
        return;
    }
    if (status == OUTPUTS_PASS) {
        write_own(s);
        return;
    }
    log_info(
        "output of rank %u goes to the terminal: the process that has spawned it takes no more",
        s->rank);
    s->refused = true;
    go(s);
}

static void ask_home(struct stream *s, uint32_t node)
{
    const struct outputs *o = s->outputs;
    struct wire_out body = {0};
    wire_put_u64(&body, o->home.number);
    wire_put_u32(&body, s->rank);
    wire_put_u8(&body, (uint8_t)s->which);
    wire_put_block(&body, s->piece, s->len);
    s->state = STREAM_ASKED;
    o->env.ask(o->env.arg, node, body.data, body.len, on_answer, s);
    wire_out_free(&body);
}

static void look_again(struct outputs *o)
{
    int64_t most =
        timers_now(o->env.timers) + (o->env.ends(o->env.arg) ? OUTPUTS_LAST_MS : OUTPUTS_SEEK_MS);
    if (o->seek_until == 0 || o->seek_until > most)
        o->seek_until = most;
    timer_after(&o->look, OUTPUTS_LOOK_MS);
}

/* Sends the piece to the home, or writes it to the own output, or looks for the home again later.
 */
static void go(struct stream *s)
{
    struct outputs *o = s->outputs;
    uint32_t node;
    if (s->refused || o->closing) {
        write_own(s);
    } else if (o->env.find(o->env.arg, &o->home, &node)) {
        ask_home(s, node);
    } else if (o->seek_until != 0 && timers_now(o->env.timers) >= o->seek_until) {
        log_warning("output of rank %u goes to the terminal: the server of the process that has "
                    "spawned it is not known",
                    s->rank);
        s->refused = true;
        write_own(s);
    } else {
        s->state = STREAM_SEEKS;
        look_again(o);
    }
}

static void on_look(void *arg, struct timer *timer)
{
    struct outputs *o = arg;
    (void)timer;
    for (struct stream *s = LIST_FIRST(&o->streams), *next; s != NULL; s = next) {
        next = LIST_NEXT(s, entry);
        if (s->state == STREAM_SEEKS)
            go(s);
    }
}

void outputs_home_gone(struct outputs *outputs)
{
    outputs->home_gone = true;
    for (struct stream *s = LIST_FIRST(&outputs->streams), *next; s != NULL; s = next) {
        next = LIST_NEXT(s, entry);
        s->refused = true;
        if (s->state == STREAM_SEEKS)
            go(s);
    }
}

/* How much of what is held makes a piece: whole lines, since libpmix up to 6.1 may put the
 * beginning of a line behind a part of another process's line. A line that does not end within
 * OUTPUTS_HOLD_MS goes out unfinished. */
static size_t cut(const struct stream *s, bool no_more)
{
    const unsigned char *end = memrchr(s->held, '\n', s->nheld);
    return no_more || s->refused       ? s->nheld
           : end != NULL               ? (size_t)(end + 1 - s->held)
           : s->nheld == OUTPUTS_PIECE ? s->nheld
                                       : 0;
}

/* Makes a piece of the first @p len bytes; a piece of no bytes is the end of the stream. */
static void take(struct stream *s, size_t len)
{
    s->len = len;
    s->at = 0;
    s->piece = malloc(len + 1);
    memcpy(s->piece, s->held, len);
    s->nheld -= len;
    memmove(s->held, s->held + len, s->nheld);
    go(s);
}

static void on_hold(void *arg, struct timer *timer)
{
    struct stream *s = arg;
    (void)timer;
    event_del(s->readable);
    take(s, s->nheld);
}

static void on_readable(evutil_socket_t fd, short what, void *arg)
{
    struct stream *s = arg;
    (void)what;
    timer_stop(&s->hold);
    if (s->held == NULL)
        s->held = malloc(OUTPUTS_PIECE);
    ssize_t n = read(fd, s->held + s->nheld, OUTPUTS_PIECE - s->nheld);
    if (n < 0 && (errno == EAGAIN || errno == EINTR)) {
        await_more(s);
        return;
    }
    s->nheld += n > 0 ? (size_t)n : 0;
    size_t len = cut(s, n <= 0);
    if (len > 0 || n <= 0)
        take(s, len);
    else
        await_more(s);
}

/* ---- its life ---- */

struct outputs *outputs_new(const struct outputs_env *env)
{
    struct outputs *o = calloc(1, sizeof *o);
    o->env = *env;
    if (pipe2(o->way, O_NONBLOCK | O_CLOEXEC) != 0) {
        free(o);
        return NULL;
    }
    timer_init(&o->look, env->timers, on_look, o);
    return o;
}

/* Takes over both descriptors. */
static bool add_stream(struct outputs *o, uint32_t rank, char which, int in, int own)
{
    struct stream *s = calloc(1, sizeof *s);
    *s = (struct stream){
        .outputs = o, .refused = o->home_gone, .rank = rank, .which = which, .in = in, .own = own};
    timer_init(&s->hold, o->env.timers, on_hold, s);
    LIST_INSERT_HEAD(&o->streams, s, entry);
    evutil_make_socket_nonblocking(in);
    struct stat st;
    s->kind = fstat(own, &st) == 0 ? st.st_mode & S_IFMT : 0;
    if (s->kind == S_IFCHR)
        reopen(s);
    s->readable = event_new(o->env.base, in, EV_READ, on_readable, s);
    s->writable = event_new(o->env.base, s->own, EV_WRITE, on_writable, s);
    if (s->readable != NULL && s->writable != NULL && event_add(s->readable, NULL) == 0)
        return true;
    drop(s);
    return false;
}

bool outputs_add(struct outputs *outputs, uint32_t rank, const struct outputs_home *home,
                 const int *fds, unsigned nfds)
{
    bool good = nfds == 2 * strlen(home->streams);
    for (unsigned i = 0; i < nfds && !good; i++)
        close(fds[i]);
    if (!good)
        return false;
    outputs->home = *home;
    for (unsigned i = 0; i < nfds; i += 2)
        good &= add_stream(outputs, rank, home->streams[i / 2], fds[i], fds[i + 1]);
    return good;
}

bool outputs_busy(const struct outputs *outputs, bool home)
{
    const struct stream *s;
    if (outputs == NULL)
        return false;
    LIST_FOREACH (s, &outputs->streams, entry) {
        struct pollfd in = {.fd = s->in, .events = POLLIN};
        if (home && (s->refused || s->state == STREAM_WRITES))
            continue;
        if (s->state != STREAM_READS || s->nheld > 0 || poll(&in, 1, 0) > 0)
            return true;
    }
    return false;
}

/* Without the loop. */
static void drain(struct stream *s)
{
    unsigned char bytes[4096];
    ssize_t n = 0;
    while (s->piece != NULL && s->at < s->len &&
           (n = write_now(s, s->piece + s->at, s->len - s->at)) > 0)
        s->at += (size_t)n;
    if (n >= 0 && s->nheld > 0)
        n = write_now(s, s->held, s->nheld);
    while (n >= 0 && (n = read(s->in, bytes, sizeof bytes)) > 0)
        n = write_now(s, bytes, (size_t)n);
}

void outputs_free(struct outputs *outputs)
{
    if (outputs == NULL)
        return;
    outputs->closing = true;
    while (!LIST_EMPTY(&outputs->streams)) {
        drain(LIST_FIRST(&outputs->streams));
        drop(LIST_FIRST(&outputs->streams));
    }
    close(outputs->way[0]);
    close(outputs->way[1]);
    timer_stop(&outputs->look);
    free(outputs);
}
