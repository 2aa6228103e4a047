/* SPDX-License-Identifier: BSD-3-Clause */
/* log: PMIx_Log of a client, to where the host's own messages go. */
#include "common/util/log.h"

#include "common/server/server.h"
#include "common/server/status/shown.h"
#include "common/upcall/directives.h"
#include "common/upcall/refused.h"
#include "common/upcall/upcall.h"

#include <pmix.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <syslog.h>

struct note {
    struct request request;
    pmix_status_t status;
    pmix_key_t unknown; /* a channel that is not ours, or "" */
    bool is_on_terminal;
    struct shown_wait shown;
};

static void answer_note(struct shown_wait *wait)
{
    struct note *note = (struct note *)((char *)wait - offsetof(struct note, shown));
    answer_status(&note->request.answer, note->status);
    free(note);
}

/* @thread the loop's */
static void run(struct handoff_item *item)
{
    struct note *note = (struct note *)item;
    if (note->unknown[0] != '\0')
        refused_tell(REFUSED_LOG, note->unknown, NULL);
    note->shown.server = upcall_server();
    note->shown.done = answer_note;
    if (note->is_on_terminal)
        shown_await(&note->shown); /* the program may end once it is answered */
    else
        answer_note(&note->shown);
}

/* One channel. @return whether it is one of ours */
static bool write_one(struct note *note, const pmix_proc_t *client, const pmix_info_t *data)
{
    bool is_syslog =
        PMIX_CHECK_KEY(data, PMIX_LOG_SYSLOG) || PMIX_CHECK_KEY(data, PMIX_LOG_LOCAL_SYSLOG);
    if (!is_syslog && !PMIX_CHECK_KEY(data, PMIX_LOG_STDERR) &&
        !PMIX_CHECK_KEY(data, PMIX_LOG_STDOUT))
        return false;
    if (is_syslog) {
        syslog(LOG_USER | LOG_NOTICE, "%s rank %u: %s", client->nspace, client->rank,
               data->value.data.string);
        return true;
    }
    /* The launcher writes our errors to the user's terminal; a line each. */
    const char *text = data->value.data.string;
    note->is_on_terminal = true;
    while (*text != '\0') {
        size_t len = strcspn(text, "\n");
        if (len > 0)
            log_error("rank %u: %.*s", client->rank, (int)len, text);
        text += len + (text[len] == '\n');
    }
    return true;
}

pmix_status_t upcall_log2(const pmix_proc_t *client, const pmix_info_t data[], size_t ndata,
                          const pmix_info_t directives[], size_t ndirs, pmix_op_cbfunc_t cbfunc,
                          void *cbdata)
{
    size_t done = 0;
    pmix_status_t rc = directives_check(CALL_LOG, "", data, ndata);
    if (rc == PMIX_SUCCESS)
        rc = directives_check(CALL_LOG, "", directives, ndirs);
    if (rc != PMIX_SUCCESS)
        return rc;
    struct note *note = calloc(1, sizeof *note);
    for (size_t i = 0; i < ndata; i++)
        if (write_one(note, client, &data[i]))
            done++;
        else
            PMIX_LOAD_KEY(note->unknown, data[i].key);
    note->status = done == 0      ? PMIX_ERR_NOT_SUPPORTED /* told by run() */
                   : done < ndata ? PMIX_ERR_PARTIAL_SUCCESS
                                  : PMIX_SUCCESS;
    note->request.answer = answer_op(cbfunc, cbdata);
    return upcall_post(&note->request.item, run);
}

void upcall_log(const pmix_proc_t *client, const pmix_info_t data[], size_t ndata,
                const pmix_info_t directives[], size_t ndirs, pmix_op_cbfunc_t cbfunc, void *cbdata)
{
    pmix_status_t rc = upcall_log2(client, data, ndata, directives, ndirs, cbfunc, cbdata);
    if (rc != PMIX_SUCCESS)
        cbfunc(rc, cbdata);
}
