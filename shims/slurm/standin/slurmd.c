/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * The slurmds of all nodes: one thread accepts, and one carries each message.
 */
#include "shims/slurm/standin/slurmd.h"

#include "common/util/io_all.h"
#include "common/util/local.h"
#include "shims/slurm/slurm_abi.h"
#include "shims/slurm/standin/credentials.h"
#include "shims/slurm/standin/runs.h"
#include "shims/slurm/standin/steps.h"

#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

struct slurmd {
    const struct standin_step *step;
    struct steps *steps;
    struct faults *faults;
    struct pollfd *fds; /* by node */
    int events;

    pthread_mutex_t lock; /* guards all below */
    uint64_t *sent;       /* messages from node to node */
    bool ended;
};

/* One request. */
struct job {
    struct slurmd *slurmd;
    uint32_t node; /* whose slurmd was asked */
    int fd;
    uid_t uid;
    uint32_t to;    /* our node; none when the socket is another run's */
    bool elsewhere; /* the socket is another run's */
    char address[sizeof(((struct sockaddr_un *)0)->sun_path)];
    char *data;
    uint32_t len;
};

static bool recv_all(int fd, void *buf, size_t len)
{
    return len == 0 || recv(fd, buf, len, MSG_WAITALL) == (ssize_t)len;
}

static void answer(struct job *job, int32_t code)
{
    send_all(job->fd, &code, sizeof(code)); /* a caller may be gone; it needs no answer then */
    close(job->fd);
    job->fd = -1;
}

/* As slurmd's: what breaks off after the connection counts as delivered. @return 0 or errno */
static int deliver(const struct job *job, uid_t uid)
{
    struct sockaddr_un addr = {.sun_family = AF_UNIX};
    uint32_t head[2] = {htonl(uid), htonl(job->len)};
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0), rc = 0;
    if (fd < 0)
        return errno;
    memcpy(addr.sun_path, job->address, sizeof(addr.sun_path));
    if (connect(fd, (struct sockaddr *)&addr, sizeof(addr)) < 0)
        rc = errno;
    else if (local_peer(fd) != geteuid())
        rc = EACCES;
    else if (!send_all(fd, head, sizeof(head)) || !send_all(fd, job->data, job->len))
        say_debug("a message to %s broke off", job->address);
    close(fd);
    return rc;
}

static void nap(unsigned ms)
{
    struct timespec t = {.tv_sec = ms / 1000, .tv_nsec = (long)(ms % 1000) * 1000000};
    nanosleep(&t, NULL);
}

static void tell(struct slurmd *slurmd, int what, int32_t value)
{
    struct run_event event = {.what = what, .value = value};
    if (write(slurmd->events, &event, sizeof(event)) < 0)
        say_error("cannot tell the main thread: %s", strerror(errno));
}

/* Counts the message, and sees what is to be done wrong with it. */
static struct verdict judge(struct job *job)
{
    struct slurmd *slurmd = job->slurmd;
    pthread_mutex_lock(&slurmd->lock);
    struct verdict verdict =
        faults_judge(slurmd->faults, job->node, job->to,
                     ++slurmd->sent[job->node * slurmd->step->nnodes + job->to]);
    int dies = faults_count(slurmd->faults);
    if (dies >= 0)
        tell(slurmd, EVENT_DIE, dies);
    pthread_mutex_unlock(&slurmd->lock);
    return verdict;
}

static void forward(struct job *job)
{
    struct verdict verdict = {0};
    if (!job->elsewhere)
        verdict = judge(job);
    if (verdict.refused) {
        answer(job, STANDIN_CONNECTION_ERROR);
        return;
    }
    if (verdict.late)
        answer(job, verdict.lost ? STANDIN_CONNECTION_ERROR : 0);
    nap(verdict.late);
    if (verdict.forged)
        deliver(job, job->uid + 1);
    int rc = deliver(job, job->uid);
    if (!verdict.late)
        answer(job, verdict.lost ? STANDIN_CONNECTION_ERROR : rc);
    if (verdict.duplicate) {
        nap(verdict.duplicate);
        deliver(job, job->uid);
    }
}

/* The address with the node's name for %n and %h. */
static bool expand(struct job *job, const char *name, const char *address)
{
    size_t used = 0;
    for (const char *p = address; *p != '\0'; p++) {
        bool is_name = p[0] == '%' && (p[1] == 'n' || p[1] == 'h');
        size_t len = is_name ? strlen(name) : 1;
        if (used + len >= sizeof(job->address))
            return false;
        memcpy(job->address + used, is_name ? name : p, len);
        used += len;
        p += is_name;
    }
    job->address[used] = '\0';
    return true;
}

