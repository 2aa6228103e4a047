/* SPDX-License-Identifier: BSD-3-Clause */
/* The shell's services, and the start of what is asked for there. */
#include "plugins/flux/children.h"

#include "common/util/log.h"
#include "plugins/flux/child.h"
#include "plugins/flux/jobspec.h"
#include "shims/flux/shell_jobs_abi.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    CHILDREN_MAX = 128,
    URGENCY = 16, /* as flux run has it */
};

#define ASKED "muster-spawn"
#define STARTED "muster-started"

/* ---- its start ---- */

static void not_started(struct child *child, enum rm_spawn_result result, const char *text)
{
    child_tell_failure(child, result, text);
    child_finish(child);
    child_forget(child);
}

static void on_submit(flux_future_t *f, void *arg)
{
    struct child *child = arg;
    child->submit = NULL;
    if (flux_job_submit_get_id(f, &child->id) < 0) {
        char text[512];
        snprintf(text, sizeof(text), "Flux refuses the job: %s", flux_future_error_string(f));
        flux_future_destroy(f);
        not_started(child,
                    strstr(text, "atisfiable") || strstr(text, "easib") ? RM_SPAWN_NO_RESOURCES
                                                                        : RM_SPAWN_FAILED,
                    text);
        return;
    }
    flux_future_destroy(f);
    jobid_write(child->id, child->label);
    if (child->state == CHILD_SUBMITS) {
        child->state = CHILD_QUEUED;
        child_set_timer(child, CHILD_QUEUED_S);
    } else { /* its time is over */
        child->state = CHILD_QUEUED;
        child_end(child, "it was submitted too late");
    }
    child_watch(child);
}

static int submit(struct child *child, struct err *err)
{
    struct children *c = child->children;
    char channel[sizeof(c->channel) + 16];
    snprintf(channel, sizeof(channel), "%u %s", child->number, c->channel);
    char *spec = jobspec_make(c->shell, &child->order.what, channel, c->nnodes, err);
    if (!spec)
        return -1;
    child->submit = flux_job_submit(c->h, spec, URGENCY, 0);
    free(spec);
    if (!child->submit || flux_future_then(child->submit, -1., on_submit, child) < 0) {
        const char *why = strerror(errno);
        /* A job that could not be signed was not sent: its future has the reason, and no reactor.
         */
        if (child->submit && flux_future_wait_for(child->submit, 0.) == 0)
            why = flux_future_error_string(child->submit);
        return err_set(err, "a job cannot be submitted: %s", why);
    }
    child_set_timer(child, child->order.what.timeout);
    return 0;
}

/* ---- the services ---- */

/* @return the bytes of a request of our own user, or NULL: it was answered */
static bool from_own(flux_t *h, const flux_msg_t *msg, struct wire_in *in)
{
    struct flux_msg_cred cred;
    const void *data = NULL;
    size_t len = 0;
    if (flux_msg_get_cred(msg, &cred) < 0 || cred.userid != getuid() ||
        flux_request_decode_raw(msg, NULL, &data, &len) < 0) {
        flux_respond_error(h, msg, EPERM, "it is for muster-server of the job's user");
        return false;
    }
    wire_in_init(in, data, len);
    return true;
}

static void on_asked(flux_t *h, flux_msg_handler_t *mh, const flux_msg_t *msg, void *arg)
{
    struct children *c = arg;
    struct child *child;
    struct wire_in in;
    struct err err = {0};
    (void)mh;
    if (!from_own(h, msg, &in))
        return;
    child = c->count < CHILDREN_MAX ? calloc(1, sizeof(*child)) : NULL;
    if (!child) {
        flux_respond_error(h, msg, ENOSPC, "the shell looks after as many spawned jobs as it can");
        return;
    }
    *child = (struct child){.next = c->list, .children = c, .number = c->numbers++};
    child->request = flux_msg_incref(msg);
    c->list = child;
    c->count++;
    flux_shell_add_completion_ref(c->shell, CHILD_REFERENCE);
    if (!spawn_get(&in, &child->order))
        not_started(child, RM_SPAWN_FAILED, "the shell cannot read what is to be spawned");
    else if (submit(child, &err) < 0)
        not_started(child, RM_SPAWN_FAILED, err.text);
}

/* The word of a spawned job's server. */
static void on_started(flux_t *h, flux_msg_handler_t *mh, const flux_msg_t *msg, void *arg)
{
    struct children *c = arg;
    struct child *child = c->list;
    struct rm_spawn_news news = {0};
    char text[SPAWN_TEXT_MAX];
    struct wire_in in;
    (void)mh;
    if (!from_own(h, msg, &in))
        return;
    uint32_t number = wire_get_u32(&in);
    if (!spawn_get_news(&in, &news, text) || news.result == RM_SPAWN_ENDED)
        return;
    while (child && child->number != number)
        child = child->next;
    if (!child || child->told)
        return;
    if (news.result != RM_SPAWN_RUNS) {
        child_fail(child, news.result, text);
        return;
    }
    child->told = true;
    child_tell(child, &news);
    if (child->state >= CHILD_ENDS)
        return; /* it is over already, and what it has printed is still on its way */
    child->state = CHILD_RUNS;
    child_stop_timer(child);
    if (c->tasks_ended)
        children_tasks_ended(c);
}

/* ---- the whole ---- */

struct children *children_open(flux_shell_t *shell, struct boot *boot, uint64_t job)
{
    struct children *c;
    char topic[sizeof(c->channel) - 16], id[JOBID_SIZE];
    uint32_t rank;
    if (!flux_shell_service_register || !flux_job_submit || !flux_kvs_commit || !json_loads)
        return NULL;
    c = calloc(1, sizeof(*c));
    if (!c)
        return NULL;
    c->shell = shell;
    c->h = flux_shell_get_flux(shell);
    c->job = job;
    c->nnodes = boot->nnodes;
    if (flux_get_rank(c->h, &rank) < 0 ||
        flux_shell_service_register(shell, ASKED, on_asked, c) < 0 ||
        flux_shell_service_register(shell, STARTED, on_started, c) < 0) {
        log_warning("PMIx_Spawn is refused: the shell offers no service: %s", strerror(errno));
        free(c);
        return NULL;
    }
    jobid_write(job, id);
    snprintf(topic, sizeof(topic), "%u-shell-%s." STARTED, (unsigned)getuid(), id);
    snprintf(c->channel, sizeof(c->channel), "%u %s", rank, topic);
    snprintf(topic, sizeof(topic), "%u-shell-%s." ASKED, (unsigned)getuid(), id);
    boot_set(boot, "spawn", topic);
    return c;
}

void children_tasks_ended(struct children *c)
{
    if (!c)
        return;
    c->tasks_ended = true;
    for (struct child *child = c->list; child; child = child->next) {
        if (child->state == CHILD_RUNS && child->order.what.linger > 0 && !child->timer)
            child_set_timer(child, child->order.what.linger);
    }
}

void children_close(struct children *c)
{
    if (!c)
        return;
    while (c->list)
        child_forget(c->list);
    free(c);
}
