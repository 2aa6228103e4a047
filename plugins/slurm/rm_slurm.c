/* SPDX-License-Identifier: BSD-3-Clause */
/* The back end for Slurm, loaded by muster-server: bytes to other servers of the step by
 * slurm_forward_data (outbox.c), to those of other steps of the user, too (others.c, scout.c),
 * bytes from them over the socket that the plugin made (inbox.c), the step's end (ender.c).
 *
 * slurmd on the receiving side connects to the socket as the sender's uid, so SO_PEERCRED vouches
 * for it; the socket's mode refuses all other users (docs/transport.md, "Messages through slurmd").
 */
#include "plugins/slurm/rm_slurm.h"

#include "common/handoff/handoff.h"
#include "common/util/clock.h"
#include "common/util/mark.h"
#include "plugins/slurm/auth.h"
#include "plugins/slurm/rm_spawn.h"
#include "shims/slurm/release.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

MARK_VERSION;

enum { SPARE_MS = 1000 /* for threads to end, beyond the time that close() was given */ };

static int start_thread(struct rm *rm, struct err *err)
{
    int rc = ender_start(rm);
    return rc == 0 ? 0 : err_set(err, "no thread can be started: %s", strerror(rc));
}

static void slurm_close(struct rm *rm, unsigned ms)
{
    int64_t sent_by = now_ms() + ms, by = sent_by + SPARE_MS;
    pthread_mutex_lock(&rm->lock);
    rm->closing = true;
    pthread_mutex_unlock(&rm->lock);
    outbox_drain(rm, sent_by);
    ender_join(rm, by);
    if (!outbox_close(rm, by))
        _exit(0); /* stuck in a call to a slurmd that hangs; nothing of ours is left to save */
    if (!scout_join(rm, by) || !spawns_close(rm->spawns, by))
        _exit(0);
    inbox_close(rm->inbox);
    if (rm->handoff != NULL)
        handoff_run(rm->handoff);
    handoff_free(rm->handoff);
    outbox_free(rm);
    others_free(rm);
    scout_free(rm);
    pthread_mutex_destroy(&rm->lock);
    pthread_cond_destroy(&rm->sent);
    pthread_cond_destroy(&rm->ender.wake);
    free(rm);
}

static int read_settings(struct rm *rm, struct err *err)
{
    const char *jobs = boot_setting(rm->boot, "jobs"), *step = boot_setting(rm->boot, "step");
    const char *runs = boot_setting(rm->boot, "runs"), *address = boot_setting(rm->boot, "address");
    rm->socket = boot_setting(rm->boot, "socket");
    if (jobs == NULL || step == NULL || runs == NULL || address == NULL || rm->socket == NULL)
        return err_set(err, "the plugin's boot message lacks jobs, step, runs, address or socket");
    rm->jobs = jobs;
    rm->runs = runs;
    rm->step = (uint32_t)strtoul(step, NULL, 10);
    rm->address = (char *)address;
    rm->agent = boot_setting(rm->boot, "agent");
    return 0;
}

static struct rm *slurm_open(const struct boot *boot, const struct conf *conf,
                             struct event_base *base, const struct rm_host *host, struct err *err)
{
    pthread_condattr_t attr;
    struct rm *rm;
    if (slurm_release() == NULL) {
        err_set(err,
                "this muster does not know the Slurm of the library version %ld: install one that "
                "knows it",
                slurm_abi_api_version() >> 16);
        return NULL;
    }
    rm = calloc(1, sizeof *rm);
    rm->boot = boot;
    rm->host = *host;
    rm->opened = now_ms();
    rm->peer_ms = (int64_t)conf->timeouts.peer * 1000;
    pthread_mutex_init(&rm->lock, NULL);
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(&rm->sent, &attr);
    pthread_cond_init(&rm->ender.wake, &attr);
    pthread_condattr_destroy(&attr);
    rm->handoff = handoff_new(base);
    rm->inbox = inbox_open(BOOT_FD_LISTEN, base, &rm->host);
    slurm_abi_init(NULL);
    bool good = outbox_init(rm, base) && rm->handoff != NULL && rm->inbox != NULL &&
                read_settings(rm, err) == 0;
    if (good)
        rm->spawns = spawns_open(rm->agent, boot, base);
    if (good && rm->spawns != NULL && start_thread(rm, err) == 0)
        return rm;
    if (err->text[0] == '\0')
        err_set(err, "there are no descriptors left");
    slurm_close(rm, 0);
    return NULL;
}

static void slurm_spawn(struct rm *rm, const struct rm_spawn *what, rm_spawn_fn *news, void *arg)
{
    spawns_start(rm->spawns, what, news, arg);
}

static void slurm_allocate(struct rm *rm, const struct rm_alloc *what, rm_alloc_fn *done, void *arg)
{
    spawns_allocate(rm->spawns, what, done, arg);
}

static bool slurm_shut(struct rm *rm)
{
    return inbox_shut(rm->inbox, rm->socket);
}

static void slurm_let_go(struct rm *rm)
{
    spawns_let_go(rm->spawns);
}

static void slurm_started(struct rm *rm, const struct rm_spawn_news *news)
{
    spawns_started(rm->spawns, news);
}

/* What goes by slurmd can be read on its way by any user who reads the network. */
static bool seal(const void *data, size_t len, struct wire_out *out)
{
    return auth_seal(out, getuid(), data, len);
}

static bool unseal(const void *data, size_t len, struct wire_out *out)
{
    struct wire_in in;
    wire_in_init(&in, data, len);
    return auth_open(&in, getuid(), out) && wire_end(&in);
}

static const struct vouch_ops vouch = {seal, unseal};

__attribute__((visibility("default"))) const struct rm_ops muster_rm = {
    .name = "slurm",
    .native = "slurmd",
    .open = slurm_open,
    .ready = outbox_ready,
    .peer = outbox_peer,
    .learn = outbox_learn,
    .vouch = &vouch,
    .abort = ender_order,
    .shows_why = true,
    .show = ender_show,
    .shut = slurm_shut,
    .close = slurm_close,
    .rendezvous = scout_rendezvous,
    .resolve = scout_resolve,
    .others = scout_others,
    .job_now = scout_job_now,
    .attach = others_attach,
    .spawn = slurm_spawn,
    .let_go = slurm_let_go,
    .started = slurm_started,
    .allocate = slurm_allocate,
};
