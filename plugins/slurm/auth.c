/* SPDX-License-Identifier: BSD-3-Clause */
/* Credentials of the cluster's own authentication, as Slurm's daemons use them.
 *
 * A munged that hangs holds its caller, without a deadline. So each question has a worker of its
 * own, and the asker waits for the answer until its time is over. */
#include "plugins/slurm/auth.h"

#include "common/handoff/worker.h"
#include "common/util/clock.h"
#include "common/util/log.h"
#include "shims/slurm/slurm_abi.h"

#include <stdlib.h>
#include <string.h>

enum { BUFFER_BYTES = 1024 /* at first; Slurm's buffers grow */ };

/** A question to munged. */
struct question {
    struct work work;
    bool writes;
    uid_t uid;             /* the reader, or the writer */
    struct wire_out bytes; /* the credential that is read, or was written */
    struct wire_out holds; /* the payload: of the writer's, or as it was found */
    bool good;             /* the answer */
};

bool auth_seal(struct wire_out *out, uid_t reader, const void *payload, size_t len)
{
    char *info = slurm_abi_auth_info(); /* where munged's socket is */
    void *cred = slurm_abi_auth_create(SLURM_ABI_AUTH_DEFAULT, info, reader,
                                       (void *)(uintptr_t)payload, (int)len);
    free(info);
    struct slurm_abi_buffer *packed = cred != NULL ? slurm_abi_buffer_new(BUFFER_BYTES) : NULL;
    bool made = packed != NULL &&
                slurm_abi_auth_pack(cred, packed, slurm_abi_protocol()) == SLURM_ABI_SUCCESS;
    if (made) {
        wire_put_u32(out, slurm_abi_protocol());
        wire_put_block(out, packed->head, packed->processed);
    }
    if (packed != NULL)
        slurm_abi_buffer_free(packed);
    if (cred != NULL)
        slurm_abi_auth_destroy(cred);
    return made && !out->failed;
}

static bool take_data(void *cred, struct wire_out *payload)
{
    char *data = NULL;
    uint32_t found = 0;
    bool good = slurm_abi_auth_get_data(cred, &data, &found) == SLURM_ABI_SUCCESS && data != NULL;
    if (good)
        wire_put_raw(payload, data, found);
    slurm_abi_xfree((void **)&data);
    return good && !payload->failed;
}

bool auth_open(struct wire_in *in, uid_t writer, struct wire_out *payload)
{
    uint32_t protocol = wire_get_u32(in);
    size_t size;
    const void *block = wire_get_block(in, &size);
    struct slurm_abi_buffer *packed;
    if (in->bad || size == 0 || protocol > UINT16_MAX ||
        (packed = slurm_abi_buffer_new((uint32_t)size)) == NULL)
        return false;
    memcpy(packed->head, block, size);
    void *cred = slurm_abi_auth_unpack(packed, (uint16_t)protocol);
    bool good = false;
    if (cred != NULL) {
        char *info = slurm_abi_auth_info();
        good = slurm_abi_auth_verify(cred, info) == SLURM_ABI_SUCCESS &&
               slurm_abi_auth_get_uid(cred) == writer && take_data(cred, payload);
        free(info);
        slurm_abi_auth_destroy(cred);
    }
    slurm_abi_buffer_free(packed);
    return good;
}

static void free_question(struct question *q)
{
    wire_out_free(&q->bytes);
    wire_out_free(&q->holds);
    free(q);
}

/* @thread the worker's */
static void ask(struct work *work)
{
    struct question *q = (struct question *)work;
    struct wire_in in;
    wire_in_init(&in, q->bytes.data, q->bytes.len);
    q->good = q->writes ? auth_seal(&q->bytes, q->uid, q->holds.data, q->holds.len)
                        : auth_open(&in, q->uid, &q->holds);
}

static void drop(struct work *work)
{
    free_question((struct question *)work);
}

static const struct work_ops questions = {ask, NULL, drop};

static struct question *question_new(bool writes, uid_t uid, const void *payload, size_t len)
{
    struct question *q = calloc(1, sizeof *q);
    if (q == NULL)
        return NULL;
    q->writes = writes;
    q->uid = uid;
    wire_put_raw(&q->holds, payload, len);
    return q;
}

/* @return whether there is an answer; the question is freed if not */
static bool answer(struct question *q, int ms)
{
    if (q == NULL)
        return false;
    int64_t by = now_ms() + ms;
    bool asked = !q->bytes.failed && !q->holds.failed;
    struct worker *worker = asked ? worker_make(&questions, NULL, NULL) : NULL;
    if (worker == NULL || !worker_do(worker, &q->work)) {
        worker_close(worker, by);
        free_question(q);
        return false;
    }
    if (worker_finish(worker, by))
        return true;
    log_warning("munged has not answered for %d ms: does it hang on this node?", ms);
    return false;
}

bool auth_write(struct wire_out *out, uid_t reader, const void *payload, size_t len, int ms)
{
    struct question *q = question_new(true, reader, payload, len);
    if (!answer(q, ms))
        return false;
    bool made = q->good;
    if (made)
        wire_put_raw(out, q->bytes.data, q->bytes.len);
    free_question(q);
    return made && !out->failed;
}

bool auth_take(struct wire_in *in, uid_t writer, struct wire_out *payload, int ms)
{
    struct question *q = question_new(false, writer, NULL, 0);
    if (q == NULL)
        return false;
    uint32_t protocol = wire_get_u32(in);
    size_t size;
    const void *block = wire_get_block(in, &size);
    if (!in->bad) {
        wire_put_u32(&q->bytes, protocol);
        wire_put_block(&q->bytes, block, size);
    }
    if (!answer(q, ms))
        return false;
    bool good = q->good;
    if (good)
        wire_put_raw(payload, q->holds.data, q->holds.len);
    free_question(q);
    return good && !payload->failed;
}

bool auth_read(struct wire_in *in, uid_t writer, const void *payload, size_t len, int ms)
{
    struct wire_out found = {0};
    bool good = auth_take(in, writer, &found, ms) && found.len == len &&
                memcmp(found.data, payload, len) == 0;
    wire_out_free(&found);
    return good;
}
