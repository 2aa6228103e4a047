/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * muster.json: whatever stands in it, the settings are those that it gives, or untouched and
 * there is a sentence.
 */
#include "common/conf/conf.h"
#include "fuzz/fuzz.h"

#include <stdlib.h>
#include <string.h>

static char *dump(const struct conf *conf, size_t *len)
{
    char *text = NULL;
    FILE *out = open_memstream(&text, len);
    FUZZ_CHECK(out != NULL);
    conf_dump(conf, NULL, out);
    FUZZ_CHECK(fclose(out) == 0);
    return text;
}

/* What was read can be written, and read again as the same. */
static void check_again(const struct conf *conf)
{
    struct conf again;
    struct err err = {0};
    size_t len;
    char *text = dump(conf, &len);
    memset(&again, 0, sizeof again);
    conf_defaults(&again);
    FUZZ_CHECK(conf_parse(&again, "dump", text, len, conf_keep_first, &err) == 0);
    FUZZ_CHECK(memcmp(&again, conf, sizeof again) == 0);
    free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    struct conf conf, before;
    struct err err = {0};
    memset(&conf, 0, sizeof conf);
    conf_defaults(&conf);
    memcpy(&before, &conf, sizeof conf);
    if (conf_parse(&conf, "muster.json", (const char *)data, len, conf_keep_first, &err) == 0) {
        FUZZ_CHECK(err.text[0] == '\0');
        if (memcmp(&conf, &before, sizeof conf) != 0)
            check_again(&conf);
    } else {
        FUZZ_CHECK(strncmp(err.text, "muster.json", 11) == 0);
        fuzz_check_text(err.text);
        FUZZ_CHECK(memcmp(&conf, &before, sizeof conf) == 0);
    }
    return 0;
}

void fuzz_seeds(void)
{
    static const char *const texts[] = {
        "{}",
        "{ \"log_level\": \"debug\", /* c */ \"tree_arity\": 4 } // end",
        "{ \"timeouts\": { \"fence\": 60, \"get\": 0 } }",
        "{ \"on_task_loss\": \"continue\", \"stall_report\": 5 }",
        "{ \"timeout\": { \"fenc\": 1e3 } }",
        "{ \"\\u0074ree_arity\": -1, \"tree_arity\": 2 }",
        "{ \"timeouts\": { \"peer\": 30, }, }",
        "{ \"f\\xc3\\xa4nce\": [1, 2.5, true, null, \"\\\"\"] }",
    };
    struct conf conf;
    char key[600];
    size_t len;
    conf_defaults(&conf);
    char *text = dump(&conf, &len);
    fuzz_seed(text, len);
    free(text);
    fuzz_seed(key, (size_t)snprintf(key, sizeof key, "{ \"timeouts\": { \"%0500d\": 1 } }", 7));
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        fuzz_seed(texts[i], strlen(texts[i]));
}
