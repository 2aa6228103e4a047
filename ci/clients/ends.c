/* SPDX-License-Identifier: BSD-3-Clause */
/* ends: a job whose rank --victim ends by --how, for what its launcher makes of that.
 *
 * All ranks pass a fence. Then the victim calls PMIx_Abort with --status, exits with it before or
 * after PMIx_Finalize, or is killed by the signal of that number, with "crash" right after
 * PMIx_Init; or, with "some", rank 0 has it aborted alone, and the others end with 0. Where the
 * victim has finalized, the others do so, too, and end with 0; else they sleep until somebody ends
 * them.
 */
#include "client.h"

#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

enum { BY_ABORT, BY_EXIT, BY_FINALIZE, BY_SIGNAL, BY_SOME, BY_CRASH };

static long victim = 1, how = BY_ABORT, ends_with = 7, sleep_s = 60;

static _Noreturn void end_myself(void)
{
    const struct rlimit none = {0, 0};
    setrlimit(RLIMIT_CORE, &none);
    if (how == BY_ABORT)
        PMIx_Abort((int)ends_with, "ends was told to", NULL, 0);
    else if (how == BY_EXIT)
        _exit((int)ends_with);
    else
        raise((int)ends_with);
    sleep_ms(1000 * sleep_s); /* the host ends the job */
    _exit(99);
}

static int end_some(void)
{
    pmix_proc_t proc = proc_of((pmix_rank_t)victim);
    if (victim == (long)client.me.rank) {
        sleep_ms(1000 * sleep_s);
        _exit(99);
    }
    if (client.me.rank == 0)
        CHECK_OK(PMIx_Abort((int)ends_with, "ends was told to", &proc, 1), "PMIx_Abort");
    return client_pass("rank %ld is aborted", victim);
}

int main(int argc, char **argv)
{
    const struct option_number options[] = {
        {"victim", &victim, "rank that ends", NULL},
        {"how", &how, "does it end", "abort|exit|finalize|signal|some|crash"},
        {"status", &ends_with, "of the abort or the exit, or the signal", NULL},
        {"sleep", &sleep_s, "s that the others sleep", NULL},
        {0}};
    client_init("ends", options, argc, argv);
    if (how == BY_CRASH && victim == (long)client.me.rank)
        end_myself();
    fence_all(false);
    if (how == BY_SOME)
        return end_some();
    if (how != BY_FINALIZE && victim == (long)client.me.rank)
        end_myself();
    if (how != BY_FINALIZE)
        sleep_ms(1000 * sleep_s);
    CHECK_OK(PMIx_Finalize(NULL, 0), "PMIx_Finalize");
    return how == BY_FINALIZE && victim == (long)client.me.rank ? (int)ends_with : 0;
}
