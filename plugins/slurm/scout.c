/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * Finds the servers of other steps of the same user: a worker asks slurmctld and probes nodes,
 * since both block.
 *
 * slurmctld's list of steps does not say which of them have a server of muster. So the oldest ones
 * are probed: an empty message to the socket that a server of the step would have. The oldest step
 * that has one is the home of all; steps that are younger than our own need no probe for that. What
 * was listed once is kept for times without slurmctld: a step that is older than ours and still
 * runs was in every list that we have asked for.
 */
#include "plugins/slurm/scout_list.h"

#include "common/util/clock.h"
#include "common/util/log.h"
#include "common/util/text.h"
#include "plugins/slurm/facts.h"
#include "plugins/slurm/job_nodes.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    PROBES_MAX = 3,       /* nodes of one step */
    YOUNG_S = 30,         /* the server of a step may not be there yet for so long */
    YOUNG_WAIT_MS = 1000, /* how long one question waits for such servers */
    YOUNG_NAP_MS = 50,
    OTHERS_MAX = 1024,
    NSPACE_MAX = 64,
};

static const char NO_THREAD[] = "no thread can be started";

/* What the loop wants to know. */
struct scout_question {
    struct work work;
    struct rm *rm;
    enum { FIND_HOME, FIND_STEP, FIND_OTHERS, FIND_JOB } what;
    char nspace[NSPACE_MAX]; /* of FIND_STEP */
    rm_rendezvous_fn *done;
    rm_job_fn *told; /* of FIND_JOB, in the place of done */
    int64_t seconds; /* its answer */
    char *nodes;     /* the same; NULL: not known */
    void *arg;
    struct place *places; /* the answer */
    uint32_t n;
    char why[160]; /* why there is none */
};

static void free_place(struct place *place)
{
    for (uint32_t i = 0; place->names != NULL && i < place->nnodes; i++)
        free(place->names[i]);
    free(place->names);
    place->names = NULL;
}

static uint32_t own_job(const struct rm *rm)
{
    return (uint32_t)strtoul(rm->jobs, NULL, 10);
}

static void address_of(const struct rm *rm, const struct scout_seen *first, uint64_t start,
                       char *buf, size_t cap)
{
    const char *slash = strrchr(rm->address, '/');
    int dir = slash != NULL ? (int)(slash - rm->address) : 0;
    snprintf(buf, cap, "%.*s/" FACTS_SOCKET, dir, rm->address, first->job, first->step, start);
}

/* Looks for a server on the first nodes of a step. @return 0 and the node, freed by the caller, or
 * what the last probe failed with */
static int probe(struct rm *rm, const struct scout_seen *first, uint64_t start, char **node)
{
    char address[512];
    void *hosts = slurm_abi_hostlist_create(first->nodes);
    int rc = ENOENT;
    address_of(rm, first, start, address, sizeof address);
    for (int i = 0; i < PROBES_MAX && hosts != NULL; i++) {
        char *name = slurm_abi_hostlist_shift(hosts);
        if (name == NULL)
            break;
        char *to = name;
        rc = slurm_abi_forward_data(&to, address, 0, "");
        if (rc == 0) {
            *node = name;
            break;
        }
        log_debug("transport: no server of step %u.%u on %s: %s", first->job, first->step, name,
                  slurm_abi_strerror(rc));
        free(name);
    }
    if (hosts != NULL)
        slurm_abi_hostlist_destroy(hosts);
    return rc;
}

static bool add_names(struct place *place, const struct slurm_abi_step_layout *layout)
{
    uint32_t n = place->nnodes + layout->node_cnt;
    char **names = place->names = realloc(place->names, (n + 1ul) * sizeof *names);
    void *hosts = slurm_abi_hostlist_create(layout->node_list);
    while (hosts != NULL && place->nnodes < n &&
           (names[place->nnodes] = slurm_abi_hostlist_shift(hosts)) != NULL)
        place->nnodes++;
    if (hosts != NULL)
        slurm_abi_hostlist_destroy(hosts);
    return place->nnodes == n;
}

/* Which nodes a step has, as its servers count them: component by component. @param node one of
 * them, or NULL: the first */
static bool locate(const struct scout *scout, const struct scout_seen *first, uint64_t start,
                   const char *node, struct place *place)
{
    bool good = true;
    *place = (struct place){.run = start};
    snprintf(place->nspace, sizeof place->nspace, "slurm.%u.%u", first->job, first->step);
    for (uint32_t i = 0; i < scout->nseen && good; i++) {
        const struct scout_seen *part = &scout->seen[i];
        if (!scout_same_step(first, part))
            continue;
        struct slurm_abi_step_id id = slurm_abi_step_id(part->job, part->step, part->component);
        struct slurm_abi_step_layout *layout = slurm_abi_step_layout_get(&id);
        good = layout != NULL && add_names(place, layout);
        if (layout != NULL)
            slurm_abi_step_layout_free(layout);
    }
    while (good && node != NULL && place->node < place->nnodes &&
           strcmp(place->names[place->node], node) != 0)
        place->node++;
    if (good && place->node < place->nnodes)
        return true;
    free_place(place);
    return false;
}

