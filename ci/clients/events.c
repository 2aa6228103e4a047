/* SPDX-License-Identifier: BSD-3-Clause */
/* events: events reach the processes that they are for, on any node, once and in their order, and
 * no other process.
 *
 * Each part ends with a mark: an event of each rank to all, which comes after what that rank has
 * raised before. So when all marks are there, an event that is not will not come.
 */
#include "event.h"

static long count = 100, bytes = 1000000;

enum { MARK, STORM, RANGE, LATE, PAYLOAD, DEFAULTED, HIDDEN, AFFECTED };

/* Up to 5.0 a host that answers an event later than at once makes libpmix's server lose messages.
 */
#define HAS_STATUS (LIBPMIX >= 60000)

static uint64_t marks;

/* Waits for the mark of each rank. */
static void sync_marks(struct listener *l)
{
    marks++;
    CHECK_OK(event_raise(EVENT_CODE(MARK), PMIX_RANGE_GLOBAL, marks, NULL, 0), "the mark");
    for (pmix_rank_t r = 0; r < client.size; r++)
        if (r != client.me.rank)
            listen_wait(l, EVENT_CODE(MARK), r, marks);
    fence_all(false); /* no rank is ahead with the next part */
}

/* All ranks raise many at once. */
static void storm(struct listener *l)
{
    step("many events of all ranks at once");
    uint64_t *next = calloc(client.size, sizeof *next);
    for (long i = 0; i < count; i++)
        event_post(EVENT_CODE(STORM), i % 2 ? PMIX_RANGE_NAMESPACE : PMIX_RANGE_SESSION,
                   (uint64_t)i + 1);
    sync_marks(l);
    pthread_mutex_lock(&l->lock);
    for (size_t i = 0; i < l->n; i++) {
        const struct event_seen *e = &l->seen[i];
        if (e->code != EVENT_CODE(STORM))
            continue;
        CHECK(e->source.rank < client.size && PMIX_CHECK_NSPACE(e->source.nspace, client.me.nspace),
              "source: expected one of my job, found %s rank %u", e->source.nspace, e->source.rank);
        CHECK(e->tag == ++next[e->source.rank],
              "an event's number from rank %u: expected %llu, found %llu", e->source.rank,
              (unsigned long long)next[e->source.rank], (unsigned long long)e->tag);
    }
    pthread_mutex_unlock(&l->lock);
    for (pmix_rank_t r = 0; r < client.size; r++)
        CHECK_EQ(next[r], count, "events of a rank");
    free(next);
}

/* The ranks that must get what the sender aims at a range. Whether the sender gets it is libpmix's
 * own matter. */
enum receivers { ALL, NODE, NONE, ODD, SECOND };

static bool shall_get(enum receivers receivers, pmix_rank_t sender)
{
    switch (receivers) {
    case ALL:
        return true;
    case NODE:
        return nodes_of_ranks()[client.me.rank] == nodes_of_ranks()[sender];
    case ODD:
        return client.me.rank % 2 == 1;
    case SECOND:
        return client.me.rank == 1 % client.size;
    case NONE:
        break;
    }
    return false;
}

