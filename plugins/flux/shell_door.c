/* SPDX-License-Identifier: BSD-3-Clause */
/* A door in the job shell. */
#include "plugins/flux/shell_door.h"

#include "common/util/log.h"

#include <errno.h>
#include <string.h>

static void unwatch(struct shell_door *door)
{
    if (door->watcher)
        flux_watcher_destroy(door->watcher);
    door->watcher = NULL;
}

static void on_knock(flux_reactor_t *r, flux_watcher_t *w, int events, void *arg)
{
    struct shell_door *door = arg;
    (void)r, (void)w, (void)events;
    if (!door_knocked(&door->door, door->user))
        return;
    unwatch(door); /* a process that knocks later waits */
    door->knocked(door->arg);
}

int shell_door_open(struct shell_door *door, flux_t *h, uint16_t port, struct err *err)
{
    if (door_open(&door->door, port, err) < 0)
        return -1;
    door->is_open = true;
    door->watcher =
        flux_fd_watcher_create(flux_get_reactor(h), door->door.fd, FLUX_POLLIN, on_knock, door);
    if (!door->watcher) {
        err_set(err, "the job shell cannot watch a socket: %s", strerror(errno));
        shell_door_close(door);
        return -1;
    }
    flux_watcher_start(door->watcher);
    return 0;
}

static void set_env(void *arg, const char *key, const char *value)
{
    if (flux_cmd_setenvf(arg, 1, key, "%s", value) < 0)
        log_error("the task's environment cannot be set: %s", strerror(errno));
}

int shell_door_tell(const struct shell_door *door, const char *nspace, flux_shell_task_t *task)
{
    int rank;
    if (flux_shell_task_info_unpack(task, "{s:i}", "rank", &rank) < 0 || rank < 0) {
        log_error("the shell does not tell which task it starts");
        return -1;
    }
    door_tell(&door->door, nspace, (uint32_t)rank, set_env, flux_shell_task_cmd(task));
    return 0;
}

void shell_door_close(struct shell_door *door)
{
    unwatch(door);
    if (door->is_open)
        door_close(&door->door);
    door->is_open = false;
}