static void own_place(const struct rm *rm, struct place *place)
{
    *place =
        (struct place){.run = rm->boot->run, .node = rm->boot->node, .nnodes = rm->boot->nnodes};
    snprintf(place->nspace, sizeof place->nspace, "%s", rm->boot->nspace);
}

/* ---- questions ---- */

static bool is_own(const struct rm *rm, const struct step *step)
{
    return step->first->job == own_job(rm) && step->first->step == rm->step;
}

/* Whether a step comes before our own, also where slurmctld does not list ours. */
static bool is_older(const struct rm *rm, const struct step *step)
{
    const struct scout_seen self = {.job = own_job(rm), .step = rm->step};
    const struct step own = {&self, rm->boot->run};
    return scout_by_age(step, &own) < 0;
}

static bool is_closing(struct rm *rm)
{
    pthread_mutex_lock(&rm->lock);
    bool closing = rm->closing;
    pthread_mutex_unlock(&rm->lock);
    return closing;
}

/* Probes a step. */
static bool find_in(struct rm *rm, const struct step *step, struct place *place)
{
    char *node = NULL;
    bool found = probe(rm, step->first, step->start, &node) == 0 &&
                 locate(&rm->scout, step->first, step->start, node, place);
    free(node);
    return found;
}

/* Whether the server of a step that does not answer may only just be starting. */
static bool is_young(const struct rm *rm, const struct step *step)
{
    return step->start + YOUNG_S >= rm->scout.now;
}

/* The first of the steps that answers, as long as no younger one has to be waited for.
 * @param young whether one before it may only just be starting */
static bool find_first(struct rm *rm, const struct step *steps, uint32_t n, bool *young,
                       struct place *place)
{
    *young = false;
    for (uint32_t i = 0; i < n && is_older(rm, &steps[i]); i++) {
        if (is_own(rm, &steps[i]))
            continue;
        if (find_in(rm, &steps[i], place))
            return true;
        *young |= is_young(rm, &steps[i]);
    }
    return false;
}

static void find_home(struct rm *rm, struct scout_question *q, const struct step *steps, uint32_t n,
                      bool fresh)
{
    int64_t deadline = now_ms() + YOUNG_WAIT_MS;
    bool young, found;
    while ((found = find_first(rm, steps, n, &young, q->places)),
           young && fresh && deadline_left(deadline) > 0 && !is_closing(rm)) {
        if (found)
            free_place(q->places);
        poll(NULL, 0, YOUNG_NAP_MS);
    }
    if (!found)
        own_place(rm, q->places);
    q->n = 1;
}

static void find_step(struct rm *rm, struct scout_question *q, const struct step *steps, uint32_t n)
{
    char name[NSPACE_MAX];
    snprintf(q->why, sizeof q->why, "no step of this user that runs is called %s", q->nspace);
    for (uint32_t i = 0; i < n; i++) {
        snprintf(name, sizeof name, "slurm.%u.%u", steps[i].first->job, steps[i].first->step);
        if (strcmp(name, q->nspace) != 0)
            continue;
        int64_t deadline = now_ms() + YOUNG_WAIT_MS;
        while (!(q->n = find_in(rm, &steps[i], q->places)) && is_young(rm, &steps[i]) &&
               deadline_left(deadline) > 0 && !is_closing(rm))
            poll(NULL, 0, YOUNG_NAP_MS);
        snprintf(q->why, sizeof q->why, "step %u.%u has no server of muster", steps[i].first->job,
                 steps[i].first->step);
        return;
    }
}

static void find_others(struct rm *rm, struct scout_question *q, const struct step *steps,
                        uint32_t n)
{
    for (uint32_t i = 0; i < n && q->n < OTHERS_MAX && !is_closing(rm); i++)
        if (!is_own(rm, &steps[i]) && find_in(rm, &steps[i], &q->places[q->n]))
            q->n++;
}

static void free_question(struct work *work)
{
    struct scout_question *q = (struct scout_question *)work;
    for (uint32_t i = 0; i < q->n; i++)
        free_place(&q->places[i]);
    free(q->places);
    free(q->nodes);
    free(q);
}

