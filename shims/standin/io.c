/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * Standard input, output and error of the tasks.
 *
 * A node makes a task's pipes when it forks the task, and passes our ends to the first process. So
 * no task is forked with the pipes of all, which it would have to close: of 1,000 tasks each closed
 * 6,000 descriptors.
 *
 * Without labels bytes go out as they come. With them lines are collected, so that a line is one
 * task's. Input goes to its readers chunk by chunk: the first is read when the pipes of all readers
 * have come, the next when all have taken the last.
 */
#include "shims/standin/io.h"

#include "shims/standin/printers.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

enum { CHUNK = PRINTERS_PIECE, LINE_BYTES = 16384, RANKS_MAX = 1 << 20, OWN_FILES = 8 };

/* One output of a task. */
struct out {
    int ends[2]; /* pipe; -1: closed */
    char *line;  /* what has come of a line; owned */
    size_t used;
    int fd; /* where it goes; ranks without a file of their own share it */
};

struct task_io {
    bool awaited; /* it reads, and its pipes have not come */
    int in[2];
    size_t taken; /* of the chunk */
    struct out out[2];
};

struct io {
    uint32_t ntasks;
    long input; /* who reads, as io_open() has it */
    struct task_io *tasks;
    struct printers *printers;
    bool label, eof, both; /* both: one file takes both outputs, in the order of the writes */
    char chunk[CHUNK];
    size_t len;
};

static void shut(int *fd)
{
    if (*fd >= 0)
        close(*fd);
    *fd = -1;
}

/* FILE with %t as the rank. @return a descriptor, or -1 */
static int open_file(const char *file, uint32_t rank)
{
    char path[4096];
    size_t n = 0;
    for (const char *p = file; *p != '\0' && n < sizeof(path) - 16; p++) {
        if (p[0] == '%' && p[1] == 't') {
            n += (size_t)snprintf(path + n, 16, "%u", rank);
            p++;
        } else {
            path[n++] = *p;
        }
    }
    path[n] = '\0';
    return open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
}

static int open_files(struct io *io, const char *const files[2], struct err *err)
{
    for (int which = 0; which < 2; which++) {
        bool each = files[which] && strstr(files[which], "%t");
        int fd = which == 0 ? STDOUT_FILENO : STDERR_FILENO;
        for (uint32_t rank = 0; rank < io->ntasks; rank++) {
            if (files[which] && (each || rank == 0)) {
                /* one that takes both is written by both at one place */
                fd = which == 1 && files[1] == files[0]
                         ? fcntl(io->tasks[rank].out[0].fd, F_DUPFD_CLOEXEC, 0)
                         : open_file(files[which], rank);
                if (fd < 0)
                    return err_set(err, "--%s: %s: %s", which == 0 ? "output" : "error",
                                   files[which], strerror(errno));
            }
            io->tasks[rank].out[which].fd = fd;
        }
    }
    return 0;
}

/* Our ends of all tasks, and the least that this process has open besides. */
static int check_limit(uint32_t ntasks, struct err *err)
{
    struct rlimit files;
    uint64_t need = OWN_FILES + (uint64_t)IO_ENDS * ntasks;
    if (getrlimit(RLIMIT_NOFILE, &files) < 0 || files.rlim_cur >= need)
        return 0;
    return err_set(err,
                   "cannot make the pipes of %u tasks: %s (%llu are needed, %llu allowed: raise "
                   "the hard limit, ulimit -Hn)",
                   ntasks, strerror(EMFILE), (unsigned long long)need,
                   (unsigned long long)files.rlim_cur);
}

static bool reads(const struct io *io, uint32_t rank)
{
    return io->input == IO_INPUT_ALL || io->input == (long)rank;
}

struct io *io_open(const struct standin_step *step, long input, bool label,
                   const char *const files[2], struct err *err)
{
    uint32_t ntasks = step->ntasks;
    if (check_limit(ntasks, err) < 0)
        return NULL;
    struct io *io = calloc(1, sizeof(*io));
    if (io) {
        io->tasks = calloc(ntasks, sizeof(*io->tasks));
        io->printers = printers_open(step);
    }
    if (!io || !io->tasks || !io->printers) {
        err_set(err, "out of memory");
        return NULL;
    }
    io->ntasks = ntasks;
    io->input = input;
    io->label = label;
    io->both = files[0] && files[1] == files[0];
    for (uint32_t rank = 0; rank < ntasks; rank++)
        io->tasks[rank] = (struct task_io){.awaited = reads(io, rank),
                                           .in = {-1, -1},
                                           .out = {{.ends = {-1, -1}}, {.ends = {-1, -1}}}};
    return open_files(io, files, err) == 0 ? io : NULL;
}

