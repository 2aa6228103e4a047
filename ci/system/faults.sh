#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# ci/system/faults.sh: what happens to a step, and to others, when a part of it is lost.
# shellcheck disable=SC2154,SC2034  # clients, work and spool are shared with lib.sh
set -uo pipefail
usage() {
  cat <<'TXT'
usage: ci/slurm [OPTION]... -- ci/system/faults.sh BUILDDIR [PART]...

Each PART, by default all of them, breaks something. Steps end in time then and say why,
and within 5 s nothing of them is left.

  ends      a task is killed, leaves without PMIx_Finalize or aborts, a server is killed,
            a job is cancelled; a step beside all of these goes on and passes
  servers   a server is killed while its tasks are in other places
  restart   a slurmd that stops answering, is killed and started anew does no harm
  early     a program ends on one node before PMIx_Init
  departed  what needs a node that was left in order ends soon, and holds up no node
  groups    where steps go on without lost tasks, group operations that lose one, or a
            node, end for all others alike
  settings  a mistake in muster.json ends a step at once with its place, and so do settings
            and versions of muster that differ between nodes

With THIN=1, ends and departed have what Slurm or libpmix tells the others, not all that our own engine does. Prints "ok", "not ok" with the reason and "skip" lines; non-zero status when any failed.
TXT
}
case ${1:-} in -h|--help) usage; exit 0 ;; '') usage >&2; exit 2 ;; esac
# shellcheck source=ci/system/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
# shellcheck source=ci/system/settings_lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/settings_lib.sh"
find_clients "$1"
shift
spool=$(spool_dir)

# status_for NAME: what srun ends with, where muster decides it: the cause's own status
status_for() {
  [ "$MPI" = muster ] || return 0
  case $1 in
    abort-*) echo 7 ;;
    kill-in-fence) echo 137 ;; # 128 and the signal
    exit-in-fence) echo 1 ;;   # a task that leaves with 0 has failed all the same
  esac
}

# scenario NAME SRUN-OPTIONS FAULT SAYS HOLD-ARG...: FAULT is a function that does the harm, or
# "itself"; SAYS a pattern that the step's output has to match.
scenario() {
  local name=$1 options=$2 fault=$3 says=$4 begin
  shift 4
  list_leftovers >"$work/before"
  begin=$SECONDS
  if hold_step "$name" "$options" "$@"; then
    [ "$fault" = itself ] || "$fault" "$name"
    step_ends "$name" $begin
    [ -z "$(status_for "$name")" ] || check "$name: its status" "expected $(status_for "$name"), found $ended_with" \
      [ "$ended_with" = "$(status_for "$name")" ]
    [ -z "$says" ] || says_why "$name" "$says" "$work/$name.log"
    # libpmix 5.0 tells only the first local participant of a fence that it failed (_mdxcbfunc
    # overwrites the status that it packs).
    if [ "$(pmix_major)" = 5 ] && [ "${name#*-in-fence}" != "$name" ]; then
      skip "$name: nobody was told of success" 'libpmix 5.0 tells one participant of each node only'
    else check "$name: nobody was told of success" "$(grep -m 1 '^FAIL' "$work/$name.log")" \
      [ "$(grep -c '^FAIL' "$work/$name.log")" = 0 ]
    fi
    if until_true $clean_bound nothing_new "$work/before"; then
      ok "$name: nothing is left"
    else
      not_ok "$name: what is left" "$(new_leftovers "$work/before" | tr '\n' ';')"
    fi
  fi
  check "$name: the step beside it" "$(why "$work/beside.log" ended)" kill -0 "$beside"
}

# scenarios COMMAND...: a function that goes through some, with a step beside them that has to pass
scenarios() {
  local token beside status
  sleep infinity &
  token=$!
  hold_step beside '' --until $token --seconds 600 || { kill $token; return; }
  beside=$step
  "$@"
  kill $token
  wait $token "$beside" 2>/dev/null
  status=$?
  check "$*: the step beside it passes" "$(why "$work/beside.log" $status)" grep -q '^PASS hold' "$work/beside.log"
}