/* @thread the loop's */
static void answer(struct handoff_item *item)
{
    struct scout_question *q = (struct scout_question *)item;
    struct rm *rm = q->rm;
    if (q->what == FIND_JOB && !rm->closing)
        q->told(q->arg, q->seconds, q->nodes, q->seconds < 0 ? q->why : NULL);
    for (uint32_t i = 0; i < q->n; i++) {
        const struct rm_server found = {q->places[i].nspace, q->places[i].run, q->places[i].node,
                                        q->places[i].nnodes};
        rm->offered = &q->places[i];
        if (!rm->closing)
            q->done(q->arg, &found, NULL);
        rm->offered = NULL;
    }
    if (!rm->closing && q->what != FIND_JOB && (q->n == 0 || q->what == FIND_OTHERS))
        q->done(q->arg, NULL, q->why);
    free_question(&q->work);
}

/* "c07=16,c08=16". Of several components nothing has changed. */
static char *nodes_now(const struct rm *rm)
{
    struct job_nodes nodes;
    char *list = NULL;
    if (strchr(rm->jobs, ',') != NULL || job_nodes_read(own_job(rm), &nodes) != 0)
        return NULL;
    for (uint32_t i = 0; i < nodes.n; i++) {
        char *one = text_format("%s=%u", nodes.nodes[i].name, nodes.nodes[i].cpus);
        list = text_append(i == 0 ? strdup("") : list, ",", one);
        free(one);
    }
    job_nodes_free(&nodes);
    return list;
}

/* @thread the scout's, not locked */
static void look_at_job(struct rm *rm, struct scout_question *q)
{
    q->nodes = nodes_now(rm);
    q->seconds = slurm_abi_time_left(own_job(rm));
    if (q->seconds < 0)
        snprintf(q->why, sizeof q->why, "slurmctld does not tell when the job has to end: %s",
                 slurm_abi_strerror(errno));
}

/* @thread the scout's, not locked */
static void look_for_steps(struct rm *rm, struct scout_question *q)
{
    struct scout *scout = &rm->scout;
    struct step *steps = NULL;
    bool fresh = scout_list(scout);
    int rc = errno;
    if (fresh)
        scout->listed = true;
    else
        log_info("slurmctld does not list the steps: %s", slurm_abi_strerror(rc));
    uint32_t n = scout_list_steps(scout, &steps);
    q->places = calloc(q->what == FIND_OTHERS ? n + 1ul : 1, sizeof *q->places);
    if (!scout->listed)
        snprintf(q->why, sizeof q->why, "slurmctld does not list the steps: %s",
                 slurm_abi_strerror(rc));
    else if (q->what == FIND_HOME)
        find_home(rm, q, steps, n, fresh);
    else if (q->what == FIND_STEP)
        find_step(rm, q, steps, n);
    else
        find_others(rm, q, steps, n);
    free(steps);
}

/* @thread the scout's */
static void look(struct work *work)
{
    struct scout_question *q = (struct scout_question *)work;
    if (q->what == FIND_JOB)
        look_at_job(q->rm, q);
    else
        look_for_steps(q->rm, q);
}

static const struct work_ops questions = {look, answer, free_question};

static struct scout_question *new_question(struct rm *rm, int what, void *arg)
{
    struct scout_question *q = calloc(1, sizeof *q);
    q->rm = rm;
    q->what = what;
    q->arg = arg;
    return q;
}

/* Takes over @p q. @return false: it cannot be asked, and is freed */
static bool put(struct scout *scout, struct scout_question *q)
{
    if (scout->worker == NULL)
        scout->worker = worker_new(&questions, q->rm->handoff);
    bool put = worker_do(scout->worker, &q->work);
    if (!put)
        free(q);
    return put;
}

/* Takes over @p q. */
static void ask(struct scout_question *q, rm_rendezvous_fn *done)
{
    void *arg = q->arg;
    q->done = done;
    if (!put(&q->rm->scout, q))
        done(arg, NULL, NO_THREAD);
}

void scout_rendezvous(struct rm *rm, rm_rendezvous_fn *done, void *arg)
{
    ask(new_question(rm, FIND_HOME, arg), done);
}

void scout_resolve(struct rm *rm, const char *nspace, rm_rendezvous_fn *done, void *arg)
{
    struct scout_question *q = new_question(rm, FIND_STEP, arg);
    snprintf(q->nspace, sizeof q->nspace, "%s", nspace);
    ask(q, done);
}

void scout_others(struct rm *rm, rm_rendezvous_fn *each, void *arg)
{
    ask(new_question(rm, FIND_OTHERS, arg), each);
}

void scout_job_now(struct rm *rm, rm_job_fn *done, void *arg)
{
    struct scout_question *q = new_question(rm, FIND_JOB, arg);
    q->told = done;
    if (!put(&rm->scout, q))
        done(arg, -1, NULL, NO_THREAD);
}

bool scout_join(struct rm *rm, int64_t by)
{
    return worker_close(rm->scout.worker, by);
}

void scout_free(struct rm *rm)
{
    scout_list_free(&rm->scout);
}