/* Reads what follows the head. @return 0, an error number, or -1: not a request */
static int read_message(struct job *job, const struct standin_head *head)
{
    const struct standin_step *step = job->slurmd->step;
    char name[STANDIN_NAME_MAX + 1] = "", address[STANDIN_ADDRESS_MAX + 1] = "";
    if (head->forward.name_len > STANDIN_NAME_MAX ||
        head->forward.address_len > STANDIN_ADDRESS_MAX ||
        head->forward.data_len > STANDIN_DATA_MAX)
        return -1;
    job->len = head->forward.data_len;
    job->data = malloc(job->len + 1);
    if (!job->data)
        return ENOMEM;
    if (!recv_all(job->fd, name, head->forward.name_len) ||
        !recv_all(job->fd, address, head->forward.address_len) ||
        !recv_all(job->fd, job->data, job->len))
        return -1;
    while (job->to < step->nnodes && strcmp(step->nodes[job->to].name, name) != 0)
        job->to++;
    if (!expand(job, name, address))
        return ENAMETOOLONG;
    job->elsewhere = (job->to == step->nnodes || access(job->address, F_OK) != 0) &&
                     runs_find_socket(step, job->address, sizeof(job->address));
    return job->to < step->nnodes || job->elsewhere ? 0 : ENOENT;
}

static void serve_forward(struct job *job, const struct standin_head *head)
{
    int rc = read_message(job, head);
    if (rc == 0)
        forward(job);
    else if (rc > 0)
        answer(job, rc);
}

static void serve_kill(struct job *job, const struct standin_head *head)
{
    struct slurmd *slurmd = job->slurmd;
    int rc = 0;
    pthread_mutex_lock(&slurmd->lock);
    if (head->kill.job != slurmd->step->job || head->kill.step != slurmd->step->step)
        rc = steps_signal(slurmd->steps, head->kill.job, head->kill.step,
                          (int32_t)head->kill.signal);
    else if (slurmd->ended)
        rc = SLURM_ABI_ALREADY_DONE;
    else
        tell(slurmd, EVENT_SIGNAL, (int32_t)head->kill.signal);
    pthread_mutex_unlock(&slurmd->lock);
    answer(job, rc);
}

static void serve_record(struct job *job, const struct standin_head *head)
{
    const struct standin_step *step = job->slurmd->step;
    uint32_t number = head->record.step == SLURM_ABI_NO_VAL ? step->step : head->record.step;
    int64_t times[] = {0, step->end};
    int32_t code = steps_start_of(job->slurmd->steps, head->record.job, number, &times[0]);
    if (send_all(job->fd, &code, sizeof(code)) && code == 0)
        send_all(job->fd, times, sizeof(times));
}

static void serve_steps(struct job *job, bool all)
{
    char *own = steps_list(job->slurmd->steps), *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    if (own && out)
        fputs(own, out);
    if (own && out && all)
        runs_list(job->slurmd->step, out);
    if (out)
        fclose(out);
    int32_t len = (int32_t)size;
    if (send_all(job->fd, &len, sizeof(len)) && len > 0)
        send_all(job->fd, text, (size_t)len);
    free(own);
    free(text);
}

/* Until the step's first process has ended. */
static void serve_join(struct job *job, const struct standin_head *head)
{
    const struct standin_step *step = job->slurmd->step;
    const struct standin_join *join = &head->join;
    struct standin_joined joined;
    uint32_t *node_of;
    char byte;
    if (join->ntasks == 0 || join->ntasks > STANDIN_TASKS_MAX ||
        (join->listed != 0 && join->listed != join->ntasks))
        return;
    node_of = calloc(join->ntasks, sizeof(*node_of));
    if (!node_of || !recv_all(job->fd, node_of, join->listed * sizeof(*node_of))) {
        free(node_of);
        return;
    }
    int32_t code = steps_add(job->slurmd->steps, join, node_of, job->fd, &joined);
    if (send_all(job->fd, &code, sizeof(code)) && code == 0 &&
        send_all(job->fd, &joined, sizeof(joined)) &&
        send_all(job->fd, step->cpus, step->job_nodes * sizeof(*step->cpus)) &&
        send_all(job->fd, node_of, join->ntasks * sizeof(*node_of)))
        while (recv(job->fd, &byte, 1, 0) > 0)
            ;
    if (code == 0)
        steps_remove(job->slurmd->steps, joined.step);
    free(node_of);
}

static void serve_token_new(struct job *job, const struct standin_head *head)
{
    char data[STANDIN_CREDENTIAL_MAX];
    unsigned char token[STANDIN_TOKEN];
    int32_t code = head->make.len > sizeof(data) ? EMSGSIZE : 0;
    if (code == 0 && !recv_all(job->fd, data, head->make.len))
        return;
    if (code == 0)
        code = credentials_make(job->uid, head->make.reader, data, head->make.len, token);
    if (send_all(job->fd, &code, sizeof(code)) && code == 0)
        send_all(job->fd, token, sizeof(token));
}

static void serve_token_read(struct job *job, const struct standin_head *head)
{
    struct standin_credential found = {0};
    uint32_t node = head->kind == STANDIN_RUN_TOKEN ? head->read.node : job->node;
    const unsigned char *token = head->read.token;
    int32_t code = credentials_read(job->uid, node, token, &found.uid, found.data, &found.len);
    if (code != 0 && head->kind == STANDIN_TOKEN_READ && job->uid == geteuid())
        code = runs_read_credential(job->slurmd->step, node, token, &found);
    if (send_all(job->fd, &code, sizeof(code)) && code == 0)
        send_all(job->fd, &found, sizeof(found));
}

