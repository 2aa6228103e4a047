/* SPDX-License-Identifier: BSD-3-Clause */
/* Drives the back end for Flux without a server and without a shell, against real brokers: one
 * process for each node of a job. ci/system/flux_module.sh runs it. */
#include "common/transport/link.h"
#include "common/transport/rm.h"
#include "common/util/clock.h"
#include "common/util/log.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { DEADLINE_S = 240, PEER_S = 4 };
enum { HEAD = 4 + 8 + 4 + 8 + 1 + 8 /* bytes of a frame before what fills it */ };

static const char usage[] =
    "usage: rm_probe BACKEND LIBFLUX JOB NODE BROKERS COMMAND\n"
    "  exchange ROUNDS BYTES [FILE]  to all others and from all others, ROUNDS times; with FILE\n"
    "                                as many times more as it takes until it is there\n"
    "  meet FILE                     say where the user's servers meet; until FILE is there\n"
    "  reach NAMESPACE NODES         send to the first server of another job\n"
    "  lost                          until a node counts as lost\n"
    "  stay                          do nothing until killed\n"
    "  abort TEXT                    end the job\n"
    "MUSTER_PROBE_STATE: what it says of its operations; {} where it is not set\n";

struct probe {
    struct boot boot;
    struct event_base *base;
    const struct rm_ops *ops;
    struct rm *rm;
    struct link *link;
    uint32_t rounds, round, *got; /* got: by node, rounds that came */
    uint32_t last;                /* round; UINT32_MAX: no server has seen the file yet */
    const char *file;
    size_t bytes;
    bool wrong, lost, met;
};

static bool there(const char *path)
{
    struct stat st;
    return path == NULL || stat(path, &st) == 0;
}

static bool complete(const struct probe *probe)
{
    for (uint32_t node = 0; node < probe->boot.nnodes; node++)
        if (node != probe->boot.node && probe->got[node] < probe->round)
            return false;
    return true;
}

/* No server ends a round without a message of each other server, so all know of a last round that
 * is to come after it. */
static void begin_round(struct probe *probe)
{
    probe->round++;
    if (probe->last == UINT32_MAX && probe->round + 1 >= probe->rounds && there(probe->file))
        probe->last = probe->round + 1;
    for (uint32_t node = 0; node < probe->boot.nnodes; node++) {
        struct wire_out out = {0};
        if (node == probe->boot.node)
            continue;
        wire_put_u8(&out, FRAME_CONTRIB);
        wire_put_u32(&out, probe->round);
        wire_put_u32(&out, probe->last);
        for (size_t i = HEAD; i < probe->bytes; i++)
            wire_put_u8(&out, (uint8_t)(i + probe->round));
        link_send(probe->link, node, &out);
    }
}

/* Each round comes once, and in order. */
static void on_frame(void *arg, uint32_t from, enum frame_type type, const void *body, size_t len,
                     struct shared_bytes *whole)
{
    struct probe *probe = arg;
    const unsigned char *p = body;
    struct wire_in in;
    (void)type, (void)whole;
    wire_in_init(&in, body, len);
    uint32_t round = wire_get_u32(&in), last = wire_get_u32(&in);
    if (len != probe->bytes - HEAD + 8 || round != probe->got[from] + 1) {
        printf("wrong bytes: %zu, node %u, round %u\n", len, from, round);
        probe->wrong = true;
        return;
    }
    for (size_t i = HEAD; i < probe->bytes; i++)
        probe->wrong |= p[i - HEAD + 8] != (uint8_t)(i + round);
    probe->got[from] = round;
    if (last < probe->last)
        probe->last = last;
    while (probe->round > 0 && complete(probe) && probe->round < probe->last)
        begin_round(probe);
}

static void on_receive(void *arg, const void *data, size_t len)
{
    const struct probe *probe = arg;
    link_receive(probe->link, data, len, NULL, false);
}

static void on_native(void *arg, uint32_t node)
{
    const struct probe *probe = arg;
    probe->ops->ready(probe->rm, node);
}

static uint64_t on_next(void *arg, uint32_t node, size_t max, struct wire_out *out)
{
    const struct probe *probe = arg;
    return link_batch(probe->link, node, max, out);
}

static void on_arrived(void *arg, uint32_t node, uint64_t ticket)
{
    const struct probe *probe = arg;
    link_arrived(probe->link, node, ticket);
}

static bool on_failed(void *arg, uint32_t node)
{
    const struct probe *probe = arg;
    return link_failed(probe->link, node);
}

static void on_lost(void *arg, uint32_t node, const char *why)
{
    struct probe *probe = arg;
    printf("lost %u: %s\n", node, why);
    fflush(stdout);
    link_forget(probe->link, node);
    probe->lost = true;
}

static void on_home(void *arg, const struct rm_server *home, const char *why)
{
    struct probe *probe = arg;
    if (home != NULL)
        printf("home %s %u of %u\n", home->nspace, home->node, home->nnodes);
    else
        printf("no home: %s\n", why);
    fflush(stdout);
    probe->met = true;
}

static char *on_state(void *arg, size_t max, size_t *len)
{
    const char *text = getenv("MUSTER_PROBE_STATE");
    (void)arg;
    (void)max;
    text = text != NULL ? text : "{}";
    *len = strlen(text);
    return strdup(text);
}

static void reach(struct probe *probe, const char *nspace, uint32_t nnodes)
{
    probe->ops->attach(probe->rm, nspace, 0, probe->boot.nnodes, nnodes, NULL);
    struct wire_out out = {0};
    wire_put_u8(&out, FRAME_CONTRIB);
    link_send(probe->link, probe->boot.nnodes, &out); /* which does no harm */
}

