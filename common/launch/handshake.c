/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * What plugin and server say to each other before any task starts; the format is boot.h's.
 *
 * The server runs with the user's rights, so the user may have it say anything: sizes, numbers and
 * the time are bounded, and texts are masked. What it gives goes to the user's own tasks alone.
 */
#include "common/launch/handshake.h"

#include "common/launch/death.h"
#include "common/util/clock.h"
#include "common/util/log.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

enum {
    ANSWER_MS = 30000,        /* for all of it */
    ANSWER_NODE_MS = 2,       /* and for each node: 65,536 take 14 s on two busy processors */
    TASKS_A_MS = 8,           /* and one more for so many tasks */
    ENV_TOTAL_MAX = 64 << 20, /* bytes of all environments */
};

/* One handshake on its way. */
struct talk {
    struct launch *launch;
    const struct boot *boot;
    struct task_env *env;
    int64_t deadline;
    size_t total; /* bytes of environment so far */
    struct err *err;
};

static const char *here(const struct talk *talk)
{
    return boot_here(talk->boot)->name;
}

/* The server's own words say best why it is gone. */
static int server_gone(struct talk *talk)
{
    struct relay *relay = &talk->launch->relay;
    char why[512];
    relay_drain(relay);
    if (relay->last_error[0] != '\0')
        return err_set(talk->err, "muster-server did not start on node %s: %s%s", here(talk),
                       relay->last_error,
                       strstr(relay->last_error, RELAY_NO_LIBRARY) != NULL
                           ? "; install that library again there, of the release that other nodes "
                             "have"
                           : "");
    launch_death(talk->launch, why, sizeof(why));
    return err_set(talk->err, "muster-server ended before it was ready on node %s%s: see %s",
                   here(talk), why[0] != '\0' ? why : ", without a word", talk->launch->log);
}

/* Waits until the control socket is ready for what events say, and logs meanwhile. */
static int wait_ready(struct talk *talk, short events)
{
    for (;;) {
        struct pollfd fds[] = {{talk->launch->control, events, 0},
                               {talk->launch->relay.fd, POLLIN, 0}};
        int left = deadline_left(talk->deadline);
        if (left == 0)
            return err_set(talk->err, "muster-server was not ready within %d s on node %s",
                           handshake_patience(talk->boot) / 1000, here(talk));
        if (poll(fds, 2, left) < 0 && errno != EINTR)
            return err_set(talk->err, "poll on node %s: %s", here(talk), strerror(errno));
        if (fds[1].revents)
            relay_read(&talk->launch->relay);
        if (fds[0].revents)
            return 0;
    }
}

static int send_all(struct talk *talk, const unsigned char *data, size_t len)
{
    while (len > 0) {
        if (wait_ready(talk, POLLOUT) < 0)
            return -1;
        ssize_t n = send(talk->launch->control, data, len, MSG_NOSIGNAL);
        if (n > 0) {
            data += n;
            len -= (size_t)n;
        } else if (errno != EAGAIN && errno != EINTR) {
            return server_gone(talk);
        }
    }
    return 0;
}

static int recv_all(struct talk *talk, void *buf, size_t len)
{
    unsigned char *p = buf;
    while (len > 0) {
        if (wait_ready(talk, POLLIN) < 0)
            return -1;
        ssize_t n = recv(talk->launch->control, p, len, 0);
        if (n > 0) {
            p += n;
            len -= (size_t)n;
        } else if (n == 0 || (errno != EAGAIN && errno != EINTR)) {
            return server_gone(talk);
        }
    }
    return 0;
}

static int send_boot(struct talk *talk)
{
    struct wire_out out = {0};
    int rc;
    wire_put_u32(&out, 0);
    boot_write(talk->boot, &out);
    if (out.failed || out.len - 4 > BOOT_MAX) {
        rc = err_set(talk->err, "the %s is too large to describe to muster-server", log_unit());
    } else {
        wire_set_u32(&out, 0, (uint32_t)(out.len - 4));
        rc = send_all(talk, out.data, out.len);
    }
    wire_out_free(&out);
    return rc;
}

