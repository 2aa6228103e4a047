/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * Follows the tasks of this node (task.c has the life of one). Finds among lost tasks the task that
 * is the cause, reports it once for the step, and has the step ended if that is the setting.
 */
#include "common/server/tasks/tasks.h"

#include "common/nspace/library.h"
#include "common/server/ending.h"
#include "common/server/tasks/cause.h"
#include "common/util/clock.h"
#include "common/util/log.h"

#include <errno.h>
#include <pmix_common.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

/* The RM ends all tasks of a node within less; an operation that fails for the loss takes longer to
 * reach the tasks that then end, and with them the user's terminal. A step's only task is lost
 * alone, and the terminal is shut at once. */
enum { TOGETHER_MS = 5, JUST_MS = 1000 };

static int64_t together(const struct server *server)
{
    return server->boot.ntasks > 1 ? TOGETHER_MS : 0;
}

/* When no server knows the cause, all would have the step ended at once: one does it first. */
enum { TURN_MS = 20, TURNS = 50 };

/* For the RM's answer, which comes within less. A loss is told without it then. */
enum { ANSWER_MS = 1000 };

static int64_t patience(const struct server *server)
{
    uint32_t node = server->boot.node;
    return JUST_MS + TURN_MS * (int64_t)(node < TURNS ? node : TURNS);
}

/* Whether another node's server is about to have the step ended for a loss that an operation here
 * has failed for already: it knows the cause. */
static bool may_follow(const struct server *server)
{
    return server->conf.on_task_loss == CONF_TASK_LOSS_END_STEP && server->bereft_at != 0 &&
           now_ms() < server->bereft_at + patience(server);
}

static timer_fire on_report;

static void report_after(struct server *server, int64_t ms)
{
    timer_init(&server->report_losses, &server->timers, on_report, server);
    timer_after(&server->report_losses, ms);
}

/* Most likely its process is ending. */
static bool is_just_cut(const struct task *task)
{
    return task->state == TASK_CUT && now_ms() < task->at + JUST_MS;
}

void tasks_ended(struct server *server, uint32_t slot, uint32_t sig, uint32_t code)
{
    const struct boot_node *here = boot_here(&server->boot);
    if (slot >= here->ntasks || task_has_ended(&server->tasks[slot]))
        return;
    struct task *task = &server->tasks[slot];
    bool cut_just_now = is_just_cut(task);
    task_move(task, here->ranks[slot], TASK_END);
    bool lost = task_is_lost(task);
    task->sig = sig;
    task->code = code;
    if (!cut_just_now)
        task->at = now_ms();
    log_debug("rank %u ended: signal %u, exit code %u%s", here->ranks[slot], sig, code,
              lost ? ", without PMIx_Finalize" : "");
    if (lost && server->whose_end == END_ASKED)
        return; /* it is told with those before it */
    if (lost)
        report_after(server, may_follow(server) ? patience(server) : together(server));
    else
        engine_local_loss(server->engine);
}

/* The launcher may be late with the word of one that libpmix has noticed. */
static bool has_ended(const struct task *task)
{
    return task_has_ended(task) || task->client == CLIENT_FORGOTTEN;
}

int32_t tasks_loss_status(const struct server *server, enum coll_kind kind)
{
    return kind == COLL_CONSTRUCT && library_has(server->library, LIBRARY_GROUP_ABORTS)
               ? PMIX_GROUP_CONSTRUCT_ABORT
               : PMIX_ERR_PROC_TERM_WO_SYNC;
}

int32_t tasks_status(const struct server *server, const struct signature *sig)
{
    const struct boot_node *here = boot_here(&server->boot);
    for (uint32_t k = 0; k < here->ntasks; k++)
        if (has_ended(&server->tasks[k]) &&
            procset_has(&sig->members, server->boot.nspace, here->ranks[k]))
            return tasks_loss_status(server, sig->kind);
    return 0;
}

void tasks_gone(const struct server *server, const struct signature *sig, struct procset *gone)
{
    const struct boot_node *here = boot_here(&server->boot);
    for (uint32_t k = 0; k < here->ntasks; k++)
        if (has_ended(&server->tasks[k]) &&
            procset_has(&sig->members, server->boot.nspace, here->ranks[k]))
            procset_add(gone, server->boot.nspace, here->ranks[k], here->ranks[k]);
    procset_canonical(gone);
}

