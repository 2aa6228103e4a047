/* SPDX-License-Identifier: BSD-3-Clause */
/* credential: rank 0 gets a credential (PMIx_Get_credential), and the last rank validates it: it is
 * of this user. A second time, or changed, it is not valid. Without munged the job is skipped.
 */
#include "client.h"

#include <unistd.h>

static uint32_t number_of(const pmix_info_t *info, size_t n, const char *key)
{
    for (size_t i = 0; i < n; i++)
        if (PMIX_CHECK_KEY(&info[i], key)) {
            CHECK_EQ(info[i].value.type, PMIX_UINT32, key);
            return info[i].value.data.uint32;
        }
    CHECK(false, "expected %s in the results, found none", key);
    return 0;
}

static void validate(pmix_byte_object_t *cred)
{
    pmix_info_t *results = NULL, type;
    size_t n = 0;
    CHECK_OK(PMIx_Validate_credential(cred, NULL, 0, &results, &n), "a credential");
    CHECK_EQ(number_of(results, n, PMIX_USERID), getuid(), PMIX_USERID);
    CHECK_EQ(number_of(results, n, PMIX_GRPID), getgid(), PMIX_GRPID);
    CHECK_STATUS(PMIx_Validate_credential(cred, NULL, 0, &results, &n), PMIX_ERR_INVALID_CRED,
                 "the same a second time");
    cred->bytes[cred->size / 2] ^= 1;
    CHECK_STATUS(PMIx_Validate_credential(cred, NULL, 0, &results, &n), PMIX_ERR_INVALID_CRED,
                 "a changed credential");
    PMIX_INFO_LOAD(&type, PMIX_CRED_TYPE, "native,krb5", PMIX_STRING);
    CHECK_STATUS(PMIx_Get_credential(&type, 1, cred), PMIX_ERR_NOT_SUPPORTED, "other types");
}

int main(int argc, char **argv)
{
    pmix_byte_object_t cred = {NULL, 0};
    pmix_status_t status = PMIX_SUCCESS;
    client_init("credential", NULL, argc, argv);
    step("get");
    if (client.me.rank == 0) {
        status = PMIx_Get_credential(NULL, 0, &cred);
        put_bytes(PMIX_GLOBAL, status == PMIX_SUCCESS ? cred.bytes : "",
                  status == PMIX_SUCCESS ? cred.size : 1, "credential");
    }
    commit();
    fence_all(true);
    pmix_value_t *value = get_value(0, "credential");
    cred = value->data.bo;
    if (cred.size == 1) {
        CHECK(client.me.rank != 0 || status == PMIX_ERR_NOT_SUPPORTED, "PMIx_Get_credential: %s",
              PMIx_Error_string(status));
        return client_skip("there is no munged here");
    }
    step("validate");
    if (client.me.rank == client.size - 1)
        validate(&cred);
    fence_all(false);
    return client_pass("%u ranks: the last one knows whose credential the first one has",
                       client.size);
}
