/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * What the server and a back end say about an allocation that is to change while its job runs
 * (PMIx_Allocation_request).
 */
#pragma once

#include <stdint.h>

/** What is to become of the allocation. The numbers are on the wire. */
enum rm_alloc_kind {
    RM_ALLOC_EXTEND,  /**< it gets nodes */
    RM_ALLOC_RELEASE, /**< it gives nodes back */
    RM_ALLOC_TIME,    /**< it gets another time limit */
    RM_ALLOC_KINDS,
};

/** A request. */
struct rm_alloc {
    enum rm_alloc_kind kind;
    uint32_t nnodes;   /**< how many nodes; 0: as many as nodes names, or ncpus needs */
    const char *nodes; /**< which, in the RM's own form of a list; NULL: any */
    uint32_t ncpus;    /**< EXTEND: processors on all of the new nodes; 0: what these have */
    const char *queue; /**< EXTEND: in which queue; NULL: that of the job */
    uint32_t seconds;  /**< TIME: the job's limit, from its start on */
    uint32_t timeout;  /**< s until it is answered */
};

/** What has become of it. The numbers are on the wire. */
enum rm_alloc_result {
    RM_ALLOC_DONE = 0,
    RM_ALLOC_NO_RESOURCES, /**< the RM has no such nodes, or not enough that may be given back */
    RM_ALLOC_FORBIDDEN,    /**< the site, or the RM, does not let the user do that */
    RM_ALLOC_LATE,         /**< it was not done in time, and is not done later */
    RM_ALLOC_IN_USE,       /**< a node that is to be given back has processes */
    RM_ALLOC_WRONG,        /**< it makes no sense, such as a node that there is not */
    RM_ALLOC_UNREACHED,    /**< nothing that can do it is reached */
    RM_ALLOC_REFUSED,      /**< the RM does no such thing */
    RM_ALLOC_FAILED,       /**< anything else */
    RM_ALLOC_RESULTS,
};

/** The answer; all of it is borrowed. */
struct rm_alloc_news {
    enum rm_alloc_result result;
    const char *text;  /**< of a failure: a clause that says why */
    const char *nodes; /**< the nodes that have come or gone, separated by commas, or "" */
    uint32_t nnodes;   /**< how many */
    uint32_t ncpus;    /**< processors on them */
};

/** @thread the loop's */
typedef void rm_alloc_fn(void *arg, const struct rm_alloc_news *news);
