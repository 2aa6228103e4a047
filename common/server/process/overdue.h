/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * The last seconds of this process: libpmix may hang in its end, and no launcher may be left that
 * would kill us and remove the directory.
 * @thread any, unless said
 */
#pragma once

/** Removes the server's directory with all that is in it. The launcher does so too, unless it was
 * killed. A directory that is gone already is no error.
 * @param tmpdir path */
void overdue_remove(const char *tmpdir);

/** Removes @p tmpdir and ends the process with status 0. */
void overdue_end(const char *tmpdir) __attribute__((noreturn));

/** Unless overdue_stop() is called within @p ms, a thread removes @p tmpdir and ends the process
 * with status 0. Without memory for a thread it does so at once.
 * @param tmpdir borrowed until overdue_stop() @thread the loop's */
void overdue_start(const char *tmpdir, unsigned ms);

/** Returns only if the time is not over. @thread the loop's, after overdue_start() */
void overdue_stop(void);
