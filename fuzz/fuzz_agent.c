/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * What srun's agent and its callers read: frames off a TCP socket that everybody can connect to,
 * and the agent's address in an environment that is the user's, which root reads.
 *
 * The first byte of an input says which of the two the others are.
 */
#include "fuzz/fuzz.h"
#include "plugins/slurm/agent_wire.h"

#include <stdlib.h>
#include <string.h>

enum { FRAMES, ADDRESS, FRAME_MAX = 64 };

void fuzz_seeds(void)
{
    static const char env[] = "\1"
                              "127.0.0.1 35001:4711.0:00112233445566778899aabbccddeeff";
    struct wire_out out = {0};
    wire_put_u8(&out, FRAMES);
    for (int i = 0; i < 2; i++) {
        size_t begin = agent_frame_begin(&out, AGENT_STATUS);
        wire_put_u32(&out, 1);
        wire_put_u32(&out, 139);
        agent_frame_end(&out, begin);
    }
    fuzz_seed(out.data, out.len);
    fuzz_seed(env, sizeof env - 1);
    wire_out_free(&out);
}

static void read_frames(const uint8_t *data, size_t len)
{
    struct agent_frame frame;
    int found;
    while ((found = agent_frame_read(data, len, FRAME_MAX, &frame)) > 0) {
        FUZZ_CHECK(frame.len >= AGENT_HEAD && frame.len <= FRAME_MAX && frame.len <= len);
        FUZZ_CHECK((size_t)(frame.body.end - frame.body.p) == frame.len - AGENT_HEAD);
        while (!frame.body.bad && frame.body.p < frame.body.end)
            wire_get_u32(&frame.body);
        data += frame.len;
        len -= frame.len;
    }
    FUZZ_CHECK(found < 0 || len < FRAME_MAX);
}

/* What is an address is one again when it has gone through the environment. */
static void read_address(const uint8_t *data, size_t len)
{
    struct agent_address address, again;
    char *text = strndup((const char *)data, len), variable[128] = AGENT_ENV "=", host[128];
    FUZZ_CHECK(text != NULL);
    if (agent_address_read(text, &address)) {
        char *env[] = {host, variable, NULL};
        size_t name = strlen(variable);
        agent_env_write(&address, variable + name, sizeof variable - name);
        snprintf(host, sizeof host, "SLURM_SRUN_COMM_HOST=%s", address.host);
        char *found = agent_find(env);
        FUZZ_CHECK(found != NULL && agent_address_read(found, &again));
        FUZZ_CHECK(memcmp(&address, &again, sizeof address) == 0);
        free(found);
    }
    free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    if (len > 0 && data[0] % 2 == FRAMES)
        read_frames(data + 1, len - 1);
    else if (len > 0)
        read_address(data + 1, len - 1);
    return 0;
}
