/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * libpmix's own timers for calls with PMIX_TIMEOUT.
 *
 * Once libpmix has handed a call up, the engine counts its deadline. Releases before 7 have a timer
 * of their own run on, which would answer the call a second time.
 */
#pragma once

/** A call has been handed up: libpmix's timer for it does not run out any more, whether it was set
 * already or is set within this upcall's caller.
 * @param cbdata the upcall's, which is the object that the timer is of
 * @thread PMIx's */
void expiry_handed_up(const void *cbdata);
