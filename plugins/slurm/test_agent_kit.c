/* SPDX-License-Identifier: BSD-3-Clause */
/* What the tests of the agent in srun share. */
#include "plugins/slurm/test_agent_kit.h"

#include "common/util/clock.h"
#include "common/util/log.h"
#include "common/util/test_cmocka.h"
#include "plugins/slurm/agent.h"
#include "plugins/slurm/agent_call.h"
#include "plugins/slurm/test_munge.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* ---- Slurm ---- */

uint16_t *ports;
char agent_variable[128], shown[1024];
unsigned nshown;

char *slurm_abi_auth_info(void)
{
    return NULL;
}

uint16_t slurm_abi_protocol(void)
{
    return PROTOCOL;
}

uint16_t *slurm_abi_srun_ports(void)
{
    return ports;
}

int slurm_abi_kill_step(uint32_t job, uint32_t step, uint16_t sig, bool fails)
{
    (void)job, (void)step, (void)sig, (void)fails;
    fail_msg("no test spawns a step that has to be killed");
    return -1;
}

int slurm_abi_allocation_lookup(uint32_t job, struct slurm_abi_allocation **allocation)
{
    (void)job, (void)allocation;
    fail_msg("no test spawns a step");
    return -1;
}

void slurm_abi_free_allocation(struct slurm_abi_allocation *allocation)
{
    (void)allocation;
}

int slurm_abi_get_step(uint32_t job, uint32_t step, struct slurm_abi_step_records **records)
{
    (void)job, (void)step, (void)records;
    fail_msg("no test spawns a step");
    return -1;
}

void slurm_abi_free_steps(struct slurm_abi_step_records *records)
{
    (void)records;
}

void *slurm_abi_hostlist_create(const char *hostlist)
{
    (void)hostlist;
    return NULL;
}

char *slurm_abi_hostlist_shift(void *hostlist)
{
    (void)hostlist;
    return NULL;
}

void slurm_abi_hostlist_destroy(void *hostlist)
{
    (void)hostlist;
}

const char *slurm_abi_strerror(int errnum)
{
    return strerror(errnum);
}

int slurm_abi_env_overwrite(char ***env, const char *name, const char *value)
{
    (void)env;
    snprintf(agent_variable, sizeof agent_variable, "%s=%s", name, value);
    return 1;
}

/* ---- what tests share ---- */

static void sink(void *arg, enum log_level level, const char *text)
{
    (void)arg;
    if (level != LOG_LEVEL_ERROR)
        return;
    nshown++;
    snprintf(shown, sizeof shown, "%s", text);
}

unsigned count(const char *directory)
{
    DIR *dir = opendir(directory);
    unsigned n = 0;
    assert_non_null(dir);
    while (readdir(dir) != NULL)
        n++;
    closedir(dir);
    return n;
}

char *address;
unsigned fds;
static unsigned threads;

void enter(void)
{
    struct slurm_abi_step_id step = slurm_abi_step_id(4711, 3, SLURM_ABI_NO_VAL);
    agent_enter(&step, NULL);
}

int begin(void **state)
{
    static char host[] = "SLURM_SRUN_COMM_HOST=127.0.0.1";
    char *env[] = {host, agent_variable, NULL};
    (void)state;
    fds = count("/proc/self/fd");
    threads = count("/proc/self/task");
    munge.made = munge.verified = nshown = 0;
    munge.writer = getuid();
    log_open(sink, NULL, LOG_LEVEL_INFO, NULL);
    enter();
    address = agent_find(env);
    return address == NULL;
}

/* The thread that asks munged outlives a call whose deadline has passed, until munged has answered.
 */
int end(void **state)
{
    int64_t by = now_ms() + WAIT_MS;
    (void)state;
    free(address);
    while ((count("/proc/self/fd") != fds || count("/proc/self/task") != threads) && now_ms() < by)
        poll(NULL, 0, 1);
    assert_int_equal(count("/proc/self/fd"), fds);
    assert_int_equal(count("/proc/self/task"), threads);
    return 0;
}

int tell_why(enum rm_cause cause, unsigned status, const char *why)
{
    const struct rm_ending ending = {.cause = cause, .status = (uint8_t)status, .why = why};
    struct err err = {0};
    return agent_call_status(address, &ending, WAIT_MS, &err);
}

int tell(enum rm_cause cause, unsigned status)
{
    return tell_why(cause, status, NULL);
}

int stranger(void)
{
    struct agent_address at;
    struct sockaddr_in in = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_true(agent_address_read(address, &at));
    in.sin_port = htons((uint16_t)atoi(at.port));
    assert_int_equal(connect(fd, (struct sockaddr *)&in, sizeof in), 0);
    return fd;
}

void put_status(struct wire_out *out, uint32_t type, uint32_t cause, uint32_t status)
{
    size_t from = agent_frame_begin(out, (enum agent_type)type);
    wire_put_u32(out, cause);
    wire_put_u32(out, status);
    agent_frame_end(out, from);
}

static void *nothing(void *arg)
{
    return arg;
}

void start_first_thread(void)
{
    pthread_t first;
    if (pthread_create(&first, NULL, nothing, NULL) == 0)
        pthread_join(first, NULL);
}
