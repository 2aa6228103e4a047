/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * Keeps the namespaces of other steps in a list behind the own one. A registration is read as a
 * boot message is, and its servers get the handles that follow the last one.
 */
#include "common/nspace/foreign.h"
#include "common/util/log.h"

#include "common/util/states.h"
#include "common/util/text.h"

#include <stdlib.h>
#include <string.h>

static const char *const state_names[FOREIGN_STATES] = {"named", "learnt", "left",     "registered",
                                                        "over",  "held",   "forgotten"};
static const char *const event_names[FOREIGN_EVENTS] = {"learn", "register", "end", "hold",
                                                        "forget"};

/* Short, for the table. */
enum {
    NONE = STATES_NONE,
    LEARNT = FOREIGN_LEARNT,
    LEFT = FOREIGN_LEFT,
    REGISTERED = FOREIGN_REGISTERED,
    OVER = FOREIGN_OVER,
    HELD = FOREIGN_HELD,
    FORGOTTEN = FOREIGN_FORGOTTEN,
};

/* clang-format off */
static const int table[FOREIGN_STATES][FOREIGN_EVENTS] = {
    /*                       LEARN   REGISTER    END   HOLD  FORGET */
    [FOREIGN_NAMED]      = {LEARNT, NONE,       NONE, NONE, FORGOTTEN},
    [FOREIGN_LEARNT]     = {NONE,   REGISTERED, LEFT, NONE, FORGOTTEN},
    [FOREIGN_LEFT]       = {NONE,   OVER,       NONE, NONE, FORGOTTEN},
    [FOREIGN_REGISTERED] = {NONE,   NONE,       OVER, NONE, FORGOTTEN},
    [FOREIGN_OVER]       = {NONE,   NONE,       NONE, HELD, FORGOTTEN},
    [FOREIGN_HELD]       = {NONE,   NONE,       NONE, NONE, FORGOTTEN},
    [FOREIGN_FORGOTTEN]  = {NONE,   NONE,       NONE, NONE, FORGOTTEN},
};
/* clang-format on */

static const struct states life = {state_names, event_names, &table[0][0], FOREIGN_EVENTS};

void foreign_move(struct nspace *ns, enum foreign_event event)
{
    struct foreign *f = ns->foreign;
    int to = states_next(&life, (int)f->state, event, "namespace %s", f->name);
    if (to != STATES_NONE)
        f->state = (enum foreign_state)to;
}

/* Without boot, no process of it is known; with an empty name it is found no more. */
static struct nspace *find(struct nspace *own, const char *name)
{
    struct nspace *ns = own->next;
    while (ns != NULL && strcmp(ns->foreign->name, name) != 0)
        ns = ns->next;
    return ns;
}

static struct nspace *find_step(const struct nspace *own, uint64_t step)
{
    struct nspace *ns = own->next;
    while (ns != NULL && (ns->foreign->step != step || ns->foreign->name[0] == '\0'))
        ns = ns->next;
    return ns;
}

/* Whether a step of that hash was forgotten. */
static bool was_known(const struct nspace *own, uint64_t step)
{
    const struct nspace *ns = own->next;
    while (ns != NULL && ns->foreign->step != step)
        ns = ns->next;
    return ns != NULL;
}

static void free_names(char **names, uint32_t n)
{
    for (uint32_t i = 0; names != NULL && i < n; i++)
        free(names[i]);
    free(names);
}

static char **name_servers(const char *name, const struct boot *boot, uint32_t nnodes)
{
    char **names = calloc(nnodes, sizeof *names);
    for (uint32_t i = 0; i < nnodes; i++)
        names[i] = boot != NULL ? text_format("%s/%s", name, boot->nodes[i].name)
                                : text_format("%s/%u", name, i);
    return names;
}

static uint32_t count(const struct nspace *own)
{
    uint32_t n = 0;
    for (const struct nspace *ns = own->next; ns != NULL; ns = ns->next)
        n += ns->foreign->name[0] != '\0';
    return n;
}

void foreign_forget(struct nspace *ns)
{
    struct foreign *f = ns->foreign;
    foreign_move(ns, FOREIGN_FORGET);
    ns->boot = NULL;
    if (f->boot != NULL)
        boot_free(f->boot);
    free(f->boot);
    if (f->name[0] != '\0')
        free((char *)f->name);
    free(f->gone);
    *f = (struct foreign){.name = "", .step = f->step, .state = f->state, .names = f->names};
    free(ns->node_of);
    free(ns->local_of);
    free(ns->bytes);
    free(ns->told);
    ns->node_of = ns->local_of = NULL;
    ns->bytes = NULL;
    ns->told = NULL;
    ns->ntold = 0;
}

