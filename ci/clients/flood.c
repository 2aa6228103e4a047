/* SPDX-License-Identifier: BSD-3-Clause */
/* flood: a rank asks for more than a server takes that stands still, as fast as it can. Somebody
 * else stops that server meanwhile: it is a child of the process that the client prints.
 *
 * What the ranks' own server has no room for fails by itself, with PMIX_ERR_OUT_OF_RESOURCE, and is
 * no matter for the rest.
 */
#include "event.h"

#include <unistd.h>

static long what, from, bytes = 4096, lasts = 10, most;

enum { EVENTS, AIMED, PUBLISH };

static const struct option_number options[] = {
    {"what", &what, "what there is too much of", "events|aimed|publish"},
    {"from", &from,
     "who floods: the first rank, and the last node's server stands still; or the "
     "other way round",
     "first|last"},
    {"bytes", &bytes, "bytes of each", NULL},
    {"lasts", &lasts, "seconds that it lasts", NULL},
    {"most", &most, "how many at most; 0: any number", NULL},
    {NULL, NULL, NULL, NULL},
};

enum { BEFORE_MS = 3000, TOGETHER = 1000 /* events that wait for their callbacks */ };

static _Atomic unsigned long accepted, refused, other, waiting;

/* @thread PMIx's, or the main one */
static void on_done(pmix_status_t status, void *cbdata)
{
    (void)cbdata;
    if (status == PMIX_SUCCESS || status == PMIX_OPERATION_SUCCEEDED)
        accepted++;
    else if (status == PMIX_ERR_OUT_OF_RESOURCE || status == PMIX_ERR_PARTIAL_SUCCESS)
        refused++;
    else
        other++;
    waiting--;
}

static void raise_one(const pmix_byte_object_t *body, pmix_rank_t slow)
{
    pmix_info_t info[2];
    pmix_proc_t target = proc_of(slow);
    bool aimed = what == AIMED;
    PMIX_INFO_LOAD(&info[0], "flood.data", body, PMIX_BYTE_OBJECT);
    PMIX_INFO_CONSTRUCT(&info[1]);
    if (aimed)
        event_target(&info[1], &target, 1);
    pmix_status_t rc =
        PMIx_Notify_event(EVENT_CODE(1), &client.me, aimed ? PMIX_RANGE_CUSTOM : PMIX_RANGE_GLOBAL,
                          info, aimed ? 2 : 1, on_done, NULL);
    if (rc != PMIX_SUCCESS)
        on_done(rc, NULL);
    PMIX_INFO_DESTRUCT(&info[0]);
    PMIX_INFO_DESTRUCT(&info[1]);
}

static void publish_one(const pmix_byte_object_t *body, long n)
{
    char key[64];
    pmix_info_t info;
    snprintf(key, sizeof key, "flood.%ld", n);
    PMIX_INFO_LOAD(&info, key, body, PMIX_BYTE_OBJECT);
    pmix_status_t rc = PMIx_Publish_nb(&info, 1, on_done, NULL);
    if (rc != PMIX_SUCCESS)
        on_done(rc, NULL);
    PMIX_INFO_DESTRUCT(&info);
}

static void flood(pmix_rank_t slow)
{
    pmix_byte_object_t body = {.bytes = calloc(1, (size_t)bytes), .size = (size_t)bytes};
    uint64_t until = now_ns() + (uint64_t)lasts * 1000000000;
    for (long n = 0; now_ns() < until && (most == 0 || n < most); n++) {
        waiting++;
        if (what == PUBLISH)
            publish_one(&body, n);
        else
            raise_one(&body, slow);
        while (what != PUBLISH && waiting > TOGETHER && now_ns() < until)
            sleep_ms(1);
    }
    printf("flood: %lu accepted, %lu refused, %lu others, %lu wait\n", accepted, refused, other,
           waiting);
    fflush(stdout);
    free(body.bytes);
}

int main(int argc, char **argv)
{
    client_init("flood", options, argc, argv);
    pmix_rank_t slow = from == 0 ? client.size - 1 : 0, fast = client.size - 1 - slow;
    if (client.me.rank == slow) {
        printf("flood: the server that is to stand still is a child of %d\n", (int)getppid());
        fflush(stdout);
    }
    fence_all(false);
    if (client.me.rank == fast) {
        sleep_ms(BEFORE_MS);
        flood(slow);
    }
    step("waits for the server that stands still");
    fence_all(false);
    step("waits for all answers");
    while (waiting > 0)
        sleep_ms(1);
    fence_all(false);
    return client_pass("bytes %ld", bytes);
}
