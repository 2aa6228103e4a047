/* SPDX-License-Identifier: BSD-3-Clause */
/* muster-server's calls to the agent in srun: HELLO and one frame at once, two answers. */
#include "plugins/slurm/agent_call.h"

#include "common/util/clock.h"
#include "plugins/slurm/agent_wire.h"
#include "plugins/slurm/auth.h"

#include <errno.h>
#include <netdb.h>
#include <poll.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

enum { ANSWERS = 2, ANSWER_BYTES = AGENT_HEAD + 8 };

static int wait_ready(int fd, short events, int64_t by)
{
    struct pollfd poller = {.fd = fd, .events = events};
    int rc;
    while ((rc = poll(&poller, 1, deadline_left(by))) < 0 && errno == EINTR)
        ;
    if (rc == 0)
        errno = ETIMEDOUT;
    return rc > 0 ? 0 : -1;
}

/* @return 0, or -1 with errno set */
static int finish_connect(int fd, int64_t by)
{
    socklen_t len = sizeof(int);
    int error = 0;
    if (errno != EINPROGRESS || wait_ready(fd, POLLOUT, by) != 0 ||
        getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &len) != 0)
        return -1;
    errno = error;
    return error == 0 ? 0 : -1;
}

/* The address is a number: no name service is asked, which might take its time. @return -1 with
 * errno set */
static int connect_agent(const struct agent_address *address, int64_t by)
{
    const struct addrinfo hints = {.ai_family = AF_UNSPEC,
                                   .ai_socktype = SOCK_STREAM,
                                   .ai_flags = AI_NUMERICHOST | AI_NUMERICSERV};
    struct addrinfo *found;
    if (getaddrinfo(address->host, address->port, &hints, &found) != 0) {
        errno = EINVAL;
        return -1;
    }
    int fd = socket(found->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd >= 0 && connect(fd, found->ai_addr, found->ai_addrlen) != 0 &&
        finish_connect(fd, by) != 0) {
        int saved = errno;
        close(fd);
        errno = saved;
        fd = -1;
    }
    freeaddrinfo(found);
    return fd;
}

static int send_all_by(int fd, const unsigned char *data, size_t len, int64_t by)
{
    while (len > 0) {
        ssize_t n = send(fd, data, len, MSG_NOSIGNAL);
        if (n > 0) {
            data += n;
            len -= (size_t)n;
        } else if ((errno != EAGAIN && errno != EINTR) || wait_ready(fd, POLLOUT, by) != 0) {
            return -1;
        }
    }
    return 0;
}

static int read_answers(int fd, int64_t by, struct err *err)
{
    unsigned char bytes[ANSWERS * ANSWER_BYTES];
    size_t have = 0;
    while (have < sizeof bytes) {
        if (wait_ready(fd, POLLIN, by) != 0)
            return err_set(err, "no answer: %s", strerror(errno));
        ssize_t n = recv(fd, bytes + have, sizeof bytes - have, 0);
        if (n == 0 || (n < 0 && errno == ECONNRESET))
            return err_set(err, "it takes us for a stranger");
        if (n < 0 && errno != EAGAIN && errno != EINTR)
            return err_set(err, "%s", strerror(errno));
        have += n > 0 ? (size_t)n : 0;
    }
    for (size_t at = 0; at < sizeof bytes; at += ANSWER_BYTES) {
        struct agent_frame frame;
        if (agent_frame_read(bytes + at, ANSWER_BYTES, ANSWER_BYTES, &frame) != 1 ||
            frame.type != AGENT_ANSWER)
            return err_set(err, "its answer is none");
        wire_get_u32(&frame.body);
        uint32_t result = wire_get_u32(&frame.body);
        if (result != AGENT_TAKEN)
            return err_set(err, "it has refused that: %u", result);
    }
    return 0;
}

static int put_hello(const struct agent_address *address, int ms, struct wire_out *out)
{
    struct wire_out payload = {0};
    unsigned char nonce[AGENT_NONCE];
    size_t begin = agent_frame_begin(out, AGENT_HELLO);
    if (getrandom(nonce, sizeof nonce, 0) != sizeof nonce)
        return -1;
    agent_payload(address, nonce, &payload);
    wire_put_raw(out, address->secret, sizeof address->secret);
    wire_put_raw(out, nonce, sizeof nonce);
    bool made = !payload.failed && auth_write(out, getuid(), payload.data, payload.len, ms);
    agent_frame_end(out, begin);
    wire_out_free(&payload);
    return made ? 0 : -1;
}

/* @param out HELLO, then the frame @return the socket, or -1 */
static int talk(const struct agent_address *address, const struct wire_out *out, int64_t by,
                struct err *err)
{
    int fd = connect_agent(address, by);
    if (fd < 0)
        return err_set(err, "address %s port %s: %s", address->host, address->port,
                       strerror(errno));
    if (send_all_by(fd, out->data, out->len, by) != 0)
        err_set(err, "%s", strerror(errno));
    else if (read_answers(fd, by, err) == 0)
        return fd;
    close(fd);
    return -1;
}

/* The credential is made first: munged takes its time, and the agent gives a place in which a
 * caller says nothing to the next one. */
int agent_call_open(const char *text, const struct wire_out *frame, int ms, struct err *err)
{
    struct agent_address address;
    struct wire_out out = {0};
    int64_t by = now_ms() + ms;
    int fd = -1;
    if (text == NULL || !agent_address_read(text, &address))
        return err_set(err, "it has not said where it listens");
    if (put_hello(&address, ms, &out) != 0)
        err_set(err, "no credential can be made");
    else {
        wire_put_raw(&out, frame->data, frame->len);
        fd = frame->failed || out.failed ? err_set(err, "out of memory")
                                         : talk(&address, &out, by, err);
    }
    wire_out_free(&out);
    return fd;
}

/* @param frame freed @param begin of agent_frame_begin() */
static int call(const char *address, struct wire_out *frame, size_t begin, int ms, struct err *err)
{
    agent_frame_end(frame, begin);
    int fd = agent_call_open(address, frame, ms, err);
    wire_out_free(frame);
    if (fd < 0)
        return -1;
    close(fd);
    return 0;
}

int agent_call_status(const char *address, const struct rm_ending *ending, int ms, struct err *err)
{
    struct wire_out frame = {0};
    size_t begin = agent_frame_begin(&frame, AGENT_STATUS);
    wire_put_u32(&frame, ending->cause);
    wire_put_u32(&frame, ending->status);
    return call(address, &frame, begin, ms, err);
}

int agent_call_say(const char *address, const char *text, int ms, struct err *err)
{
    struct wire_out frame = {0};
    size_t begin = agent_frame_begin(&frame, AGENT_SAY);
    wire_put_block(&frame, text, strnlen(text, AGENT_TEXT_MAX - 1));
    return call(address, &frame, begin, ms, err);
}
