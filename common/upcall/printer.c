/* SPDX-License-Identifier: BSD-3-Clause */
/* The program that prints what the tasks of the step print. See printer.h. */
#include "common/upcall/printer.h"

#include "common/server/spawned/outputs.h"
#include "common/upcall/forward.h"
#include "common/upcall/post.h"
#include "common/util/child.h"
#include "common/util/log.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    WORDS_MAX = 16,  /* of the command */
    PIECES_MAX = 32, /* on their way to libpmix, before the next is read */
    LOOK_MS = 1000,  /* between two looks whether somebody still pulls */
    OUT = 0,
    ERR,
    STREAMS
};

/* One of its two streams. */
struct stream {
    struct printer *printer;
    struct event *readable; /* NULL: it has ended, or none was begun */
    pmix_iof_channel_t channel;
    int32_t rank; /* of the line that is being read; -1: its beginning has not been read */
    size_t n;
    char data[OUTPUTS_PIECE];
};

/* One for the whole step, or for a component of it. */
struct printer {
    struct printer *next, *head; /* server->printer, the first one, has the list */
    struct server *server;
    uint32_t first, ntasks; /* whose output it prints: its ranks begin at 0 */
    char *words[WORDS_MAX + 1];
    pid_t pid; /* 0: none runs */
    int input; /* of its standard input */
    struct stream streams[STREAMS];
    char *command;                   /* the head's: of all */
    unsigned pieces;                 /* the head's: of all, on their way to libpmix */
    bool ending, again, has_printed; /* again: somebody pulls, and it is to be started again */
    struct timer look;
};

/* ---- what it prints ---- */

static void stop_reading(struct stream *s)
{
    if (s->readable == NULL)
        return;
    close(event_get_fd(s->readable));
    event_free(s->readable);
    s->readable = NULL;
}

static void end(struct printer *p)
{
    if (p->pid == 0 || p->ending)
        return;
    p->ending = true;
    kill(p->pid, SIGKILL);
    timer_after(&p->look, 1);
}

/* A line that is no task's is the printer's own word. */
static void say(struct stream *s, size_t len)
{
    char text[200];
    snprintf(text, sizeof text, "%.*s", (int)(len < sizeof text ? len : sizeof text - 1), s->data);
    text[strcspn(text, "\n")] = '\0';
    log_mask(text);
    log_info("%s, which prints what the tasks print: %s", s->printer->words[0], text);
}

/* @return how long "RANK: " is at the beginning of what has been read; 0: it is none */
static size_t read_rank(struct stream *s)
{
    size_t i = 0;
    uint64_t rank = 0;
    while (i < s->n && s->data[i] == ' ')
        i++;
    size_t digits = i;
    for (; i < s->n && isdigit((unsigned char)s->data[i]) && rank < UINT32_MAX; i++)
        rank = rank * 10 + (uint64_t)(s->data[i] - '0');
    if (i == digits || i + 2 > s->n || s->data[i] != ':' || s->data[i + 1] != ' ' ||
        rank >= s->printer->ntasks)
        return 0;
    s->rank = (int32_t)(s->printer->first + rank);
    return i + 2;
}

static void drop(struct stream *s, size_t len)
{
    s->n -= len;
    memmove(s->data, s->data + len, s->n);
}

/* Takes a line, or what there is of one that does not fit. @return whether there was one */
static bool take(struct stream *s)
{
    struct printer *p = s->printer;
    const char *newline = memchr(s->data, '\n', s->n);
    if (newline == NULL && s->n < sizeof s->data)
        return false;
    if (s->rank < 0) {
        size_t label = read_rank(s);
        if (label == 0)
            say(s, newline != NULL ? (size_t)(newline - s->data) : s->n);
        drop(s, label);
        newline = memchr(s->data, '\n', s->n);
    }
    size_t len = newline != NULL ? (size_t)(newline - s->data) + 1 : s->n;
    if (s->rank >= 0) {
        p->head->pieces++;
        p->has_printed = true;
        forwards_print(p->server, (uint32_t)s->rank, s->channel, s->data, len);
    }
    drop(s, len);
    if (newline != NULL)
        s->rank = -1;
    return true;
}

