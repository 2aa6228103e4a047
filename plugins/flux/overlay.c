/* SPDX-License-Identifier: BSD-3-Clause */
/* How brokers hang together: servers form their trees likewise, so that what passes a broker on its
 * way is for a server there, where there is one. Every broker is told the same, once. */
#include "plugins/flux/module.h"

#include <errno.h>
#include <json-c/json.h>
#include <stdlib.h>
#include <string.h>

/* An answer takes rank 0 time that grows with the square of the brokers, each of which asks: of 512
 * that is half a second for all, of 4096 minutes. Trees are k-ary in larger instances. */
enum { OVERLAY_MAX = 512, NESTING = 2 * OVERLAY_MAX + 4 };

flux_future_t *overlay_ask(struct module *module)
{
    return flux_rpc_pack(module->h, "overlay.topology", 0, 0, "{s:i}", "rank", 0);
}

/* A broker with those below it. @return how many, or -1 */
static int read_broker(struct json_object *broker, uint32_t above, uint32_t *parents, uint32_t size)
{
    struct json_object *rank, *children;
    int n = 1;
    if (!json_object_object_get_ex(broker, "rank", &rank) ||
        !json_object_object_get_ex(broker, "children", &children) ||
        !json_object_is_type(children, json_type_array))
        return -1;
    int64_t at = json_object_get_int64(rank);
    if (at < 0 || at >= size)
        return -1;
    parents[at] = above;
    for (size_t i = 0; i < json_object_array_length(children); i++) {
        int below =
            read_broker(json_object_array_get_idx(children, i), (uint32_t)at, parents, size);
        if (below < 0)
            return -1;
        n += below;
    }
    return n;
}

/* @return 0, or -1: that is no tree of all brokers */
static int read_shape(const char *text, uint32_t size, struct tree_shape *shape)
{
    uint32_t *parents = calloc(size, sizeof *parents);
    struct json_tokener *tokener = json_tokener_new_ex(NESTING);
    struct json_object *root = parents != NULL && tokener != NULL
                                   ? json_tokener_parse_ex(tokener, text, (int)strlen(text))
                                   : NULL;
    int rc = root != NULL && read_broker(root, TREE_NONE, parents, size) == (int)size
                 ? tree_shape_init(shape, parents, size)
                 : -1;
    json_object_put(root);
    if (tokener != NULL)
        json_tokener_free(tokener);
    free(parents);
    return rc;
}

int overlay_take(struct module *module, flux_future_t *f, struct err *err)
{
    struct tree_shape shape = {0};
    json_t *json;
    if (module->shaped)
        return 0;
    if (flux_rpc_get_unpack(f, "o", &json) < 0) {
        int rc = errno == ENOSYS ? EAGAIN : errno; /* ENOSYS would say that we are not loaded */
        err_set(err, "how brokers hang together cannot be found out: overlay.topology: %s",
                flux_future_error_string(f));
        return rc;
    }
    char *text = json_dumps(json, 0);
    int rc = text != NULL ? read_shape(text, module->size, &shape) : -1;
    free(text);
    if (rc != 0) {
        tree_shape_free(&shape);
        err_set(err, "what overlay.topology answers is no tree of %u brokers", module->size);
        return EPROTO;
    }
    directory_shape(module->dir, &shape);
    module->shaped = true;
    return 0;
}

bool overlay_unknown(const struct module *module)
{
    return !module->shaped && module->size > 1 && module->size <= OVERLAY_MAX;
}
