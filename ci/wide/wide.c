/* SPDX-License-Identifier: BSD-3-Clause */
/* The program: plays the launcher for one server and one client, and prints what each has taken of
 * time and of memory. To be run as root, where muster is installed with rm_alone.so beside its back
 * ends: ci/bench wide. */
#include "ci/wide/wide.h"

#include "common/util/io_all.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { ENV_MAX = 512, PATIENCE_S = 600 };

static struct {
    const char *server, *self;
    char tmpdir[64];
    int control; /* the server's socket */
    pid_t pid;   /* the server */
    char *env[ENV_MAX + 1];
    unsigned nenv;
} run = {.server = "/opt/muster/libexec/muster/muster-server"};

static void remove_dir(void)
{
    pid_t pid = fork();
    if (pid == 0) {
        execlp("rm", "rm", "-rf", run.tmpdir, (char *)NULL);
        _exit(1);
    }
    if (pid > 0)
        waitpid(pid, NULL, 0);
}

static int fail(const char *what)
{
    fprintf(stderr, "wide: %s\n", what);
    if (run.pid > 0) {
        kill(run.pid, SIGKILL);
        waitpid(run.pid, NULL, 0);
    }
    if (run.tmpdir[0] != '\0')
        remove_dir();
    exit(1);
}

static void start_server(void)
{
    int pair[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) != 0)
        fail("no socket pair");
    run.pid = fork();
    if (run.pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        dup2(pair[1], 9);
        close(BOOT_FD_LISTEN);
        dup2(9, BOOT_FD_CONTROL);
        close(9);
        execl(run.server, "muster-server", (char *)NULL);
        _exit(1);
    }
    close(pair[1]);
    run.control = pair[0];
    if (run.pid < 0)
        fail("no process");
}

static void send_boot(uint32_t nodes, uint32_t tasks)
{
    struct boot boot;
    struct wire_out head = {0}, out = {0};
    step_lay_out(&boot, nodes, tasks, run.tmpdir);
    boot_write(&boot, &out);
    wire_put_u32(&head, (uint32_t)out.len);
    if (out.failed || !send_all(run.control, head.data, head.len) ||
        !send_all(run.control, out.data, out.len))
        fail("the server does not take its boot message");
    wire_out_free(&head);
    wire_out_free(&out);
    boot_free(&boot);
}

static uint32_t read_u32(void)
{
    unsigned char bytes[4];
    struct wire_in in;
    if (read_all(run.control, bytes, sizeof bytes) != (ssize_t)sizeof bytes)
        fail("the server has ended");
    wire_in_init(&in, bytes, sizeof bytes);
    return wire_get_u32(&in);
}

/* Reads until the server is ready, and keeps what task 0 is to have. */
static void read_environment(void)
{
    for (;;) {
        uint32_t slot = read_u32();
        if (slot == BOOT_READY)
            return;
        uint32_t len = read_u32();
        char *text = len < BOOT_MAX ? calloc(1, len + 1) : NULL;
        if (text == NULL || read_all(run.control, text, len) != (ssize_t)len)
            fail("the server's answer is cut");
        if (slot == BOOT_FAILED || slot == BOOT_FAILED_ALIKE)
            fail(text);
        if (slot == 0 && run.nenv < ENV_MAX)
            run.env[run.nenv++] = text;
        else
            free(text);
    }
}

static void tell(uint32_t a, uint32_t b, uint32_t c)
{
    struct wire_out out = {0};
    wire_put_u32(&out, a);
    wire_put_u32(&out, b);
    wire_put_u32(&out, c);
    if (out.failed || !send_all(run.control, out.data, out.len))
        fail("the server has ended");
    wire_out_free(&out);
}

/* The client, which waits for its pipe before it does anything. */
static pid_t start_client(int *in, int *out)
{
    int go[2], said[2];
    if (pipe2(go, O_CLOEXEC) != 0 || pipe2(said, O_CLOEXEC) != 0)
        fail("no pipe");
    pid_t pid = fork();
    if (pid == 0) {
        char byte;
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        dup2(go[0], 0);
        dup2(said[1], 1);
        for (unsigned i = 0; i < run.nenv; i++)
            putenv(run.env[i]);
        if (read(0, &byte, 1) != 1)
            _exit(1);
        execl(run.self, run.self, "--client", (char *)NULL);
        _exit(1);
    }
    close(go[0]);
    close(said[1]);
    *in = go[1];
    *out = said[0];
    return pid;
}

/* Prints what the client says, up to what it waits after. */
static void let_go(int in, FILE *said, const char *until)
{
    char line[512];
    if (write(in, "", 1) != 1)
        fail("the client has ended");
    while (fgets(line, sizeof line, said) != NULL) {
        fputs(line, stdout);
        if (until != NULL && strstr(line, until) != NULL)
            return;
    }
    if (until != NULL)
        fail("the client has failed");
}

static void show(const char *when)
{
    struct memory m = memory_of(run.pid);
    printf("server %s: peak %.1f MB, resident %.1f MB, own %.1f MB\n", when, m.peak / 1024.,
           m.now / 1024., m.own / 1024.);
}

static void measure_client(uint32_t tasks)
{
    int in, out, status = 0;
    pid_t pid = start_client(&in, &out);
    FILE *said = fdopen(out, "r");
    for (uint32_t slot = 0; slot < tasks; slot++)
        tell(slot | BOOT_TASK_STARTED, (uint32_t)pid, BOOT_PID_OWN);
    unsigned char bound;
    if (said == NULL || read_all(run.control, &bound, 1) != 1)
        fail("the server has not seen the tasks");
    memory_reset(run.pid);
    let_go(in, said, "client init");
    show("after the first client");
    sleep(2); /* the server gives memory back */
    show("2 s later");
    memory_reset(run.pid);
    let_go(in, said, "client get pmix.lpeers");
    show("after its gets");
    let_go(in, said, NULL);
    fclose(said);
    close(in);
    if (waitpid(pid, &status, 0) != pid || status != 0)
        fail("the client has failed");
}

static int usage(void)
{
    fputs("usage: wide NODES TASKS\nOne muster-server of a step of NODES nodes, of TASKS tasks "
          "each, and one client.\n",
          stderr);
    return 2;
}

int main(int argc, char **argv)
{
    run.self = "/proc/self/exe";
    if (argc == 2 && strcmp(argv[1], "--client") == 0)
        return client_main();
    long nodes = argc == 3 ? atol(argv[1]) : 0, tasks = argc == 3 ? atol(argv[2]) : 0;
    if (nodes < 1 || tasks < 1 || nodes > UINT32_MAX / 2 / tasks)
        return usage();
    setvbuf(stdout, NULL, _IOLBF, 0);
    alarm(PATIENCE_S);
    signal(SIGPIPE, SIG_IGN);
    snprintf(run.tmpdir, sizeof run.tmpdir, "/tmp/muster.1.0.%08x", (unsigned)getpid());
    if (mkdir(run.tmpdir, 0700) != 0) {
        run.tmpdir[0] = '\0';
        fail("its directory cannot be made");
    }
    start_server();
    int64_t begin = client_now_us();
    send_boot((uint32_t)nodes, (uint32_t)tasks);
    read_environment();
    printf("server ready after %.3f s\n", (double)(client_now_us() - begin) / 1e6);
    show("ready");
    measure_client((uint32_t)tasks);
    tell(BOOT_LEAVE, 0, 0);
    shutdown(run.control, SHUT_WR);
    kill(run.pid, SIGKILL); /* to take leave of nodes that are not there takes it a while */
    waitpid(run.pid, NULL, 0);
    remove_dir();
    return 0;
}
