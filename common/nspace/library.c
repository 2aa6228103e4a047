/* SPDX-License-Identifier: BSD-3-Clause */
/* The table of libpmix's releases; see library.h. A new row also goes into docs/libpmix.md: the
 * unit test `library` compares both. */
#include "common/nspace/library.h"

#include "common/nspace/built.h"

#include <stdio.h>
#include <string.h>

#define RELEASE(major, minor) ((uint32_t)(major) << 16 | (uint32_t)(minor) << 8)

static const struct library_row rows[LIBRARY_TRAITS] = {
    [LIBRARY_GROUP_ADDS] =
        {.name = "GROUP_ADDS",
         .from = RELEASE(6, 1),
         .advice = "needs libpmix 6.1 or newer on every node",
         .meaning = "PMIX_GROUP_ADD_MEMBERS, PMIX_GROUP_BOOTSTRAP and a construct without "
                    "processes are known; no earlier header has both keys"},
    [LIBRARY_GROUP_SHARES] =
        {.name = "GROUP_SHARES",
         .from = RELEASE(6, 1),
         .meaning = "several group requests of one id may be pending, and one answer ends all; "
                    "upcall/pending.c answers once"},
    [LIBRARY_GROUP_ORDER] =
        {.name = "GROUP_ORDER",
         .from = RELEASE(7, 0),
         .meaning = "group ranks count in the order of the membership that the host returns; "
                    "earlier clients sort it, so muster gives it sorted"},
    [LIBRARY_GROUP_FT] = {.name = "GROUP_FT",
                          .from = RELEASE(7, 0),
                          .advice = "needs libpmix 7 or newer on every node",
                          .meaning =
                              "a group operation that has lost a local participant is handed "
                              "up, so it can go on without it"},
    [LIBRARY_GROUP_COUNTS] =
        {.name = "GROUP_COUNTS",
         .from = RELEASE(7, 0),
         .meaning = "each local call brings one PMIX_LOCAL_COLLECTIVE_STATUS, so the calls can be "
                    "counted"},
    [LIBRARY_GROUP_ABORTS] =
        {.name = "GROUP_ABORTS",
         .from = RELEASE(7, 0),
         .meaning = "the server itself ends a construct whose participant is lost, with "
                    "PMIX_GROUP_CONSTRUCT_ABORT; muster gives the same status on other nodes"},
    [LIBRARY_HOST_STORES] =
        {.name = "HOST_STORES",
         .from = RELEASE(BUILT_REGISTER_RESOURCES_FROM, 0),
         .meaning = "the host stores the members' data before it answers a construct; earlier they "
                    "travel in one blob that libpmix stores"},
    [LIBRARY_APP_GROWS] =
        {.name = "APP_GROWS",
         .from = RELEASE(5, 0),
         .meaning = "an application's array adds to what was registered before (PMIX_APP_ARGV); "
                    "earlier gds/ds21 makes the namespace's locks again, and hangs"},
    [LIBRARY_LOG2] = {.name = "LOG2",
                      .from = RELEASE(BUILT_LOG2_FROM, 0),
                      .meaning = "the host's module has log2 and tool_connected2"},
    [LIBRARY_SESSION_CONTROL] = {.name = "SESSION_CONTROL",
                                 .from = RELEASE(BUILT_SESSION_CONTROL_FROM, 0),
                                 .meaning = "the host's module has session_control"},
    [LIBRARY_RESOURCE_BLOCK] = {.name = "RESOURCE_BLOCK",
                                .from = RELEASE(BUILT_RESOURCE_BLOCK_FROM, 0),
                                .meaning = "the host's module has resource_block"},
    [LIBRARY_ASKS_FOR_KEYS] =
        {.name = "ASKS_FOR_KEYS",
         .from = RELEASE(7, 0),
         .meaning = "a client asks for a reserved key of a process that it was not told, and its "
                    "server hands that up; earlier it asks for what the server has "
                    "(PMIX_IMMEDIATE)"},
    [LIBRARY_SLOTS_CHOSEN] =
        {.name = "SLOTS_CHOSEN",
         .from = RELEASE(7, 0),
         .meaning = "how many keys libpmix makes room for with each process can be chosen "
                    "(PMIX_MCA_pmix_hash_proc_alloc); earlier it is 128, of 8 bytes each, wherever "
                    "it keeps a process"},
    [LIBRARY_LOOKUP_PARTIAL] = {.name = "LOOKUP_PARTIAL",
                                .from = RELEASE(7, 0),
                                .meaning =
                                    "a lookup that finds only some of its keys gets them with "
                                    "PMIX_ERR_PARTIAL_SUCCESS; before, it would get no data, "
                                    "so muster says PMIX_SUCCESS"},
    [LIBRARY_STOPS_RANKS] = {.name = "STOPS_RANKS",
                             .from = RELEASE(6, 1),
                             .advice = "needs libpmix 6.1 or newer on every node",
                             .meaning = "PMIX_DEBUG_STOP_IN_INIT may name one rank; before, every "
                                        "process stops that finds the key, whatever its value"},
    [LIBRARY_GROUP_TIMER_CRASHES] =
        {.name = "GROUP_TIMER_CRASHES",
         .fault = true,
         .before = RELEASE(5, 0),
         .meaning =
             "the server sets a timer for a group operation at each local call with "
             "PMIX_TIMEOUT, and crashes when it passes (grp_timeout() takes the tracker for "
             "a request); server/process/expiry.c takes it away when the operation is handed up"},
    [LIBRARY_CONNECT_TIMER_STAYS] =
        {.name = "CONNECT_TIMER_STAYS",
         .fault = true,
         .before = RELEASE(7, 0),
         .meaning = "the server sets a timer for a connect at each local call with PMIX_TIMEOUT, "
                    "which damages libevent's heap, and runs on when the host has been asked; "
                    "server/process/expiry.c takes it away"},
    [LIBRARY_CONNECT_TELLS_LOCAL] =
        {.name = "CONNECT_TELLS_LOCAL",
         .fault = true,
         .from = RELEASE(5, 0),
         .meaning = "the answer to a connect has the job-level information of those namespaces "
                    "alone that have processes on the server; server/process/connect_reply.c has "
                    "libpmix add the others (the fault is in 4.2, too, where it cannot)"},
    [LIBRARY_FENCE_MIXES_JOBS] =
        {.name = "FENCE_MIXES_JOBS",
         .fault = true,
         .before = RELEASE(6, 0),
         .meaning = "the data of a fence or a construct names its processes by their ranks alone, "
                    "so those of another job are stored as those of the own one; of a fence or a "
                    "group over several namespaces muster passes no data on, and gets ask for it"},
    [LIBRARY_WILDCARD_IS_LOCAL] =
        {.name = "WILDCARD_IS_LOCAL",
         .fault = true,
         .before = RELEASE(5, 0),
         .advice = "this libpmix does not ask for a construct over PMIX_RANK_WILDCARD; name each "
                   "rank, or ask for a context id (PMIX_GROUP_ASSIGN_CONTEXT_ID)",
         .meaning = "a construct over PMIX_RANK_WILDCARD without a context id ends on each node by "
                    "itself; one server tells the user at the destruct"},
    [LIBRARY_LOCAL_DESTRUCT_TOLD] =
        {.name = "LOCAL_DESTRUCT_TOLD",
         .fault = true,
         .before = RELEASE(6, 1),
         .meaning = "a destruct that libpmix has done by itself is handed up all the same, by some "
                    "releases twice with one cbdata; muster answers within the upcall"},
    [LIBRARY_SET_STATUS_UNSET] =
        {.name = "SET_STATUS_UNSET",
         .fault = true,
         .before = RELEASE(5, 0),
         .meaning = "the definition of a process set returns a status that is never set; muster "
                    "takes it for success"},
    [LIBRARY_EVENT_ANSWER_RACES] =
        {.name = "EVENT_ANSWER_RACES",
         .fault = true,
         .before = RELEASE(6, 0),
         .meaning = "the answer to an event goes to the client from the thread that gives it, "
                    "beside libpmix's own, and messages get lost; muster answers within the "
                    "upcall, before it is known which processes the event reaches"},
    [LIBRARY_DATA_ANSWER_RACES] =
        {.name = "DATA_ANSWER_RACES",
         .fault = true,
         .before = RELEASE(6, 1),
         .meaning = "the answer to PMIx_Publish, PMIx_Lookup and PMIx_Unpublish goes to the client "
                    "from the thread that gives it; muster has libpmix's own thread give it"},
    [LIBRARY_FINALIZE_RACES] =
        {.name = "FINALIZE_RACES",
         .fault = true,
         .before = RELEASE(7, 0),
         .meaning = "the client is answered before it is noted that it has finalized, so one that "
                    "is quickly gone counts as lost; muster answers within the upcall"},
    [LIBRARY_CLOSING_LEAVES_ALL] =
        {.name = "CLOSING_LEAVES_ALL",
         .fault = true,
         .before = RELEASE(7, 0),
         .meaning =
             "a process whose connection closes is taken out of every operation under way "
             "on its node, also of those of its next PMIx_Init; server/process/rounds.c lets the "
             "next ones wait"},
    [LIBRARY_LOSS_ENDS_TWICE] =
        {.name = "LOSS_ENDS_TWICE",
         .fault = true,
         .before = RELEASE(7, 0),
         .meaning = "an operation of one node that loses two participants at once is ended twice, "
                    "and what was freed is used; server/process/conns.c lets libpmix see one end "
                    "at a time"},
    [LIBRARY_GONE_IS_AWAITED] =
        {.name = "GONE_IS_AWAITED",
         .fault = true,
         .from = RELEASE(7, 0),
         .meaning = "an operation, a fence too, waits for a participant that was gone before the "
                    "first local call; upcall/forget.c has libpmix forget it"},
    [LIBRARY_SILENT_IS_CUT] =
        {.name = "SILENT_IS_CUT",
         .fault = true,
         .from = RELEASE(7, 0),
         .meaning = "the server's thread waits for the first message of each connection in "
                    "turn, and closes it after 5 s: on a busy machine PMIx_Init fails with "
                    "PMIX_ERR_COMM_FAILURE; server/process/accept.c has the kernel keep a "
                    "connection until its client has said something"},
    [LIBRARY_UNLOADED_LEAKS] =
        {.name = "UNLOADED_LEAKS",
         .fault = true,
         .from = RELEASE(BUILT_UNLOADED_LEAKS_FROM, 0),
         .meaning = "it unloads a library (pciaccess, by hwloc) that has leaked, and such leaks "
                    "have no name; sanitized builds do not look for leaks"},
    [LIBRARY_ARRAYS_LEAK] =
        {.name = "ARRAYS_LEAK",
         .fault = true,
         .before = RELEASE(5, 0),
         .meaning = "the server keeps a copy of all nodes' keys for each client that it has "
                    "served; PMIX_LOCAL_PROCS, the largest, muster stores as a key of the job"},
};

