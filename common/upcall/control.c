/* SPDX-License-Identifier: BSD-3-Clause */
/* job_control: signals for processes of the step, checkpoints, process sets, and a context id for
 * PMIx_Group_invite. Which processes clean up what is libpmix's own (PMIX_REGISTER_CLEANUP).
 *
 * The caller is answered when the order is under way to all servers; of a checkpoint when it is
 * done; of a process set when all servers have it.
 */
#include "common/notify/refuse.h"
#include "common/server/ending.h"
#include "common/server/peers/ask_all.h"
#include "common/server/steps/sets.h"
#include "common/server/tasks/signals.h"
#include "common/upcall/checkpoint.h"
#include "common/upcall/directives.h"
#include "common/upcall/upcall.h"
#include "common/util/log.h"

#include <pmix.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What a call asks for. */
enum what { NOTHING, CONTEXT_ID, SIGNAL, TERMINATE, KILL, CHECKPOINT, DEFINE, CANCEL };

/* The same for all servers, in one order: u32 the asker, u64 its number, u8 what, then
 * ALL_DEFINE: str name, procset members: a process set is defined;
 * ALL_CANCEL: str id ("": all of the caller), str namespace and u32 rank of the caller. */
enum { ALL_DEFINE, ALL_CANCEL, ALL_ANSWER_S = 10 };

/* What this server has answered. It is asked again when the view changes before the asker has all
 * answers: what was done must not be looked for once more. */
struct control_answer {
    LIST_ENTRY(control_answer) entry;
    struct timer forget; /* once the asker waits no more: see ask_all.h */
    uint32_t asker;
    uint64_t number; /* of the asker's question */
    int32_t status;
};

struct control {
    struct request request;
    enum what what;
    int sig;            /* of all but CONTEXT_ID; of CHECKPOINT 0: by an event */
    bool all;           /* all processes of the step */
    struct procset set; /* the processes */
    pmix_proc_t caller;
    char *number;         /* PMIX_JOB_CTRL_ID, or NULL; owned */
    char *id;             /* of CHECKPOINT; a set's name; of CANCEL that request, or NULL; owned */
    uint32_t open;        /* servers that have not answered */
    pmix_status_t status; /* what they have said so far */
    /* The rest is of CHECKPOINT. */
    bool by_event;    /* PMIX_JOB_CTRL_CHECKPOINT_EVENT */
    bool has_timeout; /* PMIX_JOB_CTRL_CHECKPOINT_TIMEOUT */
    uint32_t timeout; /* s */
};

/* What muster cannot do, and why. */
static const struct {
    const char *key, *name, *why;
} refusals[] = {
    {PMIX_JOB_CTRL_RESTART, "PMIX_JOB_CTRL_RESTART",
     "the resource manager restarts jobs, not processes"},
    {PMIX_JOB_CTRL_CHECKPOINT_METHOD, "PMIX_JOB_CTRL_CHECKPOINT_METHOD",
     "each process has its own way to make a checkpoint"},
    {PMIX_JOB_CTRL_PROVISION, "PMIX_JOB_CTRL_PROVISION",
     "nodes are provisioned by the resource manager"},
    {PMIX_JOB_CTRL_PREEMPTIBLE, "PMIX_JOB_CTRL_PREEMPTIBLE",
     "the resource manager knows which jobs it may preempt"},
};

/* Before libpmix 5 there is no such key. */
#ifdef PMIX_JOB_CTRL_DEFINE_PSET
static const char define_key[] = PMIX_JOB_CTRL_DEFINE_PSET;
#else
static const char define_key[] = "";
#endif

static void control_free(struct control *control)
{
    procset_free(&control->set);
    free(control->number);
    free(control->id);
    free(control);
}

static void give_context_id(struct control *control)
{
    pmix_info_t *info = NULL;
    size_t id = (size_t)engine_context_id(upcall_server()->engine, ENGINE_WANT_CONTEXT_ID);
    PMIX_INFO_CREATE(info, 1);
    PMIX_INFO_LOAD(&info[0], PMIX_GROUP_CONTEXT_ID, &id, PMIX_SIZE);
    answer_infos(&control->request.answer, PMIX_SUCCESS, info, 1);
}

