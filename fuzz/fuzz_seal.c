/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * Records that come over a sealed connection. Without the keys nobody makes one that is believed,
 * so nothing of an input may be, and each read ends where it should.
 */
#include "common/transport/seal/seal.h"
#include "fuzz/fuzz.h"

#include <stdlib.h>
#include <string.h>

enum { BODY_MAX = 64 };

extern const struct seal_ops muster_seal;

void fuzz_seeds(void)
{
    static const unsigned char empty[SEAL_HEAD + SEAL_TAG] = {0}, more[] = {0, 0, 0, 3, 1, 2, 3};
    fuzz_seed(empty, sizeof empty);
    fuzz_seed(more, sizeof more);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    unsigned char point[SEAL_POINT], *copy = malloc(len + 1);
    struct seal *seal = muster_seal.create(point);
    struct seal_record record;
    FUZZ_CHECK(copy != NULL && seal != NULL);
    memcpy(copy, data, len);
    if (len >= SEAL_POINT && muster_seal.agree(seal, SEAL_CALLER, data, "secret", 6, "", 0)) {
        data += SEAL_POINT;
        len -= SEAL_POINT;
    } else {
        FUZZ_CHECK(muster_seal.agree(seal, SEAL_CALLER, point, "secret", 6, "", 0));
    }
    memcpy(copy, data, len);
    int found = muster_seal.read(seal, copy, len, BODY_MAX, NULL, &record);
    FUZZ_CHECK(found < 0 || (found == 0 && len < SEAL_HEAD + BODY_MAX + SEAL_TAG));
    FUZZ_CHECK(found == 0 || muster_seal.read(seal, copy, len, BODY_MAX, NULL, &record) < 0);
    muster_seal.destroy(seal);
    free(copy);
    return 0;
}
