/* SPDX-License-Identifier: BSD-3-Clause */
/* logq: PMIx_Log of a line to stderr is accepted, and the line comes out: the caller of the job
 * looks for "logq: rank R wrote this" in its standard error.
 */
#include "client.h"

int main(int argc, char **argv)
{
    pmix_info_t data;
    char text[100];
    client_init("logq", NULL, argc, argv);
    snprintf(text, sizeof text, "logq: rank %u wrote this\n", client.me.rank);
    PMIX_INFO_LOAD(&data, PMIX_LOG_STDERR, text, PMIX_STRING);
    step("PMIx_Log");
    pmix_status_t status = PMIx_Log(&data, 1, NULL, 0);
    CHECK(status == PMIX_SUCCESS || status == PMIX_OPERATION_SUCCEEDED,
          "PMIx_Log to stderr: expected SUCCESS, found %s", PMIx_Error_string(status));
    PMIX_INFO_DESTRUCT(&data);
    step("last fence");
    fence_all(false);
    return client_pass("%u ranks logged a line to stderr", client.size);
}
