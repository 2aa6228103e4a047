/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * A callback of libpmix that is called exactly once.
 *
 * An upcall returns PMIX_SUCCESS only when its callback will be called once, and any other status
 * only when it never will be. Every request carries one answer; giving it twice is an error of
 * ours and ends the process.
 * @thread the loop's, unless said
 */
#pragma once

#include "common/util/shared_bytes.h"

#include <pmix_server.h>
#include <stdbool.h>

/** Which kind of callback waits. */
enum answer_kind { ANSWER_OP, ANSWER_MODEX, ANSWER_INFO };

struct answer {
    enum answer_kind kind;
    bool given;
    union {
        pmix_op_cbfunc_t op;
        pmix_modex_cbfunc_t modex;
        pmix_info_cbfunc_t info;
    } callback; /**< NULL: no caller waits for it */
    void *cbdata;
};

/** @return an answer that has not been given yet. @param callback NULL: no caller waits for it
 * @thread any */
struct answer answer_op(pmix_op_cbfunc_t callback, void *cbdata);
struct answer answer_modex(pmix_modex_cbfunc_t callback, void *cbdata);
struct answer answer_info(pmix_info_cbfunc_t callback, void *cbdata);

/** Answers with a status alone. @thread any but PMIx's inside the upcall itself */
void answer_status(struct answer *answer, pmix_status_t status);

/** Answers a modex callback. @param data taken over: libpmix only reads them; may be NULL */
void answer_data(struct answer *answer, pmix_status_t status, struct shared_bytes *data);

/** Answers an info callback. @param info from PMIX_INFO_CREATE, taken over; may be NULL */
void answer_infos(struct answer *answer, pmix_status_t status, pmix_info_t *info, size_t ninfo);

/** The same, and says when libpmix has done with it: whatever was handed up before belongs to this
 * answer if libpmix says so, and what is handed up later does not.
 * @param then called once. @thread PMIx's, or within this call when no caller takes the answer */
void answer_infos_then(struct answer *answer, pmix_status_t status, pmix_info_t *info, size_t ninfo,
                       void (*then)(void *arg), void *arg);

/** libpmix has ended: answers that are given from now on only free what they carry. */
void answer_no_more(void);

/** @return whether libpmix still takes answers. */
bool answer_wanted(void);
