/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * The muster-server process of this step and node: its start and its end.
 *
 *     launcher ── fork ──► child ── fork ──► server: waits at the gate (still as the launcher)
 *         │◄───── its pid ────┘ exits            │
 *         │ pidfd_open(pid)                      │
 *         ├────── one byte: the gate opens ─────►│ becomes the user, execs
 *
 * Two forks, because a launcher may kill its descendants when the tasks have ended, before the
 * server could leave in order, and may reap children that it does not know. The gate, because until
 * we hold a pidfd the pid must not be free for another user's process: as long as the child is
 * root's, no user can end it.
 */
#include "common/launch/launch.h"

#include "common/launch/boot.h"
#include "common/launch/death.h"
#include "common/util/child.h"
#include "common/util/clock.h"
#include "common/util/log.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    LEAVE_MS = 5000, /* for a server to leave when asked, or to say that it has to stay */
    KILL_MS = 1000,  /* for a killed one to be gone */
    GONE_MS = 50,    /* for one that has closed its socket */
    FD_FIRST_FREE = BOOT_FD_LISTEN + 1,
    ENV_OURS = 5,         /* strings of the server's environment that are not the launcher's */
    FILES_WANTED = 65536, /* descriptors of the server */
};

/* What the child needs, all made before the fork. */
struct start {
    const struct identity *user;
    int control, listener, err; /* to become BOOT_FD_CONTROL, BOOT_FD_LISTEN (or -1), 2 */
    char **env;
};

static void *child_fails(int err, const char *what) __attribute__((noreturn));

/* The relay carries it to the launcher's log. */
static void *child_fails(int err, const char *what)
{
    char line[256];
    int n =
        snprintf(line, sizeof(line), "<3>cannot start %s: %s: %s%s\n", MUSTER_SERVER_PATH, what,
                 strerror(errno), strcmp(what, "exec") == 0 ? "; install muster again there" : "");
    if (n > 0 && write(err, line, (size_t)n) < 0)
        _exit(2);
    _exit(1);
}

/* Puts the descriptors where boot.h says; nothing else stays open. */
static void place_descriptors(const struct start *start)
{
    int null = open("/dev/null", O_RDWR);
    /* first out of the way of the places, whatever numbers they have */
    int control = fcntl(start->control, F_DUPFD, FD_FIRST_FREE);
    int listener = start->listener < 0 ? -1 : fcntl(start->listener, F_DUPFD, FD_FIRST_FREE);
    int err = fcntl(start->err, F_DUPFD, FD_FIRST_FREE);
    if (null < 0 || control < 0 || err < 0 || (listener < 0 && start->listener >= 0))
        child_fails(start->err, "descriptors");
    if (dup2(null, STDIN_FILENO) < 0 || dup2(null, STDOUT_FILENO) < 0 ||
        dup2(err, STDERR_FILENO) < 0 || dup2(control, BOOT_FD_CONTROL) < 0 ||
        (listener >= 0 && dup2(listener, BOOT_FD_LISTEN) < 0))
        child_fails(err, "descriptors");
    child_close_from(listener >= 0 ? FD_FIRST_FREE : BOOT_FD_LISTEN);
}

static void set_limits(void)
{
    struct rlimit limit;
    int fd = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
    /* The launcher may be exempt from the OOM killer; a user's process must not be. */
    if (fd >= 0) {
        if (write(fd, "0", 1) < 0)
            errno = 0; /* no right to lower it, so it is not exempt */
        close(fd);
    }
    if (getrlimit(RLIMIT_CORE, &limit) == 0) {
        limit.rlim_cur = 0;
        setrlimit(RLIMIT_CORE, &limit);
    }
    if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
        rlim_t max = limit.rlim_max;
        /* A connection a task and a peer, however few the launcher may have. */
        limit.rlim_cur = limit.rlim_max = max < FILES_WANTED ? FILES_WANTED : max;
        if (setrlimit(RLIMIT_NOFILE, &limit) < 0) { /* we are not root */
            limit.rlim_cur = limit.rlim_max = max;
            setrlimit(RLIMIT_NOFILE, &limit);
        }
    }
}

static void become_server(const struct start *start) __attribute__((noreturn));

