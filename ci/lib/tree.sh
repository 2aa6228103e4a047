# shellcheck shell=bash disable=SC2154  # top is that of who sources it
# SPDX-License-Identifier: BSD-3-Clause
# ci/lib/tree.sh: a tree that root works in, and that is of somebody else. To be sourced.

# git refuses the clone of another user.
export GIT_CONFIG_COUNT=1 GIT_CONFIG_KEY_0=safe.directory GIT_CONFIG_VALUE_0='*'

# give_build: what root has made in build/ is of the tree's owner, who builds there without root, too.
give_build() {
  local owner
  owner=$(stat -c %u:%g "$top")
  if [ "$(id -u)" = 0 ] && [ "${owner%:*}" != 0 ]; then
    chown -R --from=root "$owner" "$top/build" 2>/dev/null || true   # others may build and remove at this moment
  fi
}
