/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * Starts the calls of single processes, and checks which members and which status each one got.
 */
#include "common/tracker/test_party.h"

#include "common/tracker/membership/private.h"
#include "common/util/test_cmocka.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void party_add(struct procset *set, struct party_proc proc)
{
    char ns[2] = {proc.ns, '\0'};
    if (procset_add(set, ns, proc.rank, proc.rank) != 0)
        abort();
    procset_canonical(set);
}

struct procset party_set(const char *text)
{
    struct procset set = {0};
    for (const char *p = text; *p != '\0'; p += strcspn(p, " "), p += strspn(p, " "))
        party_add(&set, (struct party_proc){*p, (uint32_t)atoi(p + 1)});
    return set;
}

/* Exactly the members have contributed, each once. */
static void check_entries(struct party *party, const struct engine_result *result)
{
    struct procset seen = {0};
    for (uint32_t i = 0; i < result->nentries; i++) {
        const struct engine_entry *entry = &result->entries[i];
        struct party_proc proc;
        if (entry->slot != i || entry->len != sizeof party->data) {
            kit_fault(party->room->kit, "%s: entry %u has slot %u and %zu bytes", party->id, i,
                      entry->slot, entry->len);
            break;
        }
        proc.ns = *(const char *)entry->data;
        memcpy(&proc.rank, (const char *)entry->data + 1, sizeof proc.rank);
        party_add(&seen, proc);
    }
    if (procset_size(&seen) != result->nentries || !procset_equal(&seen, &party->members))
        kit_fault(party->room->kit, "%s: %u contributions are not those of the members", party->id,
                  result->nentries);
    procset_free(&seen);
}

static void done(struct engine_call *call, const struct engine_result *result)
{
    struct party *party = (struct party *)call;
    struct signature sig;
    if (++party->answers > 1)
        kit_fault(party->room->kit, "%s %c%u: answered twice", party->id, party->proc.ns,
                  party->proc.rank);
    party->status = result->status;
    party->context_id = result->context_id;
    party->answered_at = loopback_now(party->room->kit->net);
    if (result->status == 0 && result->members != NULL) {
        procset_unite(&party->members, result->members);
    } else if (result->status == 0 && signature_read(&sig, call->sig, call->siglen) == 0) {
        procset_unite(&party->members, &sig.members);
        signature_free(&sig);
    }
    if (result->status == 0)
        check_entries(party, result);
    else if (result->nentries != 0 || result->context_id != 0)
        kit_fault(party->room->kit, "%s: a failure with a result", party->id);
    if (party->then != NULL)
        party->then(party);
}

static struct party *party_new(struct party_room *room, const char *id, struct party_proc proc,
                               struct party_ask ask)
{
    struct party *party = calloc(1, sizeof *party);
    struct wire_out out = {0};
    if (party == NULL)
        abort();
    party->next = room->all;
    room->all = party;
    party->room = room;
    party->proc = proc;
    party->group = ask.group;
    party->then = ask.then;
    party->made_at = loopback_now(room->kit->net);
    snprintf(party->id, sizeof party->id, "%s", id);
    party->data[0] = (unsigned char)proc.ns;
    memcpy(party->data + 1, &proc.rank, sizeof proc.rank);
    party_add(&party->caller, proc);
    party->call.id = party->id;
    party->call.caller = ask.nameless ? &party->nobody : &party->caller;
    party->call.status = ask.status;
    party->call.flags = ENGINE_WANT_CONTEXT_ID;
    party->call.timeout = ask.timeout;
    party->call.gone = ask.gone;
    party->call.data = party->data;
    party->call.len = sizeof party->data;
    party->call.done = done;
    if (ask.added != NULL && ask.added->nparts > 0) {
        procset_write(ask.added, &out);
        party->call.added = wire_out_take(&out, &party->call.addedlen);
    }
    return party;
}

struct party *party_collective(struct party_room *room, const char *id, struct party_proc proc,
                               const struct procset *leaders, struct party_ask ask)
{
    struct party *party = party_new(room, id, proc, ask);
    struct wire_out out = {0};
    signature_write(&out, COLL_CONSTRUCT, id, leaders);
    party->call.sig = wire_out_take(&out, &party->call.siglen);
    engine_call(loopback_engine(room->kit->net, proc.rank), &party->call);
    return party;
}

struct party *party_bootstrap(struct party_room *room, const char *id, struct party_proc proc,
                              uint32_t leaders, struct party_ask ask)
{
    struct party *party = party_new(room, id, proc, ask);
    party->call.leaders = leaders;
    engine_lead(loopback_engine(room->kit->net, proc.rank), &party->call);
    return party;
}

struct party *party_join(struct party_room *room, const char *id, struct party_proc proc,
                         struct party_ask ask)
{
    struct party *party = party_new(room, id, proc, ask);
    engine_join(loopback_engine(room->kit->net, proc.rank), &party->call);
    return party;
}

struct party *party_boots(struct party_room *room, uint32_t rank, uint32_t leaders,
                          const char *adds, uint32_t timeout)
{
    struct procset added = party_set(adds);
    struct party *party = party_bootstrap(room, "g", (struct party_proc){'a', rank}, leaders,
                                          (struct party_ask){.added = &added, .timeout = timeout});
    procset_free(&added);
    return party;
}

struct party *party_joins(struct party_room *room, struct party_proc proc, bool nameless)
{
    return party_join(room, "g", proc, (struct party_ask){.nameless = nameless});
}

void party_assert(const struct party *party, int32_t status)
{
    assert_int_equal(party->answers, 1);
    assert_int_equal(party->status, status);
}

void party_assert_all(struct party_room *room, int32_t status, const char *members)
{
    struct procset expected = party_set(members);
    for (struct party *p = room->all; p != NULL; p = p->next) {
        assert_int_equal(p->answers, 1);
        assert_int_equal(p->status, status);
        assert_true(p->context_id == room->all->context_id);
        assert_true((status == 0) == (p->context_id != 0));
        if (status == 0)
            assert_true(procset_equal(&p->members, &expected));
    }
    assert_string_equal(room->kit->fault, "");
    procset_free(&expected);
}

static void check_empty(struct kit *kit, uint32_t node)
{
    if (!loopback_is_empty(kit->net, node))
        kit_fault(kit, "server %u keeps something", node);
}

void party_end(struct party_room *room)
{
    struct kit *kit = room->kit;
    char fault[sizeof kit->fault];
    loopback_run(kit->net, ENGINE_REMEMBER_MS + 60000);
    for (uint32_t i = 0; i < loopback_count(kit->net); i++)
        if (!loopback_dead(kit->net, i))
            check_empty(kit, i);
    memcpy(fault, kit->fault, sizeof fault);
    kit_free(kit);
    for (struct party *p = room->all, *next; p != NULL; p = next) {
        next = p->next;
        procset_free(&p->caller);
        procset_free(&p->members);
        free((void *)p->call.added);
        free(p->call.sig);
        free(p);
    }
    room->all = NULL;
    assert_string_equal(fault, "");
}