/* "rank 2 calls PMIx_Job_control for all processes: signal 15 (Terminated)" */
static void describe(const struct control *control, char *buf, size_t cap)
{
    const struct boot *boot = &upcall_server()->boot;
    char of[64] = "all processes", process[PMIX_MAX_NSLEN + 16] = "";
    uint64_t n = procset_size(&control->set);
    if (strcmp(control->caller.nspace, boot->nspace) != 0)
        snprintf(process, sizeof process, "%s ", control->caller.nspace);
    if (n == 1 && !control->all)
        snprintf(of, sizeof of, "rank %u", control->set.parts[0].ranks.v[0].first);
    else if (!control->all)
        snprintf(of, sizeof of, "%u of %u processes", (unsigned)n, boot->ntasks);
    snprintf(buf, cap, "%srank %u calls PMIx_Job_control for %s: signal %d (%s)", process,
             control->caller.rank, of, control->sig, strsignal(control->sig));
}

/* A task that ends by it is lost, and what follows of that is on_task_loss's business. The whole
 * step is killed by the RM. */
static void end_some(struct control *control)
{
    struct server *server = upcall_server();
    char why[PMIX_MAX_NSLEN + 256];
    describe(control, why, sizeof why);
    if (control->what == KILL && control->all) {
        snprintf(why + strlen(why), sizeof why - strlen(why), "; ending %s %s", log_unit(),
                 server->boot.label);
        struct rm_ending ending = ending_of_abort(128 + SIGKILL, why);
        server_end_step(server, &ending, server->boot.node);
        return;
    }
    log_error("%s", why);
    signals_send(server, &control->set, control->sig);
    if (control->what == TERMINATE) /* a process that is stopped gets nothing else */
        signals_send(server, &control->set, SIGCONT);
}

static void begin_checkpoint(struct control *control)
{
    struct checkpoint_order order = {.id = control->id,
                                     .request = control->number,
                                     .caller = &control->caller,
                                     .set = &control->set,
                                     .timeout = control->timeout,
                                     .sig = control->sig};
    log_info("%s rank %u calls PMIx_Job_control for checkpoint \"%s\" of %u processes",
             control->caller.nspace, control->caller.rank, control->id,
             (unsigned)procset_size(&control->set));
    checkpoint_begin(upcall_server(), &order, control->request.answer);
}

/* ---- what all servers do ---- */

/* @param set as procset_read() has it */
static bool is_of_step(const struct boot *boot, const struct procset *set)
{
    const struct procset_part *part = set->nparts == 1 ? &set->parts[0] : NULL;
    return part != NULL && strcmp(part->nspace, boot->nspace) == 0 &&
           part->ranks.v[part->ranks.n - 1].last < boot->ntasks;
}

/* @param in what follows the number */
static int32_t do_here(struct server *server, struct wire_in *in)
{
    char name[PROCSET_NAME_MAX + 1], nspace[PMIX_MAX_NSLEN + 1];
    struct procset set = {0};
    int32_t status = PMIX_ERR_UNPACK_FAILURE;
    uint8_t what = wire_get_u8(in);
    wire_get_str(in, name, sizeof name);
    if (what == ALL_DEFINE) {
        procset_read(&set, in);
        if (wire_end(in) && is_of_step(&server->boot, &set))
            status = sets_add(server, name, &set);
    } else if (what == ALL_CANCEL) {
        wire_get_str(in, nspace, sizeof nspace);
        uint32_t rank = wire_get_u32(in);
        if (wire_end(in))
            status = checkpoints_cancel(server, name, nspace, rank) ? PMIX_SUCCESS
                                                                    : PMIX_ERR_NOT_FOUND; /* told */
    }
    procset_free(&set);
    return status;
}

static void forget(struct control_answer *given)
{
    LIST_REMOVE(given, entry);
    timer_stop(&given->forget);
    free(given);
}

static void on_forget(void *arg, struct timer *timer)
{
    (void)arg;
    forget(TIMER_OF(timer, struct control_answer, forget));
}

int32_t upcall_answer_control(struct server *server, const void *body, size_t len)
{
    struct control_answer *given;
    struct wire_in in;
    wire_in_init(&in, body, len);
    uint32_t asker = wire_get_u32(&in);
    uint64_t number = wire_get_u64(&in);
    LIST_FOREACH (given, &server->control_answers, entry)
        if (given->asker == asker && given->number == number)
            return given->status;
    given = calloc(1, sizeof *given);
    if (given == NULL)
        return PMIX_ERR_NOMEM;
    *given = (struct control_answer){.asker = asker, .number = number};
    timer_init(&given->forget, &server->timers, on_forget, NULL);
    timer_after(&given->forget, 2 * ALL_ANSWER_S * 1000ll);
    LIST_INSERT_HEAD(&server->control_answers, given, entry);
    given->status = do_here(server, &in);
    return given->status;
}

