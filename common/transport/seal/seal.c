/* SPDX-License-Identifier: BSD-3-Clause */
/* Sealed connections by libcrypto; see seal.h. */
#include "common/transport/seal/seal.h"

#include "common/util/mark.h"

#include <openssl/core_names.h>
#include <openssl/crypto.h>
#include <openssl/ec.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/kdf.h>
#include <openssl/params.h>
#include <openssl/rand.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

MARK_VERSION;

enum { KEY = SEAL_SECRET, NONCE = 12, POINTS = 2 };

/* What goes one way. */
struct way {
    EVP_CIPHER_CTX *cipher;
    uint64_t n; /* records so far */
};

struct seal {
    EVP_PKEY *own;
    struct way in, out;
    bool spoilt; /* a record was not what the other end has written next */
};

static void destroy(struct seal *seal)
{
    if (seal == NULL)
        return;
    EVP_PKEY_free(seal->own);
    EVP_CIPHER_CTX_free(seal->in.cipher);
    EVP_CIPHER_CTX_free(seal->out.cipher);
    free(seal);
}

static bool get_point(EVP_PKEY *pair, unsigned char point[SEAL_POINT])
{
    size_t len = 0;
    return EVP_PKEY_get_octet_string_param(pair, OSSL_PKEY_PARAM_ENCODED_PUBLIC_KEY, point,
                                           SEAL_POINT, &len) == 1 &&
           len == SEAL_POINT;
}

static struct seal *create(unsigned char point[SEAL_POINT])
{
    struct seal *seal = calloc(1, sizeof *seal);
    if (seal != NULL && (seal->own = EVP_EC_gen("P-256")) != NULL && get_point(seal->own, point))
        return seal;
    destroy(seal);
    return NULL;
}

/* @return the key of a point, or NULL: it is not on the curve */
static EVP_PKEY *read_point(EVP_PKEY *own, const unsigned char point[SEAL_POINT])
{
    EVP_PKEY *key = EVP_PKEY_new();
    if (key != NULL && EVP_PKEY_copy_parameters(key, own) == 1 &&
        EVP_PKEY_set1_encoded_public_key(key, point, SEAL_POINT) == 1)
        return key;
    EVP_PKEY_free(key);
    return NULL;
}

/* Both ends find the same @p shared. */
static bool share(EVP_PKEY *own, EVP_PKEY *theirs, unsigned char shared[KEY])
{
    EVP_PKEY_CTX *ctx = EVP_PKEY_CTX_new(own, NULL);
    size_t len = KEY;
    bool good = ctx != NULL && EVP_PKEY_derive_init(ctx) == 1 &&
                EVP_PKEY_derive_set_peer(ctx, theirs) == 1 &&
                EVP_PKEY_derive(ctx, shared, &len) == 1 && len == KEY;
    EVP_PKEY_CTX_free(ctx);
    return good;
}

static OSSL_PARAM octets(const char *name, const void *data, size_t len)
{
    return OSSL_PARAM_construct_octet_string(name, (void *)(uintptr_t)data, len);
}

/* HKDF. @param keys the caller's, then the acceptor's */
static bool derive(const unsigned char shared[KEY], const void *secret, size_t secret_len,
                   const void *info, size_t info_len, unsigned char keys[2 * KEY])
{
    EVP_KDF *kdf = EVP_KDF_fetch(NULL, "HKDF", NULL);
    EVP_KDF_CTX *ctx = kdf != NULL ? EVP_KDF_CTX_new(kdf) : NULL;
    char digest[] = "SHA256";
    const OSSL_PARAM params[] = {
        OSSL_PARAM_construct_utf8_string(OSSL_KDF_PARAM_DIGEST, digest, 0),
        octets(OSSL_KDF_PARAM_KEY, shared, KEY),
        octets(OSSL_KDF_PARAM_SALT, secret, secret_len),
        octets(OSSL_KDF_PARAM_INFO, info, info_len),
        OSSL_PARAM_construct_end(),
    };
    bool good = ctx != NULL && EVP_KDF_derive(ctx, keys, 2 * KEY, params) == 1;
    EVP_KDF_CTX_free(ctx);
    EVP_KDF_free(kdf);
    return good;
}

