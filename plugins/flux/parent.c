/* SPDX-License-Identifier: BSD-3-Clause */
/* The log of the job that has spawned this one is read, from the first node of this one. */
#include "plugins/flux/parent.h"

#include "common/launch/plan.h"
#include "common/util/log.h"
#include "plugins/flux/jobid.h"
#include "shims/flux/shell_jobs_abi.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct parent {
    flux_t *h;
    uint64_t own;
    char label[256]; /* its id */
    flux_future_t *events;
};

/* No answer is awaited: where the job has ended already, there is none to end. */
static void end_own(struct parent *p)
{
    char note[320];
    snprintf(note, sizeof(note), "job %s, which has spawned this one, has ended", p->label);
    flux_future_t *f = flux_job_raise(p->h, p->own, "cancel", 0, note);
    if (f == NULL)
        log_error("%s, and this one cannot be ended: %s", note, strerror(errno));
    else
        flux_future_destroy(f);
}

/* Whether an event of its log is its end. */
static bool is_end(const char *text)
{
    json_t *event = json_loads(text, 0, NULL);
    const char *name = "";
    int severity = 1;
    bool end = false;
    if (event == NULL)
        return false;
    if (json_unpack(event, "{s:s s?{s?i}}", "name", &name, "context", "severity", &severity) == 0)
        end = strcmp(name, "finish") == 0 || strcmp(name, "clean") == 0 ||
              (strcmp(name, "exception") == 0 && severity == 0);
    json_delete(event);
    return end;
}

static void on_event(flux_future_t *f, void *arg)
{
    struct parent *p = arg;
    const char *text;
    int rc = flux_job_event_watch_get(f, &text);
    if (rc == 0 && !is_end(text)) {
        flux_future_reset(f);
        return;
    }
    if (rc == 0)
        end_own(p);
    else if (errno != ENODATA)
        log_warning("job %s, which has spawned this one, is not watched any more: %s", p->label,
                    strerror(errno));
    flux_future_destroy(f);
    p->events = NULL;
}

static struct parent *watch(flux_t *h, uint64_t own, uint64_t id, const char *label)
{
    struct parent *p = calloc(1, sizeof(*p));
    if (p == NULL)
        return NULL;
    p->h = h;
    p->own = own;
    snprintf(p->label, sizeof(p->label), "%s", label);
    p->events = flux_job_event_watch(h, id, "eventlog", 0);
    if (p->events != NULL && flux_future_then(p->events, -1., on_event, p) == 0)
        return p;
    log_warning("job %s, which has spawned this one, is not watched: %s", label, strerror(errno));
    parent_close(p);
    return NULL;
}

struct parent *parent_open(flux_shell_t *shell, struct boot *boot, uint64_t job)
{
    static const char scheme[] = "flux.";
    const char *text = flux_shell_getenv(shell, PLAN_PARENT_ENV);
    const char *apps = flux_shell_getenv(shell, PLAN_APPS_ENV);
    const char *channel = flux_shell_getenv(shell, PLAN_CHANNEL_ENV);
    char nspace[256];
    uint32_t rank;
    uint64_t id;
    if (text == NULL || flux_job_event_watch == NULL)
        return NULL;
    boot_set(boot, BOOT_PARENT, text);
    if (apps != NULL)
        boot_set(boot, "apps", apps);
    if (channel != NULL)
        boot_set(boot, "channel", channel);
    if (boot->node != 0 || !boot_parent(boot, nspace, &rank) ||
        strncmp(nspace, scheme, sizeof(scheme) - 1) != 0 ||
        !jobid_parse(nspace + sizeof(scheme) - 1, &id))
        return NULL;
    return watch(flux_shell_get_flux(shell), job, id, nspace + sizeof(scheme) - 1);
}

void parent_close(struct parent *parent)
{
    if (parent == NULL)
        return;
    if (parent->events != NULL)
        flux_future_destroy(parent->events);
    free(parent);
}
