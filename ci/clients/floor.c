/* SPDX-License-Identifier: BSD-3-Clause */
/* floor SERVERS ROUNDS RANKS: what a fence cannot be faster than: bare TCP over muster's tree of
 * servers, without PMIx, in as many processes of one machine. Each process contributes the data of
 * RANKS ranks, inner ones hand up all that is below them, the root hands all to everybody. Prints
 * as bench does.
 */
#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { SERVERS_MAX = 256, ARITY = 16, HEAD = 160, ENTRY = 28 /* bytes of muster's frames */ };

struct shared {
    pthread_barrier_t barrier;
    uint16_t ports[SERVERS_MAX];
    double us[]; /* of each server, each round */
};

static struct shared *shared;
static int self, servers, rounds;
static int up = -1, children[ARITY], nchildren;
static int below[ARITY], subtree = 1; /* servers */

static double now_us(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

static void fail(const char *what)
{
    perror(what);
    _exit(1);
}

static void read_all(int fd, char *p, size_t n)
{
    for (ssize_t k = 0; n > 0; p += k, n -= (size_t)k)
        if ((k = read(fd, p, n)) <= 0)
            fail("floor: read");
}

static void write_all(int fd, const char *p, size_t n)
{
    for (ssize_t k = 0; n > 0; p += k, n -= (size_t)k)
        if ((k = write(fd, p, n)) <= 0)
            fail("floor: write");
}

static int socket_new(void)
{
    int one = 1, fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0 || setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one) != 0)
        fail("floor: socket");
    return fd;
}

static int size_of_subtree(int top)
{
    int n = 0;
    for (int i = top; i < servers; i++) {
        int at = i;
        while (at > top)
            at = (at - 1) / ARITY;
        n += at == top;
    }
    return n;
}

static void connect_all(void)
{
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof a;
    int listener = socket_new(), one = 1;
    if (bind(listener, (void *)&a, sizeof a) != 0 || listen(listener, SERVERS_MAX) != 0 ||
        getsockname(listener, (void *)&a, &len) != 0)
        fail("floor: listen");
    shared->ports[self] = a.sin_port;
    pthread_barrier_wait(&shared->barrier);
    if (self > 0) {
        a.sin_port = shared->ports[(self - 1) / ARITY];
        up = socket_new();
        if (connect(up, (void *)&a, sizeof a) != 0)
            fail("floor: connect");
        write_all(up, (char *)&self, sizeof self);
    }
    for (int c = self * ARITY + 1; c <= self * ARITY + ARITY && c < servers; c++) {
        int who, fd = accept(listener, NULL, NULL);
        if (fd < 0 || setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one) != 0)
            fail("floor: accept");
        read_all(fd, (char *)&who, sizeof who);
        children[nchildren] = fd;
        below[nchildren] = size_of_subtree(who);
        subtree += below[nchildren++];
    }
    close(listener);
}

static void run(size_t bytes)
{
    size_t each = bytes > 0 ? bytes + ENTRY : 0, full = HEAD + (size_t)servers * each;
    char *buf = calloc(1, full), *in = calloc(1, full);
    for (int r = 0; r < rounds; r++) {
        size_t at = HEAD + each;
        pthread_barrier_wait(&shared->barrier);
        double begin = now_us();
        for (int k = 0; k < nchildren; k++) {
            size_t len = (size_t)below[k] * each;
            read_all(children[k], in, HEAD + len);
            memcpy(buf + at, in + HEAD, len);
            at += len;
        }
        if (up >= 0) {
            write_all(up, buf, HEAD + (size_t)subtree * each);
            read_all(up, buf, full);
        }
        for (int k = 0; k < nchildren; k++)
            write_all(children[k], buf, full);
        shared->us[self * rounds + r] = now_us() - begin;
    }
    free(buf);
    free(in);
    pthread_barrier_wait(&shared->barrier);
}

static int compare(const void *a, const void *b)
{
    const double *x = a, *y = b;
    return (*x > *y) - (*x < *y);
}

/* A round counts with its slowest server. */
static void print(const char *name)
{
    double *slowest = calloc((size_t)rounds, sizeof *slowest);
    for (int i = 0; i < servers * rounds; i++)
        if (shared->us[i] > slowest[i % rounds])
            slowest[i % rounds] = shared->us[i];
    qsort(slowest, (size_t)rounds, sizeof *slowest, compare);
    printf("BENCH %s %.1f %.1f\n", name, slowest[rounds / 2], slowest[rounds * 9 / 10]);
    free(slowest);
}

int main(int argc, char **argv)
{
    static const char *const names[] = {"fence", "fence-64", "fence-1K", "fence-64K"};
    static const size_t bytes[] = {0, 64, 1024, 65536};
    pthread_barrierattr_t attr;
    int ranks = argc == 4 ? atoi(argv[3]) : 0;
    servers = argc == 4 ? atoi(argv[1]) : 0;
    rounds = argc == 4 ? atoi(argv[2]) : 0;
    if (servers < 1 || servers > SERVERS_MAX || rounds < 1 || rounds > 100000 || ranks < 1) {
        fprintf(stderr, "usage: floor SERVERS ROUNDS RANKS-OF-EACH\n");
        return 2;
    }
    shared = mmap(NULL, sizeof *shared + (size_t)servers * (size_t)rounds * sizeof(double),
                  PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (shared == MAP_FAILED)
        fail("floor: mmap");
    pthread_barrierattr_init(&attr);
    pthread_barrierattr_setpshared(&attr, PTHREAD_PROCESS_SHARED);
    pthread_barrier_init(&shared->barrier, &attr, (unsigned)servers);
    for (int i = 1; i < servers && self == 0; i++)
        if (fork() == 0)
            self = i;
    alarm(60); /* one that has failed is waited for by the others */
    connect_all();
    for (size_t i = 0; i < sizeof bytes / sizeof *bytes; i++) {
        run(bytes[i] * (size_t)ranks);
        if (self == 0)
            print(names[i]);
        pthread_barrier_wait(&shared->barrier);
    }
    if (self > 0)
        _exit(0);
    while (wait(NULL) > 0)
        ;
    return 0;
}