void tasks_bereft(struct server *server, int32_t status, const struct procset *gone)
{
    const struct procset_part *part = gone->nparts > 0 ? &gone->parts[0] : NULL;
    uint32_t rank, node;
    if (part == NULL || part->ranks.n == 0)
        return;
    rank = part->ranks.v[0].first;
    if (nspace_node(server->nspace, part->nspace, rank, &node) != 0 || node == server->boot.node)
        return;
    server->bereft_at = now_ms();
    if (server->loss == LOSS_UNSAID && server->lost_on == node) {
        server->loss = LOSS_SERVER;
        log_cause("%s", server->lost);
    }
    if (server->loss != LOSS_NONE)
        return;
    server->lost_on = node;
    server->loss = status != PMIX_ERR_LOST_CONNECTION ? LOSS_TASK : LOSS_SERVER;
    snprintf(server->lost, sizeof server->lost, "rank %u on %.100s %s", rank,
             nspace_name(server->nspace, node),
             server->loss == LOSS_TASK ? "has ended" : "is lost");
}

bool tasks_just_lost(const struct server *server)
{
    const struct boot_node *here = boot_here(&server->boot);
    for (uint32_t k = 0; k < here->ntasks; k++)
        if (task_is_lost(&server->tasks[k]) && now_ms() < server->tasks[k].at + JUST_MS)
            return true;
    return false;
}

bool tasks_all_killed(const struct server *server)
{
    uint32_t n = boot_here(&server->boot)->ntasks;
    for (uint32_t k = 0; k < n; k++)
        if (server->tasks[k].sig == 0 || server->tasks[k].aborted)
            return false;
    return true;
}

bool tasks_one_ended_well(const struct server *server)
{
    uint32_t n = boot_here(&server->boot)->ntasks;
    for (uint32_t k = 0; k < n; k++) {
        const struct task *task = &server->tasks[k];
        if (task->sig == 0 && !task_is_lost(task) && !task_may_be_lost(task))
            return true;
    }
    return false;
}

bool tasks_loss_is_told(struct server *server, const struct procset *participants)
{
    const struct boot_node *here = boot_here(&server->boot);
    for (uint32_t k = 0; k < here->ntasks; k++)
        if (server->tasks[k].state == TASK_TOLD &&
            procset_has(participants, server->boot.nspace, here->ranks[k]))
            return true;
    if (server->ending || timer_runs(&server->report_losses))
        return server->ending;
    report_after(server, JUST_MS); /* it must be on its way */
    return false;
}

bool tasks_await_cause(const struct server *server)
{
    return timer_runs(&server->report_losses) && may_follow(server);
}

bool tasks_tell_for_others(const struct server *server)
{
    return !timer_runs(&server->report_losses) ||
           (tasks_await_cause(server) && !tasks_all_killed(server));
}

/* How the step ends: as that task did. */
static struct rm_ending first_loss(const struct server *server, const char *why)
{
    const struct task *first = cause_first_lost(server);
    return first == NULL ? ending_of_host(why) : ending_of_task(first->sig, first->code, why);
}

/* @return a node whose launcher may reach the user, and is not lost nor has left: where there is
 * one, not this one */
static uint32_t who_tells(const struct server *server)
{
    uint32_t node = 0;
    while (node < server->boot.nnodes &&
           (node == server->boot.node || server_has_left(server, node) ||
            (server->loss != LOSS_NONE && node == server->lost_on)))
        node++;
    return node < server->boot.nnodes ? node : server->boot.node;
}

/* A task that the RM may have killed is no news then, so the reason takes the launcher's way to the
 * terminal, which the RM shuts when it does that. */
static void end_for_task(struct server *server, struct rm_ending ending, uint32_t teller)
{
    const struct task *first = cause_first_lost(server);
    ending.told = first != NULL && cause_may_be_of_rm(first->sig);
    server_end_step(server, &ending, teller);
}

/* All tasks of this node were killed, so the terminal may not be reached from here any more: the
 * server of another node tells the user. Only one does, since the RM may have killed tasks on all
 * nodes. */