/* Other users may not start steps, nor read credentials in the place of another run. */
static bool may_ask(enum standin_kind kind, uint32_t uid)
{
    return uid == geteuid() || (kind != STANDIN_JOIN && kind != STANDIN_RUN_TOKEN);
}

static void *serve(void *arg)
{
    struct job *job = arg;
    struct standin_head head;
    struct ucred cred;
    socklen_t len = sizeof(cred);
    if (getsockopt(job->fd, SOL_SOCKET, SO_PEERCRED, &cred, &len) == 0 &&
        recv_all(job->fd, &head, sizeof(head)) && may_ask(head.kind, cred.uid)) {
        job->uid = cred.uid;
        if (head.kind == STANDIN_FORWARD)
            serve_forward(job, &head);
        else if (head.kind == STANDIN_KILL)
            serve_kill(job, &head);
        else if (head.kind == STANDIN_RECORD)
            serve_record(job, &head);
        else if (head.kind == STANDIN_TOKEN_NEW)
            serve_token_new(job, &head);
        else if (head.kind == STANDIN_TOKEN_READ || head.kind == STANDIN_RUN_TOKEN)
            serve_token_read(job, &head);
        else if (head.kind == STANDIN_STEPS || head.kind == STANDIN_RUN_STEPS)
            serve_steps(job, head.kind == STANDIN_STEPS);
        else if (head.kind == STANDIN_JOIN)
            serve_join(job, &head);
    }
    if (job->fd >= 0)
        close(job->fd);
    free(job->data);
    free(job);
    return NULL;
}

static void take(struct slurmd *slurmd, uint32_t node)
{
    struct job *job = calloc(1, sizeof(*job));
    int fd = accept4(slurmd->fds[node].fd, NULL, NULL, SOCK_CLOEXEC);
    pthread_t thread;
    if (fd < 0 || !job) {
        free(job);
        if (fd >= 0)
            close(fd);
        return;
    }
    *job = (struct job){.slurmd = slurmd, .node = node, .fd = fd};
    if (pthread_create(&thread, NULL, serve, job) == 0)
        pthread_detach(thread);
    else
        serve(job);
}

_Noreturn static void *run(void *arg)
{
    struct slurmd *slurmd = arg;
    for (;;) {
        if (poll(slurmd->fds, slurmd->step->nnodes, -1) < 0)
            continue;
        for (uint32_t n = 0; n < slurmd->step->nnodes; n++)
            if (slurmd->fds[n].revents)
                take(slurmd, n);
    }
}

void slurmd_path(const struct standin_step *step, const struct standin_node *node, char *path,
                 size_t cap)
{
    snprintf(path, cap, "%s/%s/slurmd", step->dir, node->name);
}

static int listen_on(const struct standin_step *step, const struct standin_node *node)
{
    struct sockaddr_un addr = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    slurmd_path(step, node, addr.sun_path, sizeof(addr.sun_path));
    if (fd >= 0 &&
        (bind(fd, (struct sockaddr *)&addr, sizeof(addr)) < 0 || listen(fd, SOMAXCONN) < 0)) {
        close(fd);
        fd = -1;
    }
    return fd;
}

struct slurmd *slurmd_open(const struct standin_step *step, struct faults *faults, struct err *err)
{
    struct slurmd *slurmd = calloc(1, sizeof(*slurmd));
    if (slurmd) {
        slurmd->step = step;
        slurmd->faults = faults;
        pthread_mutex_init(&slurmd->lock, NULL);
        slurmd->fds = calloc(step->nnodes, sizeof(*slurmd->fds));
        slurmd->steps = steps_new(step);
        slurmd->sent = calloc((size_t)step->nnodes * step->nnodes, sizeof(*slurmd->sent));
    }
    if (!slurmd || !slurmd->fds || !slurmd->sent || !slurmd->steps) {
        err_set(err, "out of memory");
        return NULL;
    }
    for (uint32_t n = 0; n < step->nnodes; n++) {
        slurmd->fds[n] = (struct pollfd){listen_on(step, &step->nodes[n]), POLLIN, 0};
        if (slurmd->fds[n].fd < 0) {
            err_set(err, "cannot listen in %s: %s", step->dir, strerror(errno));
            return NULL;
        }
    }
    return slurmd;
}

void slurmd_leave(struct slurmd *slurmd)
{
    for (uint32_t n = 0; n < slurmd->step->nnodes; n++)
        close(slurmd->fds[n].fd);
}

int slurmd_start(struct slurmd *slurmd, int events, struct err *err)
{
    pthread_t thread;
    slurmd->events = events;
    int rc = pthread_create(&thread, NULL, run, slurmd);
    if (rc != 0)
        return err_set(err, "cannot start a thread: %s", strerror(rc));
    pthread_detach(thread);
    return 0;
}

void slurmd_ended(struct slurmd *slurmd)
{
    pthread_mutex_lock(&slurmd->lock);
    slurmd->ended = true;
    pthread_mutex_unlock(&slurmd->lock);
}
