/* SPDX-License-Identifier: BSD-3-Clause */
/* What the agent in srun is told for the user, shown once for the step. */
#include "plugins/slurm/agent_said.h"

#include "common/util/log.h"

#include <stdio.h>
#include <string.h>

void said_ending(struct said *said, const struct rm_ending *ending, int64_t now)
{
    bool counts = !said->ends || ending->cause < said->ending.cause;
    log_debug("the step ends with status %u, for cause %u%s%s%s", ending->status, ending->cause,
              counts ? "" : ", after another one", ending->why != NULL ? ": " : "",
              ending->why != NULL ? ending->why : "");
    if (!counts)
        return;
    said->ends = true;
    said->ending = (struct rm_ending){.cause = ending->cause, .status = ending->status};
    if (ending->why == NULL)
        return;
    said->reason = (struct said_line){.due = now + SAID_REASON_MS};
    snprintf(said->reason.text, sizeof said->reason.text, "%s", ending->why);
}

/* Whether both texts are alike but for the names of the nodes that they are from. */
static bool is_alike(const char *a, const char *a_node, const char *b, const char *b_node)
{
    size_t a_len = strlen(a_node), b_len = strlen(b_node);
    if (a_len == 0 || b_len == 0)
        return strcmp(a, b) == 0;
    while (*a != '\0' && *b != '\0') {
        if (strncmp(a, a_node, a_len) == 0 && strncmp(b, b_node, b_len) == 0) {
            a += a_len;
            b += b_len;
        } else if (*a++ != *b++) {
            return false;
        }
    }
    return *a == *b;
}

void said_line(struct said *said, const char *text, const char *node, int64_t now)
{
    for (unsigned i = 0; i < said->nlines; i++) {
        struct said_line *line = &said->lines[i];
        if (!is_alike(line->text, line->node, text, node))
            continue;
        if (strcmp(line->node, node) == 0)
            return;
        line->more++;
        if (line->due == 0)
            line->due = now + SAID_FOLD_MS;
        return;
    }
    if (said->nlines == SAID_LINES_MAX) {
        log_debug("one line more than %d was not shown: %s", SAID_LINES_MAX, text);
        return;
    }
    struct said_line *line = &said->lines[said->nlines++];
    *line = (struct said_line){.due = now + SAID_FOLD_MS};
    snprintf(line->text, sizeof line->text, "%s", text);
    snprintf(line->node, sizeof line->node, "%s", node);
}

static void show(struct said_line *line)
{
    char more[64] = "";
    if (line->more > 0)
        snprintf(more, sizeof more, "; the same on %u more node%s", line->more,
                 line->more == 1 ? "" : "s");
    log_error("%s%s", line->text, more);
    line->more = 0;
    line->due = 0;
}

static int64_t first(int64_t a, int64_t b)
{
    return b != 0 && b < a ? b : a;
}

int64_t said_next(const struct said *said)
{
    int64_t next = first(INT64_MAX, said->reason.due);
    for (unsigned i = 0; i < said->nlines; i++)
        next = first(next, said->lines[i].due);
    return next;
}

void said_tick(struct said *said, int64_t now)
{
    if (said->reason.due != 0 && said->reason.due <= now)
        show(&said->reason);
    for (unsigned i = 0; i < said->nlines; i++)
        if (said->lines[i].due != 0 && said->lines[i].due <= now)
            show(&said->lines[i]);
}
