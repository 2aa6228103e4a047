/* SPDX-License-Identifier: BSD-3-Clause */
/* Whether the server still answers its launcher. */
#include "common/launch/silence.h"

#include "common/util/log.h"

#include <stdio.h>
#include <string.h>

/* @return the state of proc(5), or '?' */
static char state_of(pid_t pid)
{
    char path[64], line[256] = "";
    const char *name_end;
    FILE *in;

    snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
    in = fopen(path, "re");
    if (!in)
        return '?';
    if (!fgets(line, sizeof(line), in))
        line[0] = '\0';
    fclose(in);
    name_end = strrchr(line, ')'); /* "PID (NAME) STATE ...", and the name may have anything */
    return name_end && name_end[1] == ' ' && name_end[2] != '\0' ? name_end[2] : '?';
}

static void tell(const char *node, pid_t server)
{
    char state = state_of(server);
    bool stopped = state == 'T' || state == 't';

    log_cause(
        "muster-server on node %s has not answered for %d s: its process %d there is %s "
        "(state %c), and tasks on that node that call PMIx wait for it; %s, or kill it, which "
        "ends them",
        node, (SILENCE_TOLD - 1) * SILENCE_ASK_S, (int)server, stopped ? "stopped" : "not stopped",
        state, stopped ? "let it go on (kill -CONT)" : "wait for it");
}

bool silence_asks(struct silence *silence, const char *node, pid_t server)
{
    if (silence->asked < SILENCE_TOLD && ++silence->asked == SILENCE_TOLD)
        tell(node, server);
    return silence->asked == 1;
}

void silence_ends(struct silence *silence, const char *node)
{
    if (silence->asked == SILENCE_TOLD)
        log_cause("muster-server on node %s answers again", node);
    silence->asked = 0;
}
