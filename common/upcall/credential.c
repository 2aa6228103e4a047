/* SPDX-License-Identifier: BSD-3-Clause */
/* get_credential, validate_credential: by munge, as libpmix's own psec/munge makes and reads them.
 *
 * Its library is loaded at the first call, so nothing of munge is needed where no process asks. It
 * waits for munged, so a worker makes the calls; the library is that thread's alone. */
#include "common/handoff/worker.h"
#include "common/notify/refuse.h"
#include "common/upcall/directives.h"
#include "common/upcall/upcall.h"
#include "common/util/clock.h"

#include <dlfcn.h>
#include <pmix.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LIBRARY "libmunge.so.2"
#define TYPE "munge"

enum {
    WAITING_MAX = 64,    /* calls of one server that wait for munged */
    CRED_MAX = 64 << 10, /* bytes of a credential */
    END_MS = 500,        /* for the call under way, when the server ends */
    MUNGE_SOCKET = 6,    /* EMUNGE_SOCKET: there is no munged */
};

struct credentials {
    struct worker *worker;
    unsigned waiting;
};

/* One call on its way to munged and back. */
struct credential {
    struct work work;
    struct handoff_item item;     /* on its way to the loop */
    pmix_credential_cbfunc_t get; /* NULL: it is validated */
    pmix_validation_cbfunc_t validation;
    void *cbdata;
    char *text; /* the credential, a string; owned */
    uid_t uid;  /* whose it is */
    gid_t gid;
    pmix_status_t status;
    char why[160]; /* it failed */
};

static void credential_free(struct credential *c)
{
    free(c->text);
    free(c);
}

/* ---- munge; @thread the worker's ---- */

static int (*encode)(char **cred, void *ctx, const void *buf, int len);
static int (*decode)(const char *cred, void *ctx, void **buf, int *len, uid_t *uid, gid_t *gid);
static const char *(*text_of)(int error);

static bool load(void)
{
    void *library = encode == NULL ? dlopen(LIBRARY, RTLD_NOW | RTLD_LOCAL) : NULL;
    if (library != NULL) {
        *(void **)&decode = dlsym(library, "munge_decode");
        *(void **)&text_of = dlsym(library, "munge_strerror");
        *(void **)&encode = dlsym(library, "munge_encode");
    }
    return encode != NULL && decode != NULL && text_of != NULL;
}

static void ask_munged(struct work *work)
{
    struct credential *c = (struct credential *)work;
    void *payload = NULL;
    int len = 0;
    if (!load()) {
        c->status = PMIX_ERR_NOT_SUPPORTED; /* told by done() */
        snprintf(c->why, sizeof c->why, LIBRARY " cannot be loaded on this node");
        return;
    }
    int error = c->get != NULL ? encode(&c->text, NULL, NULL, 0)
                               : decode(c->text, NULL, &payload, &len, &c->uid, &c->gid);
    free(payload);
    if (error == 0)
        return;
    c->status = error == MUNGE_SOCKET ? PMIX_ERR_NOT_SUPPORTED /* told by done() */
                : c->get != NULL      ? PMIX_ERROR
                                      : PMIX_ERR_INVALID_CRED;
    snprintf(c->why, sizeof c->why, "munge: %s", text_of(error));
}

/* ---- answering ---- */

/* @thread PMIx's: libpmix sends what it is given to the client at once */
static void give(pmix_status_t unused, void *arg)
{
    struct credential *c = arg;
    bool good = c->status == PMIX_SUCCESS;
    pmix_info_t info[3];
    size_t n = 0;
    (void)unused;
    for (size_t i = 0; i < sizeof info / sizeof *info; i++)
        PMIX_INFO_CONSTRUCT(&info[i]);
    if (good)
        PMIX_INFO_LOAD(&info[n++], PMIX_CRED_TYPE, TYPE, PMIX_STRING);
    if (good && c->get == NULL) {
        uint32_t uid = c->uid, gid = c->gid;
        PMIX_INFO_LOAD(&info[n++], PMIX_USERID, &uid, PMIX_UINT32);
        PMIX_INFO_LOAD(&info[n++], PMIX_GRPID, &gid, PMIX_UINT32);
    }
    /* with its end, as libpmix's own psec/munge has it */
    pmix_byte_object_t bytes = {.bytes = c->text, .size = good ? strlen(c->text) + 1 : 0};
    if (c->get != NULL)
        c->get(c->status, good ? &bytes : NULL, info, n, c->cbdata);
    else
        c->validation(c->status, info, n, c->cbdata);
    for (size_t i = 0; i < n; i++)
        PMIX_INFO_DESTRUCT(&info[i]);
    credential_free(c);
}

