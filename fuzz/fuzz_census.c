/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * Another server's tasks, the answer to a query: what was read can be written, and is the same
 * bytes. The first byte says which parts were asked for.
 */
#include "common/server/status/census.h"
#include "fuzz/fuzz.h"

#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    struct wire_in in;
    struct wire_out out = {0};
    struct census census;
    unsigned parts = len > 0 ? data[0] & CENSUS_ALL : 0;
    if (len == 0)
        return 0;
    wire_in_init(&in, data + 1, len - 1);
    if (census_read(&census, parts, &in) == 0) {
        census_write(&census, parts, &out);
        FUZZ_CHECK(out.len == len - 1 &&
                   (out.len == 0 || memcmp(out.data, data + 1, out.len) == 0));
    }
    census_free(&census);
    wire_out_free(&out);
    return 0;
}

void fuzz_seeds(void)
{
    char program[] = "/bin/ocean", command[] = "ocean --deep";
    struct census_task tasks[] = {{7, 4711, 6, 0, program}, {9, 0, 54, 137, program}};
    const struct census census = {2, tasks, command, 12345, 67890, 2};
    for (uint8_t parts = 0; parts <= CENSUS_ALL; parts++) {
        struct wire_out out = {0};
        wire_put_u8(&out, parts);
        census_write(&census, parts, &out);
        fuzz_seed(out.data, out.len);
        wire_out_free(&out);
    }
}
