/* SPDX-License-Identifier: BSD-3-Clause */
/* Announces this server to others: its credential is made, and who has asked for it is told. */
#include "common/transport/direct/direct_private.h"

#include "common/util/clock.h"
#include "common/util/log.h"

enum {
    FRESH_MS = 60000,     /* a credential may be as old when it is sent; munge's last 300 s */
    TELL_AGAIN_MS = 1000, /* a server that still sends natively may not have our announcement */
};

void direct_seal(struct direct *d)
{
    struct wire_out secret = {0};
    if (d->sealing)
        return;
    announce_put_secret(&d->own, &secret);
    if (d->env.ops == NULL) {
        wire_out_free(&d->credential);
        d->credential = secret;
        d->sealed_at = now_ms();
        return;
    }
    d->sealing = !secret.failed &&
                 voucher_order(d->voucher, VOUCH_SEAL, d->own.self, secret.data, secret.len);
    if (d->sealing)
        timer_sooner(&d->look, now_ms() + DIRECT_STUCK_MS);
    wire_out_free(&secret);
}

void direct_announce(struct peer *p, int64_t now)
{
    struct direct *d = p->direct;
    struct wire_out out = {0};
    if (p->told_at != 0 && now < p->told_at + TELL_AGAIN_MS)
        return;
    bool fresh = d->sealed_at != 0 && now < d->sealed_at + FRESH_MS;
    if (!fresh && d->env.ops == NULL) {
        direct_seal(d);
        fresh = true;
    }
    if (!fresh || d->credential.len == 0) {
        p->wants = true;
        if (!fresh)
            direct_seal(d);
        return;
    }
    p->wants = false;
    p->told_at = now;
    wire_put_u8(&out, FRAME_ANNOUNCE);
    announce_write(&d->own, &d->addresses, d->port, d->credential.data, d->credential.len, &out);
    /* Where frames wait for a connection, nothing else tells whether the server is there. */
    link_send_loose(d->env.link, p->node, &out, p->waits_since != 0 ? CARE_SHOULD : CARE_MAY);
}

static void announce_to_all(struct direct *d)
{
    int64_t now = now_ms();
    for (struct peer *p = peers_next(d, NULL); p != NULL; p = peers_next(d, p))
        if (p->wants && !p->lost && !peer_is_up(p))
            direct_announce(p, now);
}

void direct_sealed(struct direct *d, const void *credential, size_t len)
{
    d->sealing = false;
    wire_out_free(&d->credential);
    if (credential == NULL || len > ANNOUNCE_CREDENTIAL_MAX) {
        log_warning("transport: no credential can be made, as by a munged that does not run: "
                    "other servers cannot connect to this one, and %s",
                    d->instead);
        d->sealed_at = now_ms(); /* and so not again for a while */
        return;
    }
    wire_put_raw(&d->credential, credential, len);
    d->sealed_at = now_ms();
    announce_to_all(d);
}
