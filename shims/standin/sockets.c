/* SPDX-License-Identifier: BSD-3-Clause */
/* What goes wrong on direct connections between servers, when musterrun is told so: in the servers'
 * own processes, which load this with the library that plays the resource manager's. What to do
 * stands in a file beside the node's socket; what was done is added to another one, a letter each.
 *
 * Decisions follow from the seed, the node and how many calls came before. */
#include "common/transport/direct/sockets.h"
#include "shims/standin/faults.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { FDS = 4096, KEPT = 64 << 10, HEAD = 4, TAG = 16 };

/* What clients of tests put: keys, and words of their values. */
static const char *const known[] = {"own.host", "in round ", "of part ", "flood."};

static struct faults_direct ask;
static uint64_t calls;
static int done = -1;
static bool silent[FDS]; /* what is sent by that descriptor gets nowhere */

__attribute__((constructor)) static void read_what_to_do(void)
{
    char path[4096];
    const char *conf = getenv(FAULTS_DIRECT_BESIDE);
    if (conf == NULL ||
        snprintf(path, sizeof path, "%s" FAULTS_DIRECT_ASK, conf) >= (int)sizeof path)
        return;
    FILE *in = fopen(path, "re");
    if (in == NULL)
        return;
    if (fread(&ask, sizeof ask, 1, in) != 1)
        ask = (struct faults_direct){0};
    fclose(in);
    if (snprintf(path, sizeof path, "%s" FAULTS_DIRECT_DONE, conf) < (int)sizeof path)
        done = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
}

static bool strikes(enum fault_kind kind)
{
    unsigned i = (unsigned)(kind - FAULT_CUT);
    char letter = (char)('a' + (int)i);
    if (ask.percent[i] == 0 ||
        (long)(faults_mix(faults_mix(ask.seed + ++calls) + i) % 100) >= ask.percent[i])
        return false;
    if (done >= 0 && write(done, &letter, 1) != 1)
        done = -1;
    return true;
}

static int faulty_connect(int fd, const struct sockaddr *address, socklen_t len)
{
    if (strikes(FAULT_UNREACHABLE)) {
        errno = ECONNREFUSED;
        return -1;
    }
    return connect(fd, address, len);
}

/* Half of the first part arrives, and then the end. */
static ssize_t cut(int fd, const struct msghdr *message)
{
    const struct iovec *first = &message->msg_iov[0];
    if (send(fd, first->iov_base, first->iov_len / 2, MSG_NOSIGNAL) >= 0)
        shutdown(fd, SHUT_RDWR);
    errno = ECONNRESET;
    return -1;
}

/* A bit of the last part is another one. */
static ssize_t flip(int fd, const struct msghdr *message)
{
    struct msghdr copy = *message;
    struct iovec parts[4];
    size_t n = message->msg_iovlen, last = n - 1;
    if (n == 0 || n > sizeof parts / sizeof *parts || message->msg_iov[last].iov_len == 0)
        return sendmsg(fd, message, MSG_NOSIGNAL);
    memcpy(parts, message->msg_iov, n * sizeof *parts);
    unsigned char *bytes = malloc(parts[last].iov_len);
    if (bytes == NULL)
        return sendmsg(fd, message, MSG_NOSIGNAL);
    memcpy(bytes, parts[last].iov_base, parts[last].iov_len);
    bytes[faults_mix(ask.seed + calls) % parts[last].iov_len] ^= 0x20;
    parts[last].iov_base = bytes;
    copy.msg_iov = parts;
    ssize_t sent = sendmsg(fd, &copy, MSG_NOSIGNAL);
    int saved = errno;
    free(bytes);
    errno = saved;
    return sent;
}

static ssize_t swallow(const struct msghdr *message)
{
    size_t len = 0;
    for (size_t i = 0; i < message->msg_iovlen; i++)
        len += message->msg_iov[i].iov_len;
    return (ssize_t)len;
}

