/* SPDX-License-Identifier: BSD-3-Clause */
/* A back end for tests: the session is all the steps that one `session` has started on this machine
 * (session.h). Every server listens on a socket of its own in the session's directory; a thread
 * connects, writes a message and closes, as slurmd does (plugins/slurm/inbox.c reads it). */
#include "ci/session/session.h"
#include "common/handoff/handoff.h"
#include "common/util/log.h"
#include "plugins/slurm/rm_slurm.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/un.h>
#include <unistd.h>

enum { STEPS_MAX = 64, STUCK_S = 20 };

struct message {
    struct message *next;
    uint32_t node;
    void *data;
    size_t len;
};

/* What the thread or rendezvous() has to say on the loop. */
struct word {
    struct handoff_item item;
    struct rm *rm;
    uint32_t node;
    int error;
    rm_rendezvous_fn *done;
    void *arg;
};

struct steps {
    char nspace[256];
    uint32_t base, nnodes;
};

struct session_rm {
    const struct boot *boot;
    struct rm_host host;
    const char *dir;
    struct handoff *handoff;
    struct inbox *inbox;
    uint32_t nsteps;
    struct steps steps[STEPS_MAX]; /* whose handles are known; the own one first */
    pthread_t thread;
    bool started;
    pthread_mutex_t lock; /* for what follows */
    pthread_cond_t wake;
    struct message *queue;
    bool closing;
};

static struct session_rm *of(struct rm *rm)
{
    return (struct session_rm *)rm;
}

static bool address_of(const struct session_rm *rm, uint32_t node, struct sockaddr_un *addr)
{
    addr->sun_family = AF_UNIX;
    for (uint32_t i = 0; i < rm->nsteps; i++)
        if (node - rm->steps[i].base < rm->steps[i].nnodes)
            return snprintf(addr->sun_path, sizeof addr->sun_path, SESSION_SOCKET, rm->dir,
                            rm->steps[i].nspace,
                            node - rm->steps[i].base) < (int)sizeof addr->sun_path;
    return false;
}

/* @return 0 or errno */
static int transmit(const struct sockaddr_un *addr, const struct message *m)
{
    const struct timeval stuck = {.tv_sec = STUCK_S};
    struct wire_out out = {0};
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0), rc = 0;
    wire_put_u32(&out, getuid());
    wire_put_u32(&out, (uint32_t)m->len);
    wire_put_raw(&out, m->data, m->len);
    if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &stuck, sizeof stuck) != 0 ||
        connect(fd, (const struct sockaddr *)addr, sizeof *addr) != 0)
        rc = errno;
    for (size_t at = 0; rc == 0 && at < out.len;) {
        ssize_t n = send(fd, out.data + at, out.len - at, MSG_NOSIGNAL);
        if (n < 0 && errno != EINTR)
            rc = errno;
        at += n > 0 ? (size_t)n : 0;
    }
    if (fd >= 0)
        close(fd);
    wire_out_free(&out);
    return rc;
}

/* @thread the loop's */
static void say_lost(struct handoff_item *item)
{
    struct word *w = (struct word *)item;
    struct session_rm *rm = of(w->rm);
    if (!rm->closing)
        rm->host.lost(rm->host.arg, w->node, strerror(w->error));
    free(w);
}

static void *sender(void *arg)
{
    struct session_rm *rm = arg;
    pthread_mutex_lock(&rm->lock);
    while (rm->queue != NULL || !rm->closing) {
        struct message *m = rm->queue;
        struct sockaddr_un addr = {0};
        if (m == NULL) {
            pthread_cond_wait(&rm->wake, &rm->lock);
            continue;
        }
        rm->queue = m->next;
        bool known = address_of(rm, m->node, &addr);
        pthread_mutex_unlock(&rm->lock);
        int rc = known ? transmit(&addr, m) : ENOENT;
        struct word *w = rc != 0 ? calloc(1, sizeof *w) : NULL;
        if (w != NULL) {
            *w = (struct word){.rm = (struct rm *)rm, .node = m->node};
            w->error = rc;
            handoff_post(rm->handoff, &w->item, say_lost);
        }
        free(m->data);
        free(m);
        pthread_mutex_lock(&rm->lock);
    }
    pthread_mutex_unlock(&rm->lock);
    return NULL;
}

/* What the thread has counts as sent: it tells of what it cannot send. */
static void session_ready(struct rm *base, uint32_t node)
{
    struct session_rm *rm = of(base);
    struct message *m = calloc(1, sizeof *m), **end = &rm->queue;
    struct wire_out out = {0};
    uint64_t ticket = m != NULL ? rm->host.next(rm->host.arg, node, SIZE_MAX, &out) : 0;
    if (ticket == 0) {
        wire_out_free(&out);
        free(m);
        return;
    }
    m->node = node;
    m->data = wire_out_take(&out, &m->len);
    pthread_mutex_lock(&rm->lock);
    while (*end != NULL)
        end = &(*end)->next;
    *end = m;
    pthread_cond_signal(&rm->wake);
    pthread_mutex_unlock(&rm->lock);
    rm->host.arrived(rm->host.arg, node, ticket);
}

static struct rm_peer session_peer(struct rm *rm, uint32_t node)
{
    (void)rm;
    (void)node;
    return (struct rm_peer){0};
}

