/* SPDX-License-Identifier: BSD-3-Clause */
/* What requests do to what is published: to what each server on the way keeps, and to what the
 * holder has. The holder decides what counts; what is kept is what it is told again. */
#include "common/holder/private.h"

#include "common/util/log.h"

static struct wire_in body_of(const struct request *r)
{
    struct wire_in in;
    wire_in_init(&in, r->body, r->len);
    wire_get_u8(&in);
    return in;
}

static bool read_entries(struct wire_in *in, struct store_list *list)
{
    uint32_t n = wire_get_count(in, 1);
    for (uint32_t i = 0; i < n && !in->bad; i++) {
        struct store_entry *e = store_get_entry(in);
        if (e != NULL)
            TAILQ_INSERT_TAIL(list, e, link);
    }
    return !in->bad;
}

static struct store_entry *first_of(struct store_list *list)
{
    struct store_entry *e = TAILQ_FIRST(list);
    if (e != NULL)
        TAILQ_REMOVE(list, e, link);
    return e;
}

typedef enum store_answer add_fn(struct store *store, struct store_entry *entry);

static bool take(struct store *store, struct wire_in *in, const void *keeper, add_fn *add)
{
    struct store_list list = TAILQ_HEAD_INITIALIZER(list);
    struct store_entry *e;
    bool good = read_entries(in, &list) && wire_end(in);
    while ((e = first_of(&list)) != NULL) {
        e->keeper = keeper;
        if (good && add(store, e) == STORE_OK)
            continue;
        if (good)
            log_debug("an entry that %s rank %u has published is in the way of another one",
                      e->who.nspace, e->who.rank);
        store_entry_free(e);
    }
    return good;
}

/* Whoever has kept it before. */
static enum store_answer adopt(struct store *store, struct store_entry *e)
{
    struct store_entry *there = store_named(store, e->who.nspace, e->who.rank, e->number);
    if (there != NULL)
        there->keeper = NULL;
    return store_add(store, e);
}

bool edit_take(struct store *store, struct wire_in *in, const void *keeper)
{
    return take(store, in, keeper, store_add);
}

bool holder_keeps(const void *arg, const struct store_entry *e)
{
    (void)arg;
    return e->keeper == NULL;
}

void edit_put(const struct holder *holder, uint8_t before, store_which_fn *which,
              struct wire_out *out)
{
    wire_put_u8(out, before);
    store_put_entries(out, holder->store, which, NULL);
}

/* ---- requests ---- */

static bool unpublish(struct store *store, struct wire_in *in)
{
    struct store_who who;
    uint32_t n;
    store_get_who(in, &who);
    enum store_range range = wire_get_u8(in);
    char **keys = store_get_keys(in, &n);
    bool good = !in->bad && range <= STORE_RANGES;
    if (good)
        store_unpublish(store, &who, keys, n, range);
    store_free_keys(keys, n);
    return good;
}

static bool ended(struct store *store, struct wire_in *in)
{
    char nspace[PROCSET_NAME_MAX + 1];
    wire_get_str(in, nspace, sizeof nspace);
    uint32_t rank = wire_get_u32(in);
    bool good = wire_end(in);
    if (good)
        store_ended(store, nspace, rank);
    return good;
}

void edit_kept(struct holder *holder, const struct request *r)
{
    struct wire_in in = body_of(r);
    if (r->op == HOLDER_PUBLISH || r->op == HOLDER_KEEP || r->op == HOLDER_HEIR)
        take(holder->store, &in, NULL, store_keep);
    else if (r->op == HOLDER_UNPUBLISH)
        unpublish(holder->store, &in);
    else if (r->op == HOLDER_ENDED)
        ended(holder->store, &in);
}

void edit_undo(struct holder *holder, const struct request *r)
{
    struct store_list list = TAILQ_HEAD_INITIALIZER(list);
    struct store_entry *e, *kept;
    struct wire_in in = body_of(r);
    read_entries(&in, &list);
    while ((e = first_of(&list)) != NULL) {
        kept = store_named(holder->store, e->who.nspace, e->who.rank, e->number);
        if (kept != NULL)
            store_remove(holder->store, kept);
        store_entry_free(e);
    }
}

static int32_t publish(struct holder *holder, struct wire_in *in, const void *keeper)
{
    const struct holder_codes *codes = &holder->env.codes;
    struct store_list list = TAILQ_HEAD_INITIALIZER(list);
    struct store_entry *e;
    bool good = read_entries(in, &list) && wire_end(in);
    enum store_answer answer = good ? store_may_add(holder->store, &list) : STORE_OK;
    while ((e = first_of(&list)) != NULL) {
        e->keeper = keeper;
        if (!good || answer != STORE_OK || store_add(holder->store, e) != STORE_OK)
            store_entry_free(e);
    }
    return !good                       ? codes->bad
           : answer == STORE_OK        ? codes->success
           : answer == STORE_DUPLICATE ? codes->duplicate
                                       : codes->full;
}

int32_t edit_held(struct holder *holder, const struct request *r, const void *keeper)
{
    struct wire_in in = body_of(r);
    bool good = true;
    if (r->op == HOLDER_PUBLISH)
        return publish(holder, &in, keeper);
    if (r->op == HOLDER_KEEP)
        good = edit_take(holder->store, &in, keeper);
    else if (r->op == HOLDER_HEIR)
        good = take(holder->store, &in, NULL, adopt);
    else if (r->op == HOLDER_UNPUBLISH)
        good = unpublish(holder->store, &in);
    else if (r->op == HOLDER_ENDED)
        good = ended(holder->store, &in);
    return good ? holder->env.codes.success : holder->env.codes.bad;
}
