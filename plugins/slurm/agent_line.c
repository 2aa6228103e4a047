/* SPDX-License-Identifier: BSD-3-Clause */
/* Records between a caller and the agent in srun. */
#include "plugins/slurm/agent_line.h"

#include "common/transport/seal/load.h"

#include <string.h>

bool agent_line_open(struct agent_line *line, struct err *err)
{
    *line = (struct agent_line){.ops = seal_load(err)};
    if (line->ops == NULL)
        return false;
    line->seal = line->ops->create(line->point);
    if (line->seal == NULL)
        err_set(err, "libcrypto makes no key pair");
    return line->seal != NULL;
}

bool agent_line_agree(struct agent_line *line, enum seal_side side,
                      const struct agent_address *address, const unsigned char *theirs)
{
    return line->ops->agree(line->seal, side, theirs, address->secret, sizeof address->secret,
                            address->label, strlen(address->label));
}

bool agent_line_put(struct agent_line *line, const struct wire_out *frame, struct wire_out *out)
{
    size_t len = SEAL_HEAD + frame->len + SEAL_TAG;
    const struct iovec part = {frame->data, frame->len};
    wire_reserve(out, len);
    if (frame->failed || out->failed ||
        !line->ops->write(line->seal, &part, 1, out->data + out->len))
        return false;
    out->len += len;
    return true;
}

int agent_line_read(struct agent_line *line, unsigned char *data, size_t len,
                    struct agent_frame *frame)
{
    struct seal_record record;
    int found = line->ops->read(line->seal, data, len, AGENT_FRAME_MAX, NULL, &record);
    if (found != 1)
        return found;
    if (agent_frame_read(record.body, record.body_len, AGENT_FRAME_MAX, frame) != 1 ||
        frame->len != record.body_len)
        return -1;
    frame->len = record.len;
    return 1;
}

void agent_line_close(struct agent_line *line)
{
    if (line->ops != NULL)
        line->ops->destroy(line->seal);
    *line = (struct agent_line){0};
}
