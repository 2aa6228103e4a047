/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * What a server says of its operations to a broker's module: what is taken over is JSON and UTF-8
 * by the strict rules of whoever reads the answer, harmless, and stays the same when it is read
 * again.
 */
#include "fuzz/fuzz.h"
#include "plugins/flux/state.h"

#include <string.h>

static struct json_object *parse(const char *text)
{
    struct json_tokener *tokener = json_tokener_new_ex(16);
    json_tokener_set_flags(tokener, JSON_TOKENER_STRICT | JSON_TOKENER_VALIDATE_UTF8);
    struct json_object *o = json_tokener_parse_ex(tokener, text, (int)strlen(text) + 1);
    FUZZ_CHECK(json_tokener_get_error(tokener) == json_tokener_success);
    json_tokener_free(tokener);
    return o;
}

static const char *text_of(struct json_object *o)
{
    return json_object_to_json_string_ext(o, JSON_C_TO_STRING_PLAIN);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    const char *why = NULL;
    struct json_object *state = state_read((const char *)data, len, &why);
    FUZZ_CHECK((state == NULL) == (why != NULL));
    if (state == NULL)
        return 0;
    const char *text = text_of(state);
    fuzz_check_text(text);
    struct json_object *strict = parse(text), *sum = json_object_new_object();
    struct json_object *again = state_read(text, strlen(text), &why);
    FUZZ_CHECK(strict != NULL && again != NULL && strcmp(text, text_of(again)) == 0);
    state_add(sum, state);
    state_add(sum, again);
    json_object_put(parse(text_of(sum)));
    json_object_put(sum);
    json_object_put(strict);
    json_object_put(again);
    json_object_put(state);
    return 0;
}

void fuzz_seeds(void)
{
    static const char *const texts[] = {
        "{\"under_way\":{\"construct\":{\"gather\":1,\"early\":2},\"waits\":1},"
        "\"done\":{\"fence\":5},\"failed\":{\"destruct\":1},\"trackers\":[{\"operation\":"
        "\"group \\\"ocean\\\" construct\",\"kind\":\"construct\",\"state\":\"gather\",\"age\":3.5,"
        "\"left\":null,\"called\":true,\"queued\":0,\"missing\":[{\"node\":\"c07\",\"nspace\":"
        "\"flux.fx\",\"ranks\":\"5,9\"}],\"missing_omitted\":3}],\"trackers_omitted\":2}",
        "{\"waits\":[{\"about\":\"group \\u00e9\\ud83d\\ude00\\u0007\",\"age\":1e2,\"left\":NaN}]}",
        "{\"failed\":{\"fence\":1099511627776,\"construct\":18446744073709551615,\"destruct\":-1}}",
    };
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        fuzz_seed(texts[i], strlen(texts[i]));
}
