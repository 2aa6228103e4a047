/* SPDX-License-Identifier: BSD-3-Clause */
/* One step: its servers and tasks, by the messages of common/launch/boot.h. */
#include "ci/session/session.h"
#include "muster_version.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

enum { READY_S = 20 };

static char *format(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

static char *format(const char *fmt, ...)
{
    char *text;
    va_list ap;
    va_start(ap, fmt);
    if (vasprintf(&text, fmt, ap) < 0)
        abort(); /* a test's launcher does not go on without memory */
    va_end(ap);
    return text;
}

bool step_describe(struct session *session, struct step *step, uint32_t index, uint32_t nnodes,
                   uint32_t ntasks)
{
    struct boot *boot = &step->boot;
    boot->session = format("%d", (int)getpid());
    boot->nspace = format("session.%d.%u", (int)getpid(), index);
    boot->label = format("%d.%u", (int)getpid(), index);
    boot->tmpdir = format("%s/tmp", session->dir);
    boot->nnodes = nnodes;
    boot->ntasks = ntasks;
    boot->nodes = calloc(nnodes, sizeof *boot->nodes);
    boot->allocation = (struct boot_allocation){.rm = strdup("session"),
                                                .rm_version = strdup(MUSTER_VERSION),
                                                .cluster = strdup(""),
                                                .nodes = strdup("")};
    step->servers = calloc(nnodes, sizeof *step->servers);
    step->controls = calloc(nnodes, sizeof *step->controls);
    step->tasks = calloc(ntasks, sizeof *step->tasks);
    if (!boot->nodes || !step->servers || !step->controls || !step->tasks)
        return false;
    for (uint32_t n = 0; n < nnodes; n++) {
        struct boot_node *node = &boot->nodes[n];
        step->controls[n] = -1;
        node->name = format("node%u", n);
        node->ranks = calloc(ntasks, sizeof *node->ranks);
        if (!node->ranks)
            return false;
        for (uint32_t rank = n; rank < ntasks; rank += nnodes)
            node->ranks[node->ntasks++] = rank;
    }
    return true;
}

static int listen_at(const char *path)
{
    struct sockaddr_un addr = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    snprintf(addr.sun_path, sizeof addr.sun_path, "%s", path);
    if (fd < 0 || bind(fd, (struct sockaddr *)&addr, sizeof addr) != 0 || listen(fd, 512) != 0)
        return -1;
    return fd;
}

static int send_boot(struct session *session, struct step *step, uint32_t node)
{
    struct boot boot = step->boot;
    struct wire_out out = {0};
    char *tmpdir = format("%s/muster.%s.%08x", session->dir, boot.label, node);
    char *steps = strdup("");
    for (uint32_t i = 0; i < session->nsteps; i++) {
        char *longer =
            format("%s %s %u", steps, session->steps[i].boot.nspace, session->steps[i].boot.nnodes);
        free(steps);
        steps = longer;
    }
    boot.node = node;
    boot.tmpdir = tmpdir;
    boot_set(&boot, "backend", "session");
    boot_set(&boot, "dir", session->dir);
    boot_set(&boot, "steps", steps);
    const char *conf = getenv("SESSION_CONF_1"); /* of the second step, another one's */
    if (conf != NULL && step == &session->steps[1])
        boot_set(&boot, "conf", conf);
    wire_put_u32(&out, 0);
    boot_write(&boot, &out);
    wire_set_u32(&out, 0, (uint32_t)(out.len - 4));
    int rc = mkdir(tmpdir, 0700) == 0 && !out.failed &&
                     send(step->controls[node], out.data, out.len, MSG_NOSIGNAL) == (ssize_t)out.len
                 ? 0
                 : -1;
    for (uint32_t i = 0; i < boot.nsettings; i++) {
        free(boot.settings[i].key);
        free(boot.settings[i].value);
    }
    free(boot.settings);
    wire_out_free(&out);
    free(steps);
    free(tmpdir);
    return rc;
}

static int start_server(struct session *session, struct step *step, uint32_t node, struct err *err)
{
    int pair[2];
    char *path = format(SESSION_SOCKET, session->dir, step->boot.nspace, node);
    int listener = listen_at(path);
    free(path);
    if (listener < 0 || socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) != 0)
        return err_set(err, "the server's sockets: %s", strerror(errno));
    step->servers[node] = fork();
    if (step->servers[node] == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        int high = fcntl(pair[1], F_DUPFD, 10), lower = fcntl(listener, F_DUPFD, 10);
        if (dup2(high, BOOT_FD_CONTROL) < 0 || dup2(lower, BOOT_FD_LISTEN) < 0)
            _exit(127);
        close(high);
        close(lower);
        execl(session->server, session->server, (char *)NULL);
        _exit(127);
    }
    close(pair[1]);
    close(listener);
    step->controls[node] = pair[0];
    if (step->servers[node] < 0 || send_boot(session, step, node) != 0)
        return err_set(err, "no server can be started: %s", strerror(errno));
    return 0;
}

static int read_all(int fd, void *buf, size_t len)
{
    return recv(fd, buf, len, MSG_WAITALL) == (ssize_t)len ? 0 : -1;
}

