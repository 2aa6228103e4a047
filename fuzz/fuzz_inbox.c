/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * What slurmd writes into the server's socket, one connection a message: only what is whole and
 * from this user comes out, byte for byte.
 *
 * An input is a list of connections: a byte of how it goes, a length, and so many bytes.
 */
#include "fuzz/fuzz.h"
#include "plugins/slurm/rm_slurm.h"

#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

enum { HEADER = 1 /* a right one stands before the bytes */, TWICE = 2 /* in two pieces */ };

/* How often the loop turns for one event: accept, read, end of file. */
enum { TURNS = 4 };

static struct sockaddr_un address = {.sun_family = AF_UNIX};
static socklen_t address_len;
static struct event_base *base;
static struct wire_out sent; /* the bytes of the last connection */
static bool header;          /* whether a right header stood before them */
static unsigned received;

static void receive(void *arg, const void *data, size_t len)
{
    size_t skip = header ? 0 : 8; /* then the header was among the bytes */
    (void)arg;
    received++;
    FUZZ_CHECK(sent.len >= skip && len == sent.len - skip);
    FUZZ_CHECK(len == 0 || memcmp(data, sent.data + skip, len) == 0);
}

static const struct rm_host host = {.receive = receive};

/* Once: the listening socket, without a name in the file system. */
static struct inbox *open_inbox(void)
{
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    FUZZ_CHECK(fd >= 0 && bind(fd, (struct sockaddr *)&address, sizeof(sa_family_t)) == 0);
    address_len = sizeof address;
    FUZZ_CHECK(getsockname(fd, (struct sockaddr *)&address, &address_len) == 0);
    FUZZ_CHECK(listen(fd, 16) == 0);
    base = event_base_new();
    FUZZ_CHECK(base != NULL);
    struct inbox *inbox = inbox_open(fd, base, &host);
    FUZZ_CHECK(inbox != NULL);
    return inbox;
}

static void turn(void)
{
    for (int i = 0; i < TURNS; i++)
        event_base_loop(base, EVLOOP_NONBLOCK);
}

static void write_some(int fd, const void *data, size_t len)
{
    FUZZ_CHECK(len == 0 || send(fd, data, len, MSG_NOSIGNAL) == (ssize_t)len);
}

static void connection(uint8_t how, const uint8_t *data, size_t len)
{
    struct wire_out out = {0};
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    FUZZ_CHECK(fd >= 0 && connect(fd, (struct sockaddr *)&address, address_len) == 0);
    header = how & HEADER;
    if (header) {
        wire_put_u32(&out, getuid());
        wire_put_u32(&out, (uint32_t)len);
    }
    wire_put_raw(&out, data, len);
    wire_put_raw(&sent, data, len);
    size_t first = how & TWICE ? out.len / 2 : out.len;
    write_some(fd, out.data, first);
    if (how & TWICE)
        turn();
    if (first < out.len)
        write_some(fd, out.data + first, out.len - first);
    close(fd);
    received = 0;
    turn();
    FUZZ_CHECK(received <= 1 && (!header || received == 1));
    wire_out_free(&out);
    wire_out_free(&sent);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    static struct inbox *inbox;
    struct fuzz_bytes in = {data, data + len};
    if (inbox == NULL)
        inbox = open_inbox();
    while (in.p < in.end) {
        uint8_t how = fuzz_byte(&in);
        size_t n, want = fuzz_byte(&in);
        const uint8_t *bytes = fuzz_take(&in, want, &n);
        connection(how, bytes, n);
    }
    return 0;
}

void fuzz_seeds(void)
{
    struct wire_out out = {0};
    for (uint8_t how = 0; how < 4; how++) {
        wire_put_u8(&out, how);
        wire_put_u8(&out, 8 + 5);
        wire_put_u32(&out, getuid());
        wire_put_u32(&out, 5);
        wire_put_raw(&out, "frame", 5);
    }
    fuzz_seed(out.data, out.len);
    wire_out_free(&out);
}
