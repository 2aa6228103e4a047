/** @file
 * One collective request: what an upcall copied, the engine's call, and the answer.
 */
#ifndef MUSTER_UPCALL_COLLECTIVE_H
#define MUSTER_UPCALL_COLLECTIVE_H

#include "common/upcall/upcall.h"

#ifndef PMIX_PROC_DATA /* a process's data in a group's contribution; in no header before 6 */
#define PMIX_PROC_DATA "pmix.pdata"
#endif

/** Made on libpmix's thread, used and freed on the loop. */
struct collective {
    struct request request; /**< first */
    struct server *server;
    enum coll_kind kind;
    char *id; /**< group id, or "" */
    pmix_proc_t *procs;
    size_t nprocs;
    bool lost;              /**< libpmix handed up that a local participant is lost */
    struct procset members; /**< procs, sorted and expanded; set on the loop */
    char *payload;          /**< contribution: modex bytes, or packed pmix_info_t */
    size_t len;
    struct engine_call call;
};

/** Answers and frees the request. @thread the loop's */
void collective_complete(struct collective *c, const struct engine_result *result);

/** Answers with the status that stands in the call, without asking anybody; the run() of a
 * request that has no participants. @thread the loop's */
void collective_refuse(struct handoff_item *item);

void collective_free(struct collective *c);

#endif
