#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# ci/system/days.sh: bad days of a step: parts that are away or killed, and many steps.
# shellcheck disable=SC2154,SC2034  # clients, work and spool are shared with lib.sh
set -uo pipefail
usage() {
  cat <<'TXT'
usage: ci/slurm -N 4 [OPTION]... -- ci/system/days.sh BUILDDIR [--full] [PART]...

Run as root. Parts of a step are killed on one node of four, also while tasks are launched,
or steps are cancelled while they start. A slurmd that is away while servers leave, and a
socket that a crash has left, do no harm. Else each time the step ends in time and the user
reads why in a line of muster's, and within 5 s nothing of it is left, neither processes nor
sockets, directories and shared memory; a step that lives through all of it passes.

PART is one of away, stale, cgroups, killed, launching, cancelled, many; by default all.
cgroups is for those of version 2. With --full 40 steps are cancelled and not 10, 200 and not 6
run one after another and 20 at once. Prints "ok", "not ok" with the reason and "skip"
lines; non-zero status when any failed.
TXT
}
case ${1:-} in -h|--help) usage; exit 0 ;; '') usage >&2; exit 2 ;; esac
# shellcheck source=ci/system/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
find_clients "$1"
shift
lots=1 in_turn=6 at_once=6
if [ "${1:-}" = --full ]; then lots=4 in_turn=200 at_once=20; shift; fi
parts=("$@")
[ $# -gt 0 ] || parts=(away stale cgroups killed launching cancelled many)
for part in "${parts[@]}"; do
  case $part in away|stale|cgroups|killed|launching|cancelled|many) ;; *) usage >&2; exit 2 ;; esac
done
if [ "$(id -u)" != 0 ]; then skip days 'needs root'; summary; exit; fi
# shellcheck source=ci/system/bad_node.sh
. "$(dirname "${BASH_SOURCE[0]}")/bad_node.sh"

tasks_left() { [ "$(pgrep -f "^$clients/hold" | wc -l)" = $(($1 + 8)) ]; } # with the step beside

# decider_of NAME: the node that decides the fence which ranks of a held step wait in
decider_of() {
  in_node --root "${server%/libexec/*}/bin/muster-status" --json "$(of_job "$1").0" 2>/dev/null |
    grep -o '"root": *"node[0-9]"' | grep -m 1 -o 'node[0-9]'
}
has_decider() { [ -n "$(decider_of "$1")" ]; }

# away_from NAME WHO: at the last fence nobody takes messages for the node that decides it, or for
# another one, for 6 s: longer than a server stays that has nothing to deliver
away_from() {
  local name=away-from-$1 bad=$bad token decider left=8
  list_all >"$work/before"
  sleep infinity &
  token=$!
  # two ranks wait in the fence, so that a server knows of it
  held "$name" --sleep 0 --late 6 --until $token || { kill $token; return; }
  check "$name: a fence waits" 'found none' until_true 60 has_decider "$name"
  decider=$(decider_of "$name")
  case $1:$decider in
    decider:*) bad=$decider ;;
    other:node2) bad=node3 left=2 ;;
    other:*) left=2 ;;
  esac
  stop_slurmd "$bad"
  kill $token
  wait $token 2>/dev/null
  until_true 60 tasks_left $left
  sleep 6
  check "$name: $left tasks wait" "$(pgrep -f "^$clients/hold" | wc -l) tasks" tasks_left $left
  start_slurmd "$bad"
  passes "$name"
}

# Without direct connections, by which servers need no slurmd.
part_away() {
  local conf=/opt/muster/etc/muster/muster.json
  mkdir -p "${conf%/*}"
  echo '{ "direct": { "mode": "off" } }' >$conf
  away_from decider
  away_from other
  rm $conf
}

# sockets_of_bad: those on which servers of the bad node get messages
sockets_of_bad() { find "$spool/$bad" -maxdepth 1 -type s -name 'must[e~]r.*' | sort | tr '\n' ' '; }

