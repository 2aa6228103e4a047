/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * A query on its way: what was asked, which servers are asked for it, and what they have said.
 *
 * query.c parses a query, asks the servers and answers; query_keys.c has a row for each key, with
 * the function that makes its value; query_values.c has what these functions share.
 * @thread the loop's, but for query_key()
 */
#pragma once

#include "common/nspace/infos.h"
#include "common/server/job_now.h"
#include "common/server/status/census.h"
#include "common/server/steps/seek.h"
#include "common/upcall/upcall.h"

/** What the qualifiers of one pmix_query_t say. */
struct query_filter {
    char *group, *set;               /**< PMIX_GROUP_ID, PMIX_PSET_NAME; owned, or NULL */
    char *host;                      /**< PMIX_HOSTNAME; owned, or NULL */
    char *allocation;                /**< PMIX_ALLOC_ID; owned, or NULL */
    char *connect;                   /**< PMIX_CONNECT_ID; owned, or NULL */
    char nspace[PMIX_MAX_NSLEN + 1]; /**< PMIX_NSPACE, or that of PMIX_PROCID; "": neither */
    pmix_rank_t rank;                /**< the same; PMIX_RANK_UNDEF: neither */
    uint32_t node;                   /**< PMIX_NODEID; UINT32_MAX: not given */
    bool by_proc, by_name;           /**< PMIX_PROCID was given; PMIX_NSPACE or PMIX_RANK was */
    bool local;                      /**< PMIX_QUERY_LOCAL_ONLY */
    bool help;                       /**< PMIX_QUERY_SUPPORTED_QUALIFIERS */
    pmix_status_t status;            /**< PMIX_SUCCESS, or why the qualifiers are refused */
};

/** Which servers know the value of a key. */
enum query_from {
    QUERY_HERE,    /**< this one alone */
    QUERY_SESSION, /**< every server of this step */
    QUERY_JOB,     /**< every server of the namespace */
    QUERY_APPS,    /**< one server of each application of the namespace, or of all namespaces */
    QUERY_NODE,    /**< the server of one node */
    QUERY_PROC,    /**< the server of the process */
    QUERY_RM,      /**< the RM: how long the job may still run, and which nodes it has */
};

struct query;
struct query_item;

/** Makes a value. @param value all zero, owned by the caller. @return PMIX_SUCCESS, or why there is
 * none */
typedef pmix_status_t query_load_fn(const struct query_item *item, pmix_value_t *value);

/** A key that can be asked for. */
struct query_key {
    const char *key;
    enum query_from from;
    unsigned parts;         /**< what is asked for; of enum census_part */
    query_load_fn *load;    /**< NULL: muster has no such value; see @ref reason */
    const char *qualifiers; /**< which are looked at, separated by commas */
    const char *reason;     /**< why it is refused: a sentence for the log, or NULL */
};

/** One key of one query. */
struct query_item {
    const struct query *query; /**< that it belongs to */
    const struct query_key *key;
    const struct query_filter *filter;
};

/** A server, and what it has said. */
struct query_reply {
    struct query *query;
    unsigned parts; /**< what it is asked for; 0: it is not asked */
    bool known;     /**< it has answered; else it has left, is lost or late */
    struct census census;
};

struct query {
    struct request request;
    uint32_t nfilters;
    struct query_filter *filters;
    uint32_t nitems;
    struct query_item *items;
    char *unknown;                   /**< a key that there is no row for, or NULL */
    const struct query_key *refused; /**< a key that is refused, or NULL */
    struct registry *groups;         /**< of all servers that were asked for theirs */
    pmix_status_t groups_status;     /**< whether all of these have answered */
    struct procset sought;           /**< of namespaces that are not known yet */
    struct seek_wait seek;           /**< for these */
    uint32_t nreplies;
    struct query_reply *replies; /**< by handle, those of other steps, too */
    bool asks_rm;                /**< the RM is asked, too */
    struct job_wait wait;        /**< for that */
    int64_t seconds;             /**< its answer, or JOB_NOW_… */
    char *nodes;                 /**< the same, as rm_job_fn has it; owned, or NULL */
    uint64_t open;               /**< servers that have not answered yet, and the RM */
};

/** Reads the qualifiers of a query; they are copied. @param f all zero; query_filter_free() it
 * @thread PMIx's */
void query_filter_read(struct query_filter *f, const pmix_query_t *query);
/** @thread the loop's */
void query_filter_free(struct query_filter *f);

/** @return the row of a key, or NULL. @thread any */
const struct query_key *query_key(const char *key);

/** @return the row that is number @p i, from 0, or NULL: there are no more. @thread any */
const struct query_key *query_key_at(size_t i);

/** @return what a server has said, or NULL */
const struct census *query_census(const struct query *query, uint32_t node);

/** @return the namespace that is asked about, which is this step's own when none is named; NULL: it
 * is not known */
const struct nspace *query_nspace(const struct query_filter *filter);

/** Finds the node that is asked about: the node that is named, or this node.
 * @return its index in the namespace, or UINT32_MAX */
uint32_t query_node(const struct nspace *ns, const struct query_filter *filter);

/** @return whether the servers of a namespace are still there, as far as is known */
bool query_is_active(const struct nspace *ns);

/* Values. */
query_load_fn query_number, query_names, query_members;                    /* query_groups.c */
query_load_fn query_command, query_status, query_table, query_local_table; /* query_tasks.c */
query_load_fn query_pid, query_state, query_memory;                        /* query_tasks.c */

/** Gives @p value an array of elements that PMIx's macros have made. @param array taken over */
pmix_status_t query_give_array(pmix_value_t *value, pmix_data_array_t *array);
/** Gives @p value an array of what is in @p list, which is empty then. @return PMIX_ERR_NOT_FOUND:
 * there is nothing in it */
pmix_status_t query_give_infos(pmix_value_t *value, struct infos *list);
/** Gives @p value a text. @param text taken over */
pmix_status_t query_give_text(pmix_value_t *value, char *text);
