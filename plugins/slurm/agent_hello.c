/* SPDX-License-Identifier: BSD-3-Clause */
/* The callers that the agent in srun takes, and those that it refuses. */
#include "plugins/slurm/agent_hello.h"

#include "common/transport/seal/load.h"
#include "common/util/log.h"
#include "plugins/slurm/auth.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    HELLOS_MAX = 1 << 18, /* of all known callers */
    MUNGE_MS = 2000,      /* for munged to say what a credential holds */
};

/* It shows that the caller knows the secret, which looks cheap and keeps strangers from munged. */
static bool is_proof(const struct seal_ops *ops, const struct agent_address *self,
                     const struct wire_out *payload, const unsigned char *proof)
{
    unsigned char right[SEAL_PROOF];
    return ops->prove(self->secret, sizeof self->secret, payload->data, payload->len, right) &&
           ops->is_same(proof, right, sizeof right);
}

/* Of callers that are known. Slurm may take a credential twice: it does where it was built for
 * several slurmds on a node. But each is for a point, which is taken once. */
static bool is_used(const struct agent_hellos *h, const unsigned char *point)
{
    for (size_t i = 0; i < h->n; i++)
        if (memcmp(h->points[i], point, SEAL_POINT) == 0)
            return true;
    return h->n == HELLOS_MAX;
}

static bool remember(struct agent_hellos *h, const unsigned char *point)
{
    unsigned char(*more)[SEAL_POINT] = realloc(h->points, (h->n + 1) * sizeof *more);
    if (more == NULL)
        return false;
    h->points = more;
    memcpy(h->points[h->n++], point, SEAL_POINT);
    return true;
}

/* @param line open @return whether the caller is of this step */
static bool is_known(struct agent_hellos *h, const struct agent_address *self, struct wire_in *in,
                     struct agent_line *line)
{
    struct wire_out payload = {0};
    const unsigned char *proof = wire_get_raw(in, SEAL_PROOF);
    const unsigned char *point = wire_get_raw(in, SEAL_POINT);
    if (point == NULL || proof == NULL)
        return false;
    agent_payload(self, point, NULL, &payload);
    bool known = !payload.failed && is_proof(line->ops, self, &payload, proof) &&
                 !is_used(h, point) &&
                 auth_read(in, getuid(), payload.data, payload.len, MUNGE_MS) &&
                 agent_line_agree(line, SEAL_ACCEPTOR, self, point) && remember(h, point);
    wire_out_free(&payload);
    return known;
}

/* @return whether munged has made a credential for it */
static bool welcome(const struct agent_hellos *h, const struct agent_address *self,
                    const struct agent_line *line, struct wire_out *out)
{
    struct wire_out payload = {0};
    size_t begin = agent_frame_begin(out, AGENT_WELCOME);
    agent_payload(self, h->points[h->n - 1], line->point, &payload);
    wire_put_raw(out, line->point, SEAL_POINT);
    bool made = !payload.failed && auth_write(out, getuid(), payload.data, payload.len, MUNGE_MS);
    agent_frame_end(out, begin);
    wire_out_free(&payload);
    return made;
}

static void refuse(struct agent_hellos *h)
{
    log_write(h->refused++ == 0 ? LOG_LEVEL_INFO : LOG_LEVEL_DEBUG,
              "a caller of srun's agent is not of this step, and was cut off; more of them are "
              "logged at debug");
}

bool agent_hello_take(struct agent_hellos *h, const struct agent_address *self, struct wire_in *in,
                      struct agent_line *line, struct wire_out *out)
{
    struct err err = {0};
    if (!agent_line_open(line, &err)) {
        log_error("nobody can tell srun how the step ends, or spawn: %s", err.text);
        return false;
    }
    bool known = is_known(h, self, in, line);
    if (!known)
        refuse(h);
    if (known && !welcome(h, self, line, out)) {
        log_warning("munged makes no credential for a caller of srun's agent, which is cut off");
        known = false;
    }
    return known;
}

/* Whether the rest of @p body is what slurmstepd has to say of this step. */
static bool is_of_step(const struct agent_address *self, const struct wire_out *word,
                       struct wire_in *body)
{
    char label[sizeof self->label] = "";
    const unsigned char *says = wire_get_raw(body, word->len);
    wire_get_str(body, label, sizeof label);
    return !body->bad && memcmp(says, word->data, word->len) == 0 &&
           strcmp(label, self->label) == 0;
}

bool agent_hello_cause(struct agent_hellos *h, const struct agent_address *self, struct wire_in *in,
                       struct wire_out *payload, struct wire_in *body, unsigned char *taken)
{
    struct err err = {0};
    struct wire_out word = {0}, answer = {0};
    const struct seal_ops *ops = seal_load(&err);
    const unsigned char *nonce = wire_get_raw(in, AGENT_NONCE);
    const unsigned char *proof = wire_get_raw(in, SEAL_PROOF);
    bool known = false;
    if (ops != NULL && nonce != NULL && proof != NULL) {
        agent_word(nonce, false, &word);
        agent_word(nonce, true, &answer);
        known = !word.failed && !answer.failed && is_proof(ops, self, &word, proof) &&
                ops->prove(self->secret, sizeof self->secret, answer.data, answer.len, taken) &&
                auth_take(in, getuid(), payload, MUNGE_MS);
    }
    if (known) {
        wire_in_init(body, payload->data, payload->len);
        known = is_of_step(self, &word, body);
    }
    if (!known)
        refuse(h);
    wire_out_free(&word);
    wire_out_free(&answer);
    return known;
}

void agent_hello_free(struct agent_hellos *h)
{
    free(h->points);
}
