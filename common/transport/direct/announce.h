/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * What a server tells another one by the resource manager's way, so that the other can connect: its
 * addresses and port, and its key in a credential that only processes of its user can read. Where
 * the resource manager's way itself lets no other user read, the key goes without a credential.
 */
#pragma once

#include "common/transport/direct/addresses.h"
#include "common/transport/direct/hello.h"
#include "common/transport/wire.h"

enum {
    ANNOUNCE_CREDENTIAL_MAX = 16 << 10, /**< bytes */
    ANNOUNCE_MAX = 20 << 10,
};

/** What stands in an announcement; the key is not known yet. */
struct announcement {
    struct addresses addresses;
    uint16_t port;
    const unsigned char *credential; /**< borrowed from the bytes that were read */
    size_t len;                      /**< of it */
};

/** Appends what the credential is to hold: whose key it is, and the key. @thread any */
void announce_put_secret(const struct identity *own, struct wire_out *secret);

/** Reads that. @return whether it is the key of server @p node of the step of @p own */
bool announce_get_secret(const struct identity *own, uint32_t node, const void *secret, size_t len,
                         unsigned char key[SEAL_SECRET]);

/** Appends an announcement. @param credential the secret, sealed or as it is */
void announce_write(const struct identity *own, const struct addresses *addresses, uint16_t port,
                    const void *credential, size_t len, struct wire_out *out);

/** Reads one, and believes nothing of it yet. @return whether it can be one */
bool announce_read(const void *data, size_t len, struct announcement *said);

/** @return whether a holder of the key has written the announcement as it is */
bool announce_fits(const struct identity *own, const unsigned char key[SEAL_SECRET],
                   const void *data, size_t len);
