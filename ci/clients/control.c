/* SPDX-License-Identifier: BSD-3-Clause */
/* control: PMIx_Job_control. Rank 0 sends signals to single ranks, and to all; each process counts
 * what it gets. With --pause S it pauses the last rank for S seconds, while the others wait for
 * that one in a fence: longer than the fence may take (MUSTER_TIMEOUTS_FENCE). It asks all, itself
 * too, for a checkpoint, and is answered when the last one is done; then for one that the last rank
 * never does, and others are cancelled. What muster cannot do is refused at once. At the end the
 * last rank is killed, where the step goes on without it.
 */
#include "event.h"

#include <signal.h>
#include <unistd.h>

enum { LONG_MS = 30000, LOOK_MS = 20 };

static volatile sig_atomic_t got[NSIG];

static void on_signal(int sig)
{
    got[sig]++;
}

static pmix_status_t control(const pmix_proc_t *targets, size_t n, const char *key,
                             const void *value, pmix_data_type_t type)
{
    pmix_info_t info, *results = NULL;
    size_t nresults = 0;
    PMIX_INFO_LOAD(&info, key, value, type);
    pmix_status_t status = PMIx_Job_control(targets, n, &info, 1, &results, &nresults);
    PMIX_INFO_DESTRUCT(&info);
    return status == PMIX_OPERATION_SUCCEEDED ? PMIX_SUCCESS : status;
}

static pmix_status_t send_signal(const pmix_proc_t *targets, size_t n, int sig)
{
    return control(targets, n, PMIX_JOB_CTRL_SIGNAL, &sig, PMIX_INT);
}

static void await(int sig)
{
    for (int ms = 0; got[sig] == 0 && ms < LONG_MS; ms += LOOK_MS)
        sleep_ms(LOOK_MS);
}

static void signals(void)
{
    const pmix_proc_t last = proc_of(client.size - 1);
    bool is_last = client.me.rank == client.size - 1;
    step("a signal for one rank");
    if (client.me.rank == 0)
        CHECK_OK(send_signal(&last, 1, SIGUSR1), "SIGUSR1 to the last rank");
    if (is_last)
        await(SIGUSR1);
    fence_all(false);
    step("a signal for all");
    if (client.me.rank == 0)
        CHECK_OK(send_signal(&client.all, 1, SIGUSR2), "SIGUSR2 to all");
    await(SIGUSR2);
    fence_all(false);
    CHECK_EQ(got[SIGUSR1], is_last, "SIGUSR1");
    CHECK_EQ(got[SIGUSR2], 1, "SIGUSR2");
}

static void control_last(const char *key)
{
    const pmix_proc_t last = proc_of(client.size - 1);
    const bool yes = true;
    CHECK_OK(control(&last, 1, key, &yes, PMIX_BOOL), key);
}

/* Waits until this process has not run for so long. @param begin when it ran last */
static void await_pause(uint64_t begin, uint64_t ms)
{
    uint64_t last = begin, now = now_ns();
    while (now - last < ms * 1000000) {
        CHECK(now - begin < LONG_MS * 1000000ull, "there is no pause of %d ms within %d ms",
              (int)ms, LONG_MS);
        last = now;
        sleep_ms(LOOK_MS);
        now = now_ns();
    }
}

static void pauses(long s)
{
    uint64_t begin = now_ns(); /* the last rank may be stopped before it leaves the fence */
    step("a pause");
    fence_all(false);
    if (client.me.rank == 0) {
        control_last(PMIX_JOB_CTRL_PAUSE);
        sleep_ms(1000 * s);
        control_last(PMIX_JOB_CTRL_RESUME);
    }
    if (client.me.rank == client.size - 1)
        await_pause(begin, 1000 * (uint64_t)s - 500);
    fence_all(false);
}

/* ---- checkpoints ---- */

enum { LATE_MS = 500 };

static struct listener *asked_for;
static volatile pmix_status_t ckpt_status;
static volatile sig_atomic_t ckpt_answered;

static void on_answer(pmix_status_t status, pmix_info_t *info, size_t ninfo, void *cbdata,
                      pmix_release_cbfunc_t release, void *release_arg)
{
    (void)info, (void)ninfo, (void)cbdata;
    ckpt_status = status;
    ckpt_answered = 1;
    if (release != NULL)
        release(release_arg);
}