static int recv_u32(struct talk *talk, uint32_t *value)
{
    unsigned char raw[4];
    struct wire_in in;
    if (recv_all(talk, raw, sizeof(raw)) < 0)
        return -1;
    wire_in_init(&in, raw, sizeof(raw));
    *value = wire_get_u32(&in);
    return 0;
}

/* @return a string that the caller frees, or NULL with the reason in err */
static char *recv_text(struct talk *talk)
{
    uint32_t len;
    char *text;
    if (recv_u32(talk, &len) < 0)
        return NULL;
    talk->total += len;
    if (len > BOOT_ENV_MAX || talk->total > ENV_TOTAL_MAX || !(text = malloc(len + 1))) {
        err_set(talk->err, "muster-server on node %s answers with too much", here(talk));
        return NULL;
    }
    if (recv_all(talk, text, len) < 0) {
        free(text);
        return NULL;
    }
    text[len] = '\0';
    return text;
}

/* Takes over text. */
static int add_string(struct talk *talk, uint32_t slot, char *text)
{
    size_t n = 0;
    if (slot >= talk->env->nslots || text[0] == '=' || !strchr(text, '=')) {
        free(text);
        return err_set(talk->err, "muster-server on node %s answers with nonsense", here(talk));
    }
    char **list = talk->env->strings[slot];
    while (list && list[n])
        n++;
    list = n < BOOT_ENV_COUNT ? realloc(list, (n + 2) * sizeof(*list)) : NULL;
    if (!list) {
        free(text);
        return err_set(talk->err, "muster-server on node %s answers with too much", here(talk));
    }
    list[n] = text;
    list[n + 1] = NULL;
    talk->env->strings[slot] = list;
    return 0;
}

static int recv_answer(struct talk *talk)
{
    for (;;) {
        uint32_t slot;
        if (recv_u32(talk, &slot) < 0)
            return -1;
        if (slot == BOOT_READY)
            return 0;
        char *text = recv_text(talk);
        if (!text)
            return -1;
        if (slot == BOOT_FAILED || slot == BOOT_FAILED_ALIKE) {
            talk->err->alike = slot == BOOT_FAILED_ALIKE;
            log_mask(text);
            if (talk->err->alike)
                err_set(talk->err, "muster cannot serve this %s: %.300s", log_unit(), text);
            else
                err_set(talk->err, "muster-server on node %s cannot serve: %.300s", here(talk),
                        text);
            free(text);
            return -1;
        }
        if (add_string(talk, slot, text) < 0)
            return -1;
    }
}

int handshake_patience(const struct boot *boot)
{
    int64_t ms = ANSWER_MS + (int64_t)boot->nnodes * ANSWER_NODE_MS + boot->ntasks / TASKS_A_MS;
    return ms < INT_MAX ? (int)ms : INT_MAX;
}

int handshake(struct launch *launch, const struct boot *boot, struct task_env *env, struct err *err)
{
    struct talk talk = {.launch = launch, .boot = boot, .env = env, .err = err};
    talk.deadline = now_ms() + handshake_patience(boot);

    env->nslots = boot_here(boot)->ntasks;
    env->strings = calloc(env->nslots ? env->nslots : 1, sizeof(*env->strings));
    if (!env->strings) {
        env->nslots = 0;
        return err_set(err, "out of memory");
    }
    if (send_boot(&talk) < 0)
        return -1;
    return recv_answer(&talk);
}

void task_env_free(struct task_env *env)
{
    for (uint32_t slot = 0; slot < env->nslots; slot++) {
        for (char **p = env->strings[slot]; p && *p; p++)
            free(*p);
        free(env->strings[slot]);
    }
    free(env->strings);
    *env = (struct task_env){0};
}
