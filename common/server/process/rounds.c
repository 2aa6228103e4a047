/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * Counts for each task how often it has connected and finalized, and keeps the list of the open
 * connections. From the two follows whether the listener has to wait.
 */
#include "common/server/process/rounds.h"

#include "common/util/clock.h"
#include "common/util/log.h"

#include <linux/sockios.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/stat.h>

/* What one task has done. */
struct turns {
    uint32_t connected, finalized;
};

/* A connection that libpmix has. Once libpmix has closed it, the number may be another file's. */
struct conn {
    int fd;
    ino_t inode;
    bool past; /* rounds do not wait for this connection any more */
};

/* There is one listener in the process, and accept() has no argument of ours. */
static struct rounds {
    pthread_mutex_t lock;
    uint32_t ntasks;
    struct turns *tasks;
    uint32_t begun;  /* rounds that were waited for */
    uint32_t ended;  /* the most that a task has finalized */
    int64_t until;   /* the wait's end; 0: nothing waits */
    int64_t settled; /* when libpmix will have told whose connections have closed, ms */
    struct conn *conns;
    size_t nconns, cap;
} rounds = {.lock = PTHREAD_MUTEX_INITIALIZER};

void rounds_open(uint32_t ntasks)
{
    rounds.tasks = calloc(ntasks, sizeof *rounds.tasks);
    rounds.ntasks = ntasks;
}

void rounds_close(void)
{
    free(rounds.tasks);
    free(rounds.conns);
    rounds = (struct rounds){.lock = PTHREAD_MUTEX_INITIALIZER};
}

void rounds_connected(uint32_t slot)
{
    pthread_mutex_lock(&rounds.lock);
    if (slot < rounds.ntasks)
        rounds.tasks[slot].connected++;
    pthread_mutex_unlock(&rounds.lock);
}

void rounds_finalized(uint32_t slot)
{
    pthread_mutex_lock(&rounds.lock);
    if (slot < rounds.ntasks && ++rounds.tasks[slot].finalized > rounds.ended)
        rounds.ended = rounds.tasks[slot].finalized;
    pthread_mutex_unlock(&rounds.lock);
}

/* Whether every task has been in the round that one of them has ended: then a connection that comes
 * is not late for that round. */
static bool turns(void)
{
    if (rounds.ended == rounds.begun)
        return false;
    for (uint32_t k = 0; k < rounds.ntasks; k++)
        if (rounds.tasks[k].connected < rounds.ended)
            return false;
    return true;
}

static bool is_open(const struct conn *c)
{
    struct stat st;
    return fstat(c->fd, &st) == 0 && S_ISSOCK(st.st_mode) && st.st_ino == c->inode;
}

static void drop_closed(void)
{
    size_t n = 0;
    for (size_t i = 0; i < rounds.nconns; i++)
        if (is_open(&rounds.conns[i]))
            rounds.conns[n++] = rounds.conns[i];
    if (n < rounds.nconns)
        rounds.settled = now_ms() + ROUNDS_SETTLE_MS;
    rounds.nconns = n;
}

/* Of the last round. */
static size_t count_open(void)
{
    size_t n = 0;
    drop_closed();
    for (size_t i = 0; i < rounds.nconns; i++)
        n += !rounds.conns[i].past;
    return n;
}

/* @return whether the connections of the last round are to be waited for */
static bool must_wait(void)
{
    if (!turns())
        return false;
    size_t nopen = count_open();
    int64_t now = now_ms();
    if (rounds.until == 0)
        rounds.until = now + ROUNDS_HOLD_MS;
    if (nopen > 0 && now < rounds.until)
        return true;
    if (nopen > 0)
        log_info("a task has called PMIx_Init again, and %zu connections of before are still open; "
                 "it goes on",
                 nopen);
    for (size_t i = 0; i < rounds.nconns; i++)
        rounds.conns[i].past = true;
    rounds.begun = rounds.ended;
    rounds.until = 0;
    return false;
}

bool rounds_hold(void)
{
    pthread_mutex_lock(&rounds.lock);
    bool wait = must_wait();
    pthread_mutex_unlock(&rounds.lock);
    if (wait)
        poll(NULL, 0, ROUNDS_LOOK_MS);
    return wait;
}

void rounds_accepted(int fd)
{
    struct stat st;
    if (fstat(fd, &st) != 0)
        return;
    pthread_mutex_lock(&rounds.lock);
    if (rounds.nconns == rounds.cap) {
        drop_closed();
        rounds.cap = 2 * rounds.nconns + 16;
        rounds.conns = realloc(rounds.conns, rounds.cap * sizeof *rounds.conns);
    }
    rounds.conns[rounds.nconns++] = (struct conn){.fd = fd, .inode = st.st_ino};
    pthread_mutex_unlock(&rounds.lock);
}

void rounds_left(int fd)
{
    pthread_mutex_lock(&rounds.lock);
    for (size_t i = 0; i < rounds.nconns; i++)
        if (rounds.conns[i].fd == fd)
            rounds.conns[i].past = true;
    pthread_mutex_unlock(&rounds.lock);
}

bool rounds_congested(void)
{
    pthread_mutex_lock(&rounds.lock);
    drop_closed();
    bool found = now_ms() < rounds.settled;
    for (size_t i = 0; i < rounds.nconns && !found; i++) {
        int unread = 0;
        found = ioctl(rounds.conns[i].fd, SIOCOUTQ, &unread) == 0 && unread > ROUNDS_UNREAD_MAX;
    }
    pthread_mutex_unlock(&rounds.lock);
    return found;
}
