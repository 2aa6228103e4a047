/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * Every way to give an answer goes through give(), which asserts that no answer is given twice.
 * After answer_no_more() no answer reaches libpmix any more.
 */
#include "common/notify/answer.h"

#include <assert.h>
#include <stdlib.h>

/* An answer has no owner to ask, and libpmix is one per process. */
static bool libpmix_is_gone;

void answer_no_more(void)
{
    libpmix_is_gone = true;
}

bool answer_wanted(void)
{
    return !libpmix_is_gone;
}

struct answer answer_op(pmix_op_cbfunc_t callback, void *cbdata)
{
    return (struct answer){.kind = ANSWER_OP, .callback.op = callback, .cbdata = cbdata};
}

struct answer answer_modex(pmix_modex_cbfunc_t callback, void *cbdata)
{
    return (struct answer){.kind = ANSWER_MODEX, .callback.modex = callback, .cbdata = cbdata};
}

struct answer answer_info(pmix_info_cbfunc_t callback, void *cbdata)
{
    return (struct answer){.kind = ANSWER_INFO, .callback.info = callback, .cbdata = cbdata};
}

/* @thread PMIx's */
static void release_data(void *data)
{
    shared_bytes_drop(data);
}

struct infos {
    pmix_info_t *info;
    size_t ninfo;
    void (*then)(void *arg); /* or NULL */
    void *arg;
};

/* @thread PMIx's */
static void release_infos(void *arg)
{
    struct infos *infos = arg;
    if (infos->info != NULL)
        PMIX_INFO_FREE(infos->info, infos->ninfo);
    if (infos->then != NULL)
        infos->then(infos->arg);
    free(infos);
}

static void give(struct answer *answer, enum answer_kind kind)
{
    assert(!answer->given && answer->kind == kind);
    (void)kind;
    answer->given = true;
}

void answer_status(struct answer *answer, pmix_status_t status)
{
    switch (answer->kind) {
    case ANSWER_OP:
        give(answer, ANSWER_OP);
        if (answer->callback.op != NULL && !libpmix_is_gone)
            answer->callback.op(status, answer->cbdata);
        break;
    case ANSWER_MODEX:
        answer_data(answer, status, NULL);
        break;
    case ANSWER_INFO:
        answer_infos(answer, status, NULL, 0);
        break;
    }
}

void answer_data(struct answer *answer, pmix_status_t status, struct shared_bytes *data)
{
    const char *bytes = data != NULL ? (const char *)data->data : NULL;
    size_t len = data != NULL ? data->len : 0;
    give(answer, ANSWER_MODEX);
    if (answer->callback.modex != NULL && !libpmix_is_gone)
        answer->callback.modex(status, bytes, len, answer->cbdata, release_data, data);
    else
        release_data(data);
}

void answer_infos_then(struct answer *answer, pmix_status_t status, pmix_info_t *info, size_t ninfo,
                       void (*then)(void *arg), void *arg)
{
    struct infos *infos = info != NULL || then != NULL ? malloc(sizeof *infos) : NULL;
    give(answer, ANSWER_INFO);
    if (infos != NULL)
        *infos = (struct infos){info, ninfo, then, arg};
    if (answer->callback.info != NULL && !libpmix_is_gone)
        answer->callback.info(status, info, ninfo, answer->cbdata,
                              infos != NULL ? release_infos : NULL, infos);
    else if (infos != NULL)
        release_infos(infos);
    if (infos == NULL && then != NULL)
        then(arg);
}

void answer_infos(struct answer *answer, pmix_status_t status, pmix_info_t *info, size_t ninfo)
{
    answer_infos_then(answer, status, info, ninfo, NULL, NULL);
}