void upcall_free_control(struct server *server)
{
    while (!LIST_EMPTY(&server->control_answers))
        forget(LIST_FIRST(&server->control_answers));
}

/* ask_all_answer_fn: of a set the first that fails counts, of a cancel one that has found it. */
static void on_server(void *arg, uint32_t node, int32_t status, const void *data, size_t len)
{
    struct control *control = arg;
    (void)node, (void)data, (void)len;
    if (status == PMIX_ERR_LOST_CONNECTION)
        status = control->status; /* it is not in the step any more */
    if (control->what == CANCEL ? control->status != PMIX_SUCCESS : control->status == PMIX_SUCCESS)
        control->status = status;
    if (--control->open > 0)
        return;
    if (control->status == PMIX_ERR_EXISTS)
        refused(control->status,
                "PMIx_Job_control: another process set has the name \"%s\"; give another one",
                control->id);
    else if (control->status == PMIX_ERR_NOT_FOUND)
        refused(control->status, "PMIx_Job_control: no request \"%s\" waits%s",
                control->id != NULL ? control->id : "",
                control->id != NULL ? "" : " of those of this process");
    answer_status(&control->request.answer, control->status);
    control_free(control);
}

static void ask_servers(struct control *control)
{
    struct server *server = upcall_server();
    struct wire_out body = {0};
    wire_put_u32(&body, server->boot.node);
    wire_put_u64(&body, ++server->ncontrols);
    wire_put_u8(&body, control->what == DEFINE ? ALL_DEFINE : ALL_CANCEL);
    wire_put_str(&body, control->id != NULL ? control->id : "");
    if (control->what == DEFINE) {
        procset_write(&control->set, &body);
    } else {
        wire_put_str(&body, control->caller.nspace);
        wire_put_u32(&body, control->caller.rank);
    }
    control->open = server->boot.nnodes;
    control->status = control->what == DEFINE ? PMIX_SUCCESS : PMIX_ERR_NOT_FOUND; /* told there */
    ask_all(server, ASK_CONTROL, body.data, body.len, ALL_ANSWER_S, on_server, control);
    wire_out_free(&body);
}

/* @thread the loop's */
static void run(struct handoff_item *item)
{
    struct control *control = (struct control *)item;
    char text[PMIX_MAX_NSLEN + 256];
    if (control->what == CONTEXT_ID) {
        give_context_id(control);
    } else if (control->what == CHECKPOINT) {
        begin_checkpoint(control);
    } else if (control->what == DEFINE || control->what == CANCEL) {
        ask_servers(control); /* which frees it */
        return;
    } else {
        if (control->what == SIGNAL) {
            describe(control, text, sizeof text);
            log_info("%s", text);
            signals_send(upcall_server(), &control->set, control->sig);
        } else {
            end_some(control);
        }
        answer_status(&control->request.answer, PMIX_SUCCESS);
    }
    control_free(control);
}

/* ---- reading a call; @thread PMIx's ---- */

/* @param sig set where that says which */
static enum what what_of(const pmix_info_t *info, uint32_t *sig)
{
    static const struct {
        const char *key;
        enum what what;
        uint32_t sig;
    } on[] = {
        {PMIX_GROUP_ASSIGN_CONTEXT_ID, CONTEXT_ID, 0}, {PMIX_JOB_CTRL_KILL, KILL, SIGKILL},
        {PMIX_JOB_CTRL_TERMINATE, TERMINATE, SIGTERM}, {PMIX_JOB_CTRL_PAUSE, SIGNAL, SIGSTOP},
        {PMIX_JOB_CTRL_RESUME, SIGNAL, SIGCONT},
    };
    for (size_t i = 0; i < sizeof on / sizeof *on; i++)
        if (directive_is_on(info, on[i].key)) {
            *sig = on[i].sig;
            return on[i].what;
        }
    *sig = 0; /* also of a signal that is no number */
    if (PMIX_CHECK_KEY(info, PMIX_JOB_CTRL_CHECKPOINT))
        return CHECKPOINT;
    if (PMIX_CHECK_KEY(info, PMIX_JOB_CTRL_CANCEL))
        return CANCEL;
    if (define_key[0] != '\0' && PMIX_CHECK_KEY(info, define_key))
        return DEFINE;
    if (!PMIX_CHECK_KEY(info, PMIX_JOB_CTRL_SIGNAL))
        return NOTHING;
    directive_number(&info->value, sig);
    return *sig == SIGKILL ? KILL : SIGNAL;
}