static uint32_t get_u32(int fd)
{
    unsigned char bytes[4] = {0xff, 0xff, 0xff, 0xfe}; /* BOOT_FAILED */
    struct wire_in in;
    read_all(fd, bytes, sizeof bytes);
    wire_in_init(&in, bytes, sizeof bytes);
    return wire_get_u32(&in);
}

static void start_task(struct step *step, uint32_t rank, char **env)
{
    fflush(NULL);
    pid_t pid = fork();
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        for (char **e = env; *e != NULL; e++)
            putenv(*e);
        execvp(step->argv[0], step->argv);
        perror(step->argv[0]);
        _exit(127);
    }
    step->tasks[rank] = pid;
    step->left += pid > 0;
}

/* The environments of a node's tasks come one after another, slot by slot. */
static int start_tasks(struct step *step, uint32_t n, struct err *err)
{
    const struct boot_node *node = &step->boot.nodes[n];
    const struct timeval wait = {.tv_sec = READY_S};
    int fd = step->controls[n];
    char *env[BOOT_ENV_COUNT + 1] = {NULL};
    uint32_t slot, count = 0, at = 0;
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &wait, sizeof wait);
    do {
        slot = get_u32(fd);
        if (slot == BOOT_FAILED)
            return err_set(err, "the server on node %u of %s does not start", n, step->boot.nspace);
        if (slot != at) {
            start_task(step, node->ranks[at], env);
            for (uint32_t i = 0; i < count; i++)
                free(env[i]);
            memset(env, 0, sizeof env);
            count = 0;
            at++;
        }
        uint32_t len = slot != BOOT_READY ? get_u32(fd) : 0;
        if (len > BOOT_ENV_MAX || count == BOOT_ENV_COUNT)
            return err_set(err, "an environment is too large");
        if (len > 0 &&
            ((env[count] = calloc(1, len + 1)) == NULL || read_all(fd, env[count++], len) != 0))
            return err_set(err, "an environment is cut");
    } while (slot != BOOT_READY);
    return 0;
}

int step_start(struct session *session, struct step *step, struct err *err)
{
    int rc = 0;
    for (uint32_t n = 0; n < step->boot.nnodes && rc == 0; n++)
        rc = start_server(session, step, n, err);
    for (uint32_t n = 0; n < step->boot.nnodes && rc == 0; n++)
        rc = step->boot.nodes[n].ntasks > 0 ? start_tasks(step, n, err) : 0;
    return rc;
}

static void tell(struct step *step, uint32_t node, uint32_t slot, uint32_t sig, uint32_t code)
{
    struct wire_out out = {0};
    wire_put_u32(&out, slot);
    wire_put_u32(&out, sig);
    wire_put_u32(&out, code);
    send(step->controls[node], out.data, out.len, MSG_NOSIGNAL);
    wire_out_free(&out);
}

static void leave(struct step *step)
{
    step->leaving = true;
    for (uint32_t n = 0; n < step->boot.nnodes; n++) {
        tell(step, n, BOOT_LEAVE, 0, 0);
        shutdown(step->controls[n], SHUT_WR);
    }
}

bool step_ended(struct step *step, pid_t pid, int status)
{
    uint32_t sig = WIFSIGNALED(status) ? (uint32_t)WTERMSIG(status) : 0;
    uint32_t code = WIFEXITED(status) ? (uint32_t)WEXITSTATUS(status) : 0;
    for (uint32_t n = 0; n < step->boot.nnodes; n++) {
        if (step->servers[n] == pid) {
            step->servers[n] = 0;
            if (status != 0 || !step->leaving) {
                fprintf(stderr, "session: the server on node %u of %s ended with %x\n", n,
                        step->boot.nspace, (unsigned)status);
                step->status = step->status > 100 ? step->status : 100;
                step_kill(step, false);
            }
            return true;
        }
        for (uint32_t k = 0; k < step->boot.nodes[n].ntasks; k++) {
            uint32_t rank = step->boot.nodes[n].ranks[k];
            if (step->tasks[rank] != pid)
                continue;
            int mine = sig != 0 ? 128 + (int)sig : (int)code;
            step->tasks[rank] = 0;
            step->status = mine > step->status ? mine : step->status;
            tell(step, n, k, sig, code);
            if (--step->left == 0)
                leave(step);
            return true;
        }
    }
    return false;
}

void step_kill(struct step *step, bool servers)
{
    for (uint32_t rank = 0; rank < step->boot.ntasks; rank++)
        if (step->tasks[rank] > 0)
            kill(step->tasks[rank], SIGKILL);
    for (uint32_t n = 0; servers && n < step->boot.nnodes; n++)
        if (step->servers[n] > 0)
            kill(step->servers[n], SIGKILL);
}

void step_free(struct step *step)
{
    for (uint32_t n = 0; n < step->boot.nnodes && step->controls; n++)
        if (step->controls[n] >= 0)
            close(step->controls[n]);
    free(step->servers);
    free(step->tasks);
    free(step->controls);
    boot_free(&step->boot);
}