/* ---- in a node's process and its tasks' ---- */

void io_leave(struct io *io)
{
    printers_leave(io->printers);
}

int io_make(struct io *io, uint32_t rank)
{
    struct task_io *task = &io->tasks[rank];
    if (pipe2(task->out[0].ends, O_CLOEXEC) == 0 && pipe2(task->out[1].ends, O_CLOEXEC) == 0 &&
        (!reads(io, rank) ||
         (pipe2(task->in, O_CLOEXEC) == 0 && fcntl(task->in[1], F_SETFL, O_NONBLOCK) == 0)))
        return 0;
    int error = errno;
    io_shut(io, rank);
    errno = error;
    return -1;
}

size_t io_ends(const struct io *io, uint32_t rank, int ends[IO_ENDS])
{
    const struct task_io *task = &io->tasks[rank];
    ends[0] = task->out[0].ends[0];
    ends[1] = task->out[1].ends[0];
    ends[2] = task->in[1];
    return ends[2] >= 0 ? 3 : 2;
}

int io_become(struct io *io, uint32_t rank)
{
    struct task_io *task = &io->tasks[rank];
    int in = task->in[0] >= 0 ? task->in[0] : open("/dev/null", O_RDONLY | O_CLOEXEC);
    return in < 0 || dup2(in, STDIN_FILENO) < 0 || dup2(task->out[0].ends[1], STDOUT_FILENO) < 0 ||
                   dup2(task->out[io->both ? 0 : 1].ends[1], STDERR_FILENO) < 0
               ? -1
               : 0;
}

void io_shut(struct io *io, uint32_t rank)
{
    struct task_io *task = &io->tasks[rank];
    for (int i = 0; i < 2; i++) {
        shut(&task->in[i]);
        shut(&task->out[0].ends[i]);
        shut(&task->out[1].ends[i]);
    }
}

/* ---- in the first process ---- */

void io_take(struct io *io, uint32_t rank, const int *ends, size_t n)
{
    struct task_io *task = &io->tasks[rank];
    task->awaited = false;
    task->out[0].ends[0] = ends[0];
    task->out[1].ends[0] = ends[1];
    task->in[1] = n > 2 ? ends[2] : -1;
    task->taken = io->len;
}

void io_lost(struct io *io, uint32_t rank)
{
    io->tasks[rank].awaited = false;
}

nfds_t io_max(const struct io *io)
{
    return 1 + 3 * (nfds_t)io->ntasks + PRINTERS_FDS;
}

/* Whether all readers are there, and have taken the chunk; where no reader is left, none ever will.
 */
static bool wants_input(const struct io *io)
{
    bool any = false;
    for (uint32_t rank = 0; rank < io->ntasks; rank++) {
        if (io->tasks[rank].awaited)
            return false;
        if (io->tasks[rank].in[1] < 0)
            continue;
        any = true;
        if (io->tasks[rank].taken < io->len)
            return false;
    }
    return any && !io->eof;
}

/* Always all of them, in one order; what there is nothing to do with has fd -1. */
nfds_t io_poll(struct io *io, struct pollfd *fds)
{
    nfds_t n = 0;
    bool reads = printers_wait(io->printers) == 0;
    fds[n++] = (struct pollfd){wants_input(io) ? STDIN_FILENO : -1, POLLIN, 0};
    for (uint32_t rank = 0; rank < io->ntasks; rank++) {
        struct task_io *task = &io->tasks[rank];
        fds[n++] = (struct pollfd){task->taken < io->len ? task->in[1] : -1, POLLOUT, 0};
        for (int i = 0; i < 2; i++)
            fds[n++] = (struct pollfd){reads ? task->out[i].ends[0] : -1, POLLIN, 0};
    }
    printers_poll(io->printers, fds + n);
    return n + PRINTERS_FDS;
}

static void write_out(int fd, const char *data, size_t len)
{
    while (len > 0) {
        ssize_t n = write(fd, data, len);
        if (n < 0 && errno == EAGAIN) {
            struct pollfd wait = {fd, POLLOUT, 0};
            poll(&wait, 1, -1);
        } else if (n < 0 && errno != EINTR) {
            return; /* it is not read any more; the tasks go on, as under srun */
        } else if (n > 0) {
            data += n;
            len -= (size_t)n;
        }
    }
}

/* A line may hold NUL bytes. */
static void write_line(uint32_t rank, struct out *out, int fd)
{
    char text[LINE_BYTES + 32];
    size_t n = (size_t)snprintf(text, sizeof(text), "%u: ", rank);
    memcpy(text + n, out->line, out->used);
    n += out->used;
    text[n++] = '\n';
    write_out(fd, text, n);
    out->used = 0;
}