static void become_server(const struct start *start)
{
    char *argv[] = {(char *)(uintptr_t)MUSTER_SERVER_PATH, NULL};
    char gate;
    /* For signals. In a session of its own the server would be in another group of the kernel's
     * scheduler than the ranks, and be woken for each message of theirs. */
    setpgid(0, 0);
    child_default_signals();
    place_descriptors(start);
    if (read(BOOT_FD_CONTROL, &gate, 1) != 1)
        _exit(1); /* the launcher is gone */
    set_limits();
    if (identity_become(start->user) < 0)
        child_fails(STDERR_FILENO, "cannot become the job's user");
    if (chdir("/") < 0)
        child_fails(STDERR_FILENO, "chdir /");
    umask(077);
    execve(argv[0], argv, start->env);
    child_fails(STDERR_FILENO, "exec");
}

/* hwloc, in libpmix's server, looks for displays and OpenCL at each start and loads a large XML
 * library beside its own small one: what no client of a server asks for. */
#define HWLOC_WITHOUT "HWLOC_PLUGINS_BLACKLIST=hwloc_gl hwloc_opencl hwloc_xml_libxml"

/* Only root could make it. libpmix takes settings and loads code from the home directory, for
 * which it asks the node's passwd where HOME is not set, and crashes if that does not know the
 * user; the server is not in the job's limits and outlives its tasks. */
#define HOME_OF_NOBODY "HOME=/nonexistent"

static void free_env(char **env)
{
    for (char **p = env; p && *p; p++)
        free(*p);
    free(env);
}

/* Nothing of the job's environment, which is the user's, and little of the launcher's own. */
static int make_env(struct start *start, const char *const *more, struct err *err)
{
    static const char *const ours[] = {"PATH=/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL=C",
                                       HOME_OF_NOBODY, HWLOC_WITHOUT};
    const char *muster = geteuid() != 0 ? getenv("MUSTER_CONF") : NULL;
    size_t n = 0, nmore = 0;
    bool failed = false;
    while (more && more[nmore])
        nmore++;
    start->env = calloc(ENV_OURS + nmore + 1, sizeof(*start->env));
    if (!start->env)
        return err_set(err, "out of memory");
    for (size_t i = 0; i < sizeof(ours) / sizeof(ours[0]); i++)
        failed |= !(start->env[n++] = strdup(ours[i]));
    for (size_t i = 0; i < nmore && !failed; i++)
        failed |= !(start->env[n++] = strdup(more[i]));
    if (muster && !failed && asprintf(&start->env[n], "MUSTER_CONF=%s", muster) < 0) {
        start->env[n] = NULL;
        failed = true;
    }
    return failed ? err_set(err, "out of memory") : 0;
}

/* Forks twice. @return the server's pid, or -1 with errno set */
static pid_t fork_server(const struct start *start)
{
    pid_t child, server = -1;
    ssize_t n;
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) < 0)
        return -1;
    child = fork();
    if (child == 0) {
        server = fork();
        if (server == 0)
            become_server(start);
        if (write(ends[1], &server, sizeof(server)) < 0)
            _exit(1);
        _exit(0);
    }
    close(ends[1]);
    if (child > 0) {
        /* The server closes its copy at once, so this ends when the child ends. */
        do {
            n = read(ends[0], &server, sizeof(server));
        } while (n < 0 && errno == EINTR);
        if (n != sizeof(server) || server < 0) {
            server = -1;
            errno = EAGAIN;
        }
        while (waitpid(child, NULL, 0) < 0 && errno == EINTR)
            ;
    }
    close(ends[0]);
    return server;
}

/* Forks with the pairs made; our ends are control[0] and err[0]. What fails closes the gate's other
 * end, of which the server ends. */
static int start_process(struct launch *launch, const struct launcher *launcher,
                         struct start *start, int control, int err_read, struct err *err)
{
    pid_t server = fork_server(start);
    if (server < 0)
        return err_set(err, "cannot fork on node %s: %s", launch->node, strerror(errno));
#ifdef SYS_pidfd_open
    launch->pidfd = (int)syscall(SYS_pidfd_open, server, 0);
#endif
    launch->server = server;
    if (launch->pidfd >= 0)
        fcntl(launch->pidfd, F_SETFD, FD_CLOEXEC);
    if (launcher->at_gate && launcher->at_gate(server, err) < 0)
        return -1;
    if (send(control, "", 1, MSG_NOSIGNAL) != 1)
        return err_set(err, "cannot let muster-server go on node %s: %s", launch->node,
                       strerror(errno));
    fcntl(control, F_SETFL, O_NONBLOCK);
    fcntl(err_read, F_SETFL, O_NONBLOCK);
    launch->control = control;
    relay_open(&launch->relay, err_read);
    return 0;
}

