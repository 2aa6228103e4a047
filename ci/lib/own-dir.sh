# shellcheck shell=bash disable=SC2034  # dir is for who sources it
# SPDX-License-Identifier: BSD-3-Clause
# ci/lib/own-dir.sh: a directory that goes with its script. To be sourced.

# own_dir NAME PARENT [COMMAND]: sets $dir to a new directory PARENT/NAME.XXXXXX, whose lock this script holds by
# descriptor 9 until it ends, and removes those whose lock nobody holds: their script was killed. COMMAND gets the name
# of each of these.
own_dir() {
  local old
  for old in "$2/$1".*; do
    [ ! -O "$old/lock" ] || ! flock -n "$old/lock" rm -rf "$old" || [ -z "${3:-}" ] || "$3" "${old##*/}"
  done
  dir=$(mktemp -d "$2/.$1.XXXXXX")
  exec 9>"$dir/lock" && flock 9
  mv -T "$dir" "$2/$1.${dir##*.}"   # seen by others only now that it is locked
  dir=$2/$1.${dir##*.}
  chmod 755 "$dir"
}