# one_status NAME: whoever was told, before the step ended, was told the same
one_status() {
  local told
  if [ "$(pmix_major)" = 5 ]; then skip "$1: one status for the others" 'see above'; return; fi
  told=$(sed -nE 's/^rank [0-9]+: [a-z]+ returned ([^ ]+) after.*/\1/p' "$work/$1.log" | sort | uniq -c | tr -s ' \n' ' ')
  check "$1: one status for the others" "found$told" grep -qE '^( [0-9]+ [^ ]+ )?$' <<<"$told"
}

# Kills one server of the step that was started last.
kill_server() {
  local server
  server=$(new_leftovers "$work/before" | sed -n 's/^process muster-server //p' | head -n 1)
  if [ -z "$server" ]; then
    not_ok "$1: a server to kill" 'found none'
  else
    kill -9 "$server"
  fi
}

cancel() { scancel -n "$1"; }

# A dead member leaves a construct hanging in its own node's libpmix server, of releases before 7,
# which never hands it up to the host; so the step has to be ended by Slurm's own policy there.
ends_with_task=
[ "$(pmix_major)" -ge 7 ] || ends_with_task=--kill-on-bad-exit=1

# Somebody has connected to the port of node2's slurmd (state 01), and waits.
node2_is_asked() { awk '$2 ~ /:426A$/ && $4 == "01" { n++ } END { exit !n }' /proc/net/tcp; }

# What was sent to a slurmd that is killed breaks off, and is sent again to the next one. Without direct connections,
# by which servers need no slurmd.
restart_slurmd() {
  local slurmd status token
  configure '{ "direct": { "mode": "off" } }'
  sleep infinity &
  token=$!
  hold_step restart '' --until $token --seconds 400 || { kill $token; return; }
  slurmd=$(slurmd_of node2)
  kill -STOP "$slurmd"
  kill $token
  check 'restart: a message is on its way' "nobody asked the slurmd of node2" until_true 60 node2_is_asked
  stop_slurmd node2
  start_slurmd node2
  wait "$step"
  status=$?
  check 'restart: the step goes on' "$(why "$work/restart.log" $status)" [ $status = 0 ]
  rm -f $conf
  check 'restart: the node works again' 'it does not after 100 s' until_true 100 node_works node2
}

waits_without_node2() {
  [ "$(grep -c '^WAITS' "$1")" = 6 ] && grep -q '^srun: error: node2: ' "$1" &&
    [ "$(new_leftovers "$work/before" | grep -c '^process muster-server')" = 3 ]
}
# early NAME COMMAND SAYS: a program that ends on one node before PMIx_Init, as bash's COMMAND does, and whose server
# has left there before anybody spoke to it
early() {
  local name=$1 log=$work/early.log step status begin go=$MUSTER_CI_DIR/shared/go
  list_leftovers >"$work/before"
  : >"$log"
  # shellcheck disable=SC2016  # for the tasks' shell
  srun --mpi="$MPI" -N4 --ntasks-per-node=2 bash -c '
    [ "$(hostname)" != node2 ] || eval "$2"
    echo WAITS
    while [ ! -e "$1" ]; do sleep 0.5; done
    exec "$0" --seconds 100' "$clients/exchange" "$go" "$2" >"$log" 2>&1 </dev/null &
  step=$!
  until_true 60 waits_without_node2 "$log" || not_ok "$name: start" "$(why "$log" unknown)"
  begin=$SECONDS
  touch "$go"
  until_true 60 ended $step
  check "$name: the others fail at once" "not after $((SECONDS - begin)) s" ended $step
  wait $step
  status=$?
  check "$name: the step fails" 'it did not' [ $status != 0 ]
  check "$name: says why" "$(why "$log" $status)" \
    grep -qE "node2 is lost: rank [23] $3 before PMIx_Init" "$log"
  rm -f "$go"
}