static void end_for_all(struct server *server, uint32_t sig)
{
    const struct boot_node *here = boot_here(&server->boot);
    char who[64], text[384];
    if (here->ntasks == 1)
        snprintf(who, sizeof who, "rank %u on", here->ranks[0]);
    else
        snprintf(who, sizeof who, "all %u tasks on", here->ntasks);
    snprintf(text, sizeof text,
             "%s %s %s killed by signal %u (%s) before PMIx_Finalize; ending the %s", who,
             here->name, here->ntasks == 1 ? "was" : "were", sig, strsignal((int)sig), log_unit());
    end_for_task(server, ending_of_task(sig, 0, text), who_tells(server));
}

/* The user is to read the cause before what came of it, also where this node is first to have the
 * step ended: the launcher of the lost server may be slower. A launcher that has told its server to
 * leave may not reach the user any more, so another one says it then. */
static void end_after_server(struct server *server, uint32_t together, const char *task)
{
    char text[512];
    snprintf(text, sizeof text, "%s; then %s; ending the %s", server->lost, task, log_unit());
    /* After a server was lost, the status of the tasks here is no cause. But where a task elsewhere
     * is missing, whose server lives, that task has most likely ended in order: a server tells of
     * its own losses. Then the status is that of the tasks here. A loss that its server still tells
     * of weighs more. */
    struct rm_ending ending = ending_of_host(text);
    if (server->loss == LOSS_TASK)
        ending.status = first_loss(server, text).status;
    end_for_task(server, ending,
                 server->told_to_leave ? who_tells(server)
                 : together != 0       ? ENDING_NOBODY_TELLS
                                       : server->boot.node);
}

static bool any_lives(const struct server *server)
{
    uint32_t n = boot_here(&server->boot)->ntasks;
    for (uint32_t k = 0; k < n; k++)
        if (!task_has_ended(&server->tasks[k]))
            return true;
    return false;
}

/* Where no task lives any more, the launcher may have shut the way to the terminal. */
static void end_after_task(struct server *server)
{
    const struct task *first = cause_first_lost(server);
    char text[256], why[320];
    cause_describe(server, (uint32_t)(first - server->tasks), text, sizeof text);
    snprintf(why, sizeof why, "%s; ending the %s", text, log_unit());
    end_for_task(server, ending_of_task(first->sig, first->code, why),
                 any_lives(server) ? server->boot.node : who_tells(server));
}

/* The RM says itself why it ends the step; the other servers need not ask. */
static void follow_rm(struct server *server)
{
    struct rm_ending ending = ending_of_host("the resource manager ends it");
    log_info("the tasks here that were lost were killed because the %s is being ended", log_unit());
    server_end_step(server, &ending, ENDING_RM_TELLS);
}

/* Says which task or server is lost, and ends the step if that is the setting. */
static void tell(struct server *server)
{
    if (server->whose_end == END_OF_RM && !server->ending)
        follow_rm(server);
    const struct boot_node *here = boot_here(&server->boot);
    uint32_t together = cause_common_signal(server), lost = 0;
    bool end = server->conf.on_task_loss == CONF_TASK_LOSS_END_STEP && !server->ending;
    char text[256] = "";
    for (uint32_t k = 0; k < here->ntasks; k++) {
        struct task *task = &server->tasks[k];
        lost += task_is_lost(task);
        if (task->state != TASK_LOST)
            continue;
        task_move(task, here->ranks[k], TASK_TELL);
        cause_describe(server, k, text, sizeof text);
        bool goes_on = !end && !server->ending;
        log_write(goes_on && together == 0 && !cause_is_follower(server, task) ? LOG_LEVEL_ERROR
                                                                               : LOG_LEVEL_INFO,
                  "%s", text);
        if (goes_on)
            server->hooks->task_lost(server, k, text);
    }
    if (!end || lost == 0)
        return;
    if (server->loss != LOSS_NONE)
        end_after_server(server, together, text);
    else if (together != 0)
        end_for_all(server, together);
    else
        end_after_task(server);
}

/* The RM kills the tasks of a step that is to end, unless it cannot be reached, does not know the
 * step any more, or the server that was to ask it is gone with its node. A task that the launcher
 * has told of is reaped by it, and told of again, within milliseconds: until then the number is no
 * other process's. */
static void kill_rest(void *arg, struct timer *timer)
{
    struct server *server = arg;
    if (!any_lives(server))
        return;
    log_info("the %s was to end, and tasks of it still run here: killing them", log_unit());
    for (uint32_t k = 0; k < boot_here(&server->boot)->ntasks; k++) {
        pid_t pid = server->tasks[k].pid;
        if (pid > 0 && !task_has_ended(&server->tasks[k]) && kill(pid, SIGKILL) != 0)
            log_warning("process %d cannot be killed: %s", (int)pid, strerror(errno));
    }
    timer_after(timer, SERVER_KILL_MS);
}

