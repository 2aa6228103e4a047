/* SPDX-License-Identifier: BSD-3-Clause */
/* The table [muster] of Flux's configuration: the keys of muster.json, which servers lay over it.
 */
#include "common/conf/conf.h"
#include "plugins/flux/module.h"

#include <stdlib.h>
#include <string.h>

/* Messages without the line, which is not that of the user's file: the table is checked as JSON. */
static int check(const char *text, struct err *err)
{
    static const char place[] = "[muster] line 1: ";
    struct conf conf;
    struct err mistake = {0};
    const char *what = mistake.text;
    conf_defaults(&conf);
    if (conf_parse(&conf, "[muster]", text, strlen(text), conf_keep_first, &mistake) == 0)
        return 0;
    if (strncmp(what, place, strlen(place)) == 0)
        return err_set(err, "[muster]: %s", what + strlen(place));
    return err_set(err, "%s", what);
}

char *settings_read(const flux_conf_t *conf, struct err *err)
{
    flux_error_t error;
    json_t *table = NULL;
    if (flux_conf_unpack(conf, &error, "{s?o}", "muster", &table) < 0) {
        err_set(err, "%s", error.text);
        return NULL;
    }
    char *text = table != NULL ? json_dumps(table, 0) : strdup("{}");
    if (text == NULL && table == NULL)
        err_set(err, "out of memory");
    else if (text == NULL || text[0] != '{')
        err_set(err, "[muster] is not a table");
    else if (check(text, err) == 0)
        return text;
    free(text);
    return NULL;
}