static void go_on(struct stream *s)
{
    const struct printer *head = s->printer->head;
    while (head->pieces < PIECES_MAX && take(s))
        ;
    if (s->readable != NULL && head->pieces < PIECES_MAX)
        event_add(s->readable, NULL);
}

static void on_readable(evutil_socket_t fd, short what, void *arg)
{
    struct stream *s = arg;
    (void)what;
    ssize_t n = read(fd, s->data + s->n, sizeof s->data - s->n);
    if (n > 0)
        s->n += (size_t)n;
    if (n == 0 || (n < 0 && errno != EINTR && errno != EAGAIN)) {
        stop_reading(s);
        if (s->printer->streams[OUT].readable == NULL && s->printer->streams[ERR].readable == NULL)
            end(s->printer);
    }
    go_on(s);
}

/* ---- its life ---- */

/* @return whether it has ended, and its status */
static bool has_left(struct printer *p, int *status)
{
    return waitpid(p->pid, status, WNOHANG) == p->pid;
}

static void left(struct printer *p, int status)
{
    bool was_pulled = forwards_own_is_pulled(p->server->forwards);
    for (int i = 0; i < STREAMS; i++)
        stop_reading(&p->streams[i]);
    close(p->input);
    p->pid = 0;
    if (was_pulled && !p->has_printed && WIFEXITED(status) && WEXITSTATUS(status) != 0)
        log_warning(
            "what the tasks print does not come to those that pull it: %s ended with status "
            "%d; the log has its words at info",
            p->words[0], WEXITSTATUS(status));
    else
        log_debug("%s has ended", p->words[0]);
}

static void begin(struct printer *p);

static void on_look(void *arg, struct timer *timer)
{
    struct printer *p = arg;
    int status = 0;
    if (p->pid == 0)
        return;
    if (has_left(p, &status)) {
        left(p, status);
        if (p->again)
            begin(p);
        return;
    }
    if (!forwards_own_is_pulled(p->server->forwards))
        end(p);
    for (int i = 0; i < STREAMS; i++)
        go_on(&p->streams[i]);
    timer_after(timer, p->ending ? LOOK_MS / 10 : LOOK_MS);
}

/* After fork: system calls only. */
static void run(const struct printer *p, char *const *env, pid_t parent, const int fds[3])
{
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent)
        _exit(1);
    child_default_signals();
    for (int i = 0; i < 3; i++)
        if (dup2(fds[i], i) < 0)
            _exit(1);
    child_close_from(3);
    execve(p->words[0], p->words, env);
    _exit(127);
}

static bool open_pipes(int pipes[3][2])
{
    for (int i = 0; i < 3; i++)
        if (pipe2(pipes[i], O_CLOEXEC) != 0) {
            while (i-- > 0) {
                close(pipes[i][0]);
                close(pipes[i][1]);
            }
            return false;
        }
    return true;
}

static bool open_stream(struct printer *p, int which, int fd)
{
    struct stream *s = &p->streams[which];
    fcntl(fd, F_SETFL, O_NONBLOCK);
    s->n = 0;
    s->rank = -1;
    s->readable = event_new(p->server->base, fd, EV_READ, on_readable, s);
    if (s->readable == NULL)
        close(fd);
    else
        event_add(s->readable, NULL);
    return s->readable != NULL;
}

static void begin(struct printer *p)
{
    extern char **environ;
    int pipes[3][2];
    pid_t parent = getpid();
    p->again = p->pid != 0 && p->ending;
    if (p->pid != 0)
        return;
    if (!open_pipes(pipes)) {
        log_warning("%s cannot be started: %s", p->words[0], strerror(errno));
        return;
    }
    pid_t pid = fork();
    if (pid == 0)
        run(p, environ, parent, (const int[]){pipes[0][0], pipes[1][1], pipes[2][1]});
    close(pipes[0][0]);
    close(pipes[1][1]);
    close(pipes[2][1]);
    if (pid < 0) {
        log_warning("%s cannot be started: %s", p->words[0], strerror(errno));
        close(pipes[0][1]);
        close(pipes[1][0]);
        close(pipes[2][0]);
        return;
    }
    p->pid = pid;
    p->input = pipes[0][1];
    p->ending = p->has_printed = false;
    bool out = open_stream(p, OUT, pipes[1][0]), err = open_stream(p, ERR, pipes[2][0]);
    timer_after(&p->look, LOOK_MS);
    if (!out || !err)
        end(p);
    log_debug("%s prints what the tasks print", p->words[0]);
}