# Crashes have left two sockets that nobody listens on: that of another run of a step, and one that had not got its
# name yet. The step comes late to the bad node, whose slurmd is slow: until then its peers must not take the other
# run's socket for its own. Its plugin removes both, and leaves those of steps that run.
part_stale() {
  local slurmd before
  slurmd=$(slurmd_of $bad)
  list_all >"$work/before"
  before=$(sockets_of_bad)
  check 'stale: the step beside it has a socket on the bad node' "$before" [ -n "$before" ]
  # shellcheck disable=SC2016  # for the job's shell
  timeout 120 salloc -Q -w node1,$bad -n4 bash -c '
    for name in muster.$SLURM_JOB_ID.0.1 must~r.$SLURM_JOB_ID.0.2; do
      perl -MSocket -e "socket(S, PF_UNIX, SOCK_STREAM, 0) && bind(S, pack_sockaddr_un(\$ARGV[0])) or die" "$0/$name"
      touch -d "2 minutes ago" "$0/$name" && echo "left $name"
    done
    kill -STOP $1
    srun --mpi=muster "$2" --rounds 2 &
    sleep 4
    kill -CONT $1
    wait $!' "$spool/$bad" "$slurmd" "$clients/exchange" >"$work/stale.log" 2>&1 </dev/null &
  step=$!
  passes stale
  kill -CONT "$slurmd" # also if that never came so far
  check 'stale: two sockets had been left' "$(head -n 3 "$work/stale.log")" [ "$(grep -c '^left ' "$work/stale.log")" = 2 ]
  check 'stale: sockets of steps that run stay' "was $before, is $(sockets_of_bad)" [ "$(sockets_of_bad)" = "$before" ]
}

# in_cgroup PATTERN PID...: all of them are in cgroups of version 2 whose paths match
in_cgroup() {
  local pattern=$1 pid
  shift
  for pid in "$@"; do grep -qE "^0::$pattern\$" "/proc/$pid/cgroup" || return; done
}

# slurmstepd awaits the end of all that is in the step's cgroup before the plugin's fini, and the
# server has to live until then.
part_cgroups() {
  local scope="/system\\.slice/${bad}_slurmstepd\\.scope" servers tasks token
  if [ -z "$by_cgroup" ] || [ ! -e /sys/fs/cgroup/cgroup.procs ]; then
    skip cgroups 'takes steps in cgroups of version 2: ci/slurm --cgroup2'
    return
  fi
  list_all >"$work/before"
  sleep infinity &
  token=$!
  held cgroups --until $token || { kill $token; return; }
  mapfile -t tasks < <(tasks_of cgroups)
  mapfile -t servers < <(server_of)
  check 'cgroups: tasks are in their step' "$(cat /proc/"${tasks[0]}"/cgroup)" \
    eval "[ ${#tasks[@]} = 2 ] && in_cgroup '$scope/[^/]+/step_0/user/.*' ${tasks[*]}"
  check 'cgroups: its server is in no step' "$(cat /proc/"${servers[0]}"/cgroup)" \
    eval "[ ${#servers[@]} = 1 ] && in_cgroup '$scope/(system|slurmd)' ${servers[*]}"
  kill $token
  wait $token 2>/dev/null
  passes cgroups
  check 'cgroups: the server did not die' "$(grep muster "$work/cgroups.log")" [ -z "$(grep muster "$work/cgroups.log")" ]
}

kill_task() { tasks_of "$1" | sed -n 1p | xargs kill -9; }
kill_tasks() { tasks_of "$1" | xargs kill -9; }
kill_server() { server_of | xargs kill -9; }
kill_stepd() { stepd_of "$1" | xargs kill -9; }

# The others wait for a rank there, so they ask.
kill_stepd_and_server() { { stepd_of "$1"; server_of; } | kill_together; }

kill_node() {
  anchor_node $bad
  { slurmd_of $bad; stepd_of "$1"; server_of; tasks_of "$1"; } | kill_together
  start_slurmd "$bad"
}

# Nobody removes the cgroups of a slurmstepd that was killed, but nobody may be left in them.
remove_cgroups() { new_of_all "$work/before" | sed -n 's/^cgroup //p' | sort -r | xargs -r rmdir; }

# swept NAME [directory]: what a killed slurmstepd and server left is removed by the next step on the node
swept() {
  local status
  [ -z "$by_cgroup" ] || check "$1: nobody is left in its cgroups" 'cannot remove them' until_true 30 remove_cgroups
  check "$1: a ${2:-socket} is left at first" 'expected one, found none' \
    grep -q "^${2:-socket} " <(new_of_all "$work/before")
  timeout 120 srun --mpi=muster -N4 --ntasks-per-node=2 "$clients/start" >"$work/next.log" 2>&1
  status=$?
  check "$1: the next step" "$(why "$work/next.log" $status)" [ $status = 0 ]
  clean "$1"
}

