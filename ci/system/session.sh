#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# ci/system/session.sh: groups across steps of one session, with real servers.
# shellcheck disable=SC2154  # clients and work are shared with lib.sh
set -uo pipefail
usage() {
  cat <<'TXT'
usage: ci/slurm --root forky -- ci/system/session.sh BUILDDIR

Runs several steps at once without a resource manager (BUILDDIR/ci/session/session starts
the installed muster-server with the back end rm_session.so), whose processes form groups
with each other. Needs libpmix 6.1 for the groups. Prints "ok", "not ok" with the reason
and "skip" lines; non-zero status when any failed.
TXT
}
case ${1:-} in -h|--help) usage; exit 0 ;; '') usage >&2; exit 2 ;; esac
# shellcheck source=ci/system/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
find_clients "$1"
session=$1/ci/session/session
prefix=/opt/muster
server=$prefix/libexec/muster/muster-server
log=$work/log
ulimit -c 0
cp "$1/ci/session/rm_session.so" "$prefix/lib/muster/" || exit 125

left() {
  pids_of muster-server
  find /tmp -maxdepth 1 -name 'session.*'
}
nothing_left() { [ -z "$(left)" ]; }

# run SECONDS STEP...: one session; sets $status
run() {
  local seconds=$1
  shift
  timeout -k 5 "$seconds" "$session" "$server" "$@" >"$log" 2>&1 </dev/null
  status=$?
}

passed() { [ "$status" = 0 ] && [ "$(grep -c '^PASS ' "$log")" = "$1" ]; }

# join WHAT JOBS TOTAL STEP...: all steps have to pass
join() {
  local what=$1 jobs=$2
  shift 3
  run 120 "$@"
  if grep -q '^SKIP' "$log"; then
    skip "$what" "$(sed -n 's/^SKIP [a-z_]*: //p' "$log" | head -n 1)"
  else
    check "$what" "$(why "$log" $status)" passed "$jobs"
    cp "$log" "$work/last"
  fi
  check "$what: nothing is left" "$(left | tr '\n' ' ')" until_true 60 nothing_left
}

ends() { ! grep -qE 'is lost|lost connection|cannot happen|dropped|refused' "$work/last"; }

client=$clients/groups_join
run 60 2:4 "$clients/exchange" + 1:2 "$clients/groups" --groups 20
check 'two steps that have nothing to do with each other' "$(why "$log" $status)" passed 2

# and K: what job K of two runs that connect by name
part=("$clients/connect" --mode jobs --seconds 60 --part)
export CONNECT_MEET=$work/meet
mkdir "$CONNECT_MEET"
run 100 3:4 "${part[@]}" 0 + 2:3 "${part[@]}" 1
check 'two jobs connect by name, on nodes that do not ask' "$(why "$log" $status)" passed 2

join 'two jobs on one node each' 2 4 1:2 "$client" --total 4 + 1:2 "$client" --total 4
join 'two jobs on two nodes each' 2 8 2:4 "$client" --total 8 + 2:4 "$client" --total 8
join 'three jobs of different sizes' 3 10 \
  3:5 "$client" --total 10 --jobs 3 + 1:1 "$client" --total 10 --jobs 3 + 2:4 "$client" --total 10 --jobs 3
join 'two jobs whose leaders meet, on nodes without one' 2 7 \
  3:4 "$client" --total 7 --meet 1 + 2:3 "$client" --total 7 --meet 1
[ ! -f "$work/last" ] || check 'nobody was said to be lost' "$(grep -E 'lost|dropped' "$work/last" | head -n 3)" ends
join 'a job that ends while the other waits for it' 2 6 \
  2:4 "$client" --total 6 --quit 1 --part 0 + 1:2 "$client" --total 6 --quit 1 --part 1
if [ -f "$work/last" ]; then
  run 120 2:4 "$client" --total 6 --quit 2 --part 0 + 1:2 "$client" --total 6 --quit 2 --part 1
  killed() { [ "$status" = 137 ] && grep -q '^PASS groups_join: 4 of 6' "$log" && grep -q 'killed by signal 9' "$log"; }
  check 'a job that is killed while the other waits for it' "$(why "$log" $status)" killed
  check 'a job that is killed: nothing is left' "$(left | tr '\n' ' ')" until_true 60 nothing_left

  SESSION_CONF_1='{ "tree_arity": 8 }' run 60 1:2 "$client" --total 4 + 1:2 "$client" --total 4
  check 'jobs with other settings: the nodes and values are named' "$(grep -m 2 -i 'muster\|arity' "$log" | tr '\n' ';')" \
    grep -qE 'tree_arity is (16|8) on node .* and (8|16) on node' "$log"
  check 'jobs with other settings: nothing waits' "$(why "$log" $status)" eval "[ $status != 0 ] && [ $status != 124 ]"

  conf=$prefix/etc/muster/muster.json
  mkdir -p "${conf%/*}" && echo '{ "on_task_loss": "continue" }' >"$conf" && chmod 644 "$conf"
  run 120 2:4 "$client" --total 6 --quit 3 --part 0 + 1:2 "$client" --total 6 --quit 3 --part 1
  told() { ! grep -q '^FAIL' "$log" && grep -q '^PASS groups_join: 4 of 6' "$log" && grep -q 'killed by signal 9' "$log"; }
  check 'a member in another job is killed: the others are told' "$(why "$log" $status)" told
  rm "$conf"

  # The first step goes on until its server has noticed that the other one has ended.
  echo '{ "log_level": "debug" }' >"$conf" && chmod 644 "$conf"
  # shellcheck disable=SC2016  # for the task's shell
  run 120 1:2 sh -c '"$0" --total 4 && i=0 && until grep -q "has ended" "$1" || [ $i = 300 ]; do sleep 0.1; i=$((i + 1)); done' \
    "$client" "$log" + 1:2 "$client" --total 4
  rm "$conf"
  forgotten() { [ "$status" = 0 ] && grep -q 'namespace session.*\.1 has ended' "$log"; }
  check 'a job that has ended is forgotten' "$(why "$log" $status)" forgotten
fi
summary