static void add_lines(uint32_t rank, struct out *out, int fd, const char *data, size_t len)
{
    if (!out->line && !(out->line = malloc(LINE_BYTES)))
        return;
    for (size_t i = 0; i < len; i++) {
        if (data[i] != '\n')
            out->line[out->used++] = data[i];
        if (data[i] == '\n' || out->used == LINE_BYTES)
            write_line(rank, out, fd);
    }
}

static void read_output(struct io *io, uint32_t rank, int which)
{
    struct out *out = &io->tasks[rank].out[which];
    int fd = out->fd;
    char data[CHUNK];
    if (printers_wait(io->printers) != 0)
        return;
    ssize_t n = read(out->ends[0], data, sizeof(data));
    if (n >= 0)
        printers_say(io->printers, rank, which, data, (size_t)n);
    if (n > 0 && io->label) {
        add_lines(rank, out, fd, data, (size_t)n);
    } else if (n > 0) {
        write_out(fd, data, (size_t)n);
    } else if (n == 0 || (errno != EINTR && errno != EAGAIN)) {
        shut(&out->ends[0]);
        if (out->used > 0)
            write_line(rank, out, fd);
    }
}

static void shut_inputs(struct io *io)
{
    for (uint32_t rank = 0; rank < io->ntasks; rank++)
        shut(&io->tasks[rank].in[1]);
}

static void read_input(struct io *io)
{
    ssize_t n = read(STDIN_FILENO, io->chunk, sizeof(io->chunk));
    if (n < 0 && (errno == EINTR || errno == EAGAIN))
        return;
    if (n <= 0) {
        io->eof = true;
        shut_inputs(io);
        return;
    }
    io->len = (size_t)n;
    for (uint32_t rank = 0; rank < io->ntasks; rank++)
        io->tasks[rank].taken = io->tasks[rank].in[1] >= 0 ? 0 : io->len;
}

static void write_input(struct io *io, struct task_io *task)
{
    ssize_t n = write(task->in[1], io->chunk + task->taken, io->len - task->taken);
    if (n > 0) {
        task->taken += (size_t)n;
    } else if (errno != EINTR && errno != EAGAIN) {
        task->taken = io->len; /* it has closed its input, or has ended */
        shut(&task->in[1]);
    }
}

void io_ready(struct io *io, const struct pollfd *fds, nfds_t n)
{
    n -= PRINTERS_FDS;
    printers_ready(io->printers, fds + n);
    for (nfds_t i = 1; i < n; i++) {
        uint32_t rank = (uint32_t)((i - 1) / 3);
        int which = (int)((i - 1) % 3);
        if (!fds[i].revents)
            continue;
        if (which == 0)
            write_input(io, &io->tasks[rank]);
        else
            read_output(io, rank, which - 1);
    }
    if (fds[0].revents)
        read_input(io);
}

int64_t io_wait(const struct io *io)
{
    return printers_wait(io->printers);
}

bool io_done(const struct io *io)
{
    for (uint32_t rank = 0; rank < io->ntasks; rank++)
        if (io->tasks[rank].out[0].ends[0] >= 0 || io->tasks[rank].out[1].ends[0] >= 0)
            return false;
    return true;
}

void io_finish(struct io *io)
{
    for (uint32_t rank = 0; rank < io->ntasks; rank++)
        for (int i = 0; i < 2; i++)
            if (io->tasks[rank].out[i].used > 0)
                write_line(rank, &io->tasks[rank].out[i], io->tasks[rank].out[i].fd);
    printers_close(io->printers);
}

int io_print(const char *path)
{
    static struct printers_piece piece;
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    struct out(*tasks)[2] = NULL;
    uint32_t ntasks = 0;
    ssize_t n, head = offsetof(struct printers_piece, data);
    int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    snprintf(at.sun_path, sizeof(at.sun_path), "%s", path);
    if (fd < 0 || connect(fd, (struct sockaddr *)&at, sizeof(at)) < 0) {
        perror(path);
        return 1;
    }
    while ((n = recv(fd, &piece, sizeof(piece), 0)) >= head && piece.rank < RANKS_MAX) {
        if (piece.rank >= ntasks) {
            tasks = reallocarray(tasks, piece.rank + 1, sizeof(*tasks));
            if (!tasks)
                return 1;
            memset(tasks + ntasks, 0, (piece.rank + 1 - ntasks) * sizeof(*tasks));
            ntasks = piece.rank + 1;
        }
        struct out *out = &tasks[piece.rank][piece.which != 0];
        int to = piece.which == 0 ? STDOUT_FILENO : STDERR_FILENO;
        add_lines(piece.rank, out, to, piece.data, (size_t)(n - head));
        if (n == head && out->used > 0)
            write_line(piece.rank, out, to);
    }
    return 0;
}
