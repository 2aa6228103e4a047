/* SPDX-License-Identifier: BSD-3-Clause */
/* muster-server: libpmix's server of one job step on one node, as the job's user.
 *
 * The launcher's plugin starts it with a control socket (boot.h); by hand it checks settings. */
#include "common/nspace/library.h"
#include "common/nspace/register.h"
#include "common/server/life/check.h"
#include "common/server/life/life.h"
#include "common/server/life/settings.h"
#include "common/server/process/crash.h"
#include "common/server/process/limits.h"
#include "common/server/process/overdue.h"
#include "common/server/spawned/execs.h"
#include "common/server/status/status.h"
#include "common/server/steps/sets.h"
#include "common/server/tasks/tasks.h"
#include "common/upcall/upcall.h"
#include "common/util/io_all.h"
#include "common/util/log_own.h"
#include "common/util/log_syslog.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
    GOODBYE_MS = 1000, /* for the last frames, once all others are delivered or given up */
    LEAVE_MS = 1000,   /* for libpmix to end */
};

/* The launcher waits with a deadline of its own, and ends us when it passes. */
static int read_boot(struct boot *boot, struct err *err)
{
    unsigned char head[4];
    struct wire_in in;
    if (read_all(BOOT_FD_CONTROL, head, sizeof head) != (ssize_t)sizeof head)
        return err_set(err, "no boot message came");
    wire_in_init(&in, head, sizeof head);
    uint32_t len = wire_get_u32(&in);
    void *data = len <= BOOT_MAX ? malloc(len + 1) : NULL;
    int rc = data == NULL || read_all(BOOT_FD_CONTROL, data, len) != (ssize_t)len
                 ? err_set(err, "the boot message is cut or too long")
                 : boot_read(boot, data, len, err);
    free(data);
    return rc;
}

/* The environment of a task has the same URI under several names, for several releases. */
static void keep_uri(struct server *server, const char *variable)
{
    static const char name[] = "PMIX_SERVER_URI";
    const char *equals = strchr(variable, '=');
    if (server->uri == NULL && equals != NULL && strncmp(variable, name, sizeof name - 1) == 0)
        server->uri = strdup(equals + 1);
}

static int send_environment(struct server *server, struct err *err)
{
    const struct boot_node *here = boot_here(&server->boot);
    struct wire_out out = {0};
    int rc = 0;
    for (uint32_t slot = 0; slot < here->ntasks && rc == 0; slot++) {
        char **env = NULL;
        rc = register_environment(server->nspace, slot, &env, err);
        for (char **e = env; e != NULL && *e != NULL; e++) {
            keep_uri(server, *e);
            wire_put_u32(&out, slot);
            wire_put_str(&out, *e);
            free(*e);
        }
        free(env);
        char *own = execs_env(server);
        if (own != NULL) {
            wire_put_u32(&out, slot);
            wire_put_str(&out, own);
        }
        free(own);
    }
    wire_put_u32(&out, BOOT_READY);
    if (rc == 0 && !send_all(BOOT_FD_CONTROL, out.data, out.len))
        rc = err_set(err, "the launcher does not take the environment");
    wire_out_free(&out);
    return rc;
}

static void send_failure(const struct err *err)
{
    struct wire_out out = {0};
    wire_put_u32(&out, err->alike ? BOOT_FAILED_ALIKE : BOOT_FAILED);
    wire_put_str(&out, err->text);
    if (!send_all(BOOT_FD_CONTROL, out.data, out.len))
        log_error("%s", err->text);
    wire_out_free(&out);
}

static bool done;

/* A library that calls exit() in a thread of its own would wait for ever for the others. */
static void on_exit_of_others(void)
{
    if (!done)
        _exit(1);
}

/* What the process writes its messages to. */
struct sinks {
    struct log_syslog syslog;
    struct log_own own;
};

/* Messages as the settings have it. A node without syslog, or where the user's file cannot be
 * written, is no reason to end a step. */
static void open_log(const struct server *server, struct sinks *sinks)
{
    char prefix[256];
    struct err err = {0};
    struct log_own *own = &sinks->own;
    const char *path = boot_setting(&server->boot, BOOT_LOG),
               *node = boot_here(&server->boot)->name;
    snprintf(prefix, sizeof prefix, "%s %s", server->boot.label, node);
    *own = (struct log_own){.fd = -1, .next_level = server->log_level};
    log_open(NULL, NULL, server->log_level, prefix);
    crash_open(prefix);
    if (server->conf.log_sink == CONF_LOG_SYSLOG) {
        if (log_syslog_open(&sinks->syslog, LOG_SYSLOG_PATH, "muster-server", &err) == 0) {
            own->next = log_syslog;
            own->arg = &sinks->syslog;
        } else {
            log_warning("log_sink is \"syslog\", but messages go to standard error: %s", err.text);
        }
    }
    own->level = server->conf.log_level;
    if (path != NULL && log_own_open(own, path, node, &err) != 0)
        log_cause(BOOT_LOG_ENV " is not written: %s", err.text);
    log_open(log_own, own, log_own_level(own), prefix);
}

