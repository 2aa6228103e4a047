/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * What all places say together.
 */
#include "common/status/place.h"

#include "common/status/program.h"
#include "common/util/text.h"

#include <string.h>

static bool is_there(const char *command)
{
    char program[32] = "";
    size_t len = strcspn(command, " ");
    memcpy(program, command, len < sizeof program ? len : 0);
    return program_is_there(program);
}

void place_lists(const struct place *const *places, char buf[static PLACE_LISTS_SIZE])
{
    buf[0] = '\0';
    for (; places != NULL && *places != NULL; places++) {
        if ((*places)->lists == NULL || !is_there((*places)->lists))
            continue;
        text_fit(buf, PLACE_LISTS_SIZE, buf[0] != '\0' ? " or " : "");
        text_fit(buf, PLACE_LISTS_SIZE, (*places)->lists);
    }
}