static void raise_ranges(void)
{
    pmix_proc_t *odd = calloc(client.size, sizeof *odd);
    pmix_proc_t second = proc_of(1 % client.size), unknown = proc_of(client.size + 5);
    pmix_info_t aim;
    size_t n = 0;
    for (pmix_rank_t r = 1; r < client.size; r += 2)
        odd[n++] = proc_of(r);
    const pmix_data_range_t plain[] = {PMIX_RANGE_UNDEF,     PMIX_RANGE_LOCAL,
                                       PMIX_RANGE_NAMESPACE, PMIX_RANGE_SESSION,
                                       PMIX_RANGE_GLOBAL,    PMIX_RANGE_PROC_LOCAL};
    for (size_t i = 0; i < sizeof plain / sizeof *plain; i++)
        CHECK_OK(event_raise(EVENT_CODE(RANGE), plain[i], plain[i] + 1u, NULL, 0),
                 PMIx_Data_range_string(plain[i]));
    /* Up to 5.0 libpmix's server never answers one that it shall keep. */
    PMIX_INFO_LOAD(&aim, PMIX_EVENT_DO_NOT_CACHE, NULL, PMIX_BOOL);
    CHECK_OK(event_raise(EVENT_CODE(RANGE), PMIX_RANGE_RM, PMIX_RANGE_RM + 1u, &aim, 1), "RM");
    if (n > 0) {
        event_target(&aim, odd, n);
        CHECK_OK(event_raise(EVENT_CODE(RANGE), PMIX_RANGE_CUSTOM, 101, &aim, 1), "odd ranks");
        PMIX_INFO_DESTRUCT(&aim);
    }
    PMIX_INFO_LOAD(&aim, PMIX_EVENT_CUSTOM_RANGE, &second, PMIX_PROC);
    CHECK_OK(event_raise(EVENT_CODE(RANGE), PMIX_RANGE_CUSTOM, 102, &aim, 1), "one rank");
    PMIX_INFO_DESTRUCT(&aim);
    event_target(&aim, &client.all, 1);
    CHECK_OK(event_raise(EVENT_CODE(RANGE), PMIX_RANGE_CUSTOM, 103, &aim, 1), "a wildcard");
    PMIX_INFO_DESTRUCT(&aim);
    event_target(&aim, &unknown, 1);
    CHECK_STATUS(event_raise(EVENT_CODE(RANGE), PMIX_RANGE_CUSTOM, 104, &aim, 1),
                 HAS_STATUS ? PMIX_ERR_NOT_FOUND : PMIX_SUCCESS, "a rank that does not exist");
    PMIX_INFO_DESTRUCT(&aim);
    pmix_proc_t some[] = {second, unknown};
    event_target(&aim, some, 2);
    CHECK_STATUS(event_raise(EVENT_CODE(RANGE), PMIX_RANGE_CUSTOM, 105, &aim, 1),
                 HAS_STATUS ? PMIX_ERR_PARTIAL_SUCCESS : PMIX_SUCCESS,
                 "a rank that exists and one that does not");
    PMIX_INFO_DESTRUCT(&aim);
    PMIX_INFO_LOAD(&aim, "pmix.evlocal", NULL, PMIX_BOOL); /* PMIX_EVENT_STAYS_LOCAL */
    CHECK_OK(event_raise(EVENT_CODE(RANGE), PMIX_RANGE_GLOBAL, 106, &aim, 1), "stays local");
    free(odd);
}

static void ranges(struct listener *l, pmix_rank_t sender)
{
    static const struct {
        uint64_t tag;
        enum receivers receivers;
        const char *what;
    } expected[] = {{PMIX_RANGE_UNDEF + 1, ALL, "undefined range"},
                    {PMIX_RANGE_LOCAL + 1, NODE, "local range"},
                    {PMIX_RANGE_NAMESPACE + 1, ALL, "namespace range"},
                    {PMIX_RANGE_SESSION + 1, ALL, "session range"},
                    {PMIX_RANGE_GLOBAL + 1, ALL, "global range"},
                    {PMIX_RANGE_PROC_LOCAL + 1, NONE, "process range"},
                    {PMIX_RANGE_RM + 1, NONE, "resource manager's range"},
                    {101, ODD, "custom range of odd ranks"},
                    {102, SECOND, "custom range of one rank"},
                    {103, ALL, "custom range of all"},
                    {104, NONE, "custom range of an unknown rank"},
                    {105, SECOND, "custom range with an unknown rank"},
                    {106, NODE, "global range that stays local"}};
    step("ranges of rank %u", sender);
    if (client.me.rank == sender)
        raise_ranges();
    sync_marks(l);
    if (client.me.rank == sender)
        return;
    for (size_t i = 0; i < sizeof expected / sizeof *expected; i++) {
        size_t found = 0;
        pthread_mutex_lock(&l->lock); /* a rank that is ahead raises others */
        for (size_t k = 0; k < l->n; k++)
            found += l->seen[k].code == EVENT_CODE(RANGE) && l->seen[k].source.rank == sender &&
                     l->seen[k].tag == expected[i].tag;
        pthread_mutex_unlock(&l->lock);
        CHECK_EQ(found, shall_get(expected[i].receivers, sender), expected[i].what);
    }
}

