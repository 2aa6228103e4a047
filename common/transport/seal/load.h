/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * Loads seal.so, and with it libcrypto, into a process that needs a sealed connection.
 */
#pragma once

#include "common/transport/seal/seal.h"
#include "common/util/err.h"

/** @return what seal.so exports, which then stays loaded; NULL with the reason in @p err
 * @thread any; the first call takes some milliseconds */
const struct seal_ops *seal_load(struct err *err);