static void finish(struct credential *c)
{
    if (c->status != PMIX_SUCCESS)
        refused(c->status, "%s: %s",
                directives_call_name(c->get != NULL ? CALL_GET_CREDENTIAL : CALL_VALIDATE), c->why);
    if (answer_wanted())
        upcall_call_there(give, c);
    else
        credential_free(c);
}

/* @thread the loop's */
static void done(struct handoff_item *item)
{
    upcall_server()->credentials->waiting--;
    finish((struct credential *)item);
}

static void drop(struct work *work)
{
    credential_free((struct credential *)work);
}

static const struct work_ops ops = {.call = ask_munged, .done = done, .drop = drop};

/* @thread the loop's */
static void run(struct handoff_item *item)
{
    struct credential *c = (struct credential *)((char *)item - offsetof(struct credential, item));
    struct server *server = upcall_server();
    if (server->credentials == NULL)
        server->credentials = calloc(1, sizeof *server->credentials);
    struct credentials *all = server->credentials;
    if (all->worker == NULL)
        all->worker = worker_new(&ops, server->handoff);
    if (all->worker != NULL && all->waiting < WAITING_MAX) {
        all->waiting++;
        if (worker_do(all->worker, &c->work))
            return;
        all->waiting--;
    }
    c->status = PMIX_ERR_OUT_OF_RESOURCE;
    snprintf(c->why, sizeof c->why, "%d calls wait for munged, or no thread can be started",
             WAITING_MAX);
    finish(c);
}

void upcall_close_credentials(struct server *server)
{
    if (server->credentials != NULL)
        worker_close(server->credentials->worker, now_ms() + END_MS);
    free(server->credentials);
    server->credentials = NULL;
}

/* ---- taking a call; @thread PMIx's ---- */

/* @param list "munge,native"; NULL: any @return whether ours is there */
static bool may_be_ours(const char *list)
{
    size_t len = strlen(TYPE);
    for (const char *p = list; p != NULL; p = strchr(p, ','), p = p != NULL ? p + 1 : NULL)
        if (strncmp(p, TYPE, len) == 0 && (p[len] == '\0' || p[len] == ','))
            return true;
    return list == NULL;
}

static pmix_status_t check(enum directives_call call, const pmix_info_t info[], size_t ninfo)
{
    pmix_status_t fault = directives_check(call, "", info, ninfo);
    for (size_t i = 0; fault == PMIX_SUCCESS && i < ninfo; i++)
        if (PMIX_CHECK_KEY(&info[i], PMIX_CRED_TYPE) && !may_be_ours(directive_text(&info[i])))
            fault = refused(PMIX_ERR_NOT_SUPPORTED,
                            "%s: PMIX_CRED_TYPE \"%.80s\" is not served; there is \"" TYPE "\"",
                            directives_call_name(call), directive_text(&info[i]));
    return fault;
}

pmix_status_t upcall_get_credential(const pmix_proc_t *proc, const pmix_info_t info[], size_t ninfo,
                                    pmix_credential_cbfunc_t cbfunc, void *cbdata)
{
    pmix_status_t fault = check(CALL_GET_CREDENTIAL, info, ninfo);
    (void)proc;
    if (fault != PMIX_SUCCESS)
        return fault;
    struct credential *c = calloc(1, sizeof *c);
    c->get = cbfunc;
    c->cbdata = cbdata;
    return upcall_post(&c->item, run);
}

pmix_status_t upcall_validate_credential(const pmix_proc_t *proc, const pmix_byte_object_t *cred,
                                         const pmix_info_t info[], size_t ninfo,
                                         pmix_validation_cbfunc_t cbfunc, void *cbdata)
{
    pmix_status_t fault = check(CALL_VALIDATE, info, ninfo);
    (void)proc;
    if (fault != PMIX_SUCCESS)
        return fault;
    if (cred == NULL || cred->bytes == NULL || cred->size == 0 || cred->size > CRED_MAX)
        return refused(PMIX_ERR_BAD_PARAM,
                       "PMIx_Validate_credential: a credential has 1 to %d bytes", CRED_MAX);
    struct credential *c = calloc(1, sizeof *c);
    c->validation = cbfunc;
    c->cbdata = cbdata;
    c->text = strndup(cred->bytes, cred->size);
    return upcall_post(&c->item, run);
}
