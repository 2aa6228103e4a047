/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * The muster-server process of this step and node: its start and its end.
 */
#pragma once

#include "common/launch/identity.h"
#include "common/launch/relay.h"
#include "common/launch/silence.h"
#include "common/transport/wire.h"
#include "common/util/err.h"

#include <stdbool.h>
#include <sys/types.h>

struct scratch;

/** What starts the server: the plugin in the RM's own process. Borrowed, all of it. */
struct launcher {
    const char *node; /**< the RM's name of this node, for messages */
    const char *log;  /**< where the relay's lines go, for messages: "slurmd's log" */
    const struct identity *user;
    const struct scratch
        *scratch;           /**< the server's directory, until the end of the launch; or NULL */
    int listener;           /**< to become BOOT_FD_LISTEN; -1: the RM needs none */
    const char *const *env; /**< "K=V" that the server gets besides, ended by NULL */
    /** Called with the server's process while it is the launcher's user's and does nothing, so that
     * no other user can end it and have its number go to another process; NULL: nothing is to be
     * done then.
     * @return 0, or -1 with the reason in @p err: it is not started */
    int (*at_gate)(pid_t server, struct err *err);
    /** Called once, within launch_end(), when the server has said that it leaves: nothing new is to
     * reach it, and it takes what has. NULL: the RM sees to that. */
    void (*on_left)(void *arg);
    void *arg;
};

/** A started server. */
struct launch {
    int control;  /**< our end of the control socket, non-blocking; -1: not started */
    int pidfd;    /**< the server's process; -1 where the kernel has none */
    pid_t server; /**< the same, for messages only: the number may be another's by now */
    struct silence silence;
    struct relay relay;            /**< its standard error */
    struct wire_out tell;          /**< starts and ends of tasks that it has not taken yet */
    size_t told;                   /**< bytes of tell that it has */
    uint32_t asked;                /**< BOOT_SAYS_SHOW that are not answered in tell yet */
    bool left;                     /**< it has said that it leaves in order */
    bool used;                     /**< it has said that tasks use PMIx */
    bool forced;                   /**< we have killed it */
    char death[512];               /**< once it has died: launch_death() */
    int64_t oom_kills;             /**< death_oom_kills() at its start */
    const struct scratch *scratch; /**< the launcher's */
    const char *node;              /**< the launcher's */
    const char *log;               /**< the launcher's */
    void (*on_left)(void *arg);    /**< the launcher's */
    void *arg;                     /**< the launcher's */
};

/** Starts the server as the user, with nothing of ours but the descriptors of boot.h.
 * @param launcher node and log until the end of @p launch, the rest until this returns
 * @return 0, or -1 with the reason in @p err and nothing left behind
 * @thread the launcher's main thread */
int launch_server(struct launch *launch, const struct launcher *launcher, struct err *err);

/** Puts a record of three numbers (boot.h) behind those that the server has not taken yet, and
 * sends what it takes at once. Never blocks. @thread one at a time */
void launch_tell(struct launch *launch, uint32_t first, uint32_t second, uint32_t third);

/** The same, with a text that belongs to the record: its length is the second number, and its bytes
 * follow. */
void launch_tell_text(struct launch *launch, uint32_t first, const char *text);

/** Sends of them what the server takes now. @return whether there are more. @thread the same */
bool launch_flush(struct launch *launch);

/** Asks the server whether it still answers; call it each SILENCE_ASK_S. A server that does not
 * answer is reported, and that it answers again; nothing else is done. @thread the same */
void launch_ask(struct launch *launch);

/** Tells the server all that is left and to leave, waits for its process to end, and after a bound
 * ends it by force. The bound is 5 s, and longer as long as the server says that it still delivers,
 * within BOOT_STAY_MAX_MS. Closes everything.
 * @return false: it has died, perhaps before: its tasks' end, which that brings, may be noticed
 * first, and tasks elsewhere would wait for ever; launch->death says what is known of it */
bool launch_end(struct launch *launch);

/** What launch_attend() has found. */
enum launch_state {
    LAUNCH_SERVES,
    LAUNCH_BOUND, /**< the server says that it has seen where all tasks of the node are bound */
    LAUNCH_DIED,  /**< it has closed the control socket, and was ended by force if it had not ended:
                       nothing more will come, and tasks would wait for it for ever: launch->death
                       says what is known of it */
};

/** Takes what came over the control socket. Only when the server dies it waits, 50 ms at most, for
 * its end. Before a death is told of, the relay is drained, so that the server's last words come
 * first. @thread that of launch_tell() */
enum launch_state launch_attend(struct launch *launch);

/** Ends it by force, now. Closes everything. */
void launch_kill(struct launch *launch);

/** Has this process end with its launcher. Nothing else would end the tasks of a launcher that was
 * killed, and they wait for a server that has left with it.
 * @param launcher the process whose main thread has forked us; if it is gone already, so are we
 * @thread the task's process between fork and exec, as the user */
void launch_die_with(pid_t launcher);
