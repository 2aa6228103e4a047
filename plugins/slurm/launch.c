/** @file
 * The muster-server process of this step and node: its start and its end.
 *
 *     slurmstepd ── fork ──► child ── fork ──► server: waits at the gate (still root)
 *          │◄───── its pid ─────┘ exits            │
 *          │ pidfd_open(pid)                       │
 *          ├────── one byte: the gate opens ──────►│ becomes the user, execs
 *
 * Two forks, because slurmstepd kills its descendants when the tasks have ended, before the server
 * could leave in order. The gate, because until we hold a pidfd the pid must not be free for
 * somebody else's process: as long as the child is root's, nobody can end it.
 */
#include "plugins/slurm/launch.h"

#include "common/server/boot.h"
#include "common/util/clock.h"
#include "common/util/log.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    LEAVE_MS = 5000, /* for a server to leave when asked */
    KILL_MS = 1000,  /* for a killed one to be gone */
    FD_FIRST_FREE = BOOT_FD_LISTEN + 1,
    ENV_MAX = 5,
    FILES_WANTED = 65536, /* descriptors of the server */
};

/* What the child needs, all made before the fork. */
struct start {
    const struct identity *user;
    int control, listener, err; /* to become BOOT_FD_CONTROL, BOOT_FD_LISTEN, 2 */
    char *env[ENV_MAX + 1];
};

static void *child_fails(int err, const char *what) __attribute__((noreturn));

/* The relay carries it to slurmstepd's log. */
static void *child_fails(int err, const char *what)
{
    char line[256];
    int n = snprintf(line, sizeof(line), "<3>cannot start %s: %s: %s\n", MUSTER_SERVER_PATH, what,
                     strerror(errno));

    if (n > 0 && write(err, line, (size_t)n) < 0)
        _exit(2);
    _exit(1);
}

static void default_signals(void)
{
    struct sigaction action = {.sa_handler = SIG_DFL};
    sigset_t none;

    for (int sig = 1; sig < NSIG; sig++)
        sigaction(sig, &action, NULL);
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
}

static void close_from(unsigned first)
{
    struct rlimit files = {.rlim_cur = 65536};

#ifdef SYS_close_range
    if (syscall(SYS_close_range, first, ~0U, 0) == 0)
        return;
#endif
    getrlimit(RLIMIT_NOFILE, &files);
    for (rlim_t fd = first; fd < files.rlim_cur; fd++)
        close((int)fd);
}

/* Puts the descriptors where boot.h says; nothing else stays open. */
static void place_descriptors(const struct start *start)
{
    int null = open("/dev/null", O_RDWR);
    /* first out of the way of the places, whatever numbers they have */
    int control = fcntl(start->control, F_DUPFD, FD_FIRST_FREE);
    int listener = fcntl(start->listener, F_DUPFD, FD_FIRST_FREE);
    int err = fcntl(start->err, F_DUPFD, FD_FIRST_FREE);

    if (null < 0 || control < 0 || listener < 0 || err < 0)
        child_fails(start->err, "descriptors");
    if (dup2(null, STDIN_FILENO) < 0 || dup2(null, STDOUT_FILENO) < 0 ||
        dup2(err, STDERR_FILENO) < 0 || dup2(control, BOOT_FD_CONTROL) < 0 ||
        dup2(listener, BOOT_FD_LISTEN) < 0)
        child_fails(err, "descriptors");
    close_from(FD_FIRST_FREE);
}

static void set_limits(void)
{
    struct rlimit limit;
    int fd = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);

    /* slurmstepd is exempt from the OOM killer; a user's process must not be. */
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

        /* A connection a task and a peer, however few slurmd itself may have. */
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

    setsid();
    default_signals();
    place_descriptors(start);
    if (read(BOOT_FD_CONTROL, &gate, 1) != 1)
        _exit(1); /* slurmstepd is gone */
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

