/* SPDX-License-Identifier: BSD-3-Clause */
/* Processes that publish, look up and unpublish. What is said of an answer here has to hold at any
 * time: it comes once, in time, and a value that is found was published by somebody under that key.
 */
#include "ci/campaign.d/holders/holders.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct store_who process_of(const struct site *site)
{
    struct store_who who = {.rank = site->node};
    snprintf(who.nspace, sizeof who.nspace, "%s", site->step->nspace);
    return who;
}

static void set_state(struct item *item, enum item_state state)
{
    item->state = state;
    item->since = item->site->world->now;
}

static struct item *item_with(struct world *world, const char *key, const void *value, size_t len)
{
    struct item *item;
    TAILQ_FOREACH (item, &world->items, link)
        if (strcmp(item->key, key) == 0 && strlen(item->value) == len &&
            memcmp(item->value, value, len) == 0)
            return item;
    return NULL;
}

/* Whether two holders may come about: then two may have published one key, and one of them is told
 * so only by the second holder. */
static bool has_two_holders(const struct world *world)
{
    const struct holders_weather *w = &world->weather;
    return w->wrong || w->cuts || w->kills || w->away; /* away: steps have different lists */
}

/* Whether the second holder alone may have heard that it was unpublished: the publisher, or the
 * first server of its step, would say so to the first holder, and is gone. */
static bool may_come_back(const struct item *item)
{
    return has_two_holders(item->site->world) && !item->site->step->sites[0].alive;
}

/* Strangers: what is found was published under that key, and was not refused. */
static void check_found(struct request *r, struct wire_in *in)
{
    struct world *world = r->site->world;
    char nspace[PROCSET_NAME_MAX + 1], key[STORE_KEY_MAX + 1];
    size_t len;
    wire_get_i32(in);
    uint32_t n = wire_get_u32(in);
    wire_get_str(in, nspace, sizeof nspace);
    uint32_t rank = wire_get_u32(in);
    wire_get_str(in, key, sizeof key);
    const void *value = wire_get_block(in, &len);
    const struct item *found = in->bad ? NULL : item_with(world, key, value, len);
    if (n != 1 || found == NULL || strcmp(key, r->item->key) != 0 ||
        strcmp(nspace, found->site->step->nspace) != 0 || rank != found->site->node)
        world_fault(world, "strangers", "%s looks up %s and finds what nobody has published",
                    site_name(r->site), r->item->key);
    else if (found->state == ITEM_REFUSED && !has_two_holders(world))
        world_fault(world, "strangers", "%s finds %s of %s, which was refused", site_name(r->site),
                    key, site_name(found->site));
    else if (r->last && found->state == ITEM_GONE && !may_come_back(found))
        world_fault(world, "unpublished", "%s finds %s, which was unpublished", site_name(r->site),
                    key);
}

/* What was published for the session outlives its step, where all end in order. The last step does
 * not end. */
static bool outlives(const struct item *item)
{
    const struct world *world = item->site->world;
    const struct step *step = item->site->step, *last = &world->steps[world->nsteps - 1];
    return item->life == STORE_SESSION_LIFE && step->until > last->since && last->since > 0 &&
           !has_two_holders(world);
}

/* Lost: all that is alive finds all that something alive has published, or that outlives it. */
static void check_lookup(struct request *r, int32_t status)
{
    const struct item *item = r->item;
    bool there =
        item->state == ITEM_THERE && !item->shared && (item->site->alive || outlives(item));
    bool calm = !has_two_holders(item->site->world);
    if (calm && there && !item->site->leaves && item->since < r->made_at &&
        status == CODE_NOT_FOUND)
        world_fault(r->site->world, "missed", "%s does not find %s while holders change",
                    site_name(r->site), item->key);
    if (r->last && there && status != CODE_SUCCESS)
        world_fault(r->site->world, "lost", "%s does not find %s: %d; it %s", site_name(r->site),
                    item->key, status, holder_view(r->site->holder).state);
    if (r->last && item->site->step->over && item->life != STORE_SESSION_LIFE && !item->shared &&
        status == CODE_SUCCESS)
        world_fault(r->site->world, "ended", "%s finds %s of a step that has ended",
                    site_name(r->site), item->key);
}

static void change(struct request *r, int32_t status)
{
    struct item *item = r->item;
    bool good = status == CODE_SUCCESS || (item->shared && status == CODE_DUPLICATE);
    if (!good && !r->site->world->weather.cuts && r->site->world->away == 0)
        world_fault(r->site->world, "service", "%s could not change %s: %d", site_name(r->site),
                    item->key, status);
    if (r->op == HOLDER_PUBLISH)
        set_state(item, status == CODE_SUCCESS     ? ITEM_THERE
                        : status == CODE_DUPLICATE ? ITEM_REFUSED
                                                   : ITEM_ASKED);
    else if (status == CODE_SUCCESS)
        set_state(item, ITEM_GONE);
}