/* What is registered after an event was raised gets it all the same. */
static void late(struct listener *l)
{
    const pmix_status_t code = EVENT_CODE(LATE);
    step("an event before the registration");
    if (client.me.rank == 0)
        CHECK_OK(event_raise(code, PMIX_RANGE_GLOBAL, 7, NULL, 0), "PMIx_Notify_event");
    sync_marks(l);
    struct listener *later = listen_to(&code, 1, NULL, 0);
    if (client.me.rank != 0)
        listen_wait(later, code, 0, 1);
    sync_marks(l);
    if (client.me.rank != 0)
        CHECK_EQ(listen_count(later, code, 0), 1, "events that were kept");
    listen_end(later);
}

/* A big one, with arrays in arrays. */
static void fill(pmix_info_t info[3], char *blob)
{
    pmix_byte_object_t object = {.bytes = blob, .size = (size_t)bytes};
    pmix_data_array_t *outer, *inner;
    for (long i = 0; i < bytes; i++)
        blob[i] = (char)mix((uint64_t)i);
    PMIX_INFO_LOAD(&info[0], "ev.blob", &object, PMIX_BYTE_OBJECT);
    PMIX_INFO_LOAD(&info[1], "ev.text", "a text", PMIX_STRING);
    PMIX_DATA_ARRAY_CREATE(inner, 3, PMIX_PROC);
    for (pmix_rank_t r = 0; r < 3; r++)
        PMIX_LOAD_PROCID(&((pmix_proc_t *)inner->array)[r], client.me.nspace, 10 * r);
    PMIX_DATA_ARRAY_CREATE(outer, 2, PMIX_INFO);
    pmix_info_t *in = outer->array;
    PMIX_LOAD_KEY(in[0].key, "ev.inner");
    in[0].value.type = PMIX_DATA_ARRAY;
    in[0].value.data.darray = inner;
    double number = 2.5;
    PMIX_INFO_LOAD(&in[1], "ev.number", &number, PMIX_DOUBLE);
    PMIX_INFO_CONSTRUCT(&info[2]);
    PMIX_LOAD_KEY(info[2].key, "ev.outer");
    info[2].value.type = PMIX_DATA_ARRAY;
    info[2].value.data.darray = outer;
}

static const pmix_value_t *find(const pmix_info_t *info, size_t n, const char *key,
                                pmix_data_type_t type)
{
    for (size_t i = 0; i < n; i++)
        if (PMIX_CHECK_KEY(&info[i], key)) {
            CHECK_EQ(info[i].value.type, type, key);
            return &info[i].value;
        }
    check_failed(__FILE__, __LINE__, "expected %s in an event, found none", key);
}

static void check_payload(const struct event_seen *e, const char *blob)
{
    const pmix_value_t *v = find(e->info, e->ninfo, "ev.blob", PMIX_BYTE_OBJECT);
    CHECK_EQ(v->data.bo.size, bytes, "the byte object's size");
    CHECK(memcmp(v->data.bo.bytes, blob, (size_t)bytes) == 0, "the byte object has other bytes");
    v = find(e->info, e->ninfo, "ev.text", PMIX_STRING);
    CHECK(strcmp(v->data.string, "a text") == 0, "a text: found \"%s\"", v->data.string);
    const pmix_data_array_t *outer =
        find(e->info, e->ninfo, "ev.outer", PMIX_DATA_ARRAY)->data.darray;
    CHECK_EQ(outer->size, 2, "the outer array's size");
    const pmix_data_array_t *inner =
        find(outer->array, 2, "ev.inner", PMIX_DATA_ARRAY)->data.darray;
    CHECK_EQ(inner->size, 3, "the inner array's size");
    CHECK_EQ(((pmix_proc_t *)inner->array)[2].rank, 20, "a rank in the inner array");
    CHECK(find(outer->array, 2, "ev.number", PMIX_DOUBLE)->data.dval == 2.5, "the number");
}

