/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * Runs operations on a loopback, checks each result as it comes, and compares at the end what the
 * servers of one operation got.
 */
#include "common/tracker/test_kit.h"

#include "common/util/log.h"
#include "common/util/test_cmocka.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void sink(void *arg, enum log_level level, const char *text)
{
    struct kit *kit = arg;
    size_t len = strlen(text);
    (void)level;
    if (kit->loglen + len + 2 > sizeof kit->log)
        return;
    memcpy(kit->log + kit->loglen, text, len);
    kit->loglen += len;
    kit->log[kit->loglen++] = '\n';
    kit->log[kit->loglen] = '\0';
}

struct kit *kit_new(const struct loopback_conf *conf)
{
    struct kit *kit = calloc(1, sizeof *kit);
    if (kit == NULL)
        abort();
    kit->net = loopback_new(conf);
    log_open(sink, kit, LOG_LEVEL_WARNING, NULL);
    return kit;
}

void kit_free(struct kit *kit)
{
    struct kit_call *call;
    struct kit_op *op;
    loopback_free(kit->net);
    while ((call = kit->calls) != NULL) {
        kit->calls = call->next;
        free(call->seen);
        free(call);
    }
    while ((op = kit->ops) != NULL) {
        kit->ops = op->next;
        free(op->sig);
        free(op->nodes);
        free(op->made);
        free(op);
    }
    log_open(NULL, NULL, LOG_LEVEL_WARNING, NULL);
    free(kit);
}

void kit_end(struct kit *kit)
{
    char fault[sizeof kit->fault];
    memcpy(fault, kit->fault, sizeof fault);
    kit_free(kit);
    assert_string_equal(fault, "");
}

void kit_fault(struct kit *kit, const char *fmt, ...)
{
    va_list ap;
    if (kit->fault[0] != '\0')
        return;
    va_start(ap, fmt);
    vsnprintf(kit->fault, sizeof kit->fault, fmt, ap);
    va_end(ap);
}

struct kit_op *kit_op(struct kit *kit, enum coll_kind kind, const char *id, const uint32_t *nodes,
                      uint32_t n)
{
    struct kit_op *op = calloc(1, sizeof *op);
    struct procset members = {0};
    struct wire_out out = {0};
    if (op == NULL)
        abort();
    op->nodes = calloc(n, sizeof *op->nodes);
    op->made = calloc(n, sizeof *op->made);
    for (uint32_t i = 0; i < n; i++) {
        op->nodes[i] = nodes != NULL ? nodes[i] : i;
        procset_add(&members, "job", op->nodes[i], op->nodes[i]);
    }
    procset_canonical(&members);
    signature_write(&out, kind, id, &members);
    op->sig = wire_out_take(&out, &op->siglen);
    procset_free(&members);
    op->n = n;
    op->number = kit->nops++;
    op->next = kit->ops;
    kit->ops = op;
    return op;
}

/* What a server contributes: who it is, and a tail whose length and bytes follow from that. */
static size_t payload(unsigned char *data, uint32_t op, uint32_t node, uint32_t instance)
{
    const uint32_t head[] = {op, node, instance};
    size_t len = sizeof head + (op * 7 + node * 13 + instance * 5) % 101;
    memcpy(data, head, sizeof head);
    for (size_t i = sizeof head; i < len; i++)
        data[i] = (unsigned char)(i * 31 + node + instance);
    return len;
}

static void check_entry(struct kit_call *call, uint32_t i, const struct engine_entry *entry)
{
    struct kit_op *op = call->op;
    unsigned char data[sizeof call->data];
    uint32_t head[3];
    if (entry->slot != i || entry->len < sizeof head) {
        kit_fault(call->kit, "op %u: entry %u is of slot %u, %zu bytes", op->number, i, entry->slot,
                  entry->len);
        return;
    }
    memcpy(head, entry->data, sizeof head);
    call->seen[i] = head[2];
    if (head[2] >= op->made[i])
        kit_fault(call->kit, "op %u: slot %u counts without its call", op->number, i);
    else if (entry->len != payload(data, op->number, op->nodes[i], head[2]) ||
             memcmp(data, entry->data, entry->len) != 0)
        kit_fault(call->kit, "op %u: slot %u has other bytes than were given", op->number, i);
}

/* The same bytes in one piece. */
static void check_data(struct kit_call *call, const struct engine_result *result)
{
    struct shared_bytes *data = engine_result_data(result);
    size_t at = 0;
    for (uint32_t i = 0; data != NULL && i < result->nentries; i++) {
        const struct engine_entry *entry = &result->entries[i];
        if (at + entry->len > data->len || memcmp(data->data + at, entry->data, entry->len) != 0)
            kit_fault(call->kit, "op %u: in one piece, entry %u is another", call->op->number, i);
        at += entry->len;
    }
    if (data == NULL || at != data->len)
        kit_fault(call->kit, "op %u: in one piece, the data are longer", call->op->number);
    shared_bytes_drop(data);
}