/* Libpmix, the back end and the step's registration have what they need, but for what libpmix makes
 * for the first client. The bound is on what comes else. */
static int bound_memory(const struct server *server, uint64_t needs, struct err *err)
{
    char who[256];
    snprintf(who, sizeof who, "%s %s", server->boot.label, boot_here(&server->boot)->name);
    return limits_memory(server->conf.memory_max, needs, who, err);
}

/* Tells libpmix of the step. */
static int register_step(struct server *server, struct err *err)
{
    const struct boot *boot = &server->boot;
    uint64_t needs =
        library_needs(server->library, boot->nnodes, boot->ntasks, boot_here(boot)->ntasks);
    return limits_step(needs, boot->nnodes, boot->ntasks, err) != 0 ||
                   register_namespace(server->nspace, &server->psets, server->library, err) != 0 ||
                   bound_memory(server, needs, err) != 0 || sets_define(server, err) != 0
               ? -1
               : 0;
}

/* libpmix serves no process any more. It may hang in its end: 4.2 waits for a lock for ever when a
 * client was killed while it connected. */
static void end_library(const struct server *server)
{
    const char *tmpdir = server->boot.tmpdir;
    overdue_start(tmpdir, LEAVE_MS);
    upcall_close();
    overdue_stop();
    overdue_remove(tmpdir);
}

/* Step by step; each needs the ones before. @return 0 after a good life */
static int serve(struct server *server, struct sinks *sinks, struct err *err)
{
    conf_defaults(&server->conf);
    /* The boot message first: a launcher that cannot send it would not read why. */
    if (read_boot(&server->boot, err) != 0)
        return -1;
    if (boot_setting(&server->boot, "unit") != NULL)
        log_set_unit(boot_setting(&server->boot, "unit"));
    if (server_settings(server, err) != 0)
        return -1;
    const struct boot_node *here = boot_here(&server->boot);
    boot_take_apps(&server->boot);
    open_log(server, sinks);
    if (limits_descriptors(here->ntasks, boot_spawned(&server->boot), err) != 0 ||
        sets_open(server, err) != 0 || server_open(server, err) != 0 ||
        upcall_open(server, err) != 0)
        return -1;
    char release[LIBRARY_TEXT_SIZE];
    int rc = register_step(server, err) != 0 ? -1 : send_environment(server, err);
    if (rc == 0) {
        log_info("ready: %u of %u tasks, libpmix %s", here->ntasks, server->boot.ntasks,
                 library_text(server->library, release));
        atexit(on_exit_of_others); /* after the libraries' own, hence called before those */
        server_run(server);
    } else {
        server->ending = true; /* the launcher is told why */
    }
    server_leave(server, GOODBYE_MS);
    end_library(server);
    return rc;
}

int main(int argc, char **argv)
{
    struct server server = {0};
    struct sinks sinks = {.syslog.fd = -1, .own.fd = -1};
    struct err err = {0};
    int type;
    socklen_t len = sizeof type;
    if (argc > 1)
        return check_main(argc, argv);
    if (getsockopt(BOOT_FD_CONTROL, SOL_SOCKET, SO_TYPE, &type, &len) != 0) {
        fprintf(stderr, "muster-server is started by muster's plugin in the resource manager, "
                        "once for each step and node; by hand it only checks settings: see "
                        "muster-server --help\n");
        return 2;
    }
    limits_keep_memory();
    signal(SIGPIPE, SIG_IGN);
    status_block_signal();
#ifndef MUSTER_SANITIZED /* the leak sanitizer traces the process */
    /* We live outside of the job's cgroup: the user's processes must not get into ours. */
    prctl(PR_SET_DUMPABLE, 0);
#endif
    fcntl(BOOT_FD_CONTROL, F_SETFD, FD_CLOEXEC);
    fcntl(BOOT_FD_LISTEN, F_SETFD, FD_CLOEXEC);
    int rc = serve(&server, &sinks, &err);
    if (rc != 0)
        send_failure(&err);
    server_close(&server);
    log_open(NULL, NULL, LOG_LEVEL_WARNING, NULL);
    log_syslog_close(&sinks.syslog);
    log_own_close(&sinks.own);
    done = true;
    return rc == 0 ? 0 : 1;
}
