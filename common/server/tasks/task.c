/* SPDX-License-Identifier: BSD-3-Clause */
/* The life of a task. libpmix and the launcher tell of it in different ways, so the launcher's word
 * of the end may come before libpmix's word of PMIx_Init and PMIx_Finalize. */
#include "common/server/tasks/task.h"

#include "common/util/states.h"

static const char *const state_names[TASK_STATES] = {"started", "connected", "cut",  "finalized",
                                                     "ended",   "early",     "lost", "told"};
static const char *const event_names[TASK_EVENTS] = {"init", "finalize", "close", "end", "tell"};

static const int table[TASK_STATES][TASK_EVENTS] = {
    /*                   INIT           FINALIZE        CLOSE       END         TELL */
    [TASK_STARTED] = {TASK_CONNECTED, TASK_FINALIZED, STATES_NONE, TASK_EARLY, STATES_NONE},
    [TASK_CONNECTED] = {TASK_CONNECTED, TASK_FINALIZED, TASK_CUT, TASK_LOST, STATES_NONE},
    [TASK_CUT] = {TASK_CONNECTED, TASK_FINALIZED, TASK_CUT, TASK_LOST, STATES_NONE},
    [TASK_FINALIZED] = {TASK_CONNECTED, TASK_FINALIZED, TASK_FINALIZED, TASK_ENDED, STATES_NONE},
    [TASK_ENDED] = {TASK_ENDED, TASK_ENDED, TASK_ENDED, STATES_NONE, STATES_NONE},
    [TASK_EARLY] = {TASK_EARLY, TASK_EARLY, TASK_EARLY, STATES_NONE, STATES_NONE},
    [TASK_LOST] = {TASK_LOST, TASK_ENDED, TASK_LOST, STATES_NONE, TASK_TOLD},
    [TASK_TOLD] = {TASK_TOLD, TASK_ENDED, TASK_TOLD, STATES_NONE, STATES_NONE},
};

static const struct states life = {state_names, event_names, &table[0][0], TASK_EVENTS};

bool task_move(struct task *task, uint32_t rank, enum task_event event)
{
    int to = states_next(&life, (int)task->state, event, "rank %u", rank);
    if (to != STATES_NONE)
        task->state = (enum task_state)to;
    return to != STATES_NONE;
}

const char *task_state_name(enum task_state state)
{
    return state_names[state == TASK_EARLY ? TASK_ENDED : state == TASK_TOLD ? TASK_LOST : state];
}