/* Nothing of prefork's environment, which is the user's: slurmstepd's own, and little of it. */
static int make_env(struct start *start, struct err *err)
{
    const char *conf = getenv("SLURM_CONF"), *muster = getenv("MUSTER_CONF");
    int n = 0;

    start->env[n++] = strdup("PATH=/usr/sbin:/usr/bin:/sbin:/bin");
    start->env[n++] = strdup("LC_ALL=C");
    start->env[n++] = strdup(HWLOC_WITHOUT);
    if (conf && asprintf(&start->env[n++], "SLURM_CONF=%s", conf) < 0)
        return err_set(err, "out of memory");
    if (muster && geteuid() != 0 && asprintf(&start->env[n++], "MUSTER_CONF=%s", muster) < 0)
        return err_set(err, "out of memory");
    return start->env[0] && start->env[1] && start->env[2] ? 0 : err_set(err, "out of memory");
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

/* Forks with the pairs made; our ends are control[0] and err[0]. */
static int start_process(struct launch *launch, struct start *start, int control, int err_read,
                         const char *node, struct err *err)
{
    pid_t server = fork_server(start);

    if (server < 0)
        return err_set(err, "cannot fork on node %s: %s", node, strerror(errno));
    launch->pidfd = -1;
#ifdef SYS_pidfd_open
    launch->pidfd = (int)syscall(SYS_pidfd_open, server, 0);
#endif
    if (launch->pidfd >= 0)
        fcntl(launch->pidfd, F_SETFD, FD_CLOEXEC);
    if (send(control, "", 1, MSG_NOSIGNAL) != 1)
        return err_set(err, "cannot let muster-server go on node %s: %s", node, strerror(errno));
    fcntl(control, F_SETFL, O_NONBLOCK);
    fcntl(err_read, F_SETFL, O_NONBLOCK);
    launch->control = control;
    relay_open(&launch->relay, err_read);
    return 0;
}

int launch_server(struct launch *launch, const struct identity *user, int listener,
                  const char *node, struct err *err)
{
    struct start start = {.user = user, .listener = listener};
    int control[2] = {-1, -1}, pipes[2] = {-1, -1}, rc = -1;

    *launch = (struct launch){.control = -1, .pidfd = -1, .relay = {.fd = -1}};
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, control) < 0 ||
        pipe2(pipes, O_CLOEXEC) < 0) {
        err_set(err, "cannot make sockets on node %s: %s", node, strerror(errno));
    } else if (make_env(&start, err) == 0) {
        start.control = control[1];
        start.err = pipes[1];
        rc = start_process(launch, &start, control[0], pipes[0], node, err);
    }
    for (int i = 0; i < ENV_MAX; i++)
        free(start.env[i]);
    for (int i = rc == 0 ? 1 : 0; i < 2; i++) {
        if (control[i] >= 0)
            close(control[i]);
        if (pipes[i] >= 0)
            close(pipes[i]);
    }
    return rc;
}

/* By pidfd only: root does not signal a number that may be somebody else's process by now. */
static void force(struct launch *launch)
{
#ifdef SYS_pidfd_send_signal
    if (launch->pidfd >= 0)
        syscall(SYS_pidfd_send_signal, launch->pidfd, SIGKILL, NULL, 0);
#endif
}

/* Waits for the server's end of the control socket to close, and logs what it says meanwhile.
 * @return whether it closed */
static bool wait_for_end(struct launch *launch, int bound)
{
    int64_t deadline = now_ms() + bound;

    for (;;) {
        struct pollfd fds[] = {{launch->control, POLLIN, 0}, {launch->relay.fd, POLLIN, 0}};
        char buf[256];
        ssize_t n;

        if (poll(fds, 2, deadline_left(deadline)) < 0 && errno != EINTR)
            return false;
        if (fds[1].revents)
            relay_read(&launch->relay);
        if (fds[0].revents) {
            n = recv(launch->control, buf, sizeof(buf), MSG_DONTWAIT);
            if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR))
                return true;
        }
        if (deadline_left(deadline) == 0)
            return false;
    }
}

static void close_all(struct launch *launch)
{
    relay_close(&launch->relay);
    if (launch->control >= 0)
        close(launch->control);
    if (launch->pidfd >= 0)
        close(launch->pidfd);
    launch->control = launch->pidfd = -1;
}

/* The end of file alone would say that slurmstepd was killed. */
static void say_leave(struct launch *launch)
{
    struct wire_out out = {0};

    wire_put_u32(&out, BOOT_LEAVE);
    wire_put_u32(&out, 0);
    wire_put_u32(&out, 0);
    if (out.failed || send(launch->control, out.data, out.len, MSG_NOSIGNAL) < 0)
        log_debug("muster-server is not told to leave: %s", strerror(errno));
    wire_out_free(&out);
}

void launch_end(struct launch *launch, const char *node)
{
    if (launch->control < 0)
        return;
    say_leave(launch);
    shutdown(launch->control, SHUT_WR);
    if (!wait_for_end(launch, LEAVE_MS)) {
        log_error("muster-server on node %s did not leave within %d s and is %s", node,
                  LEAVE_MS / 1000, launch->pidfd >= 0 ? "killed" : "left behind");
        force(launch);
        wait_for_end(launch, KILL_MS);
    }
    close_all(launch);
}

void launch_kill(struct launch *launch)
{
    if (launch->control >= 0) {
        force(launch);
        wait_for_end(launch, KILL_MS);
    }
    close_all(launch);
}