int launch_server(struct launch *launch, const struct launcher *launcher, struct err *err)
{
    struct start start = {.user = launcher->user, .listener = launcher->listener};
    int control[2] = {-1, -1}, pipes[2] = {-1, -1}, rc = -1;
    *launch = (struct launch){.control = -1,
                              .pidfd = -1,
                              .relay = {.fd = -1},
                              .scratch = launcher->scratch,
                              .oom_kills = death_oom_kills(),
                              .node = launcher->node,
                              .log = launcher->log,
                              .on_left = launcher->on_left,
                              .arg = launcher->arg};
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, control) < 0 ||
        pipe2(pipes, O_CLOEXEC) < 0) {
        err_set(err, "cannot make sockets on node %s: %s", launch->node, strerror(errno));
    } else if (make_env(&start, launcher->env, err) == 0) {
        start.control = control[1];
        start.err = pipes[1];
        rc = start_process(launch, launcher, &start, control[0], pipes[0], err);
    }
    if (rc < 0 && launch->pidfd >= 0) {
        close(launch->pidfd);
        launch->pidfd = -1;
    }
    free_env(start.env);
    for (int i = rc == 0 ? 1 : 0; i < 2; i++) {
        if (control[i] >= 0)
            close(control[i]);
        if (pipes[i] >= 0)
            close(pipes[i]);
    }
    return rc;
}

void launch_tell(struct launch *launch, uint32_t first, uint32_t second, uint32_t third)
{
    wire_put_u32(&launch->tell, first);
    wire_put_u32(&launch->tell, second);
    wire_put_u32(&launch->tell, third);
    launch_flush(launch);
}

void launch_tell_text(struct launch *launch, uint32_t first, const char *text)
{
    wire_put_u32(&launch->tell, first);
    wire_put_u32(&launch->tell, (uint32_t)strlen(text));
    wire_put_u32(&launch->tell, 0);
    wire_put_raw(&launch->tell, text, strlen(text));
    launch_flush(launch);
}

/* Whether the server has something to take. The answer to all that it asked is put behind the rest
 * only once it has taken that: what a server asks that does not read costs no memory. */
static bool has_more(struct launch *launch)
{
    if (launch->told < launch->tell.len)
        return true;
    launch->tell.len = launch->told = 0;
    if (launch->asked == 0)
        return false;
    wire_put_u32(&launch->tell, BOOT_SHOWN);
    wire_put_u32(&launch->tell, launch->asked);
    wire_put_u32(&launch->tell, 0);
    launch->asked = 0;
    return true;
}

bool launch_flush(struct launch *launch)
{
    while (has_more(launch)) {
        ssize_t n = send(launch->control, launch->tell.data + launch->told,
                         launch->tell.len - launch->told, MSG_DONTWAIT | MSG_NOSIGNAL);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return errno == EAGAIN; /* else it is dead, and its end of file comes */
        launch->told += (size_t)n;
    }
    return false;
}

void launch_ask(struct launch *launch)
{
    if (silence_asks(&launch->silence, launch->node, launch->server))
        launch_tell(launch, BOOT_ASKS, 0, 0);
}

/* By pidfd only: root does not signal a number that may be another process by now. */
static void force(struct launch *launch)
{
    launch->forced = true;
#ifdef SYS_pidfd_send_signal
    if (launch->pidfd >= 0)
        syscall(SYS_pidfd_send_signal, launch->pidfd, SIGKILL, NULL, 0);
#else
    (void)launch;
#endif
}

/* The server waits until its lines are logged. */
static void show(struct launch *launch, const char *bytes, size_t n)
{
    uint32_t asked = 0;
    for (size_t i = 0; i < n; i++)
        asked += bytes[i] == BOOT_SAYS_SHOW;
    if (asked == 0)
        return;
    relay_drain(&launch->relay);
    launch->asked += asked;
    launch_flush(launch);
}