static void payload(struct listener *l)
{
    pmix_info_t info[3];
    char *blob = malloc((size_t)bytes + 1);
    step("a big event");
    fill(info, blob);
    if (client.me.rank == 0)
        CHECK_OK(event_raise(EVENT_CODE(PAYLOAD), PMIX_RANGE_GLOBAL, 1, info, 3), "the big one");
    sync_marks(l);
    size_t found = 0;
    pthread_mutex_lock(&l->lock);
    for (size_t i = 0; i < l->n; i++)
        if (l->seen[i].code == EVENT_CODE(PAYLOAD)) {
            check_payload(&l->seen[i], blob);
            found++;
        }
    pthread_mutex_unlock(&l->lock);
    CHECK_EQ(found, 1, "big events");
    for (int i = 0; i < 3; i++)
        PMIX_INFO_DESTRUCT(&info[i]);
    free(blob);
}

/* Default handlers get what is not kept from them. Up to 6.1 libpmix's server forgets which
 * processes have registered one, but not a process that has registered for this code before. */
static void defaults(struct listener *l)
{
    pmix_info_t hidden;
    step("default handlers");
    const pmix_status_t last = INT32_MIN; /* libpmix's PMIX_MAX_ERR_CONSTANT */
    struct listener *remedy = LIBPMIX < 70000 ? listen_to(&last, 1, NULL, 0) : NULL;
    struct listener *any = listen_to(NULL, 0, NULL, 0);
    sync_marks(l);
    if (client.me.rank == 0) {
        PMIX_INFO_LOAD(&hidden, PMIX_EVENT_NON_DEFAULT, NULL, PMIX_BOOL);
        CHECK_OK(event_raise(EVENT_CODE(HIDDEN), PMIX_RANGE_GLOBAL, 1, &hidden, 1), "hidden");
        CHECK_OK(event_raise(EVENT_CODE(DEFAULTED), PMIX_RANGE_GLOBAL, 1, NULL, 0), "plain");
    }
    sync_marks(l);
    CHECK_EQ(listen_count(any, EVENT_CODE(DEFAULTED), 0), 1, "events at the default handler");
    CHECK_EQ(listen_count(any, EVENT_CODE(HIDDEN), 0), 0, "hidden events at the default handler");
    listen_end(any);
    if (remedy)
        listen_end(remedy);
}

/* A process that asks for events about rank 0 gets no others. */
static void affected(struct listener *l)
{
    const pmix_status_t code = EVENT_CODE(AFFECTED);
    pmix_proc_t first = proc_of(0);
    pmix_info_t wanted, about;
    step("events about one process");
    PMIX_INFO_LOAD(&wanted, PMIX_EVENT_AFFECTED_PROC, &first, PMIX_PROC);
    struct listener *one = listen_to(&code, 1, &wanted, 1);
    sync_marks(l);
    for (pmix_rank_t r = 0; r < 2 && client.me.rank == client.size - 1; r++) {
        pmix_proc_t proc = proc_of(r);
        PMIX_INFO_LOAD(&about, PMIX_EVENT_AFFECTED_PROC, &proc, PMIX_PROC);
        CHECK_OK(event_raise(code, PMIX_RANGE_GLOBAL, r + 1, &about, 1), "PMIx_Notify_event");
    }
    sync_marks(l);
    CHECK_EQ(one->n, 1, "events about rank 0");
    CHECK_EQ(one->seen[0].affected, 0, "the affected rank");
    listen_end(one);
}

int main(int argc, char **argv)
{
    const struct option_number options[] = {{"count", &count, "events a rank at once", NULL},
                                            {"bytes", &bytes, "size of the big one", NULL},
                                            {0}};
    const pmix_status_t codes[] = {EVENT_CODE(MARK), EVENT_CODE(STORM), EVENT_CODE(RANGE),
                                   EVENT_CODE(PAYLOAD)};
    client_init("events", options, argc, argv);
    nodes_of_ranks();
    step("registration");
    struct listener *l = listen_to(codes, sizeof codes / sizeof *codes, NULL, 0);
    fence_all(false);
    late(l); /* first: libpmix keeps some hundred events, and not the last ones when there are more
              */
    storm(l);
    ranges(l, 0);
    ranges(l, client.size - 1);
    payload(l);
    defaults(l);
    affected(l);
    return client_pass("%ld events of each of %u ranks once and in order, ranges, late "
                       "registration, %ld bytes, default handlers",
                       count, client.size, bytes);
}