# departed WHAT SHAPE...: what needs nodes that have been left ends soon, and all nodes are idle soon after it
departed() {
  local what=$1 log=$work/departed.log status
  shift
  list_leftovers >"$work/before"
  # shellcheck disable=SC2086  # the shape is several words
  MUSTER_TIMEOUTS_PEER=300 timeout 120 srun --mpi="$MPI" -N4 "$@" "$clients/departed" --seconds 100 --how "$what" >"$log" 2>&1 </dev/null
  status=$?
  judge "departed, $what" departed $status "$log"
  check "departed, $what: nothing is left" "$(new_leftovers "$work/before" | tr '\n' ';')" \
    until_true $clean_bound nothing_new "$work/before"
}

# What ci/slurm was told to do otherwise, it does.
if scontrol show config | grep -q '^SlurmctldParameters .*enable_stepmgr'; then
  check 'steps are made by their job' 'there is no SLURM_STEPMGR' \
    grep -q '^node' <(salloc -Q -N1 printenv SLURM_STEPMGR 2>&1)
fi
if pgrep -f 'slurmd .*--conf-server' >/dev/null; then
  check 'nodes have slurm.conf from slurmctld' 'there is no conf-cache' [ -s "$spool/node1/conf-cache/slurm.conf" ]
fi
# told_alike NAME COUNT: in $log, the COUNT others in a group operation (a pattern) were told the same
told_alike() {
  local told
  told=$(sed -nE 's/^rank [0-9]+: (.* members .*)/\1/p' "$log" | sort | uniq -c | tr -s ' \n' ' ;')
  check "$1: one result for the others" "found$told" grep -qE "^ $2 [^;]+ members [0-9]+ context [0-9]+;\$" <<<"$told"
}

per_node=2 others='(3|[67])'

# lost NAME ARG...: a group operation loses rank 3, and the step goes on. All others are told the
# same, and what the client expects; the same id works again.
lost() {
  local name="lost $1" log=$work/lost.log status
  [ $BASHPID = $$ ] || log=$work/lost.$BASHPID.log # several may run at once
  shift
  timeout 200 srun --mpi="$MPI" -N4 --ntasks-per-node=$per_node --kill-on-bad-exit=0 "$clients/groups_lost" "$@" >"$log" 2>&1
  status=$?
  told_alike "$name" "$others"
  check "$name: ends as it should" "$(why "$log" $status)" eval \
    "[ $status != 124 ] && ! grep -q '^FAIL' '$log' && grep -q '^PASS groups_lost' '$log'"
}

# pids_on NODE NAME...: the processes with these names on a node, in that order
pids_on() {
  local node=$1 name pid
  shift
  for name in "$@"; do
    for pid in $(pids_of "$name"); do
      [ "$(nsenter --target "$pid" --uts hostname 2>/dev/null)" != "$node" ] || echo "$pid"
    done
  done
}

# For timeouts.peer, a question, and Slurm's own tries.
node_bound=60
all_told() { [ "$(grep -cE '^(LOST rank|FAIL)' "$work/lost.log")" -ge 6 ]; }
all_passed() { [ "$(grep -cE '^(PASS groups_lost|FAIL)' "$work/lost.log")" -ge "$1" ]; }
node_works() { timeout 30 srun -w "$1" -N1 true 2>/dev/null; }

# lost_node NAME ARG...: the same where node2 goes, with Slurm's daemons and its tasks. The step
# itself cannot end by itself then.
lost_node() {
  local name="lost node, $1" log=$work/lost.log step begin
  shift
  anchor_node node2
  : >"$log"
  srun --mpi="$MPI" -J lost_node -N4 --ntasks-per-node=2 --kill-on-bad-exit=0 --no-kill \
    "$clients/groups_lost" --node 1 "$@" >"$log" 2>&1 </dev/null &
  step=$!
  until_true 60 all_hold "$log" || not_ok "$name: start" "$(why "$log" unknown)"
  pids_on node2 slurmd slurmstepd muster-server groups_lost | kill_together
  begin=$SECONDS
  check "$name: told in time" "not all 6 after $node_bound s" until_true $node_bound all_told
  echo "# $name: after $((SECONDS - begin)) s"
  until_true 60 all_passed 1
  told_alike "$name" 6
  check "$name: ends as it should" "$(why "$log" unknown)" eval \
    "! grep -q '^FAIL' '$log' && grep -q '^PASS groups_lost' '$log'"
  scancel -n lost_node
  start_slurmd node2
  check "$name: the node works again" 'it does not after 100 s' until_true 100 node_works node2
  kill "$step" 2>/dev/null
  wait "$step" 2>/dev/null
}