/* Takes what came over the control socket. @return what launch_attend() does */
static enum launch_state receive(struct launch *launch, bool *stays)
{
    char buf[256];
    ssize_t n = recv(launch->control, buf, sizeof(buf), MSG_DONTWAIT);
    *stays = n > 0 && memchr(buf, BOOT_SAYS_STAYS, (size_t)n);
    if (n > 0)
        silence_ends(&launch->silence, launch->node);
    if (n > 0 && !launch->left && memchr(buf, BOOT_SAYS_LEFT, (size_t)n)) {
        launch->left = true;
        if (launch->on_left)
            launch->on_left(launch->arg);
    }
    if (n > 0 && !launch->left)
        show(launch, buf, (size_t)n);
    launch->used |= n > 0 && memchr(buf, BOOT_SAYS_USED, (size_t)n);
    if (n > 0) /* a byte that is none of ours means no more than that it is there */
        return memchr(buf, BOOT_SAYS_BOUND, (size_t)n) ? LAUNCH_BOUND : LAUNCH_SERVES;
    return n < 0 && (errno == EAGAIN || errno == EINTR) ? LAUNCH_SERVES : LAUNCH_DIED;
}

enum launch_state launch_attend(struct launch *launch)
{
    bool stays;
    enum launch_state state = receive(launch, &stays);
    struct pollfd end = {launch->pidfd, POLLIN, 0};
    if (state != LAUNCH_DIED)
        return state;
    relay_drain(&launch->relay);
    /* Its socket closes before its process has quite ended. */
    if (launch->pidfd < 0 || poll(&end, 1, GONE_MS) != 1)
        force(launch);
    relay_drain(&launch->relay);
    launch_death(launch, launch->death, sizeof(launch->death));
    return state;
}

/* Waits for the server's process to end; where the kernel has no pidfds, for its end of the control
 * socket to close. Logs what it says meanwhile, and sends what it has not taken yet, and then the
 * end of file. A server that says that it stays has the bound once more, up to stay ms in all.
 * @return whether it ended */
static bool wait_for_end(struct launch *launch, int bound, int stay)
{
    struct pollfd fds[] = {
        {launch->control, POLLIN, 0}, {-1, POLLIN, 0}, {launch->pidfd, POLLIN, 0}};
    int64_t begin = now_ms(), deadline = begin + bound;
    bool sending = true, stays = false;

    while (deadline_left(deadline) > 0) {
        if (sending && !launch_flush(launch)) {
            sending = false;
            shutdown(launch->control, SHUT_WR);
        }
        fds[0].events = sending ? POLLIN | POLLOUT : POLLIN;
        fds[1].fd = launch->relay.fd;
        if (poll(fds, 3, deadline_left(deadline)) < 0) {
            if (errno != EINTR)
                return false;
            continue;
        }
        if (fds[1].revents)
            relay_read(&launch->relay);
        if ((fds[0].revents & ~POLLOUT) && receive(launch, &stays) == LAUNCH_DIED) {
            if (launch->pidfd < 0)
                return true;
            fds[0].fd = -1;
        }
        if (fds[2].revents) {
            receive(launch, &stays); /* its last word may have come since */
            return true;
        }
        if (stays && now_ms() < begin + stay)
            deadline = now_ms() + bound;
        stays = false;
    }
    return false;
}

static void close_all(struct launch *launch)
{
    relay_close(&launch->relay);
    if (launch->control >= 0)
        close(launch->control);
    if (launch->pidfd >= 0)
        close(launch->pidfd);
    launch->control = launch->pidfd = -1;
    wire_out_free(&launch->tell);
}

bool launch_end(struct launch *launch)
{
    if (launch->control < 0)
        return true;
    /* The end of file alone would say that the launcher was killed. */
    launch_tell(launch, BOOT_LEAVE, 0, 0);
    bool ended = wait_for_end(launch, LEAVE_MS, BOOT_STAY_MAX_MS);
    if (!ended) {
        log_cause("muster-server on node %s did not leave within %d s and is %s", launch->node,
                  LEAVE_MS / 1000, launch->pidfd >= 0 ? "killed" : "left behind");
        force(launch);
        wait_for_end(launch, KILL_MS, 0);
    }
    if (ended && !launch->left && launch->death[0] == '\0')
        launch_death(launch, launch->death, sizeof(launch->death));
    close_all(launch);
    return launch->left || !ended;
}

void launch_kill(struct launch *launch)
{
    if (launch->control >= 0) {
        force(launch);
        wait_for_end(launch, KILL_MS, 0);
    }
    close_all(launch);
}

void launch_die_with(pid_t launcher)
{
    if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0)
        log_debug("a task may outlive its launcher: %s", strerror(errno));
    /* It may have died before. 0: it is outside of a pid namespace of ours. */
    pid_t parent = getppid();
    if (parent != launcher && parent != 0)
        raise(SIGKILL);
}
