#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# test_setup.sh SOURCE: the tree can be set up with the Slurm plugin whatever Slurm is there, and
# without; and where a build as docs/install.md has it looks for its settings.
set -uo pipefail

source=$1 failed=0
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT

# expect TEXT OPTION...: what a build with these options says of itself, without all that takes long
expect() {
  local want=$1
  shift
  rm -rf "$work/build"
  if ! meson setup "$work/build" "$source" --prefix=/usr "$@" -Dflux=disabled \
      >"$work/log" 2>&1 </dev/null || ! grep -qF -- "$want" "$work/log"; then
    echo "$*: expected \"$want\"; found:"
    tail -n 3 "$work/log"
    failed=1
  fi
}

expect 'Slurm plugin for: not built' -Dslurm=disabled
expect 'Slurm plugin for: 22.05, 23.02, 23.11, 24.05, 24.11, 25.05, 25.11, '
settings=$(sed -n 's/^ *settings *: //p' "$work/log")
for known in "docs/install.md:\`$settings\`" "man/muster.json.5:.I $settings" "man/muster-server.8:.I $settings"; do
  if [ -z "$settings" ] || ! grep -qF -- "${known#*:}" "$source/${known%%:*}"; then
    echo "${known%%:*}: expected \"${known#*:}\", which is where the settings are with --prefix=/usr"
    failed=1
  fi
done
exit $failed
