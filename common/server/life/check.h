/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * What muster-server does when an admin starts it by hand.
 */
#pragma once

/** Runs by arguments: --check, --help or --version.
 * @param argc at least 2
 * @return exit status: 0, 1 for settings that are not right, 2 for wrong arguments */
int check_main(int argc, char **argv);
