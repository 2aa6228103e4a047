#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# test_setup.sh SOURCE: which Slurm releases the tree can be set up for, what it says of others, and
# where a build as README.md has it looks for its settings.
set -uo pipefail

source=$1 failed=0
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT

# expect VERSION STATUS TEXT: how a build for VERSION is set up, without all that takes long
expect() {
  local status
  rm -rf "$work/build"
  meson setup "$work/build" "$source" --prefix=/usr "-Dslurm_version=$1" -Dclients=disabled -Dflux=false \
    >"$work/log" 2>&1 </dev/null
  status=$?
  [ "$status" != 0 ] && status=1
  if [ "$status" != "$2" ] || ! grep -qF -- "$3" "$work/log"; then
    echo "-Dslurm_version=$1: status $status, expected $2 and \"$3\"; found:"
    tail -n 3 "$work/log"
    failed=1
  fi
}

expect 27.05.0 1 'Slurm 27.05.0 is not one that this muster knows'
expect 24.11 1 'slurm_version is "24.11"; give all three parts as numbers'
expect 26.05.0rc1 1 'slurm_version is "26.05.0rc1"; give all three parts as numbers'
# Whatever headers are installed: they are compared with where they are of that release, only.
expect 23.11.99 0 'Slurm plugin for: 23.11.99'
if ninja -C "$work/build" -t targets all | grep -q 'abi_check'; then
  echo 'a build for 23.11.99 is compared with the headers of another release'
  failed=1
fi
settings=$(sed -n 's/^ *settings *: //p' "$work/log")
for known in "README.md:\`$settings\`" "man/muster.json.5:.I $settings" "man/muster-server.8:.I $settings"; do
  if [ -z "$settings" ] || ! grep -qF -- "${known#*:}" "$source/${known%%:*}"; then
    echo "${known%%:*}: expected \"${known#*:}\", which is where the settings are with --prefix=/usr"
    failed=1
  fi
done
exit $failed