static void done(void *arg, int32_t status, const void *data, size_t len)
{
    struct request *r = arg;
    struct world *world = r->site->world;
    struct wire_in in;
    if (r->answered)
        world_fault(world, "answers", "%s was answered again", site_name(r->site));
    r->answered = true;
    if (r->site->leaves || world->ending)
        return;
    world_trace(world, "%s: %s %s: %d", site_name(r->site),
                r->op == HOLDER_PUBLISH  ? "publishes"
                : r->op == HOLDER_LOOKUP ? "looks up"
                                         : "unpublishes",
                r->item->key, status);
    if (world->now > r->made_at + PATIENCE_MS + LATENESS_MS)
        world_fault(world, "deadline", "%s was answered after %llu ms", site_name(r->site),
                    (unsigned long long)(world->now - r->made_at));
    if (r->op != HOLDER_LOOKUP) {
        change(r, status);
        return;
    }
    wire_in_init(&in, data, len);
    if (status == CODE_SUCCESS)
        check_found(r, &in);
    check_lookup(r, status);
}

static void request(struct site *site, struct request r, struct wire_out *body)
{
    struct world *world = site->world;
    struct request *made = malloc(sizeof *made);
    if (made == NULL || body->failed)
        abort();
    r.site = site;
    r.made_at = world->now;
    *made = r;
    TAILQ_INSERT_TAIL(&world->requests, made, link);
    holder_request(site->holder, body->data, body->len, PATIENCE_MS, done, made);
    wire_out_free(body);
}

static struct item *new_item(struct site *site)
{
    static const enum store_life lives[] = {STORE_SESSION_LIFE, STORE_APP, STORE_PROC};
    struct world *world = site->world;
    struct item *item = calloc(1, sizeof *item);
    if (item == NULL)
        abort();
    item->site = site;
    item->shared = likely(world, 20);
    item->life = lives[dice(world, 3)];
    uint32_t number = ++world->nitems;
    if (item->shared)
        snprintf(item->key, sizeof item->key, "shared.%u", dice(world, 3));
    else
        snprintf(item->key, sizeof item->key, "key.%u", number);
    snprintf(item->value, sizeof item->value, "%s.%u", item->key, number);
    TAILQ_INSERT_TAIL(&world->items, item, link);
    return item;
}

static void publish(struct site *site)
{
    struct item *item = new_item(site);
    const struct store_entry e = {.who = process_of(site),
                                  .number = site->world->nitems,
                                  .life = item->life,
                                  .key = item->key,
                                  .value = item->value,
                                  .len = strlen(item->value)};
    struct wire_out out = {0};
    wire_put_u8(&out, HOLDER_PUBLISH);
    wire_put_u32(&out, 1);
    store_put_entry(&out, &e);
    set_state(item, ITEM_ASKED);
    request(site, (struct request){.op = HOLDER_PUBLISH, .item = item}, &out);
}

void publish_lookup(struct site *site, struct item *item, bool waits, bool last)
{
    char *keys[] = {item->key};
    const struct store_lookup lookup = {.who = process_of(site),
                                        .want = waits,
                                        .left = waits ? PATIENCE_MS : 0,
                                        .number = site->world->now,
                                        .nkeys = 1,
                                        .keys = keys};
    struct wire_out out = {0};
    wire_put_u8(&out, HOLDER_LOOKUP);
    store_put_lookup(&out, &lookup);
    request(site, (struct request){.op = HOLDER_LOOKUP, .item = item, .waits = waits, .last = last},
            &out);
}

static void unpublish(struct site *site, struct item *item)
{
    const struct store_who who = process_of(site);
    struct wire_out out = {0};
    wire_put_u8(&out, HOLDER_UNPUBLISH);
    store_put_who(&out, &who);
    wire_put_u8(&out, STORE_RANGES);
    wire_put_u32(&out, 1);
    wire_put_str(&out, item->key);
    set_state(item, ITEM_LEAVES);
    request(site, (struct request){.op = HOLDER_UNPUBLISH, .item = item}, &out);
}

static struct item *any(struct world *world)
{
    struct item *item = TAILQ_FIRST(&world->items);
    for (uint32_t n = world->nitems > 0 ? dice(world, world->nitems) : 0; n > 0; n--)
        item = TAILQ_NEXT(item, link);
    return item;
}

void publish_some(struct event *event)
{
    struct site *site = event->to;
    struct world *world = site->world;
    struct item *item = any(world);
    if (site->leaves)
        return;
    if (item == NULL || likely(world, 40))
        publish(site);
    else if (item->site == site && item->state == ITEM_THERE && likely(world, 70))
        unpublish(site, item);
    else
        publish_lookup(site, item, likely(world, 50), false);
}

void publish_free(struct world *world)
{
    struct item *item;
    struct request *r;
    while ((item = TAILQ_FIRST(&world->items)) != NULL) {
        TAILQ_REMOVE(&world->items, item, link);
        free(item);
    }
    while ((r = TAILQ_FIRST(&world->requests)) != NULL) {
        TAILQ_REMOVE(&world->requests, r, link);
        free(r);
    }
}