/* Up to libpmix 6 PMIX_JOB_CTRL_CHECKPOINT_SIGNAL and _TIMEOUT are the same key. */
static bool one_key(void)
{
    return strcmp(PMIX_JOB_CTRL_CHECKPOINT_SIGNAL, PMIX_JOB_CTRL_CHECKPOINT_TIMEOUT) == 0;
}

static pmix_status_t check_checkpoint(const struct control *control)
{
    if (control->id == NULL || strlen(control->id) > CHECKPOINT_NAME_MAX)
        return refused(PMIX_ERR_BAD_PARAM,
                       "PMIx_Job_control: PMIX_JOB_CTRL_CHECKPOINT is an id of at most %d bytes",
                       CHECKPOINT_NAME_MAX);
    if (one_key() && control->has_timeout && !control->by_event)
        return refused(PMIX_ERR_NOT_SUPPORTED,
                       "PMIx_Job_control: PMIX_JOB_CTRL_CHECKPOINT_SIGNAL and _TIMEOUT are one key "
                       "in this libpmix; give PMIX_JOB_CTRL_CHECKPOINT_EVENT, too, with a timeout");
    if (control->by_event && control->sig != 0)
        return refused(PMIX_ERR_BAD_PARAM,
                       "PMIx_Job_control: a checkpoint by an event and by a signal; give one");
    if (control->sig < 0 || control->sig >= NSIG || control->sig == SIGKILL ||
        control->sig == SIGSTOP)
        return refused(PMIX_ERR_BAD_PARAM,
                       "PMIx_Job_control: PMIX_JOB_CTRL_CHECKPOINT_SIGNAL is no signal that a "
                       "process can take");
    return PMIX_SUCCESS;
}

static pmix_status_t check_name(const struct control *control)
{
    if (control->what == DEFINE && !psets_is_name(control->id, strlen(control->id)))
        return refused(PMIX_ERR_BAD_PARAM,
                       "PMIx_Job_control: \"%.64s\" is no name of a process set; give up to %d "
                       "bytes of printable text without blank, comma, colon and equals sign",
                       control->id, (int)PROCSET_NAME_MAX);
    if (control->what == DEFINE && strcmp(control->id, upcall_server()->boot.nspace) == 0)
        return refused(PMIX_ERR_BAD_PARAM,
                       "PMIx_Job_control: \"%s\" is the name of the namespace; give another one",
                       control->id);
    if ((control->number != NULL && strlen(control->number) > CHECKPOINT_NAME_MAX) ||
        (control->what == CANCEL && control->id != NULL &&
         (control->id[0] == '\0' || strlen(control->id) > CHECKPOINT_NAME_MAX)))
        return refused(
            PMIX_ERR_BAD_PARAM,
            "PMIx_Job_control: a request's id has 1 to %d bytes; of PMIX_JOB_CTRL_CANCEL "
            "NULL means all of the process",
            CHECKPOINT_NAME_MAX);
    return PMIX_SUCCESS;
}

/* What belongs to the order that a call gives. */
static void read_detail(struct control *control, const pmix_info_t *info)
{
    uint32_t number = 0, unused;
    char **text = PMIX_CHECK_KEY(info, PMIX_JOB_CTRL_ID) ? &control->number : &control->id;
    enum what what = what_of(info, &unused);
    if (directive_text(info) != NULL && *text == NULL &&
        (text == &control->number || what == CHECKPOINT || what == DEFINE || what == CANCEL)) {
        *text = strdup(directive_text(info));
    } else if (control->what != CHECKPOINT) {
        return;
    } else if (PMIX_CHECK_KEY(info, PMIX_JOB_CTRL_CHECKPOINT_EVENT)) {
        control->by_event = directive_is_on(info, PMIX_JOB_CTRL_CHECKPOINT_EVENT);
    } else if (PMIX_CHECK_KEY(info, PMIX_JOB_CTRL_CHECKPOINT_TIMEOUT)) {
        directive_number(&info->value, &number);
        control->has_timeout = true;
        control->timeout = number < CHECKPOINT_S_MAX ? number : CHECKPOINT_S_MAX;
    } else if (PMIX_CHECK_KEY(info, PMIX_JOB_CTRL_CHECKPOINT_SIGNAL)) {
        directive_number(&info->value, &number);
        control->sig = number > 0 && number < NSIG ? (int)number : NSIG;
    }
}