/* @param sig 0: by the event */
static void ask_checkpoint(const pmix_proc_t *target, const char *id, int s, int sig)
{
    static pmix_info_t info[4];
    const bool yes = true;
    PMIX_INFO_LOAD(&info[0], PMIX_JOB_CTRL_CHECKPOINT, id, PMIX_STRING);
    PMIX_INFO_LOAD(&info[1], PMIX_JOB_CTRL_CHECKPOINT_EVENT, &yes, PMIX_BOOL);
    if (sig != 0)
        PMIX_INFO_LOAD(&info[1], PMIX_JOB_CTRL_CHECKPOINT_SIGNAL, &sig, PMIX_INT);
    PMIX_INFO_LOAD(&info[2], PMIX_JOB_CTRL_CHECKPOINT_TIMEOUT, &s, PMIX_INT);
    PMIX_INFO_LOAD(&info[3], PMIX_JOB_CTRL_ID, id, PMIX_STRING);
    ckpt_answered = 0;
    CHECK_OK(PMIx_Job_control_nb(target, 1, info, 4, on_answer, NULL), id);
}

static pmix_status_t checkpoint_status(void)
{
    for (int ms = 0; !ckpt_answered && ms < LONG_MS; ms += LOOK_MS)
        sleep_ms(LOOK_MS);
    CHECK(ckpt_answered, "a checkpoint is not answered within %d ms", LONG_MS);
    return ckpt_status;
}

static void complete(void)
{
    event_raise(PMIX_JCTRL_CHECKPOINT_COMPLETE, PMIX_RANGE_NAMESPACE, 1, NULL, 0);
}

/* Any process ends a call that waits by its id, and its caller ends all of its own. The last rank
 * is asked and says nothing; it can be asked again afterwards. */
static void cancels(bool is_last)
{
    const pmix_proc_t last = proc_of(client.size - 1);
    step("a checkpoint that is cancelled");
    for (int by_id = 0; by_id < 2; by_id++) {
        if (client.me.rank == 0)
            ask_checkpoint(&last, "reef", LONG_MS / 1000, 0);
        if (is_last)
            listen_wait(asked_for, PMIX_JCTRL_CHECKPOINT, PMIX_RANK_WILDCARD, 3 + by_id);
        if (by_id && is_last)
            CHECK_OK(control(NULL, 0, PMIX_JOB_CTRL_CANCEL, "reef", PMIX_STRING), "cancel");
        if (!by_id && client.me.rank == 0)
            CHECK_OK(control(NULL, 0, PMIX_JOB_CTRL_CANCEL, NULL, PMIX_STRING), "cancel of all");
        if (client.me.rank == 0)
            CHECK_STATUS(checkpoint_status(), PMIX_ERR_JOB_CANCELED, "what was cancelled");
        fence_all(false);
    }
    if (client.me.rank == 0)
        ask_checkpoint(&last, "atoll", LONG_MS / 1000, 0);
    if (is_last) {
        listen_wait(asked_for, PMIX_JCTRL_CHECKPOINT, PMIX_RANK_WILDCARD, 5);
        complete();
    }
    if (client.me.rank == 0)
        CHECK_OK(checkpoint_status(), "the one asked for afterwards");
    fence_all(false);
}

