/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * Servers in one process with real direct connections: what they send natively goes from one to the
 * other here, credentials are a word in front of what they hold, and a proxy stands between two
 * servers where a test asks for one.
 */
#pragma once

#include "common/transport/direct/direct_private.h"
#include "common/transport/link.h"

enum {
    KIT_PATIENCE = 2000 /* ms */,
    KIT_SERVERS = 6,
    KIT_FRAMES = 512,
    KIT_STEP = 77,
    KIT_LINES = 64
};

/** One server. */
struct kit_server {
    uint32_t index;
    struct direct *direct;
    struct link *link;                     /**< stays when the direct way is closed */
    unsigned got[KIT_SERVERS][KIT_FRAMES]; /**< how often frame N came, by sender */
    unsigned native_in;                    /**< frames that came natively */
    unsigned announced;                    /**< announcements that came natively */
    unsigned heard;                        /**< bits of servers */
    bool deaf;                             /**< announcements to it are dropped */
};

/** What the proxy does with a byte that comes from one side. */
struct kit_proxy {
    struct event_base *base;
    int listener;
    uint16_t port;   /**< where it listens */
    uint16_t behind; /**< where the server does */
    struct event *accept;
    struct proxied *first;
    unsigned connections;
    /* of the first connection; direction 0 is from the one who connects */
    int cut_side;              /**< direction whose bytes are counted; -1: neither */
    size_t cut_at;             /**< it is closed after so many */
    int flip_side;             /**< -1: neither */
    size_t flip_at;            /**< this byte is changed */
    int stop_side;             /**< from cut_at on nothing is handed on; -1: neither */
    size_t seen[2];            /**< bytes of the first connection so far */
    unsigned char heard[4096]; /**< the first of them in direction 0 */
};

struct kit {
    struct event_base *base;
    struct timers timers;
    struct kit_server servers[KIT_SERVERS];
    struct conf_direct conf;
    unsigned connections;
    bool vouches;      /**< credentials are asked for */
    unsigned warnings; /**< lines of that level */
    char lines[KIT_LINES][512];
    unsigned nlines; /**< of level info and above */
    struct err err;  /**< of kit_open() */
};

extern struct kit kit;

/** kit_hang: the threads that make and read credentials hang, and may outlive a test. kit_refuse:
 * they can read no credential. */
extern _Atomic bool kit_hang, kit_refuse;

/** All defaults: on, at the loopback interface, credentials. */
void kit_begin(void);
/** Opens a server. @return whether it has the direct way */
bool kit_open(uint32_t index);
void kit_close(uint32_t index);
void kit_end(void);

/** Sends frame @p number, of @p len bytes and 29 more. */
void kit_send(uint32_t from, uint32_t to, uint32_t number, size_t len);

/** The same, and @p body, all of whose bytes are @p number, follows. */
void kit_send_body(uint32_t from, uint32_t to, uint32_t number, size_t len,
                   struct shared_bytes *body);

/** How many frames have come to it directly. */
unsigned kit_direct_in(uint32_t index);

/** Runs the loop until @p done or for @p ms. @return done() */
bool kit_run(bool (*done)(void), int ms);

/** Whether frames go directly between two servers. */
bool kit_is_up(uint32_t a, uint32_t b);

/** Runs until they do. */
void kit_await_up(uint32_t a, uint32_t b);

/** How often a text stands in lines that were logged. */
unsigned kit_logged(const char *text);

/** Puts a proxy in front of a server: its announcements name the proxy's port. */
void proxy_open(struct kit_proxy *proxy, uint32_t server);
void proxy_close(struct kit_proxy *proxy);