part_killed() {
  harmed task 'rank [0-9] on node2 was killed by signal 9' kill_task
  clean task
  # one rank is named when the word of the other comes later than its server waits for it
  harmed all-tasks '(all 2 tasks on node2 were|rank [23] on node2 was) killed by signal 9' kill_tasks
  clean all-tasks
  harmed server 'muster-server of step [0-9.]+ died on node node2' kill_server
  clean server
  harmed stepd 'on node node2 was killed' kill_stepd
  swept stepd
  harmed stepd-and-server 'server on node2 is lost' kill_stepd_and_server --victim 2 --delay 600000 --how exit --in fence
  swept stepd-and-server directory
  # Their servers are told to leave while they still wait for the word of one that knows the cause.
  harmed node 'server on node2 is lost' kill_node --victim 2 --delay 600000 --how exit --in fence --linger 300
  check 'node: another one has the step ended' "$(logged_since | grep muster | tr '\n' ';')" \
    grep -qE 'on node2 is lost.*; then rank [0-9] on node[134] ended .*; ending the step' <(logged_since)
  swept node directory
}

in_init() { [ "$(on_bad "^$clients/start" | wc -l)" = 2 ]; }
# They are in PMIx_Init when it dies: it is stopped before, and takes no connection.
kill_server_in_init() {
  local server
  server=$(server_of)
  kill -STOP "$server"
  rm "$shared/launching"
  until_true 60 in_init || not_ok server-in-init 'no task comes so far'
  kill -9 "$server"
}

# No task has used the server, so the step goes on until one asks for PMIx.
kill_server_unused() {
  kill_server
  until_true 60 logged_death || not_ok server-in-launch 'its death is not said'
  rm "$shared/launching"
}
logged_death() { grep -q 'run on, since none has used PMIx' <(logged_since); }

part_launching() {
  local died='muster-server of step [0-9.]+ died on node node2'
  instead 'dd bs=65536 count=1 <&3 >/dev/null 2>&1' "printf '\\377\\377\\377\\377' >&3"   # BOOT_READY
  refused server-before-tasks "$died"
  under "$server"
  launched server-in-launch "$died" kill_server_unused
  launched server-in-init "$died" kill_server_in_init
}

runs() { [ -n "$(squeue -h -t running -n "$1" -o %A)" ]; }
# cancel_one NAME: a step cancelled within half a second of its job's start
cancel_one() {
  timeout 120 srun --mpi=muster -J "$1" -N4 --ntasks-per-node=2 "$clients/hold" --sleep 300 --seconds 320 >"$work/$1.log" 2>&1 </dev/null &
  until_true 60 runs "$1" || echo "$1: no job after 60 s"
  sleep 0.$((RANDOM % 5))$((RANDOM % 10))
  scancel -n "$1"
  wait $!
  [ $? != 124 ] || echo "$1: still there after 120 s"
}

part_cancelled() {
  local i lot pids
  list_all >"$work/before"
  for ((lot = 1; lot <= lots; lot++)); do
    pids=()
    for ((i = 0; i < 10; i++)); do
      cancel_one "cancel$lot.$i" >"$work/cancelled.$i" &
      pids+=($!)
    done
    wait "${pids[@]}"
    check "cancelled: 10 steps end ($lot)" "$(cat "$work"/cancelled.* | tr '\n' ';')" [ -z "$(cat "$work"/cancelled.*)" ]
    clean "cancelled ($lot)"
  done
}

part_many() {
  local i failures pids=()
  list_all >"$work/before"
  # shellcheck disable=SC2016
  failures=$(salloc -Q -N4 --ntasks-per-node=2 bash -c '
    for ((i = 0; i < $0; i++)); do timeout 120 srun --mpi=muster "$1" || echo "step $i: $?"; done' \
    $in_turn "$clients/start" 2>/dev/null)
  check "many: $in_turn steps in turn" "$(head -n 3 <<<"$failures" | tr '\n' ';')" [ -z "$failures" ]
  clean in-turn
  for ((i = 0; i < at_once; i++)); do
    { timeout 120 srun --mpi=muster -N4 --ntasks-per-node=2 "$clients/exchange" --seconds 100 || echo "step $i: $?"; } >"$work/many.$i" 2>&1 </dev/null &
    pids+=($!)
  done
  wait "${pids[@]}"
  failures=$(cat "$work"/many.* | grep -v '^PASS')
  check "many: $at_once steps at once" "$(head -n 3 <<<"$failures" | tr '\n' ';')" \
    [ "$failures:$(cat "$work"/many.* | grep -c '^PASS')" = ":$at_once" ]
  clean at-once
}

all_parts "${parts[@]}"
summary