/* What the keys belong to: both points, the caller's first, and what the users say. */
static unsigned char *join(const unsigned char *caller, const unsigned char *acceptor,
                           const void *about, size_t about_len)
{
    unsigned char *info = malloc(POINTS * SEAL_POINT + about_len);
    if (info == NULL)
        return NULL;
    memcpy(info, caller, SEAL_POINT);
    memcpy(info + SEAL_POINT, acceptor, SEAL_POINT);
    if (about_len > 0)
        memcpy(info + POINTS * SEAL_POINT, about, about_len);
    return info;
}

static bool set_key(struct way *way, bool out, const unsigned char key[KEY])
{
    EVP_CIPHER_CTX_free(way->cipher);
    *way = (struct way){.cipher = EVP_CIPHER_CTX_new()};
    return way->cipher != NULL &&
           EVP_CipherInit_ex2(way->cipher, EVP_aes_256_gcm(), key, NULL, out, NULL) == 1;
}

static bool set_keys(struct seal *seal, enum seal_side side, const unsigned char keys[2 * KEY])
{
    const unsigned char *callers = keys, *acceptors = keys + KEY;
    bool calls = side == SEAL_CALLER;
    return set_key(&seal->out, true, calls ? callers : acceptors) &&
           set_key(&seal->in, false, calls ? acceptors : callers);
}

static struct seal *with_key(const unsigned char key[SEAL_SECRET], enum seal_side side)
{
    struct seal *seal = calloc(1, sizeof *seal);
    bool out = side == SEAL_CALLER;
    if (seal != NULL && set_key(out ? &seal->out : &seal->in, out, key))
        return seal;
    destroy(seal);
    return NULL;
}

static bool agree(struct seal *seal, enum seal_side side, const unsigned char theirs[SEAL_POINT],
                  const void *secret, size_t secret_len, const void *about, size_t about_len)
{
    unsigned char own[SEAL_POINT], shared[KEY], keys[2 * KEY];
    EVP_PKEY *their_key = read_point(seal->own, theirs);
    bool good =
        their_key != NULL && get_point(seal->own, own) && share(seal->own, their_key, shared);
    unsigned char *info = !good                 ? NULL
                          : side == SEAL_CALLER ? join(own, theirs, about, about_len)
                                                : join(theirs, own, about, about_len);
    good = info != NULL &&
           derive(shared, secret, secret_len, info, POINTS * SEAL_POINT + about_len, keys) &&
           set_keys(seal, side, keys);
    OPENSSL_cleanse(shared, sizeof shared);
    OPENSSL_cleanse(keys, sizeof keys);
    free(info);
    EVP_PKEY_free(their_key);
    if (good) { /* no key can be made again */
        EVP_PKEY_free(seal->own);
        seal->own = NULL;
    }
    return good;
}

static void put_u32(unsigned char *at, uint32_t v)
{
    for (int i = 0; i < 4; i++)
        at[i] = (unsigned char)(v >> (24 - 8 * i));
}

static uint32_t get_u32(const unsigned char *at)
{
    return (uint32_t)at[0] << 24 | (uint32_t)at[1] << 16 | (uint32_t)at[2] << 8 | at[3];
}

/* Begins the next record of a way. */
static bool begin(struct way *way, const unsigned char *head)
{
    unsigned char nonce[NONCE] = {0};
    int n;
    if (way->cipher == NULL || way->n > UINT32_MAX)
        return false;
    put_u32(nonce + NONCE - 4, (uint32_t)way->n++);
    return EVP_CipherInit_ex2(way->cipher, NULL, NULL, nonce, -1, NULL) == 1 &&
           EVP_CipherUpdate(way->cipher, NULL, &n, head, SEAL_HEAD) == 1;
}

