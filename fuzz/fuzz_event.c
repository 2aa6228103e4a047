/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * Another server's event: what was read can be written, and is then the same bytes. What libpmix
 * makes of the packed infos is not ours.
 */
#include "common/notify/event_wire.h"
#include "fuzz/fuzz.h"

#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    struct event_frame frame = {0};
    struct wire_out out = {0};
    if (event_frame_read(&frame, data, len) != 0)
        return 0;
    FUZZ_CHECK(frame.len <= EVENT_BYTES_MAX && frame.ninfo <= frame.len);
    FUZZ_CHECK(strnlen(frame.nspace, sizeof frame.nspace) < sizeof frame.nspace);
    event_frame_write(&frame, &out);
    FUZZ_CHECK(out.len == len && memcmp(out.data, data, len) == 0);
    wire_out_free(&out);
    return 0;
}

static void seed(struct event_frame frame, size_t cut)
{
    struct wire_out out = {0};
    event_frame_write(&frame, &out);
    fuzz_seed(out.data, out.len - cut);
    wire_out_free(&out);
}

void fuzz_seeds(void)
{
    struct event_frame frame = {.library = 0x070000, .code = -200, .range = 4, .rank = 7};
    strcpy(frame.nspace, "slurm.1.0");
    seed(frame, 0);
    frame.ninfo = 2;
    frame.infos = "sixteen bytes or";
    frame.len = 16;
    seed(frame, 0);
    seed(frame, 1);
    frame.ninfo = 5; /* more than the bytes can be */
    seed(frame, 0);
    memset(frame.nspace, 'x', sizeof frame.nspace - 1);
    seed(frame, 0);
}
