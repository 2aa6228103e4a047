/* SPDX-License-Identifier: BSD-3-Clause */
/* Calls to the agent in srun: HELLO and WELCOME, one frame and its answer; or one CAUSE. */
#include "plugins/slurm/agent_call.h"

#include "common/transport/seal/load.h"
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

enum {
    ANSWER_BYTES = SEAL_HEAD + AGENT_HEAD + 8 + SEAL_TAG,
    CAUSE_TRIES = 3,
};

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

/* @return 0 when all @p len bytes have come */
static int read_all_by(int fd, unsigned char *bytes, size_t len, int64_t by, struct err *err)
{
    for (size_t have = 0; have < len;) {
        if (wait_ready(fd, POLLIN, by) != 0)
            return err_set(err, "no answer: %s", strerror(errno));
        ssize_t n = recv(fd, bytes + have, len - have, 0);
        if (n == 0 || (n < 0 && errno == ECONNRESET))
            return err_set(err, "it takes us for a stranger");
        if (n < 0 && errno != EAGAIN && errno != EINTR)
            return err_set(err, "%s", strerror(errno));
        have += n > 0 ? (size_t)n : 0;
    }
    return 0;
}

static int put_hello(const struct agent_address *address, const struct agent_line *line, int ms,
                     struct wire_out *out)
{
    struct wire_out payload = {0};
    unsigned char proof[SEAL_PROOF];
    size_t begin = agent_frame_begin(out, AGENT_HELLO);
    agent_payload(address, line->point, NULL, &payload);
    bool made = !payload.failed && line->ops->prove(address->secret, sizeof address->secret,
                                                    payload.data, payload.len, proof);
    if (made) {
        wire_put_raw(out, proof, sizeof proof);
        wire_put_raw(out, line->point, SEAL_POINT);
        made = auth_write(out, getuid(), payload.data, payload.len, ms);
    }
    agent_frame_end(out, begin);
    wire_out_free(&payload);
    return made && !out->failed ? 0 : -1;
}

/* The agent's point, and its credential, which says whose that is. */
static int read_welcome(int fd, const struct agent_address *address, struct agent_line *line,
                        int64_t by, struct err *err)
{
    unsigned char bytes[AGENT_STRANGER_MAX];
    struct agent_frame frame;
    struct wire_out payload = {0};
    if (read_all_by(fd, bytes, AGENT_HEAD, by, err) != 0)
        return -1;
    if (agent_frame_read(bytes, AGENT_HEAD, sizeof bytes, &frame) < 0 ||
        read_all_by(fd, bytes + AGENT_HEAD, frame.len - AGENT_HEAD, by, err) != 0 ||
        agent_frame_read(bytes, frame.len, sizeof bytes, &frame) != 1 ||
        frame.type != AGENT_WELCOME)
        return err_set(err, "its answer is none");
    const unsigned char *point = wire_get_raw(&frame.body, SEAL_POINT);
    if (point == NULL)
        return err_set(err, "its answer is none");
    agent_payload(address, line->point, point, &payload);
    bool good = !payload.failed &&
                auth_read(&frame.body, getuid(), payload.data, payload.len, deadline_left(by)) &&
                agent_line_agree(line, SEAL_CALLER, address, point);
    wire_out_free(&payload);
    return good ? 0 : err_set(err, "it is not srun: its credential is not of this step's user");
}

static int read_answer(int fd, struct agent_line *line, int64_t by, struct err *err)
{
    unsigned char bytes[ANSWER_BYTES];
    struct agent_frame frame;
    if (read_all_by(fd, bytes, sizeof bytes, by, err) != 0)
        return -1;
    if (agent_line_read(line, bytes, sizeof bytes, &frame) != 1 || frame.type != AGENT_ANSWER)
        return err_set(err, "its answer is none");
    wire_get_u32(&frame.body);
    uint32_t result = wire_get_u32(&frame.body);
    return result == AGENT_TAKEN ? 0 : err_set(err, "it has refused that: %u", result);
}

/* @return 0, or -1: the agent has not taken the frame */
static int give(int fd, struct agent_line *line, const struct wire_out *frame, int64_t by,
                struct err *err)
{
    struct wire_out out = {0};
    int rc = -1;
    if (!agent_line_put(line, frame, &out))
        err_set(err, "out of memory");
    else if (send_all_by(fd, out.data, out.len, by) != 0)
        err_set(err, "%s", strerror(errno));
    else
        rc = read_answer(fd, line, by, err);
    wire_out_free(&out);
    return rc;
}

/* Whether the agent has closed it. */
static bool is_cut(int fd)
{
    char byte;
    ssize_t n = recv(fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT);
    return n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR);
}

/* The agent gives the place of a caller that says nothing to the next one, and munged has taken its
 * time meanwhile: a caller that was cut off connects once more. @param fd of connect_agent();
 * closed when -1 is returned */
static int talk(int fd, const struct agent_address *address, const struct wire_out *hello,
                const struct wire_out *frame, struct agent_line *line, int64_t by, struct err *err)
{
    if (is_cut(fd)) {
        close(fd);
        fd = connect_agent(address, by);
    }
    if (fd < 0 || send_all_by(fd, hello->data, hello->len, by) != 0)
        err_set(err, "%s", strerror(errno));
    else if (read_welcome(fd, address, line, by, err) == 0 && give(fd, line, frame, by, err) == 0)
        return fd;
    if (fd >= 0)
        close(fd);
    return -1;
}

