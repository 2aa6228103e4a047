/* SPDX-License-Identifier: BSD-3-Clause */
/* The callers that the agent in srun takes, and those that it refuses. */
#include "plugins/slurm/agent_hello.h"

#include "common/util/log.h"
#include "plugins/slurm/auth.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    HELLOS_MAX = 1 << 18, /* of all known callers */
    MUNGE_MS = 2000,      /* for munged to say what a credential holds */
};

static bool is_secret(const struct agent_address *self, struct wire_in *in)
{
    unsigned char differs = 0;
    for (size_t i = 0; i < sizeof self->secret; i++)
        differs |= wire_get_u8(in) ^ self->secret[i];
    return !in->bad && differs == 0;
}

/* Of callers that are known. */
static bool is_used(const struct agent_hellos *h, const unsigned char *nonce)
{
    for (size_t i = 0; i < h->n; i++)
        if (memcmp(h->nonces[i], nonce, AGENT_NONCE) == 0)
            return true;
    return h->n == HELLOS_MAX;
}

static bool remember(struct agent_hellos *h, const unsigned char *nonce)
{
    unsigned char(*more)[AGENT_NONCE] = realloc(h->nonces, (h->n + 1) * sizeof *more);
    if (more == NULL)
        return false;
    h->nonces = more;
    memcpy(h->nonces[h->n++], nonce, AGENT_NONCE);
    return true;
}

bool agent_hello_take(struct agent_hellos *h, const struct agent_address *self, struct wire_in *in)
{
    struct wire_out payload = {0};
    unsigned char nonce[AGENT_NONCE];
    bool known = is_secret(self, in);
    for (size_t i = 0; i < sizeof nonce; i++)
        nonce[i] = wire_get_u8(in);
    agent_payload(self, nonce, &payload);
    known = known && !in->bad && !is_used(h, nonce) &&
            auth_read(in, getuid(), payload.data, payload.len, MUNGE_MS) && remember(h, nonce);
    wire_out_free(&payload);
    if (!known)
        log_write(h->refused++ == 0 ? LOG_LEVEL_INFO : LOG_LEVEL_DEBUG,
                  "a caller of srun's agent is not of this step, and was cut off; more of them are "
                  "logged at debug");
    return known;
}

void agent_hello_free(struct agent_hellos *h)
{
    free(h->nonces);
}
