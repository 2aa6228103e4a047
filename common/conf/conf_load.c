/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * Settings from a file.
 */
#include "common/conf/conf_file.h"
#include <stdlib.h>

int conf_load_all(struct conf *conf, const char *path, uid_t trusted_uid, conf_report_fn *report,
                  void *arg)
{
    struct err err = {0};
    struct conf loaded;
    size_t len;
    char *text;
    conf_defaults(&loaded);
    int rc = conf_file_read(path, trusted_uid, &text, &len, &err);
    if (rc < 0)
        report(arg, err.text);
    else if (text)
        rc = conf_parse_all(&loaded, path, text, len, report, arg);
    free(text);
    if (rc == 0)
        *conf = loaded;
    return rc;
}

static void keep_first(void *arg, const char *mistake)
{
    err_set(arg, "%s", mistake);
}

int conf_load(struct conf *conf, const char *path, uid_t trusted_uid, struct err *err)
{
    return conf_load_all(conf, path, trusted_uid, keep_first, err);
}
