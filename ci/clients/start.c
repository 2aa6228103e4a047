/* start: PMIx_Init and PMIx_Finalize and nothing between, for how long a step takes to start and
 * end.
 *
 * Without the watchdog thread and the questions of the other clients.
 */
#include <pmix.h>
#include <stdio.h>

int main(void)
{
    pmix_proc_t me;
    pmix_status_t status = PMIx_Init(&me, NULL, 0);
    if (status == PMIX_SUCCESS)
        status = PMIx_Finalize(NULL, 0);
    if (status != PMIX_SUCCESS) {
        printf("FAIL start: expected SUCCESS, found %s\n", PMIx_Error_string(status));
        return 1;
    }
    return 0;
}
