/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * What muster-server, slurmstepd's plugin and the agent in srun say to each other (docs/wire.md,
 * "The agent in srun").
 *
 * Each frame is u32 type, u32 version, u32 length and so many bytes of body, all big-endian. A
 * later version of a type has more at its body's end; a receiver reads what it knows. A type that
 * it does not know it skips.
 * @thread any
 */
#pragma once

#include "common/transport/seal/seal.h"
#include "common/transport/wire.h"

/** What a caller says. AGENT_ANSWER and AGENT_ENDED come from the agent; AGENT_STARTED comes from a
 * spawned step's server to its own agent, from that to the agent that has started it, and from
 * there to the server that has asked for it. */
enum agent_type {
    AGENT_HELLO = 1,   /**< raw proof, raw point, u32 protocol of Slurm, block credential; the first
                            frame, in clear */
    AGENT_STATUS = 2,  /**< u32 cause (enum rm_cause), u32 exit status: how the step ends; str: why,
                            for the user's terminal; empty: told otherwise */
    AGENT_ANSWER = 4,  /**< u32 type of the frame that is answered, u32 enum agent_result */
    AGENT_SPAWN = 5,   /**< a step that is to be started: spawn_wire.h */
    AGENT_LET_GO = 6,  /**< nothing: steps that this caller has asked for may go on without it */
    AGENT_STARTED = 7, /**< news of a spawned step: spawn_wire.h */
    AGENT_ENDED = 8,   /**< the same, once, afterwards: it has ended */
    AGENT_LAUNCHED = 9, /**< u32 job, u32 step: from the agent of a spawned step's srun to the agent
                             that has started that: there is a step now */
    AGENT_WELCOME = 10, /**< raw point, u32 protocol of Slurm, block credential: the answer to
                           HELLO, in clear; all other frames are records (agent_line.h) */
    AGENT_LINE = 11,    /**< str: a line for the user's terminal; empty: there will be one when the
                             step ends, and srun waits for it for some seconds */
    AGENT_ALLOCATE = 12,  /**< a change of the job's allocation: alloc_wire.h */
    AGENT_ALLOCATED = 13, /**< the answer to it, once: alloc_wire.h */
    AGENT_CAUSE = 14,     /**< raw nonce, raw proof, u32 protocol of Slurm, block credential; the
                             first frame and the last, in clear. In the credential: word, str label,
                             str node, str: a line for the user's terminal that many nodes may have
                             alike. The answer is a proof alone, that the line was taken
                             (agent_word()) */
};

enum agent_result {
    AGENT_TAKEN = 0,
    AGENT_REFUSED = 1, /**< the body is not what the type has */
    AGENT_UNKNOWN = 2, /**< the agent does not know the type, and has skipped the frame */
};

enum {
    AGENT_VERSION = 4,
    AGENT_HEAD = 12, /**< bytes before a body */
    AGENT_NONCE = 16,
    AGENT_SECRET = 16,         /**< bytes of what only the step's own processes know */
    AGENT_STRANGER_MAX = 4096, /**< bytes of a whole frame, until the caller is known */
    AGENT_FRAME_MAX = 8 << 20, /**< and then */
    AGENT_TEXT_MAX = 768,      /**< bytes of a line for the terminal */
};

/** The variable by which srun's plugin tells the nodes' plugins: "PORT:LABEL:SECRET", the label
 * being JOB.STEP, and the secret in hexadecimal digits. */
#define AGENT_ENV "MUSTER_AGENT"

/** Where the agent of a step listens, and what its callers have to know. */
struct agent_address {
    char host[64]; /**< a number, IPv4 or IPv6 */
    char port[8];
    char label[32]; /**< of the step, as its srun knows it */
    unsigned char secret[AGENT_SECRET];
};

/** A frame in a buffer; the body is borrowed from it. */
struct agent_frame {
    uint32_t type, version;
    struct wire_in body;
    size_t len; /**< of all of it, with its head */
};

/** Finds a frame at the beginning of @p data. @return 1; 0 when it is not whole yet; -1 when it
 * would be longer than @p max bytes */
int agent_frame_read(const void *data, size_t len, size_t max, struct agent_frame *frame);

/** Begins a frame in @p out. @return where, for agent_frame_end() */
size_t agent_frame_begin(struct wire_out *out, enum agent_type type);
void agent_frame_end(struct wire_out *out, size_t begin);

/** Appends what a credential has to hold. @param caller the caller's point @param agent the
 * agent's; NULL: it is the caller's credential */
void agent_payload(const struct agent_address *address, const unsigned char *caller,
                   const unsigned char *agent, struct wire_out *out);

/** Appends what the proofs of AGENT_CAUSE and of its answer are for, each with its nonce. */
void agent_word(const unsigned char *nonce, bool taken, struct wire_out *out);

/** Writes the value of AGENT_ENV. @param text at least 128 bytes */
void agent_env_write(const struct agent_address *address, char *text, size_t cap);

/**
 * Finds the agent in the environment of the step's tasks: its own variable, and Slurm's that has
 * the address from which srun came. The environment is the user's, so only a process of that
 * user may connect to what it says.
 * @return a string for agent_address_read(), which the caller frees; NULL: there is no agent
 */
char *agent_find(char *const *env);

/** @return the value of @p name in @p env, borrowed, or NULL */
const char *agent_env_value(char *const *env, const char *name);

/** @param text "HOST PORT:LABEL:SECRET" @return whether it is one */
bool agent_address_read(const char *text, struct agent_address *address);
