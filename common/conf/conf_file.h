/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * The settings file itself: whether it may be trusted, and what is in it. Needs nothing but the C
 * library, so that the launcher's plugin can read the one setting that is its own.
 * @thread any
 */
#pragma once

#include "common/conf/conf.h"

/**
 * Reads the file as conf_load() does, without a look at what is in it.
 * @param text set to its bytes, for free(); NULL: there is no file, which is an error where
 *             @p trusted_uid is not 0: that user has named the file then
 * @param len  set to their number, at most CONF_FILE_MAX + 1
 * @return 0, or -1 with @p err set and nothing to free
 */
int conf_file_read(const char *path, uid_t trusted_uid, char **text, size_t *len, struct err *err);

/** Takes the setting "tmpdir" out of the file. Whatever else is wrong with the file is for
 * muster-server to say, which reads all of it before any task starts.
 * @param tmpdir set to an absolute path, or "" when none is given
 * @return 0, or -1 with @p err set */
int conf_file_tmpdir(const char *path, uid_t trusted_uid, char tmpdir[static CONF_PATH_SIZE],
                     struct err *err);
