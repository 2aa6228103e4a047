#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# ci/system/meeting.sh: two jobs of a user that meet, while the server where they do so comes and goes.
# shellcheck disable=SC2154  # clients and work are shared with lib.sh
set -uo pipefail
usage() {
  cat <<'TXT'
usage: ci/slurm -N 4 -- ci/system/meeting.sh [--rounds N] BUILDDIR

Run as root. Two sruns of alice, two jobs, publish and look up on two nodes each; on libpmix 6.1 and newer
they form groups, too. Then the holder of what is published, a server of an older job, ends in order, is
killed, or slurmctld stops, while two jobs publish and look up all the time, or leaders wait: neither may miss
what the other has published, and nobody hangs. --rounds says how often (1). A job of bob finds nothing of alice's.
Prints "ok", "not ok" with the reason and "skip" lines; non-zero status when any failed.
TXT
}
rounds=1
[ "${1:-}" != --rounds ] || { rounds=$2; shift 2; }
case ${1:-} in -h|--help) usage; exit 0 ;; '') usage >&2; exit 2 ;; esac
# shellcheck source=ci/system/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
find_clients "$1"
if [ "$(id -u)" != 0 ]; then skip meeting 'needs root'; summary; exit; fi
cd "$MUSTER_CI_DIR/shared" || exit 125
run=0

# as USER COMMAND...
as() { local user=$1; shift; setpriv --reuid "$user" --regid "$user" --init-groups "$@"; }

# part LOG SRUN-OPTIONS CLIENT ARG...: one job of alice in the background; sets $job
part() {
  local log=$1 options=$2
  shift 2
  # shellcheck disable=SC2086  # options are several words
  as alice timeout -k 5 100 srun --mpi="$MPI" $options "$@" >"$work/$log" 2>&1 </dev/null &
  job=$!
}

# both WHAT PID PID LOG LOG: whether both jobs pass
both() {
  local what=$1 first second
  wait "$2"; first=$?
  wait "$3"; second=$?
  if [ "$first $second" = '77 77' ] && grep -q '^SKIP' "$work/$4"; then
    skip "$what" "$(sed -n 's/^SKIP [a-z_]*: //p' "$work/$4" | head -n 1)"
  else
    check "$what" "$(why "$work/$4" $first); $(why "$work/$5" $second)" \
      [ "$first $second" = '0 0' ]
  fi
}

# meet WHAT CLIENT-ARG... -- : two jobs of two nodes each, of 4 and 3 ranks
publish() {
  local a b
  run=$((run + 1))
  part a '-N2 -n4' "$clients/publish" --part 0 --run $run --others 3 "${@:2}"; a=$job
  part b '-N2 -n3' "$clients/publish" --part 1 --run $run --others 4 "${@:2}"; b=$job
  both "$1" "$a" "$b" a b
}

groups() {
  local a b
  part a '-N2 -n4' "$clients/groups_join" --total 7 "${@:2}"; a=$job
  part b '-N2 -n3' "$clients/groups_join" --total 7 "${@:2}"; b=$job
  both "$1" "$a" "$b" a b
}

# Two jobs that have each other's names from a file connect, on nodes that do not ask, too.
connects() {
  local a b
  export CONNECT_MEET=$MUSTER_CI_DIR/shared/connect
  as alice mkdir "$CONNECT_MEET"
  part a '-N3 -n4' "$clients/connect" --mode jobs --part 0; a=$job
  part b '-N2 -n3' "$clients/connect" --mode jobs --part 1; b=$job
  both 'two jobs connect by name' "$a" "$b" a b
}

# ---- the holder ----

has_server() { [ -n "$(pids_of muster-server)" ]; }
no_server() { [ -z "$(pids_of muster-server)" ]; }
jobs_of_alice() { squeue -h -u alice -t R -o %i; }

# An older job of alice, alone: the next ones take its server for the holder; sets $holder, $server
start_holder() {
  until_true 20 no_server
  rm -f "$work/holder"
  as alice srun --mpi="$MPI" -J holder -N1 -n1 "$clients/hold" --until $$ --seconds 90 >"$work/holder" 2>&1 </dev/null &
  holder=$!
  until_true 20 grep -qs "^HOLD rank" "$work/holder" || not_ok holder "$(why "$work/holder" 'not up')"
  server=$(pids_of muster-server)
}

# while_away WHAT COMMAND...: COMMAND harms the holder while two jobs publish and look up
while_away() {
  local a b what=$1
  shift
  run=$((run + 1))
  start_holder
  part a '-N2 -n4' "$clients/publish" --part 0 --run $run --others 3 --stay 3000; a=$job
  part b '-N2 -n3' "$clients/publish" --part 1 --run $run --others 4 --stay 3000; b=$job
  sleep 1.5
  "$@"
  both "$what" "$a" "$b" a b
  as alice scancel -u alice 2>/dev/null
  wait "$holder"
}

# Leaders of one job wait at a home that leaves, and those of another one come later.
home_leaves() {
  local a b
  start_holder
  part a '-N2 -n4' "$clients/groups_join" --total 7; a=$job
  sleep 1.5
  in_order
  until_true 20 ended "$holder"
  part b '-N2 -n3' "$clients/groups_join" --total 7; b=$job
  both "$1" "$a" "$b" a b
  wait "$holder"
}

in_order() { as alice scancel -s TERM -n holder; }
killed() { kill -9 "$server"; }
cut_off() { kill -STOP "$server"; sleep 1; kill -CONT "$server"; }
without_slurmctld() {
  local pid
  pid=$(pgrep -x slurmctld | head -n 1)
  kill -STOP "$pid"
  kill -9 "$server"
  sleep 1
  kill -CONT "$pid"
}

connects
publish 'two jobs publish and look up' --bound 1
groups 'two jobs whose leaders meet' --meet 1
groups 'two jobs of which all ranks lead'
for ((i = 1; i <= rounds; i++)); do
  while_away "round $i: the holder ends in order" in_order
  home_leaves "round $i: the home of leaders that wait ends in order"
  while_away "round $i: the holder is killed" killed
  while_away "round $i: the holder stops for a second" cut_off
  while_away "round $i: the holder is killed while slurmctld is away" without_slurmctld
done

# bob asks for what alice has published, and has not taken it away.
run=$((run + 1))
part a '-N1 -n2' "$clients/publish" --part 0 --run $run --others 2 --stay 1; a=$job
timeout 60 setpriv --reuid bob --regid bob --init-groups srun --mpi="$MPI" -N1 -n2 "$clients/publish" \
  --part 1 --run $run --others 2 --alone 1 >"$work/bob" 2>&1 </dev/null
check "another user's job finds nothing" "$(why "$work/bob" $?)" grep -q '^PASS publish: nothing' "$work/bob"
part b '-N1 -n2' "$clients/publish" --part 1 --run $run --others 2 --stay 1; b=$job
both 'alice finds it after that' "$a" "$b" a b
check 'nothing is left' "$(pids_of muster-server | tr '\n' ' ')" until_true 15 no_server
summary
