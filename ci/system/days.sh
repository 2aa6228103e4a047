#!/usr/bin/env bash
# ci/system/days.sh: bad days of a step: parts that are missing, full or killed, and many steps.
# shellcheck disable=SC2154,SC2034  # clients, work and spool are shared with lib.sh
set -uo pipefail
usage() {
  cat <<'TXT'
usage: ci/slurm -N 4 [OPTION]... -- ci/system/days.sh BUILDDIR [--full] [PART]...

Run as root. On one node of four something is missing, hangs, is full or is killed, or
steps are cancelled while they start. Each time the step ends in time and the user reads
why in a line of muster's, and within 5 s nothing of it is left, neither processes nor
sockets, directories and shared memory; a step that lives through all of it passes.

PART is one of missing, full, killed, cancelled, many; by default all. With --full the
last two take 200 steps one after another and 20 at once. Prints "ok", "not ok" with the
reason and "skip" lines; non-zero status when any failed.
TXT
}
case ${1:-} in -h|--help) usage; exit 0 ;; '') usage >&2; exit 2 ;; esac
# shellcheck source=ci/system/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
find_clients "$1"
shift
cancels=10 in_turn=20 at_once=10
if [ "${1:-}" = --full ]; then cancels=40 in_turn=200 at_once=20; shift; fi
parts=("$@")
[ $# -gt 0 ] || parts=(missing full killed cancelled many)
spool=$(spool_dir)
shared=$MUSTER_CI_DIR/shared
bad=node2 clean_bound=5 end_bound=15
if [ "$(id -u)" != 0 ]; then skip days 'needs root'; summary; exit; fi

# ---- the node that has a bad day ----

slurmd_of() { pgrep -f "slurmd .*-N $1\$" | head -n 1; }

# The mounts below are made outside of the node's root, which need not have mount(8).
root=$(readlink "/proc/$(slurmd_of $bad)/root")
root=${root%/}
server=/opt/muster/libexec/muster/muster-server

in_node() { nsenter --target "$(slurmd_of $bad)" --mount "$@"; }

# over PATH MOUNT-OPTION...: something else over PATH, on the bad node only; under lifts it
over() {
  local path=$1
  shift
  in_node mount -n "$@" "$root$path"
}
under() { in_node umount -n -l "$root$1"; }

# Its /tmp is a file system of its own, with the cluster's files mounted below.
remount_tmp() { in_node mount -n -o "remount,$1" "$root/tmp"; }

# The processes on the bad node, by what their names look like.
on_bad() {
  local pid uts
  uts=$(readlink "/proc/$(slurmd_of $bad)/ns/uts")
  for pid in $(pgrep -f "$1"); do
    [ "$(readlink "/proc/$pid/ns/uts")" != "$uts" ] || echo "$pid"
  done
}

# of_job NAME: the number of the job of that name
of_job() { squeue -h -n "$1" -o %A; }

tasks_of() { local pid; for pid in $(on_bad "^$clients/hold"); do ! grep -qsz "^SLURM_JOB_ID=$(of_job "$1")\$" "/proc/$pid/environ" || echo "$pid"; done; }
stepd_of() { on_bad "^slurmstepd: \\[$(of_job "$1")\\."; }
server_of() { new_of_all "$work/before" | sed -n 's/^process muster-server //p' | grep -xFf <(on_bad muster-server); }

# ---- judging ----

# What list_leftovers lists, and tasks and slurmstepds.
list_all() {
  # without Slurm's own sockets, and the numbers of slurmds that come and go
  list_leftovers | sed -E '/^socket .*_[0-9.]+$/d; s|/proc/[0-9]+/root||'
  pgrep -f "^$clients/" | sed 's/^/process task /'
  pids_of slurmstepd | sed 's/^/process slurmstepd /'
}
new_of_all() { list_all | sort | comm -13 <(sort "$1") -; }
nothing_new_of_all() { [ -z "$(new_of_all "$1")" ]; }

# clean NAME: nothing of the step is left
clean() {
  if until_true $clean_bound nothing_new_of_all "$work/before"; then
    ok "$1: nothing is left"
  else
    not_ok "$1: what is left" "$(new_of_all "$work/before" | tr '\n' ';')"
  fi
}

# says NAME PATTERN: a line of ours, or where PATTERN begins with "slurm:" of Slurm's, says why
says() {
  local pattern="muster.*($2)"
  [ "${2#slurm:}" = "$2" ] || pattern=${2#slurm:}
  check "$1: says why" "expected /$pattern/, found: $(head -n 5 "$work/$1.log" | tr '\n' ';')" \
    grep -qE "$pattern" "$work/$1.log"
}

# refused NAME PATTERN: a step over all nodes ends by itself, and says why
refused() {
  local status begin=$SECONDS
  list_all >"$work/before"
  timeout 30 srun --mpi=muster -J "$1" -N4 --ntasks-per-node=2 "$clients/start" >"$work/$1.log" 2>&1 </dev/null
  status=$?
  check "$1: the step ends with an error" "$(why "$work/$1.log" $status)" \
    eval "[ $status != 0 ] && [ $status != 124 ]"
  says "$1" "$2"
  clean "$1"
}

all_hold() { [ "$(grep -c '^HOLD rank' "$1" 2>/dev/null)" = 8 ]; }
ended() { ! kill -0 "$1" 2>/dev/null; }

# start NAME HOLD-ARG...: a held step of 8 ranks on 4 nodes in the background; sets $step
start() {
  local name=$1
  shift
  : >"$work/$name.log"
  srun --mpi=muster -J "$name" -N4 --ntasks-per-node=2 "$clients/hold" --seconds 900 "$@" >"$work/$name.log" 2>&1 </dev/null &
  step=$!
  until_true 20 all_hold "$work/$name.log" && return
  not_ok "$name: start" "$(why "$work/$name.log" 'unknown (not up after 20 s)')"
  kill "$step" 2>/dev/null
  wait "$step"
  return 1
}

# harmed NAME PATTERN FAULT HOLD-ARG...: FAULT is a function that does the harm to a held step
harmed() {
  local name=$1 pattern=$2 fault=$3 begin
  shift 3
  list_all >"$work/before"
  start "$name" "$@" || return
  begin=$SECONDS
  "$fault" "$name" || not_ok "$name: the harm" "nothing was there to be harmed"
  if until_true $end_bound ended "$step"; then
    wait "$step"
    ok "$name: the step ended in $((SECONDS - begin)) s with status $?"
  else
    not_ok "$name: the step's end" "still there after $end_bound s; $(tail -n 1 "$work/$name.log")"
    scancel -n "$name"
    kill "$step"
    wait "$step"
  fi 2>/dev/null
  says "$name" "$pattern"
}

# ---- the parts ----

# instead LINE...: a shell script in the place of muster-server on the bad node
instead() {
  printf '%s\n' '#!/bin/sh' "$@" >"$shared/server.new"
  chmod 755 "$shared/server.new"
  mv "$shared/server.new" "$shared/server"
  over "$server" --bind "$shared/server"
}

part_missing() {
  local library
  library=$(ldd "$server" | sed -n 's/.*libpmix\.so.* => \([^ ]*\).*/\1/p')
  library=$(realpath "$library")
  over "$library" --bind /dev/null
  refused no-libpmix 'on node node2: .*libpmix'
  under "$library"
  over "$server" --bind /dev/null
  refused not-executable "cannot start $server: exec: Permission denied"
  under "$server"
  over "${server%/*}" -t tmpfs muster
  refused no-server "cannot start $server: exec: No such file"
  under "${server%/*}"
  instead 'exit 3'
  refused silent-end 'ended before it was ready on node node2, without a word'
  under "$server"
  # what it says is anybody's text
  instead "printf 'oh\\033[31m dear\\n' >&2; exit 3"
  refused last-words 'did not start on node node2: oh.\[31m dear'
  under "$server"
  instead 'exec sleep 100'
  refused hangs-at-start 'was not ready within 10 s on node node2'
  under "$server"
}

# has_descriptors NAME AT-LEAST: a held step passes, and its server has so many descriptors
has_descriptors() {
  local limit
  list_all >"$work/before"
  start "$1" --sleep 1 || return
  limit=$(prlimit --pid "$(server_of | head -n 1)" --nofile --output SOFT --noheadings --raw)
  check "$1: the server has all descriptors that it may have" "found $limit, expected at least $2" [ "$limit" -ge "$2" ]
  wait "$step"
  check "$1: the step" "$(why "$work/$1.log" $?)" grep -q '^PASS hold' "$work/$1.log"
  clean "$1"
}

part_full() {
  local limit soft hard slurmd status
  slurmd=$(slurmd_of $bad)
  read -r soft hard < <(prlimit --pid "$slurmd" --nofile --output SOFT,HARD --noheadings --raw)
  limit=$(ulimit -S -n)
  ulimit -S -n 48   # Slurm gives it to the tasks
  has_descriptors user-few-descriptors "$hard"
  ulimit -S -n "$limit"
  prlimit --pid "$slurmd" --nofile=64:
  has_descriptors slurmd-few-descriptors "$hard"
  prlimit --pid "$slurmd" --nofile="$soft:"
  remount_tmp "nr_inodes=$(in_node stat -f -c '%c %d' "$root/tmp" | awk '{ print $1 - $2 }')"
  refused tmp-full 'cannot make a directory .*No space'
  remount_tmp nr_inodes=0
  over /tmp --rbind "$root/tmp"   # not itself, which a server writes in
  remount_tmp bind,ro
  refused tmp-read-only 'cannot make a directory .*Read-only'
  under /tmp
  remount_tmp "size=$(in_node stat -f -c '%b %f %S' "$root/tmp" | awk '{ print ($1 - $2 + 8) * $3 }')"
  in_node dd if=/dev/zero of="$root/tmp/full" bs=4k count=100 2>/dev/null
  list_all >"$work/before"
  timeout 30 srun --mpi=muster -N4 --ntasks-per-node=2 "$clients/start" >"$work/blocks.log" 2>&1 </dev/null
  status=$?
  # libpmix 4.2 needs none
  check 'tmp-without-blocks: passes, or says why' "$(why "$work/blocks.log" $status)" \
    eval "[ $status = 0 ] || grep -q 'muster.*node2' '$work/blocks.log'"
  clean tmp-without-blocks
  in_node rm "$root/tmp/full"
  remount_tmp size=50%
  over /run/slurm/spool --bind "$root/run/slurm/spool"
  over /run/slurm/spool -o remount,bind,ro
  # slurmstepd needs a socket of its own there, before ours
  refused spool-read-only 'slurm:.'
  under /run/slurm/spool
}

kill_task() { tasks_of "$1" | sed -n 1p | xargs kill -9; }
kill_tasks() { tasks_of "$1" | xargs kill -9; }
kill_stepd() { stepd_of "$1" | xargs kill -9; }
# kill_together: those whose numbers are read die without time to see the others die
# shellcheck disable=SC2016
kill_together() { xargs sh -c 'kill -STOP "$@"; kill -9 "$@"' sh; }

# Those who have sent the dead what they had do not ask it again, so the user has to end the step.
kill_stepd_and_server() {
  { stepd_of "$1"; server_of; } | kill_together
  scancel -n "$1"
}

node2_listens() { grep -q ':426A 00000000:0000 0A' /proc/net/tcp; }

# The node's name space would go with its last process; its slurmd is started again.
kill_node() {
  local slurmd anchor
  slurmd=$(slurmd_of $bad)
  nsenter --target "$slurmd" --mount --uts --root sleep infinity &
  anchor=$!
  { echo "$slurmd"; stepd_of "$1"; server_of; tasks_of "$1"; } | kill_together
  nsenter --target $anchor --mount --uts --root --wd slurmd -D -N $bad </dev/null >/dev/null 2>&1 &
  until_true 10 node2_listens
  kill $anchor
  scancel -n "$1"
}

# swept NAME [directory]: what a killed slurmstepd and server left is removed by the next step on the node
swept() {
  check "$1: a ${2:-socket} is left at first" 'expected one, found none' \
    grep -q "^${2:-socket} " <(new_of_all "$work/before")
  timeout 30 srun --mpi=muster -N4 --ntasks-per-node=2 "$clients/start" >"$work/next.log" 2>&1
  check "$1: the next step" "$(why "$work/next.log" $?)" [ $? = 0 ]
  clean "$1"
}

part_killed() {
  harmed task 'rank [0-9] on node2 was killed by signal 9' kill_task
  clean task
  harmed all-tasks 'slurm:node2: tasks .*Killed' kill_tasks
  clean all-tasks
  harmed stepd 'on node node2 was killed' kill_stepd
  swept stepd
  harmed stepd-and-server 'slurm:(CANCELLED|aborted|Force Terminated)' kill_stepd_and_server --victim 2 --delay 60000 --how exit --in fence
  swept stepd-and-server directory
  harmed node 'slurm:(CANCELLED|aborted|Force Terminated)' kill_node --victim 2 --delay 60000 --how exit --in fence
  swept node directory
}

# cancel_one NAME: a step cancelled within half a second of its job's start
cancel_one() {
  timeout 40 srun --mpi=muster -J "$1" -N4 --ntasks-per-node=2 "$clients/hold" --sleep 60 >"$work/$1.log" 2>&1 </dev/null &
  until_true 10 [ -n "$(of_job "$1")" ]
  sleep 0.$((RANDOM % 5))$((RANDOM % 10))
  scancel -n "$1"
  wait $!
  [ $? != 124 ] || echo "$1: still there after 40 s"
}

part_cancelled() {
  local i pids=()
  list_all >"$work/before"
  for ((i = 0; i < cancels; i++)); do
    cancel_one "cancel$i" >"$work/cancelled.$i" &
    pids+=($!)
  done
  wait "${pids[@]}"
  check "cancelled: $cancels steps end" "$(cat "$work"/cancelled.* | tr '\n' ';')" [ -z "$(cat "$work"/cancelled.*)" ]
  clean cancelled
}

part_many() {
  local i failures pids=()
  list_all >"$work/before"
  # shellcheck disable=SC2016
  failures=$(salloc -Q -N4 --ntasks-per-node=2 bash -c '
    for ((i = 0; i < $0; i++)); do timeout 30 srun --mpi=muster "$1" || echo "step $i: $?"; done' \
    $in_turn "$clients/start" 2>/dev/null)
  check "many: $in_turn steps in turn" "$(head -n 3 <<<"$failures" | tr '\n' ';')" [ -z "$failures" ]
  clean in-turn
  for ((i = 0; i < at_once; i++)); do
    { timeout 60 srun --mpi=muster -N4 --ntasks-per-node=2 "$clients/exchange" --seconds 50 || echo "step $i: $?"; } >"$work/many.$i" 2>&1 </dev/null &
    pids+=($!)
  done
  wait "${pids[@]}"
  failures=$(cat "$work"/many.* | grep -v '^PASS')
  check "many: $at_once steps at once" "$(head -n 3 <<<"$failures" | tr '\n' ';')" \
    [ "$failures:$(cat "$work"/many.* | grep -c '^PASS')" = ":$at_once" ]
  clean at-once
}

sleep infinity &
token=$!
start beside --until $token || { kill $token; summary; exit; }
beside=$step
for part in "${parts[@]}"; do
  begin=$SECONDS
  case $part in
    missing|full|killed|cancelled|many) "part_$part" ;;
    *) usage >&2; exit 2 ;;
  esac
  echo "$part took $((SECONDS - begin)) s"
done
kill $token
wait $token 2>/dev/null
wait "$beside"
check 'the step beside all this' "$(why "$work/beside.log" $?)" grep -q '^PASS hold' "$work/beside.log"
summary