static ssize_t send_bytes(int fd, const void *bytes, size_t len)
{
    return send(fd, bytes, len, MSG_NOSIGNAL);
}

/* @return bytes of the record that these begin with; 0: it is not whole */
static size_t record_len(const unsigned char *bytes, size_t len)
{
    size_t n =
        len < HEAD
            ? 0
            : ((size_t)bytes[0] << 24 | (size_t)bytes[1] << 16 | (size_t)bytes[2] << 8 | bytes[3]) +
                  HEAD + TAG;
    return n <= len ? n : 0;
}

/* Whether it has two records that can change places. */
static bool has_two(const struct iovec *part)
{
    const unsigned char *bytes = part->iov_base;
    size_t one = record_len(bytes, part->iov_len);
    return one > 0 && record_len(bytes + one, part->iov_len - one) > 0;
}

static ssize_t swap(int fd, const struct iovec *part)
{
    const unsigned char *bytes = part->iov_base;
    size_t one = record_len(bytes, part->iov_len);
    size_t two = record_len(bytes + one, part->iov_len - one), rest = part->iov_len - one - two;
    unsigned char *other = malloc(part->iov_len);
    if (other == NULL)
        return send_bytes(fd, bytes, part->iov_len);
    memcpy(other, bytes + one, two);
    memcpy(other + two, bytes, one);
    memcpy(other + two + one, bytes + one + two, rest);
    ssize_t sent = send_bytes(fd, other, part->iov_len);
    free(other);
    return sent;
}

/* The last that was sent, by any descriptor. */
static struct {
    int fd;
    size_t len;
    unsigned char bytes[KEPT];
} last;

static void insert(int fd)
{
    static const unsigned char made_up[HEAD + 100 + TAG] = {0, 0, 0, 100};
    if (last.len > 0 && last.fd != fd)
        send_bytes(fd, last.bytes, last.len);
    else
        send_bytes(fd, made_up, sizeof made_up);
}

static bool is_known(const struct msghdr *message, const char *text)
{
    for (size_t i = 0; i < message->msg_iovlen; i++)
        if (memmem(message->msg_iov[i].iov_base, message->msg_iov[i].iov_len, text, strlen(text)) !=
            NULL)
            return true;
    return false;
}

static void look_for_known(const struct msghdr *message)
{
    if (ask.percent[FAULT_READ - FAULT_CUT] == 0)
        return;
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (is_known(message, known[i]))
            strikes(FAULT_READ);
}

/* What somebody on the way could do. Servers send one part at a time. */
static ssize_t meddle(int fd, const struct msghdr *message)
{
    const struct iovec *part = message->msg_iov;
    look_for_known(message);
    if (has_two(part) && strikes(FAULT_SWAPPED))
        return swap(fd, part);
    if (strikes(FAULT_INSERTED))
        insert(fd);
    ssize_t sent = sendmsg(fd, message, MSG_NOSIGNAL);
    if (sent > 0 && strikes(FAULT_REPEATED))
        send_bytes(fd, part->iov_base, (size_t)sent);
    if (sent > 0 && sent <= KEPT) {
        last.fd = fd;
        last.len = (size_t)sent;
        memcpy(last.bytes, part->iov_base, last.len);
    }
    return sent;
}

static ssize_t faulty_sendmsg(int fd, const struct msghdr *message)
{
    bool valid = fd >= 0 && fd < FDS;
    if (valid && !silent[fd] && strikes(FAULT_SILENT))
        silent[fd] = true;
    if (valid && silent[fd])
        return swallow(message);
    if (strikes(FAULT_CUT))
        return cut(fd, message);
    if (strikes(FAULT_FLIPPED))
        return flip(fd, message);
    return meddle(fd, message);
}

static int faulty_close(int fd)
{
    if (fd >= 0 && fd < FDS)
        silent[fd] = false;
    return close(fd);
}

__attribute__((visibility("default"))) extern const struct sockets muster_sockets;
const struct sockets muster_sockets = {faulty_connect, faulty_sendmsg, faulty_close};