static bool write_record(struct seal *seal, const struct iovec *parts, int n, unsigned char *record)
{
    EVP_CIPHER_CTX *cipher = seal->out.cipher;
    unsigned char *to = record + SEAL_HEAD, none[1];
    int done = 0, end = 0;
    size_t len = 0;
    for (int i = 0; i < n; i++)
        len += parts[i].iov_len;
    if (len > INT32_MAX)
        return false;
    put_u32(record, (uint32_t)len);
    bool good = begin(&seal->out, record);
    for (int i = 0; good && i < n; i++) {
        int size = (int)parts[i].iov_len;
        good = size == 0 ||
               (EVP_EncryptUpdate(cipher, to, &done, parts[i].iov_base, size) == 1 && done == size);
        to += size;
    }
    return good && EVP_EncryptFinal_ex(cipher, none, &end) == 1 && end == 0 &&
           EVP_CIPHER_CTX_ctrl(cipher, EVP_CTRL_AEAD_GET_TAG, SEAL_TAG, to) == 1;
}

static bool decipher_part(struct way *way, void *to, const unsigned char *from, size_t len)
{
    int n = 0;
    return len == 0 ||
           (EVP_DecryptUpdate(way->cipher, to, &n, from, (int)len) == 1 && n == (int)len);
}

/* @param len of the body @param place NULL: nothing of it goes elsewhere */
static bool decipher(struct way *way, unsigned char *record, size_t len,
                     const struct seal_place *place)
{
    unsigned char *body = record + SEAL_HEAD, none[1];
    size_t here = place != NULL ? place->skip : len;
    int end = 0;
    return begin(way, record) && decipher_part(way, body, body, here) &&
           (place == NULL || decipher_part(way, place->to, body + here, len - here)) &&
           EVP_CIPHER_CTX_ctrl(way->cipher, EVP_CTRL_AEAD_SET_TAG, SEAL_TAG, body + len) == 1 &&
           EVP_DecryptFinal_ex(way->cipher, none, &end) == 1;
}

static int read_record(struct seal *seal, unsigned char *data, size_t len, size_t max,
                       const struct seal_place *place, struct seal_record *record)
{
    if (seal->spoilt)
        return -1;
    if (len < SEAL_HEAD)
        return 0;
    size_t body = get_u32(data);
    if (body > max || body > INT32_MAX) {
        seal->spoilt = true;
        return -1;
    }
    if (len < SEAL_HEAD + body + SEAL_TAG)
        return 0;
    bool apart = place != NULL && body > place->skip && body - place->skip <= place->room;
    seal->spoilt = !decipher(&seal->in, data, body, apart ? place : NULL);
    if (seal->spoilt)
        return -1;
    *record = (struct seal_record){.body = data + SEAL_HEAD,
                                   .body_len = body,
                                   .len = SEAL_HEAD + body + SEAL_TAG,
                                   .apart = apart};
    return 1;
}

static bool fill_randomly(void *bytes, size_t len)
{
    return len <= INT32_MAX && RAND_bytes(bytes, (int)len) == 1;
}

static bool prove(const void *secret, size_t secret_len, const void *data, size_t len,
                  unsigned char proof[SEAL_PROOF])
{
    unsigned n = 0;
    return HMAC(EVP_sha256(), secret, (int)secret_len, data, len, proof, &n) != NULL &&
           n == SEAL_PROOF;
}

static bool is_same(const void *one, const void *other, size_t len)
{
    return CRYPTO_memcmp(one, other, len) == 0;
}

extern const struct seal_ops muster_seal;
__attribute__((visibility("default"))) const struct seal_ops muster_seal = {
    .create = create,
    .agree = agree,
    .with_key = with_key,
    .write = write_record,
    .read = read_record,
    .destroy = destroy,
    .random = fill_randomly,
    .prove = prove,
    .is_same = is_same,
};