int library_read(const char *version, uint32_t *library, struct err *err)
{
    unsigned major = 0, minor = 0, release = 0;
    const char *digits = strpbrk(version, "0123456789");
    if (digits != NULL)
        sscanf(digits, "%u.%u.%u", &major, &minor, &release);
    *library = RELEASE(major, minor) | release;
    if (major != PMIX_VERSION_MAJOR)
        return err_set(err,
                       "muster was built for libpmix %d and libpmix %u.%u.%u is installed; "
                       "build it again",
                       (int)PMIX_VERSION_MAJOR, major, minor, release);
    return 0;
}

bool library_has(uint32_t library, enum library_trait trait)
{
    const struct library_row *row = &rows[trait];
    return library >= row->from && (row->before == 0 || library < row->before);
}

uint64_t library_needs(uint32_t library, uint32_t nnodes, uint32_t ntasks, uint32_t nclients)
{
    static const struct {
        uint32_t from, node, task; /* bytes */
    } needs[] = {{RELEASE(7, 0), 14 << 10, 5 << 10},
                 {RELEASE(5, 0), 16 << 10, 24 << 10},
                 {0, 8 << 10, 10 << 10}};
    enum { NODE_COPIED = 6 << 10 };
    unsigned i = 0;
    while (library < needs[i].from)
        i++;
    uint64_t copies = library_has(library, LIBRARY_ARRAYS_LEAK) ? nclients : 0;
    return nnodes * (needs[i].node + copies * NODE_COPIED) + (uint64_t)ntasks * needs[i].task;
}

const char *library_text(uint32_t library, char *text)
{
    snprintf(text, LIBRARY_TEXT_SIZE, "%u.%u.%u", library >> 16, library >> 8 & 255, library & 255);
    return text;
}

const char *library_advice(enum library_trait trait)
{
    return rows[trait].advice;
}

const struct library_row *library_row(enum library_trait trait)
{
    return &rows[trait];
}