void tasks_open(struct server *server)
{
    timer_init(&server->kill_rest, &server->timers, kill_rest, server);
}

/* A program that does not use PMIx, or not any more, needs no server. */
static void end_bereft(void *arg, struct timer *timer)
{
    struct server *server = arg;
    (void)timer;
    bool used = false;
    for (uint32_t k = 0; k < boot_here(&server->boot)->ntasks; k++)
        used |= server->tasks[k].state == TASK_CONNECTED;
    if (!used || server->ending)
        return;
    char text[512];
    snprintf(text, sizeof text, "%s; ending the %s", server->lost, log_unit());
    struct rm_ending ending = ending_of_host(text);
    server_end_step(server, &ending, server->boot.node);
}

void tasks_host_died(struct server *server)
{
    if (timer_runs(&server->end_bereft) || server->conf.on_task_loss != CONF_TASK_LOSS_END_STEP)
        return;
    timer_init(&server->end_bereft, &server->timers, end_bereft, server);
    timer_after(&server->end_bereft, patience(server));
}

/* Whether libpmix has yet to learn of a loss, though the step goes on. What it hands up without the
 * lost task it tells the clients of itself (notify/loss.h), so no client here is told before that.
 */
static bool libpmix_is_late(const struct server *server)
{
    uint32_t n = boot_here(&server->boot)->ntasks;
    if (server->conf.on_task_loss == CONF_TASK_LOSS_END_STEP || server->ending ||
        !library_has(server->library, LIBRARY_GONE_IS_AWAITED))
        return false;
    for (uint32_t k = 0; k < n; k++) {
        const struct task *task = &server->tasks[k];
        if (task->state == TASK_LOST && task->client == CLIENT_KNOWN &&
            now_ms() < task->at + JUST_MS)
            return true;
    }
    return false;
}

/* Whether the launcher has yet to tell of a task that libpmix saw leave before the first loss here.
 * The tasks that fail for it may end sooner than the kernel has done with a crashed one. */
static bool launcher_is_late(const struct server *server)
{
    const struct task *first = cause_first_lost(server);
    for (uint32_t k = 0; first != NULL && k < boot_here(&server->boot)->ntasks; k++)
        if (is_just_cut(&server->tasks[k]) && server->tasks[k].at <= first->at)
            return true;
    return false;
}

static void tell_all(struct server *server)
{
    tell(server);
    server->whose_end = END_UNASKED;
    engine_local_loss(server->engine);
    server_resume(server);
}

void tasks_tell_rest(struct server *server)
{
    if (!timer_runs(&server->report_losses))
        return;
    timer_stop(&server->report_losses);
    tell_all(server);
}

static void answered(void *arg, bool ending)
{
    struct server *server = arg;
    if (server->whose_end != END_ASKED)
        return; /* it comes too late */
    server->whose_end = ending ? END_OF_RM : END_OF_TASK;
    tasks_tell_rest(server);
}

/* Where the RM can say that it ends the step, it does so before it harms a task. */
static void ask_rm(struct server *server)
{
    server->whose_end = END_ASKED;
    report_after(server, ANSWER_MS);
    server->rm_ops->is_ending(server->rm, answered, server);
}

bool tasks_await_rm(const struct server *server)
{
    return server->whose_end == END_ASKED && timer_runs(&server->report_losses);
}

static void ask_or_tell(struct server *server)
{
    if (server->whose_end == END_UNASKED && !server->ending && server->rm != NULL &&
        server->rm_ops->is_ending != NULL)
        ask_rm(server);
    else
        tell_all(server);
}

static void on_report(void *arg, struct timer *timer)
{
    if (libpmix_is_late(arg) || launcher_is_late(arg))
        timer_after(timer, TOGETHER_MS);
    else
        ask_or_tell(arg);
}

void tasks_hurry(struct server *server)
{
    timer_hurry(&server->end_bereft);
    timer_hurry(&server->kill_rest);
    if (!timer_runs(&server->report_losses) || tasks_await_rm(server))
        return;
    timer_stop(&server->report_losses);
    ask_or_tell(server);
}
