/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * The server's side of the control socket and its standard error, as slurmstepd, which is root's,
 * reads them: the server is the user's, and may say anything.
 *
 * An input is a byte of how the server behaves, a length, so many bytes of standard error, and
 * the answer.
 */
#include "common/launch/handshake.h"

#include "fuzz/fuzz.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { GONE = 1 /* before it is asked */, QUIET = 2 /* standard error is closed early */ };

enum { SLOTS = 2 };

static void write_some(int fd, const void *data, size_t len)
{
    FUZZ_CHECK(len == 0 || write(fd, data, len) == (ssize_t)len);
}

/* What the server does, all of it before it is asked. Closes what it closes and sets it to -1. */
static void play(int *control, int *errors, struct fuzz_bytes *in)
{
    uint8_t how = fuzz_byte(in);
    size_t said, want = fuzz_byte(in) | (how & 0xf0u) << 4;
    const uint8_t *text = fuzz_take(in, want, &said);
    write_some(*errors, text, said);
    write_some(*control, in->p, (size_t)(in->end - in->p));
    shutdown(*control, SHUT_WR);
    if (how & QUIET) {
        close(*errors);
        *errors = -1;
    }
    if (how & GONE) {
        close(*control);
        *control = -1;
    }
}

static void check_good(const struct task_env *env)
{
    for (uint32_t slot = 0; slot < env->nslots; slot++) {
        size_t n = 0;
        for (char **p = env->strings[slot]; p != NULL && *p != NULL; p++, n++) {
            FUZZ_CHECK(strlen(*p) <= BOOT_ENV_MAX);
            FUZZ_CHECK((*p)[0] != '=' && strchr(*p, '=') != NULL);
        }
        FUZZ_CHECK(n <= BOOT_ENV_COUNT);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    uint32_t ranks[SLOTS] = {0, 1};
    struct boot_node node = {"c07", SLOTS, ranks};
    const struct boot boot = {.session = "1",
                              .nspace = "slurm.1.0",
                              .label = "1.0",
                              .tmpdir = "/tmp/m",
                              .nnodes = 1,
                              .ntasks = SLOTS,
                              .nodes = &node};
    struct fuzz_bytes in = {data, data + len};
    struct task_env env = {0};
    struct launch launch = {.pidfd = -1, .log = "the log"};
    struct err err = {0};
    int control[2], errors[2];
    FUZZ_CHECK(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, control) == 0);
    FUZZ_CHECK(pipe2(errors, O_NONBLOCK | O_CLOEXEC) == 0);
    launch.control = control[0];
    relay_open(&launch.relay, errors[0]);
    play(&control[1], &errors[1], &in);
    if (handshake(&launch, &boot, &env, &err) == 0)
        check_good(&env);
    else
        FUZZ_CHECK(err.text[0] != '\0');
    fuzz_check_text(err.text);
    fuzz_check_text(launch.relay.last_error);
    task_env_free(&env);
    close(launch.control);
    relay_close(&launch.relay);
    for (int i = 0; i < 2; i++) {
        int fd = i == 0 ? control[1] : errors[1];
        if (fd >= 0)
            close(fd);
    }
    return 0;
}

static void seed(uint8_t how, const char *errors, uint32_t end)
{
    static const char *const strings[] = {"PMIX_RANK=0", "PMIX_NAMESPACE=slurm.1.0", "A="};
    struct wire_out out = {0};
    wire_put_u8(&out, how);
    wire_put_u8(&out, (uint8_t)strlen(errors));
    wire_put_raw(&out, errors, strlen(errors));
    for (uint32_t slot = 0; slot < SLOTS; slot++)
        for (size_t i = 0; i < sizeof strings / sizeof *strings; i++) {
            wire_put_u32(&out, slot);
            wire_put_str(&out, strings[i]);
        }
    wire_put_u32(&out, end);
    if (end == BOOT_FAILED)
        wire_put_str(&out, "libpmix does not start");
    fuzz_seed(out.data, out.len);
    wire_out_free(&out);
}

/* As much as is taken, and more: a long line, and many strings. */
static void seed_much(void)
{
    struct wire_out out = {0};
    wire_put_u8(&out, 0x50);
    wire_put_u8(&out, 0);
    for (int i = 0; i < 0x500; i++)
        wire_put_u8(&out, i % 1100 == 1099 ? '\n' : 'x');
    for (int i = 0; i < BOOT_ENV_COUNT + 2; i++) {
        wire_put_u32(&out, 1);
        wire_put_str(&out, "A=");
    }
    wire_put_u32(&out, BOOT_READY);
    fuzz_seed(out.data, out.len);
    wire_out_free(&out);
}

void fuzz_seeds(void)
{
    seed(0, "", BOOT_READY);
    seed(0, "<6>ready\n<3>no\n<7>x\nlibrary\n", BOOT_FAILED);
    seed(GONE, "<4>going\n", 7);
    seed_much();
    seed(QUIET, "\x1b[2J\xff\n<9>\n", BOOT_READY);
}