static void done(struct engine_call *engine_call, const struct engine_result *result)
{
    struct kit_call *call = (struct kit_call *)engine_call;
    struct kit_op *op = call->op;
    if (++call->answers > 1)
        kit_fault(call->kit, "op %u slot %u: answered twice", op->number, call->slot);
    call->status = result->status;
    call->context_id = result->context_id;
    call->answered_at = loopback_now(call->kit->net);
    if (result->nentries != (result->status == 0 ? op->n : 0))
        kit_fault(call->kit, "op %u slot %u: status %d with %u entries", op->number, call->slot,
                  result->status, result->nentries);
    else if (result->status != 0 && result->context_id != 0)
        kit_fault(call->kit, "op %u slot %u: failed with a context id", op->number, call->slot);
    else
        for (uint32_t i = 0; i < result->nentries; i++)
            check_entry(call, i, &result->entries[i]);
    check_data(call, result);
    if (call->then != NULL)
        call->then(call);
}

struct procset kit_servers(uint32_t mask)
{
    struct procset set = {0};
    for (uint32_t i = 0; i < 32; i++)
        if (mask & 1u << i)
            procset_add(&set, "job", i, i);
    procset_canonical(&set);
    return set;
}

struct kit_call *kit_call(struct kit *kit, struct kit_op *op, uint32_t slot, struct kit_ask ask)
{
    struct kit_call *call = calloc(1, sizeof *call);
    if (call == NULL)
        abort();
    call->next = kit->calls;
    kit->calls = call;
    call->kit = kit;
    call->op = op;
    call->slot = slot;
    call->instance = op->made[slot]++;
    call->made_at = loopback_now(kit->net);
    call->seen = calloc(op->n, sizeof *call->seen);
    call->then = ask.then;
    call->call = (struct engine_call){
        .sig = op->sig,
        .siglen = op->siglen,
        .status = ask.status,
        .flags = ask.flags,
        .data = call->data,
        .len = payload(call->data, op->number, op->nodes[slot], call->instance),
        .timeout = ask.timeout,
        .gone = ask.gone,
        .op = ask.op,
        .done = done,
    };
    engine_call(loopback_engine(kit->net, op->nodes[slot]), &call->call);
    return call;
}

void kit_call_all(struct kit *kit, struct kit_op *op, struct kit_ask ask)
{
    for (uint32_t slot = 0; slot < op->n; slot++)
        kit_call(kit, op, slot, ask);
}

void kit_check_agreement(struct kit *kit)
{
    for (struct kit_call *a = kit->calls; a != NULL; a = a->next)
        for (struct kit_call *b = a->next; b != NULL; b = b->next)
            if (a->op == b->op && a->instance == b->instance && a->answers && b->answers &&
                (a->status != b->status || a->context_id != b->context_id ||
                 memcmp(a->seen, b->seen, a->op->n * sizeof *a->seen) != 0))
                kit_fault(kit, "op %u instance %u: slots %u and %u got status %d and %d",
                          a->op->number, a->instance, a->slot, b->slot, a->status, b->status);
}

void kit_assert_all(struct kit *kit, int32_t status)
{
    for (struct kit_call *call = kit->calls; call != NULL; call = call->next) {
        assert_int_equal(call->answers, 1);
        assert_int_equal(call->status, status);
        for (uint32_t i = 0; status == 0 && i < call->op->n; i++)
            assert_int_equal(call->seen[i], call->instance);
    }
    kit_check_agreement(kit);
    assert_string_equal(kit->fault, "");
}

uint32_t kit_trackers(const struct kit *kit)
{
    uint32_t n = 0;
    for (const struct kit_op *op = kit->ops; op != NULL; op = op->next)
        for (uint32_t i = 0; i < op->n; i++)
            if (!loopback_dead(kit->net, op->nodes[i]))
                n += loopback_engine(kit->net, op->nodes[i])->count;
    return n;
}

void kit_assert_logged(const struct kit *kit, const char *text)
{
    if (strstr(kit->log, text) == NULL)
        fail_msg("\"%s\" was not logged; the log is:\n%s", text, kit->log);
}

void kit_every_size(void (*with)(uint32_t nnodes, uint32_t arity))
{
    static const uint32_t sizes[] = {1, 2, 3, 7, 16, 17, 33, 100}, arities[] = {2, 3, 16};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        for (size_t k = 0; k < sizeof arities / sizeof *arities; k++)
            with(sizes[i], arities[k]);
}

struct tree kit_tree(const struct kit_op *op, uint32_t arity)
{
    return (struct tree){.n = op->n,
                         .root = (uint32_t)(signature_hash(op->sig, op->siglen) % op->n),
                         .arity = arity};
}