/* Of one that is in no list. */
static void foreign_free(struct nspace *ns)
{
    foreign_forget(ns);
    free_names(ns->foreign->names, ns->nnodes);
    free(ns->foreign);
    free(ns);
}

struct nspace *foreign_attach(struct nspace *own, const char *name, uint64_t run, uint32_t nnodes,
                              struct err *err)
{
    uint32_t base = nspace_handles(own);
    struct nspace *ns = find(own, name), **end = &own->next;
    uint64_t step = nspace_hash(name, run);
    if (ns != NULL && ns->nnodes == nnodes && ns->foreign->step == step)
        return ns;
    if (ns != NULL || strcmp(name, own->boot->nspace) == 0 || find_step(own, step) != NULL ||
        step == nspace_hash(own->boot->nspace, own->boot->run)) {
        err_set(err, "namespace %s is known, and is another one", name);
        return NULL;
    }
    if (count(own) >= FOREIGN_MAX || nnodes == 0 || nnodes > FOREIGN_HANDLES_MAX ||
        base > FOREIGN_HANDLES_MAX - nnodes || strlen(name) > PROCSET_NAME_MAX) {
        err_set(err, "namespace %.100s has no node, or there are too many", name);
        return NULL;
    }
    ns = calloc(1, sizeof *ns);
    struct foreign *f = calloc(1, sizeof *f);
    ns->foreign = f;
    ns->base = base;
    ns->nnodes = nnodes;
    f->name = strdup(name);
    f->step = step;
    f->run = run;
    f->gone = calloc(nnodes, sizeof *f->gone);
    f->names = name_servers(name, NULL, nnodes);
    while (*end != NULL)
        end = &(*end)->next;
    return *end = ns;
}

/* Takes over @p boot. */
static void fill(struct nspace *ns, struct boot *boot, const void *data, size_t len)
{
    struct foreign *f = ns->foreign;
    nspace_place(ns, boot);
    ns->bytes = malloc(len);
    memcpy(ns->bytes, data, len);
    ns->len = len;
    free_names(f->names, ns->nnodes);
    f->names = name_servers(f->name, boot, ns->nnodes);
    f->boot = malloc(sizeof *f->boot);
    *f->boot = *boot;
    f->boot->node = BOOT_NO_NODE;
    ns->boot = f->boot;
    *boot = (struct boot){0};
    foreign_move(ns, FOREIGN_LEARN);
}

struct nspace *foreign_learn(struct nspace *own, uint64_t step, struct boot *boot, const void *data,
                             size_t len, struct err *err)
{
    struct nspace *ns = NULL;
    if (step != 0 && nspace_hash(boot->nspace, boot->run) != step)
        err_set(err, "a frame of another %s has the registration of namespace %s", log_unit(),
                boot->nspace);
    else
        ns = foreign_attach(own, boot->nspace, boot->run, boot->nnodes, err);
    if (ns != NULL && ns->boot != NULL) {
        if (ns->len != len || memcmp(ns->bytes, data, len) != 0) {
            err_set(err, "namespace %s is known with other contents", boot->nspace);
            ns = NULL;
        }
    } else if (ns != NULL) {
        fill(ns, boot, data, len);
    }
    return ns;
}

int foreign_server(const struct nspace *own, uint64_t step, uint32_t index, uint32_t *node)
{
    const struct nspace *ns = find_step(own, step);
    if (ns == NULL || index >= ns->nnodes)
        return ns == NULL && was_known(own, step) ? 1 : -1;
    *node = ns->base + index;
    return 0;
}

bool foreign_tell(struct nspace *ns, uint32_t node)
{
    if (node - ns->base < ns->nnodes)
        return false; /* it is its own */
    if (node >= ns->ntold) {
        ns->told = realloc(ns->told, node + 1ul);
        memset(ns->told + ns->ntold, 0, node + 1ul - ns->ntold);
        ns->ntold = node + 1;
    }
    bool knew = ns->told[node];
    ns->told[node] = true;
    return !knew;
}

bool foreign_has_ended(const struct nspace *ns)
{
    const struct foreign *f = ns->foreign;
    return f != NULL &&
           (f->state == FOREIGN_LEFT || f->state == FOREIGN_OVER || f->state == FOREIGN_HELD);
}

bool foreign_gone(const struct nspace *ns, uint32_t node)
{
    return ns->foreign->gone == NULL || ns->foreign->gone[node - ns->base];
}

void nspaces_free(struct nspace *own)
{
    while (own != NULL && own->next != NULL) {
        struct nspace *ns = own->next;
        own->next = ns->next;
        foreign_free(ns);
    }
    nspace_free(own);
}