/* ---- what forward.h tells ---- */

static void run_pulled(struct handoff_item *item)
{
    struct server *server = upcall_server();
    free(item);
    for (struct printer *p = server->printer; p != NULL; p = p->next)
        begin(p);
}

/* @thread PMIx's */
static void pulled(struct server *server)
{
    (void)server;
    upcall_post(calloc(1, sizeof(struct handoff_item)), run_pulled);
}

static void printed(struct server *server)
{
    struct printer *head = server->printer;
    if (head == NULL || head->pieces == 0)
        return;
    bool was_full = head->pieces-- == PIECES_MAX;
    for (struct printer *p = head; p != NULL && was_full; p = p->next)
        timer_after(&p->look, 1); /* not from within its own loop */
}

/* ---- its life in the server ---- */

static void printers_free(struct printer *head)
{
    free(head != NULL ? head->command : NULL);
    for (struct printer *next; head != NULL; head = next) {
        next = head->next;
        free(head);
    }
}

/* @return the printer that comes behind those of @p head */
static struct printer *add(struct server *server, struct printer **head)
{
    struct printer *p = calloc(1, sizeof *p), **end = head;
    for (; *end != NULL; end = &(*end)->next)
        p->first = (*end)->first + (*end)->ntasks;
    *end = p;
    p->head = *head;
    p->server = server;
    p->ntasks = server->boot.ntasks;
    for (int i = 0; i < STREAMS; i++) {
        p->streams[i].printer = p;
        p->streams[i].channel = i == OUT ? PMIX_FWD_STDOUT_CHANNEL : PMIX_FWD_STDERR_CHANNEL;
    }
    timer_init(&p->look, &server->timers, on_look, p);
    return p;
}

/* "COMMAND WORD..." of all tasks, or "TASKS COMMAND WORD..." of each component, with ";" between
 * them. */
static struct printer *read_command(struct server *server, const char *text)
{
    struct printer *head = NULL, *p = add(server, &head);
    char *save = NULL;
    size_t n = 0;
    p->command = strdup(text);
    for (char *word = strtok_r(p->command, " ", &save); word != NULL;
         word = strtok_r(NULL, " ", &save)) {
        if (n == 0 && isdigit((unsigned char)word[0])) {
            p->ntasks = (uint32_t)strtoul(word, NULL, 10);
        } else if (strcmp(word, ";") != 0) {
            if (n < WORDS_MAX)
                p->words[n++] = word;
        } else {
            p = add(server, &head);
            n = 0;
        }
    }
    return head;
}

/* @return whether all of them can be run, and print what there is of tasks */
static bool are_good(const struct printer *head)
{
    const struct printer *p = head, *last = head;
    for (; p != NULL && p->words[0] != NULL && p->words[0][0] == '/'; p = p->next)
        last = p;
    return p == NULL && last->first + last->ntasks == last->server->boot.ntasks;
}

void printer_open(struct server *server)
{
    const char *command = boot_setting(&server->boot, BOOT_PRINTER);
    if (command == NULL || *command == '\0')
        return;
    struct printer *head = read_command(server, command);
    if (are_good(head)) {
        forwards_own(server, pulled, printed);
        server->printer = head;
        return;
    }
    log_debug("%s cannot be run: what tasks print cannot be pulled", command);
    printers_free(head);
}

void printer_close(struct server *server)
{
    int status;
    for (struct printer *p = server->printer; p != NULL; p = p->next) {
        timer_stop(&p->look);
        if (p->pid == 0)
            continue;
        kill(p->pid, SIGKILL);
        for (int i = 0; i < STREAMS; i++)
            stop_reading(&p->streams[i]);
        close(p->input);
        has_left(p, &status); /* else init takes it, as we end, too */
    }
    printers_free(server->printer);
    server->printer = NULL;
}