static int load(struct probe *probe, const char *backend, const char *library)
{
    void *object =
        dlopen(library, RTLD_NOW | RTLD_GLOBAL) == NULL ? NULL : dlopen(backend, RTLD_NOW);
    probe->ops = object == NULL ? NULL : dlsym(object, RM_SYMBOL);
    if (probe->ops == NULL)
        fprintf(stderr, "rm_probe: %s\n", dlerror());
    return probe->ops == NULL ? -1 : 0;
}

static void describe(struct boot *boot, char **argv)
{
    boot->session = strdup(argv[3]);
    boot->label = strdup(argv[3]);
    boot->node = (uint32_t)strtoul(argv[4], NULL, 10);
    boot->nnodes = 1;
    for (const char *p = argv[5]; *p != '\0'; p++)
        boot->nnodes += *p == ',';
    boot->nodes = calloc(boot->nnodes, sizeof *boot->nodes);
    for (uint32_t node = 0; node < boot->nnodes; node++) {
        boot->nodes[node].name = malloc(16);
        snprintf(boot->nodes[node].name, 16, "node%u", node);
    }
    boot_set(boot, "jobid", argv[3]);
    boot_set(boot, "brokers", argv[5]);
    boot_set(boot, "uri", getenv("FLUX_URI"));
}

/* Begins the command. @return -1 when it has been done, else an exit status when it is wrong */
static int begin(struct probe *probe, char **argv)
{
    const char *command = argv[6];
    if (strcmp(command, "exchange") == 0 && argv[7] != NULL && argv[8] != NULL) {
        probe->rounds = (uint32_t)strtoul(argv[7], NULL, 10);
        probe->bytes = strtoul(argv[8], NULL, 10);
        probe->file = argv[9];
        begin_round(probe);
    } else if (strcmp(command, "meet") == 0 && argv[7] != NULL) {
        probe->file = argv[7];
        probe->ops->rendezvous(probe->rm, on_home, probe);
    } else if (strcmp(command, "reach") == 0 && argv[7] != NULL && argv[8] != NULL) {
        reach(probe, argv[7], (uint32_t)strtoul(argv[8], NULL, 10));
    } else if (strcmp(command, "abort") == 0 && argv[7] != NULL) {
        const struct rm_ending ending = {RM_CAUSE_ABORT, 1, argv[7], true};
        probe->ops->abort(probe->rm, &ending);
        return -1; /* close() waits for it */
    } else if (strcmp(command, "lost") != 0 && strcmp(command, "stay") != 0) {
        fputs(usage, stderr);
        return 2;
    }
    return 0;
}

static bool is_done(const struct probe *probe, const char *command)
{
    if (probe->rounds > 0)
        return complete(probe) && probe->round == probe->last;
    if (strcmp(command, "meet") == 0)
        return probe->met && there(probe->file);
    if (strcmp(command, "reach") == 0 && probe->ops->peer(probe->rm, probe->boot.nnodes).reached)
        return true;
    return probe->lost;
}

/* Runs the loop until the command has been done. @return exit status */
static int run(struct probe *probe, char **argv)
{
    const char *command = argv[6];
    int64_t deadline = now_ms() + DEADLINE_S * 1000;
    int status = begin(probe, argv);
    bool done = false;
    if (status != 0)
        return status < 0 ? 0 : status;
    while (!done && !probe->wrong && deadline_left(deadline) > 0) {
        const struct timeval tick = {.tv_usec = 100000};
        event_base_loopexit(probe->base, &tick);
        event_base_loop(probe->base, EVLOOP_ONCE);
        done = is_done(probe, command);
    }
    bool good = done && !probe->wrong && !(strcmp(command, "reach") == 0 && probe->lost);
    printf("%s: %s\n", command, good ? "done" : done || probe->wrong ? "wrong" : "not done");
    return good ? 0 : 1;
}

int main(int argc, char **argv)
{
    struct probe probe = {.last = UINT32_MAX};
    struct err err = {0};
    const struct rm_host host = {.arg = &probe,
                                 .receive = on_receive,
                                 .next = on_next,
                                 .arrived = on_arrived,
                                 .failed = on_failed,
                                 .lost = on_lost,
                                 .state = on_state};
    struct conf conf;
    if (argc < 7) {
        fputs(usage, stderr);
        return 2;
    }
    conf_defaults(&conf);
    conf.timeouts.peer = PEER_S;
    log_open(NULL, NULL, LOG_LEVEL_DEBUG, argv[4]);
    describe(&probe.boot, argv);
    probe.got = calloc(probe.boot.nnodes, sizeof *probe.got);
    probe.base = event_base_new();
    const struct link_env link = {.arg = &probe,
                                  .self = probe.boot.node,
                                  .nnodes = probe.boot.nnodes,
                                  .step = strtoull(argv[3], NULL, 10),
                                  .native = on_native,
                                  .deliver = on_frame};
    probe.link = link_new(&link);
    if (load(&probe, argv[1], argv[2]) != 0)
        return 2;
    probe.rm = probe.ops->open(&probe.boot, &conf, probe.base, &host, &err);
    if (probe.rm == NULL) {
        printf("refused: %s\n", err.text);
        return 3;
    }
    puts("ready");
    fflush(stdout);
    int status = run(&probe, argv);
    probe.ops->close(probe.rm, 1000);
    link_free(probe.link);
    event_base_free(probe.base);
    boot_free(&probe.boot);
    free(probe.got);
    return status;
}