/* It connects before all else: srun hears who has connected by its end (agent.c). */
int agent_call_open(const char *text, const struct wire_out *frame, int ms, struct agent_line *line,
                    struct err *err)
{
    struct agent_address address;
    struct wire_out hello = {0};
    int64_t by = now_ms() + ms;
    if (text == NULL || !agent_address_read(text, &address))
        return err_set(err, "it has not said where it listens");
    int fd = connect_agent(&address, by);
    if (fd < 0)
        return err_set(err, "address %s port %s: %s", address.host, address.port, strerror(errno));
    if (agent_line_open(line, err) && put_hello(&address, line, ms, &hello) == 0) {
        fd = talk(fd, &address, &hello, frame, line, by, err);
    } else {
        err_set(err, "no credential can be made");
        close(fd);
        fd = -1;
    }
    wire_out_free(&hello);
    if (fd < 0)
        agent_line_close(line);
    return fd;
}

/* @param frame freed @param begin of agent_frame_begin() */
static int call(const char *address, struct wire_out *frame, size_t begin, int ms, struct err *err)
{
    agent_frame_end(frame, begin);
    struct agent_line line = {0};
    int fd = agent_call_open(address, frame, ms, &line, err);
    wire_out_free(frame);
    if (fd < 0)
        return -1;
    agent_line_close(&line);
    close(fd);
    return 0;
}

int agent_call_status(const char *address, const struct rm_ending *ending, int ms, struct err *err)
{
    struct wire_out frame = {0};
    size_t begin = agent_frame_begin(&frame, AGENT_STATUS);
    wire_put_u32(&frame, ending->cause);
    wire_put_u32(&frame, ending->status);
    const char *why = ending->told || ending->why == NULL ? "" : ending->why;
    wire_put_block(&frame, why, strnlen(why, AGENT_TEXT_MAX - 1));
    return call(address, &frame, begin, ms, err);
}

/* ---- a cause ---- */

/* The thread that calls may have another user's rights than the process (herald.h). If the process
 * gives it root's again meanwhile, this is root's credential, in the user's hands: then none but
 * the user can read it. */
static bool put_cause(const struct seal_ops *ops, const struct agent_address *address,
                      const unsigned char *nonce, const struct agent_cause *cause, int ms,
                      struct wire_out *out)
{
    struct wire_out payload = {0};
    unsigned char proof[SEAL_PROOF];
    size_t begin = agent_frame_begin(out, AGENT_CAUSE);
    agent_word(nonce, false, &payload);
    bool made = !payload.failed && ops->prove(address->secret, sizeof address->secret, payload.data,
                                              payload.len, proof);
    wire_put_str(&payload, address->label);
    wire_put_str(&payload, cause->node);
    wire_put_block(&payload, cause->text, strnlen(cause->text, AGENT_TEXT_MAX - 1));
    if (made && !payload.failed) {
        wire_put_raw(out, nonce, AGENT_NONCE);
        wire_put_raw(out, proof, sizeof proof);
        made = auth_write(out, cause->user, payload.data, payload.len, ms);
    }
    agent_frame_end(out, begin);
    wire_out_free(&payload);
    return made && !out->failed;
}

/* @return 0 when the answer is what only the agent can say */
static int read_taken(int fd, const struct seal_ops *ops, const struct agent_address *address,
                      const unsigned char *nonce, int64_t by, struct err *err)
{
    unsigned char proof[SEAL_PROOF], right[SEAL_PROOF];
    struct wire_out word = {0};
    agent_word(nonce, true, &word);
    bool good = !word.failed &&
                ops->prove(address->secret, sizeof address->secret, word.data, word.len, right);
    wire_out_free(&word);
    if (read_all_by(fd, proof, sizeof proof, by, err) != 0)
        return -1;
    return good && ops->is_same(proof, right, sizeof right) ? 0 : err_set(err, "it is not srun");
}

/* @return 0 when the agent has taken it */
static int send_cause(const struct seal_ops *ops, const struct agent_address *address,
                      const unsigned char *nonce, const struct wire_out *frame, int64_t by,
                      struct err *err)
{
    int rc = -1, fd = connect_agent(address, by);
    if (fd < 0 || send_all_by(fd, frame->data, frame->len, by) != 0)
        err_set(err, "address %s port %s: %s", address->host, address->port, strerror(errno));
    else
        rc = read_taken(fd, ops, address, nonce, by, err);
    if (fd >= 0)
        close(fd);
    return rc;
}

/* The agent may have had too many callers at once to hear this one. A credential that it has heard
 * it does not take again. */
int agent_call_cause(const char *address, const struct agent_cause *cause, int ms, struct err *err)
{
    struct agent_address at;
    struct wire_out frame = {0};
    unsigned char nonce[AGENT_NONCE];
    int64_t by = now_ms() + ms;
    int rc = -1;
    const struct seal_ops *ops = seal_load(err);
    if (ops == NULL)
        return -1;
    if (!agent_address_read(address, &at))
        return err_set(err, "it has not said where it listens");
    if (getrandom(nonce, sizeof nonce, 0) != sizeof nonce ||
        !put_cause(ops, &at, nonce, cause, ms, &frame))
        err_set(err, "no credential can be made");
    for (int tries = 0; rc != 0 && err->text[0] == '\0'; tries++) {
        struct err last = {0};
        rc = send_cause(ops, &at, nonce, &frame, by, &last);
        if (rc != 0 && (tries + 1 == CAUSE_TRIES || deadline_left(by) == 0))
            *err = last;
    }
    wire_out_free(&frame);
    return rc;
}

int agent_call_line(const char *address, const char *text, int ms, struct err *err)
{
    struct wire_out frame = {0};
    size_t begin = agent_frame_begin(&frame, AGENT_LINE);
    wire_put_block(&frame, text, strnlen(text, AGENT_TEXT_MAX - 1));
    return call(address, &frame, begin, ms, err);
}
