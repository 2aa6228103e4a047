/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * What a server says of its step to muster-status, which root may run: whatever it is, what reaches
 * the terminal are lines of harmless characters.
 */
#include "common/status/words.h"
#include "common/util/log.h"
#include "fuzz/fuzz.h"

#include <stdlib.h>
#include <string.h>

static void check_lines(char *text)
{
    for (char *line; (line = strsep(&text, "\n")) != NULL;) {
        char *masked = strdup(line);
        FUZZ_CHECK(masked != NULL);
        log_mask(masked);
        FUZZ_CHECK(strcmp(masked, line) == 0);
        free(masked);
    }
}

static void write_words(json_object *state, bool stacks)
{
    char *text = NULL;
    size_t size;
    FILE *out = open_memstream(&text, &size);
    FUZZ_CHECK(out != NULL);
    if (stacks)
        words_write_stacks(out, state, "alice", false);
    else
        words_write(out, state, "alice");
    FUZZ_CHECK(fclose(out) == 0);
    check_lines(text);
    free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    struct json_tokener *tokener = json_tokener_new();
    json_object *state = json_tokener_parse_ex(tokener, (const char *)data, (int)len);
    write_words(state, false);
    write_words(state, true);
    json_object_put(state);
    json_tokener_free(tokener);
    return 0;
}

void fuzz_seeds(void)
{
    static const char node[] =
        "{\"nodes\":[{\"node\":\"c1\",\"step\":\"4711.0\",\"unit\":\"step\",\"version\":\"1\","
        "\"libpmix\":\"4.2\",\"uptime\":3.5,\"connections\":[{}],\"connections_omitted\":1,"
        "\"tasks\":[{\"state\":\"lost\"}],\"settings\":[{\"key\":\"a\",\"value\":\"b\",\"from\":"
        "\"c\"}],\"psets\":[{\"name\":\"p\",\"size\":2}],\"psets_omitted\":1,\"meeting\":{"
        "\"state\":\"holds\",\"holder\":\"c2\",\"held\":1,\"held_bytes\":2,\"steps\":3}}";
    static const char waits[] =
        ",{\"node\":\"c2\",\"meeting\":{\"state\":\"follows\",\"kept\":1},\"trackers\":[{\"id\":"
        "\"1\",\"operation\":\"fence\",\"age\":2,\"left\":3,\"decides\":true,\"root\":\"c1\","
        "\"missing\":[{\"ranks\":\"1-2\",\"node\":\"c1\"}],\"missing_omitted\":1}],\"waits\":[{"
        "\"about\":\"x\",\"age\":1,\"left\":2}],\"asks\":[{\"about\":\"y\",\"age\":4}],\"peers\":[{"
        "\"node\":\"c1\",\"lost\":true},{\"node\":\"c3\",\"direct\":false,\"unreachable\":9,"
        "\"queued\":1}]}";
    static const char stacks[] =
        ",{\"node\":\"c2\",\"tasks\":[{\"rank\":1,\"stack\":[\"main\",\"MPI_Wait\",\"poll\"]},{"
        "\"rank\":2,\"no_stack\":\"eu-stack: gone\"},{\"rank\":7,\"state\":\"lost\"}]}";
    static const char end[] = "],\"silent\":[{\"node\":\"c4\",\"why\":\"it is leaving\"}]}";
    char text[2048];
    snprintf(text, sizeof text, "%s%s", node, end);
    fuzz_seed(text, strlen(text));
    snprintf(text, sizeof text, "%s%s%s", node, stacks, end);
    fuzz_seed(text, strlen(text));
    snprintf(text, sizeof text, "%s%s%s", node, waits, end);
    fuzz_seed(text, strlen(text));
}