# A lost task that was the last one of its node: its server says so as it leaves, and nobody has to ask first.
lost_alone() {
  local slow
  per_node=1 others=3
  lost 'construct, alone on its node'
  check 'lost construct, alone on its node: the status of a loss' "$(grep -m 1 '^rank ' "$work/lost.log")" \
    [ "$(grep -c '^rank [012]: PMIX_GROUP_CONSTRUCT_ABORT ' "$work/lost.log")" = 3 ]
  slow=$(grep -vE '^LOST rank [0-9]: after [0-5]?[0-9][.]' "$work/lost.log" | grep -m 1 '^LOST')
  check 'lost construct, alone on its node: told at once' "$slow" [ -z "$slow" ]
  per_node=2 others='(3|[67])'
}

# several COMMAND...: they wait for most of their time, so four run at once
several() {
  aside "$@"
  [ ${#asides[@]} -lt 4 ] || join_asides
}

# lost_beside OP: what lacks a lost process has one status, whenever the others call
lost_beside() {
  local log=$work/status.$1.log status
  timeout 120 srun --mpi="$MPI" --kill-on-bad-exit=0 -N4 --ntasks-per-node=2 "$clients/statuses" --op "$1" --seconds 100 >"$log" 2>&1 </dev/null
  status=$?
  check "one status, $1" "$(why "$log" $status)" eval \
    "[ $status = 138 ] && ! grep -qE '^FAIL|watchdog' '$log' && grep -q '^PASS statuses' '$log'"
}

lost_in_groups() {
  configure '{ "on_task_loss": "continue", "timeouts": { "peer": 100 } }'
  lost_alone
  configure '{ "on_task_loss": "continue" }'
  several lost_beside fence
  several lost_beside connect
  several lost_beside destruct
  several lost construct
  several lost 'construct, FT_COLLECTIVE' --mode ft --events 1
  several lost 'construct, once it has contributed' --after 1
  several lost 'construct, FT_COLLECTIVE, once it has contributed' --mode ft --after 1
  several lost 'construct, NOTIFY_TERMINATION' --mode notify --events 1
  several lost 'construct, NOTIFY_TERMINATION, once it has contributed' --mode notify --after 1 --events 1
  several lost 'construct, too late' --how late
  several lost 'construct, added' --as added
  several lost 'construct, added, FT_COLLECTIVE' --as added --mode ft
  several lost 'construct, leader' --as leader
  several lost 'construct, leader, FT_COLLECTIVE' --as leader --mode ft --events 1
  several lost 'construct, leader, once it has contributed' --as leader --after 1
  several lost 'bootstrap, leader' --op bootstrap
  several lost 'bootstrap, leader, once it has contributed' --op bootstrap --after 1
  several lost destruct --op destruct
  several lost 'destruct, once it has contributed' --op destruct --after 1
  several lost 'destruct, FT_COLLECTIVE' --op destruct --mode ft
  several lost 'destruct, FT_COLLECTIVE, once it has contributed' --op destruct --mode ft --after 1
  several lost 'destruct, too late' --op destruct --how late --deadline 3
  several lost 'destruct, NOTIFY_TERMINATION' --op destruct --mode notify --events 1
  several lost 'destruct, NOTIFY_TERMINATION, once it has contributed' --op destruct --mode notify --after 1 --events 1
  join_asides
  per_node=3 others=10
  lost 'destruct, NOTIFY_TERMINATION, and another one that has contributed' \
    --op destruct --mode notify --events 1 --second 4
  per_node=2 others='(3|[67])'
  configure '{ "on_task_loss": "continue", "timeouts": { "peer": 4 } }'
  lost_node 'construct, FT_COLLECTIVE' --mode ft --events 1
  rm -f $conf
}

# libpmix before 7 hands up no operation of a node that has lost a participant, so others there hang;
# those on other nodes get an error.
lost_alone_on_node() {
  configure '{ "on_task_loss": "continue" }'
  several lost_beside fence
  several lost_beside connect
  join_asides
  per_node=1
  lost 'construct, alone on its node'
  lost 'destruct, alone on its node' --op destruct
  if [ "$(pmix_major)" = 4 ]; then   # with an id of its own for the next construct, which the late one calls first
    lost 'construct, too late, alone on its node' --how late --deadline 2
    lost 'destruct, too late, alone on its node' --op destruct --how late --deadline 2
  fi
  per_node=2
  rm -f $conf
  skip 'lost beside others on its node, FT_COLLECTIVE, NOTIFY_TERMINATION' 'libpmix hands them up from 7 on'
}

all_lost() { if [ "$(pmix_major)" -ge 7 ]; then lost_in_groups; else lost_alone_on_node; fi; }

# stranded HOW: libpmix lets a rank wait for one of its node that has ended in order. The step is ended.
stranded() {
  local log=$work/stranded.log status says='rank 7 on node4 has ended without taking part, and libpmix [0-9.]+ lets rank 6 there wait'
  mark_logs
  MUSTER_TIMEOUTS_PEER=300 timeout 120 srun --mpi="$MPI" -N4 --ntasks-per-node=2 "$clients/departed" --how "$1" --seconds 140 >"$log" 2>&1 </dev/null
  status=$?
  check "stranded, $1: the step ends" "status $status" eval "[ $status != 0 ] && [ $status != 124 ]"
  check "stranded, $1: nobody was told of success" "$(grep -m 1 '^FAIL' "$log")" [ "$(grep -c '^FAIL' "$log")" = 0 ]
  says_why "stranded, $1" "$says" "$log"
}

all_departed() {
  if [ -z "${THIN:-}" ]; then
    departed event -n4
    departed get -n4
    departed cancel -n4
    departed last -n4
  fi
  departed group -n4
  stranded group
  if [ "$(pmix_major)" -ge 7 ]; then departed late --ntasks-per-node=2; else stranded fence; fi
}

names_rank='(rank|task) 3|:3([^0-9]|$)'
ends() {
  scenario kill-in-fence '' itself "muster.*($names_rank)" --victim 3 --how kill --in fence
  one_status kill-in-fence
  scenario kill-in-construct "$ends_with_task" itself "$names_rank" --victim 3 --how kill --in construct
  [ -n "$ends_with_task" ] || one_status kill-in-construct
  scenario cancel-in-sleep '' cancel '' --sleep 300 --seconds 320
  [ -z "${THIN:-}" ] || return 0
  scenario exit-in-fence '' itself "muster.*($names_rank)" --victim 3 --how exit --status 0 --in fence
  one_status exit-in-fence
  scenario abort-in-fence '' itself 'hold was told to abort' --victim 3 --how abort --in fence
  [ "$MPI" != muster ] || server_in fence
  scenario cancel-in-construct '' cancel '' --victim 7 --delay 300000 --how exit --in construct --seconds 320
}

# server_in WHERE: the victim is late for ever: all others wait when the server is killed
server_in() {
  scenario "server-in-$1" '' kill_server 'muster.*(server|node[0-9])' --victim 7 --delay 300000 --how exit --in "$1" --sleep 300 --seconds 320
}
servers() {
  server_in sleep
  server_in construct
}

earlier() {
  early missing-program 'exec /nowhere/program' 'ended( with exit code 127)?'
  early illegal-instruction 'kill -ILL $$' '(was killed by signal 4 .*|ended)'
}

parts=("$@")
[ $# -gt 0 ] || parts=(ends servers restart early departed groups settings)
[ "$MPI" = muster ] || parts=(ends)
for part in "${parts[@]}"; do
  begin=$SECONDS
  case $part in
    ends|servers) scenarios "$part" ;;
    restart) restart_slurmd ;;
    early) earlier ;;
    departed) all_departed ;;
    groups) all_lost ;;
    settings) mistakes ;;
    *) usage >&2; exit 2 ;;
  esac
  echo "# $part took $((SECONDS - begin)) s"
done
summary