static void checkpoints(void)
{
    const pmix_proc_t last = proc_of(client.size - 1);
    bool is_first = client.me.rank == 0, is_last = client.me.rank == client.size - 1;
    step("a checkpoint");
    if (is_first)
        ask_checkpoint(&client.all, "one", LONG_MS / 1000, 0);
    listen_wait(asked_for, PMIX_JCTRL_CHECKPOINT, PMIX_RANK_WILDCARD, 1);
    if (is_last)
        sleep_ms(LATE_MS);
    complete();
    if (is_first) {
        CHECK(!ckpt_answered, "a checkpoint is answered before all are done");
        CHECK_OK(checkpoint_status(), "a checkpoint");
    }
    fence_all(false);
    step("a checkpoint that a rank does not do");
    if (is_first) {
        ask_checkpoint(&last, "two", 1, 0);
        CHECK_STATUS(checkpoint_status(), PMIX_ERR_TIMEOUT, "a checkpoint that is not done");
    }
    if (is_last)
        listen_wait(asked_for, PMIX_JCTRL_CHECKPOINT, PMIX_RANK_WILDCARD, 2);
    CHECK_EQ(listen_count(asked_for, PMIX_JCTRL_CHECKPOINT, PMIX_RANK_WILDCARD), 1 + is_last,
             "events");
    fence_all(false);
    cancels(is_last);
    if (strcmp(PMIX_JOB_CTRL_CHECKPOINT_SIGNAL, PMIX_JOB_CTRL_CHECKPOINT_TIMEOUT) == 0)
        return; /* libpmix has one key for both */
    step("a checkpoint by a signal");
    got[SIGUSR2] = 0;
    fence_all(false);
    if (is_first)
        ask_checkpoint(&last, "three", LONG_MS / 1000, SIGUSR2);
    if (is_last) {
        await(SIGUSR2);
        complete();
    }
    if (is_first)
        CHECK_OK(checkpoint_status(), "a checkpoint by a signal");
    fence_all(false);
}

static void refusals(void)
{
    const bool yes = true;
    pmix_proc_t none = proc_of(client.size), other = client.all;
    PMIX_LOAD_NSPACE(other.nspace, "nobody.1");
    step("what is refused");
    CHECK_STATUS(send_signal(&client.all, 1, NSIG), PMIX_ERR_BAD_PARAM, "a signal too large");
    CHECK_STATUS(send_signal(&client.all, 1, 0), PMIX_ERR_BAD_PARAM, "signal 0");
    CHECK_STATUS(send_signal(&none, 1, SIGUSR1), PMIX_ERR_NOT_FOUND, "a rank too large");
    CHECK_STATUS(send_signal(&other, 1, SIGUSR1), PMIX_ERR_NOT_SUPPORTED, "another namespace");
    CHECK_STATUS(control(&client.all, 1, PMIX_JOB_CTRL_RESTART, "one", PMIX_STRING),
                 PMIX_ERR_NOT_SUPPORTED, "a restart");
    CHECK_STATUS(control(&client.all, 1, PMIX_JOB_CTRL_CANCEL, "one", PMIX_STRING),
                 PMIX_ERR_NOT_FOUND, "cancel of what does not wait");
    CHECK_STATUS(control(&client.all, 1, PMIX_JOB_CTRL_CANCEL, "", PMIX_STRING), PMIX_ERR_BAD_PARAM,
                 "cancel of an empty id");
    CHECK_STATUS(control(&client.all, 1, PMIX_JOB_CTRL_PREEMPTIBLE, &yes, PMIX_BOOL),
                 PMIX_ERR_NOT_SUPPORTED, "preemption");
}

int main(int argc, char **argv)
{
    long kill = 0, pause_s = 0;
    const struct option_number options[] = {
        {"kill", &kill, "the last rank is killed: 1", NULL},
        {"pause", &pause_s, "s for which the last rank is paused; 0: it is not", NULL},
        {0}};
    signal(SIGUSR1, on_signal);
    signal(SIGUSR2, on_signal);
    client_init("control", options, argc, argv);
    const pmix_status_t code = PMIX_JCTRL_CHECKPOINT;
    asked_for = listen_to(&code, 1, NULL, 0);
    fence_all(false);
    signals();
    if (pause_s > 0)
        pauses(pause_s);
    checkpoints();
    if (client.me.rank == 0)
        refusals();
    fence_all(false);
    if (kill == 0)
        return client_pass("%u ranks get their signals", client.size);
    step("a rank is killed");
    if (client.me.rank == 0) {
        const pmix_proc_t last = proc_of(client.size - 1);
        ask_checkpoint(&last, "four", LONG_MS / 1000, 0);
        control_last(PMIX_JOB_CTRL_KILL);
        CHECK_STATUS(checkpoint_status(), PMIX_ERR_PROC_TERM_WO_SYNC, "a checkpoint of the dead");
    }
    if (client.me.rank == client.size - 1)
        sleep_ms(LONG_MS);
    CHECK(client.me.rank != client.size - 1, "the last rank lives after %d ms", LONG_MS);
    printf("control: rank %u goes on\n", client.me.rank);
    fflush(stdout);
    _exit(0); /* the job is broken: finalize may wait for the dead */
}