/* The launcher looks for it, and kills the step's tasks. */
static void session_abort(struct rm *base, const struct rm_ending *ending)
{
    struct session_rm *rm = of(base);
    char path[512];
    (void)ending;
    snprintf(path, sizeof path, SESSION_ABORT, rm->dir, rm->boot->nspace);
    int fd = open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
    if (fd < 0)
        log_error("the step cannot be ended: %s: %s", path, strerror(errno));
    else
        close(fd);
}

static void session_close(struct rm *base, unsigned ms)
{
    struct session_rm *rm = of(base);
    (void)ms; /* the others are on this machine: they take it, or are gone */
    pthread_mutex_lock(&rm->lock);
    rm->closing = true;
    pthread_cond_signal(&rm->wake);
    pthread_mutex_unlock(&rm->lock);
    if (rm->started)
        pthread_join(rm->thread, NULL);
    inbox_close(rm->inbox);
    if (rm->handoff != NULL)
        handoff_run(rm->handoff);
    handoff_free(rm->handoff);
    pthread_mutex_destroy(&rm->lock);
    pthread_cond_destroy(&rm->wake);
    free(rm);
}

/* The first server whose socket is there. @thread the loop's */
static void say_home(struct handoff_item *item)
{
    struct word *w = (struct word *)item;
    struct session_rm *rm = of(w->rm);
    const char *list = boot_setting(rm->boot, "steps");
    char name[256], path[512];
    struct rm_server found = {.nspace = name};
    bool there = false;
    int used;
    while (!there && sscanf(list, " %255s %u%n", name, &found.nnodes, &used) == 2) {
        list += used;
        for (found.node = 0; found.node < found.nnodes; found.node++) {
            snprintf(path, sizeof path, SESSION_SOCKET, rm->dir, name, found.node);
            if ((there = access(path, F_OK) == 0))
                break;
        }
    }
    if (!rm->closing)
        w->done(w->arg, there ? &found : NULL, there ? NULL : "no server is there");
    free(w);
}

static void session_rendezvous(struct rm *base, rm_rendezvous_fn *done, void *arg)
{
    struct word *w = calloc(1, sizeof *w);
    if (w == NULL) {
        done(arg, NULL, "out of memory");
        return;
    }
    *w = (struct word){.rm = base, .done = done, .arg = arg};
    handoff_post(of(base)->handoff, &w->item, say_home);
}

static void session_resolve(struct rm *base, const char *nspace, rm_rendezvous_fn *done, void *arg)
{
    const char *list = boot_setting(of(base)->boot, "steps");
    char name[256];
    struct rm_server found = {.nspace = nspace};
    int used;
    for (; sscanf(list, " %255s %u%n", name, &found.nnodes, &used) == 2; list += used)
        if (strcmp(name, nspace) == 0) {
            done(arg, &found, NULL);
            return;
        }
    done(arg, NULL, "the session has no such step");
}

static void session_attach(struct rm *base, const char *nspace, uint64_t run, uint32_t first,
                           uint32_t nnodes, const struct boot_node *nodes)
{
    struct session_rm *rm = of(base);
    (void)run;
    (void)nodes;
    pthread_mutex_lock(&rm->lock);
    bool again =
        rm->nsteps > 0 && first < rm->steps[rm->nsteps - 1].base + rm->steps[rm->nsteps - 1].nnodes;
    if (rm->nsteps < STEPS_MAX && !again) {
        struct steps *s = &rm->steps[rm->nsteps++];
        snprintf(s->nspace, sizeof s->nspace, "%s", nspace);
        s->base = first;
        s->nnodes = nnodes;
    }
    pthread_mutex_unlock(&rm->lock);
}

static struct rm *session_open(const struct boot *boot, const struct conf *conf,
                               struct event_base *base, const struct rm_host *host, struct err *err)
{
    struct session_rm *rm = calloc(1, sizeof *rm);
    (void)conf;
    if (rm == NULL)
        return NULL;
    rm->boot = boot;
    rm->host = *host;
    rm->dir = boot_setting(boot, "dir");
    pthread_mutex_init(&rm->lock, NULL);
    pthread_cond_init(&rm->wake, NULL);
    session_attach((struct rm *)rm, boot->nspace, boot->run, 0, boot->nnodes, NULL);
    rm->handoff = handoff_new(base);
    rm->inbox = inbox_open(BOOT_FD_LISTEN, base, &rm->host);
    if (rm->dir == NULL || boot_setting(boot, "steps") == NULL)
        err_set(err, "the boot message lacks dir or steps");
    else if (rm->handoff != NULL && rm->inbox != NULL)
        rm->started = pthread_create(&rm->thread, NULL, sender, rm) == 0;
    if (rm->started)
        return (struct rm *)rm;
    session_close((struct rm *)rm, 0);
    return NULL;
}

__attribute__((visibility("default"))) const struct rm_ops muster_rm = {
    .name = "session",
    .open = session_open,
    .ready = session_ready,
    .peer = session_peer,
    .abort = session_abort,
    .close = session_close,
    .rendezvous = session_rendezvous,
    .resolve = session_resolve,
    .attach = session_attach,
};
