#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# common/server/life/test_check.sh SERVER: what muster-server does when it is started by hand.
set -uo pipefail
case ${1:-} in -h|--help|'') sed -n '3s/^# //p' "$0"; exit 2 ;; esac
server=$1
dir=$(mktemp -d) || exit 99
trap 'rm -rf "$dir"' EXIT
failed=0

# expect STATUS OUT ERR ARG...: the server's status, and patterns of all that it writes to
# standard output and standard error; '' for nothing
expect() {
  local status=$1 out=$2 err=$3
  shift 3
  "$server" "$@" >"$dir/out" 2>"$dir/err" 3<&- </dev/null
  local was=$?
  [ $was = "$status" ] && [[ $(cat "$dir/out") =~ ^$out$ ]] && [[ $(cat "$dir/err") =~ ^$err$ ]] &&
    return
  echo "muster-server $*: status $was, not $status, or other words:"
  cat "$dir/out" "$dir/err"
  failed=1
}

umask 022
f=$dir/muster.json
expect 2 '' 'muster-server is started by muster.s plugin .*--help'
expect 2 '' 'muster-server: unknown option --chek; see .*' --chek
expect 2 '' 'muster-server: --check is missing; see .*' "$f"
expect 2 '' 'muster-server: more than one file: b; .*' --check a b
expect 0 'usage: muster-server --check .*' '' --help
expect 0 'muster-server [0-9]+\.[0-9]+\.[0-9]+, .*[0-9].*' '' --version
expect 1 '' "$f: there is no such file" --check "$f"
echo '{ "tree_arity": 4 }' >"$f"
expect 0 "$f: ok" '' --check "$f"
expect 0 '.*"tree_arity": 4,.*"tmpdir": "".*' "$f: ok" --check --print "$f"
cp "$dir/out" "$f"   # what it prints is a file of settings
expect 0 '.*"tree_arity": 4,.*"tmpdir": "".*' "$f: ok" "$f" --print --check
printf '{ "tree_arty": 4,\n"tmpdir": "tmp" }' >"$f"
expect 1 '' "$f line 1: key \"tree_arty\": unknown; did you mean \"tree_arity\"\?
$f line 2: key \"tmpdir\": found the text \"tmp\"; give an absolute path .*
$f: 2 mistakes" --check "$f"
echo '{' >"$f"
expect 1 '' "$f line 2 column 1: the file ends too early; a closing '}' is missing" --check "$f"
echo '{}' >"$f"
export MUSTER_ON_TASK_LOSS=continue MUSTER_ROOT=/
expect 0 '.*// by: step
 *"on_task_loss": "continue",.*' "$f: ok" --check --print "$f"
export MUSTER_ON_TASK_LOSS=perhaps
expect 1 '' 'MUSTER_ON_TASK_LOSS: found "perhaps"; give "end-step" or "continue", .*' --check "$f"
unset MUSTER_ON_TASK_LOSS MUSTER_ROOT
printf '{ "memory_max": 1 }' >"$f"
expect 1 '' "$f line 1: key \"memory_max\": 1 is out of range; give 0, or 16 to .*" --check "$f"
echo '{ "tmpdir": "/nonexistent/x" }' >"$f"
expect 1 '' "$f: key \"tmpdir\": /nonexistent/x: No such file or directory; make it, on every node, .*" --check "$f"
echo '{ "tmpdir": "/dev/null" }' >"$f"
expect 1 '' "$f: key \"tmpdir\": /dev/null is no directory; name one" --check "$f"
if [ "$(id -u)" = 0 ]; then # of a file that is root's
  mkdir -m 777 "$dir/open"
  echo "{ \"tmpdir\": \"$dir/open\" }" >"$f"
  expect 1 '' "$f: key \"tmpdir\": $dir/open belongs to uid 0 and has mode 0777; it has to be root's .*" --check "$f"
  echo '{}' >"$f"
  chmod 600 "$f"
  expect 1 '' "$f: mode 0600: each server reads it as the user of its job; chmod a\+r it" --check "$f"
fi
echo '{}' >"$f"
chmod 664 "$f"
expect 1 '' "$f: group or others may write it \(mode 0664\); chmod go-w it" --check "$f"
exit $failed
