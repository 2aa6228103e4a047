/* SPDX-License-Identifier: BSD-3-Clause */
/* Frames between servers of one process, in the order in which they were sent. */
#include "common/server/trees/test_frames.h"

#include "common/util/log.h"
#include "common/util/test_cmocka.h"

#include <stdlib.h>
#include <string.h>

struct test_frame *frames;
uint32_t nframes;

static uint32_t cap, taken;

static void silent(void *arg, enum log_level level, const char *text)
{
    (void)arg, (void)level, (void)text;
}

void frames_open(void)
{
    frames_close();
    log_open(silent, NULL, LOG_LEVEL_WARNING, NULL);
}

void frames_send(uint32_t from, uint32_t to, struct wire_out *out)
{
    assert_int_not_equal(from, to);
    assert_false(out->failed);
    if (nframes == cap) {
        cap = 2 * cap + 1024;
        frames = realloc(frames, cap * sizeof *frames);
        assert_non_null(frames);
    }
    struct test_frame *f = &frames[nframes++];
    *f = (struct test_frame){.from = from, .to = to};
    f->data = wire_out_take(out, &f->len);
}

bool frames_take(struct test_frame *frame)
{
    if (taken == nframes)
        return false;
    *frame = frames[taken];
    frames[taken++].data = NULL;
    return true;
}

struct test_frame frames_remove(uint32_t at)
{
    struct test_frame frame = frames[at];
    memmove(&frames[at], &frames[at + 1], (--nframes - at) * sizeof *frames);
    return frame;
}

void frames_close(void)
{
    for (uint32_t i = 0; i < nframes; i++)
        free(frames[i].data);
    free(frames);
    frames = NULL;
    nframes = cap = taken = 0;
}
