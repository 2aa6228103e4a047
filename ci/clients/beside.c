/* SPDX-License-Identifier: BSD-3-Clause */
/* beside: the last rank, or more, starts processes that inherit its PMIX_NAMESPACE and PMIX_RANK,
 * and so connect as the same rank, as system() or a subprocess does with a program that uses PMIx.
 *
 * The other ranks are in a fence meanwhile, so that the connections of these processes come and go
 * while an operation is under way on their node. Then all ranks exchange data. In the end the last
 * rank may be killed, or exit, without PMIx_Finalize: the step has to end for that.
 */
#include "client.h"

#include <errno.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

enum { IN_ORDER, DIES, IS_KILLED, OUTLIVES };
enum { FINALIZE, KILL, EXIT };
enum { MANY = 8, EXCHANGES = 3 };
static long ends, count = 1, parents = 1, then, open_ms = 200;

/* A process of its own: nothing of the parent's libpmix is in it. @return its status */
static int be_child(long how)
{
    pmix_proc_t me;
    char go;
    pmix_status_t rc = PMIx_Init(&me, NULL, 0);
    if (rc != PMIX_SUCCESS)
        return 1;
    if (write(STDOUT_FILENO, "+", 1) != 1)
        return 2;
    if (how == OUTLIVES) {
        while (read(STDIN_FILENO, &go, 1) > 0) /* its end: the parent is gone */
            ;
        return PMIx_Finalize(NULL, 0) != PMIX_SUCCESS;
    }
    sleep_ms(open_ms);
    if (how == IS_KILLED)
        raise(SIGKILL);
    if (how == DIES)
        _exit(3);
    return PMIx_Finalize(NULL, 0) != PMIX_SUCCESS;
}

/* @return once the child has connected */
static pid_t start_child(const char *program)
{
    int in[2], out[2];
    char how[2] = {(char)('0' + ends), '\0'}, up;
    char *const argv[] = {(char *)program, "--child", how, NULL};
    CHECK(pipe(in) == 0 && pipe(out) == 0, "pipe: %s", strerror(errno));
    pid_t pid = fork();
    CHECK(pid >= 0, "fork: %s", strerror(errno));
    if (pid == 0) {
        dup2(in[0], STDIN_FILENO);
        dup2(out[1], STDOUT_FILENO);
        for (int fd = 3; fd < 256; fd++)
            close(fd);
        execv(program, argv);
        _exit(127);
    }
    close(in[0]);
    close(out[1]);
    CHECK(read(out[0], &up, 1) == 1, "child %ld has not called PMIx_Init", (long)pid);
    return pid; /* the other ends stay open until this process ends */
}

static void check_end(pid_t pid)
{
    int status = 0;
    CHECK(waitpid(pid, &status, 0) == pid, "waitpid: %s", strerror(errno));
    if (ends == IS_KILLED)
        CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL, "child: status %#x", status);
    else
        CHECK(WIFEXITED(status) && WEXITSTATUS(status) == (ends == DIES ? 3 : 0),
              "child: status %#x", status);
}

static void run_children(const char *program)
{
    pid_t pids[MANY];
    step("children");
    for (long i = 0; i < count; i++)
        pids[i] = start_child(program);
    for (long i = 0; i < count && ends != OUTLIVES; i++)
        check_end(pids[i]);
}

static void exchange(void)
{
    for (uint32_t turn = 0; turn < EXCHANGES; turn++) {
        step("exchange %u", turn);
        put_u64(PMIX_GLOBAL, mix(client.me.rank + turn), "beside.%u", turn);
        commit();
        fence_all(true);
        for (pmix_rank_t rank = 0; rank < client.size; rank++)
            CHECK(get_u64(rank, "beside.%u", turn) == mix(rank + turn), "value of rank %u", rank);
    }
}

int main(int argc, char **argv)
{
    const struct option_number options[] = {
        {"child", &ends, "how each of them ends", "order|dies|killed|outlives"},
        {"count", &count, "of them, at once", NULL},
        {"parents", &parents, "the last ranks, which start such processes", NULL},
        {"open", &open_ms, "ms for which they are connected", NULL},
        {"then", &then, "what the last rank does in the end", "finalize|kill|exit"},
        {0}};
    if (argc == 3 && strcmp(argv[1], "--child") == 0 && argv[2][0] >= '0' && argv[2][0] <= '3')
        return be_child(argv[2][0] - '0');
    client_init("beside", options, argc, argv);
    CHECK(count >= 0 && count <= MANY, "--count: at most %d", MANY);
    bool last = client.me.rank == client.size - 1;
    fence_all(false);
    if (client.me.rank + parents >= client.size)
        run_children("/proc/self/exe");
    fence_all(false);
    exchange();
    if (then == FINALIZE)
        return client_pass("%ld processes beside each of %ld ranks", count, parents);
    if (last && then == KILL)
        raise(SIGKILL);
    if (last)
        _exit(5);
    step("the end of the step");
    for (;;)
        pause();
}
