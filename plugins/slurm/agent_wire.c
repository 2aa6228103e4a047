/* SPDX-License-Identifier: BSD-3-Clause */
/* What muster-server and the agent in srun say to each other. */
#include "plugins/slurm/agent_wire.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Makes a credential of muster's useless for anything else, and the other way round. */
#define CALLER_PURPOSE "muster agent: caller"
#define AGENT_PURPOSE "muster agent: srun"
#define CAUSE_PURPOSE "muster agent: a line"
#define TAKEN_PURPOSE "muster agent: the line is taken"

/* By slurmd, of the connection that the launch came over. */
#define HOST_ENV "SLURM_SRUN_COMM_HOST"

int agent_frame_read(const void *data, size_t len, size_t max, struct agent_frame *frame)
{
    struct wire_in head;
    if (len < AGENT_HEAD)
        return 0;
    wire_in_init(&head, data, AGENT_HEAD);
    frame->type = wire_get_u32(&head);
    frame->version = wire_get_u32(&head);
    uint32_t body = wire_get_u32(&head);
    if (body > max - AGENT_HEAD)
        return -1;
    frame->len = AGENT_HEAD + body;
    if (len < frame->len)
        return 0;
    wire_in_init(&frame->body, (const unsigned char *)data + AGENT_HEAD, body);
    return 1;
}

size_t agent_frame_begin(struct wire_out *out, enum agent_type type)
{
    size_t begin = out->len;
    wire_put_u32(out, type);
    wire_put_u32(out, AGENT_VERSION);
    wire_put_u32(out, 0);
    return begin;
}

void agent_frame_end(struct wire_out *out, size_t begin)
{
    if (!out->failed)
        wire_set_u32(out, begin + AGENT_HEAD - 4, (uint32_t)(out->len - begin - AGENT_HEAD));
}

void agent_payload(const struct agent_address *address, const unsigned char *caller,
                   const unsigned char *agent, struct wire_out *out)
{
    wire_put_str(out, agent == NULL ? CALLER_PURPOSE : AGENT_PURPOSE);
    wire_put_str(out, address->label);
    wire_put_raw(out, caller, SEAL_POINT);
    if (agent != NULL)
        wire_put_raw(out, agent, SEAL_POINT);
}

void agent_word(const unsigned char *nonce, bool taken, struct wire_out *out)
{
    wire_put_str(out, taken ? TAKEN_PURPOSE : CAUSE_PURPOSE);
    wire_put_raw(out, nonce, AGENT_NONCE);
}

void agent_env_write(const struct agent_address *address, char *text, size_t cap)
{
    int at = snprintf(text, cap, "%s:%s:", address->port, address->label);
    for (size_t i = 0; i < sizeof address->secret && at > 0 && (size_t)at + 3 <= cap; i++)
        at += snprintf(text + at, cap - (size_t)at, "%02x", address->secret[i]);
}

const char *agent_env_value(char *const *env, const char *name)
{
    size_t len = strlen(name);
    for (; env != NULL && *env != NULL; env++)
        if (strncmp(*env, name, len) == 0 && (*env)[len] == '=')
            return *env + len + 1;
    return NULL;
}

char *agent_find(char *const *env)
{
    const char *agent = agent_env_value(env, AGENT_ENV), *host = agent_env_value(env, HOST_ENV);
    struct agent_address address;
    char *text = NULL;
    if (agent == NULL || host == NULL || asprintf(&text, "%s %s", host, agent) < 0)
        return NULL;
    if (agent_address_read(text, &address))
        return text;
    free(text);
    return NULL;
}

/* Takes the text up to the next @p end into @p field. @return what is behind it, or NULL */
static const char *take(const char *text, char end, char *field, size_t cap)
{
    const char *stop = strchr(text, end);
    if (stop == NULL || stop == text || (size_t)(stop - text) >= cap)
        return NULL;
    memcpy(field, text, (size_t)(stop - text));
    field[stop - text] = '\0';
    return stop + 1;
}

bool agent_address_read(const char *text, struct agent_address *address)
{
    *address = (struct agent_address){0};
    text = take(text, ' ', address->host, sizeof address->host);
    text = text != NULL ? take(text, ':', address->port, sizeof address->port) : NULL;
    text = text != NULL ? take(text, ':', address->label, sizeof address->label) : NULL;
    if (text == NULL || strlen(text) != 2 * AGENT_SECRET ||
        strspn(text, "0123456789abcdef") != 2 * AGENT_SECRET ||
        strspn(address->port, "0123456789") != strlen(address->port))
        return false;
    for (size_t i = 0; i < AGENT_SECRET; i++)
        sscanf(text + 2 * i, "%2hhx", &address->secret[i]);
    return true;
}