/* @return PMIX_SUCCESS, or why it is refused */
static pmix_status_t read_one(struct control *control, const pmix_info_t *info)
{
    uint32_t sig;
    enum what what = what_of(info, &sig);
    for (size_t i = 0; i < sizeof refusals / sizeof *refusals; i++)
        if (PMIX_CHECK_KEY(info, refusals[i].key))
            return refused(PMIX_ERR_NOT_SUPPORTED, "PMIx_Job_control: %s is not served: %s",
                           refusals[i].name, refusals[i].why);
    if (what == NOTHING)
        return PMIX_SUCCESS;
    if (control->what != NOTHING)
        return refused(PMIX_ERR_BAD_PARAM,
                       "PMIx_Job_control: it asks for two things; make two calls");
    control->what = what;
    if (what != CHECKPOINT)
        control->sig = (int)sig;
    if (what == SIGNAL && (sig == 0 || sig >= NSIG))
        return refused(PMIX_ERR_BAD_PARAM,
                       "PMIx_Job_control: PMIX_JOB_CTRL_SIGNAL is no signal; give 1 to %d",
                       NSIG - 1);
    return PMIX_SUCCESS;
}

/* Without a target all processes of the step are meant, as a tool has none of its own. */
static pmix_status_t read_targets(struct control *control, const pmix_proc_t targets[],
                                  size_t ntargets)
{
    const struct boot *boot = &upcall_server()->boot;
    control->all = targets == NULL || ntargets == 0;
    for (size_t i = 0; !control->all && i < ntargets; i++) {
        pmix_rank_t rank = targets[i].rank;
        if (strcmp(targets[i].nspace, boot->nspace) != 0)
            return refused(PMIX_ERR_NOT_SUPPORTED,
                           "PMIx_Job_control: %s is not served here; ask a server of that %s",
                           targets[i].nspace, log_unit());
        control->all = rank == PMIX_RANK_WILDCARD;
        if (!control->all && rank >= boot->ntasks)
            return refused(PMIX_ERR_NOT_FOUND, "PMIx_Job_control: there is no rank %u of %s", rank,
                           boot->nspace);
        if (!control->all)
            procset_add(&control->set, boot->nspace, rank, rank);
    }
    if (control->all)
        procset_add(&control->set, boot->nspace, 0, boot->ntasks - 1);
    procset_canonical(&control->set);
    control->all = procset_size(&control->set) >= boot->ntasks;
    return PMIX_SUCCESS;
}

pmix_status_t upcall_job_control(const pmix_proc_t *requestor, const pmix_proc_t targets[],
                                 size_t ntargets, const pmix_info_t info[], size_t ninfo,
                                 pmix_info_cbfunc_t cbfunc, void *cbdata)
{
    struct control *control = calloc(1, sizeof *control);
    pmix_status_t fault = directives_check(CALL_CONTROL, "", info, ninfo);
    for (size_t i = 0; fault == PMIX_SUCCESS && i < ninfo; i++)
        fault = read_one(control, &info[i]);
    for (size_t i = 0; fault == PMIX_SUCCESS && i < ninfo; i++)
        read_detail(control, &info[i]);
    if (fault == PMIX_SUCCESS)
        fault = check_name(control);
    if (control->timeout == 0)
        control->timeout = CHECKPOINT_S;
    if (fault == PMIX_SUCCESS && control->what == CHECKPOINT)
        fault = check_checkpoint(control);
    if (fault == PMIX_SUCCESS && control->what == NOTHING)
        fault = refused(PMIX_ERR_NOT_SUPPORTED,
                        "PMIx_Job_control: it asks for nothing that muster does");
    if (fault == PMIX_SUCCESS && control->what != CONTEXT_ID)
        fault = read_targets(control, targets, ntargets);
    if (fault != PMIX_SUCCESS) {
        control_free(control);
        return fault;
    }
    if (requestor != NULL)
        control->caller = *requestor;
    control->request.answer = answer_info(cbfunc, cbdata);
    return upcall_post(&control->request.item, run);
}
