#!/usr/bin/env bash
# ci/system/standin.sh: the test clients under musterrun, without Slurm.
# shellcheck disable=SC2154,SC2034  # clients and work are shared with lib.sh
set -uo pipefail
usage() {
  cat <<'TXT'
usage: ci/test standin
       ci/system/standin.sh BUILDDIR [PART]...

Runs musterrun ($MUSTERRUN, by default /opt/muster/bin/musterrun): the clients in BUILDDIR
(or BUILDDIR/ci/clients) in several shapes, what a user sees of it, each of its faults, and
what is left when a part of it is killed; or only those PARTs: linking clients use ends
faults kills. Prints "ok", "not ok" with the reason and "skip" lines; non-zero status when
any failed. It takes each process musterrun, muster-server or hold that it sees for a
leftover of its own, so it needs a pid namespace for itself: ci/test gives it one.
TXT
}
case ${1:-} in -h|--help) usage; exit 0 ;; '') usage >&2; exit 2 ;; esac
# shellcheck source=ci/system/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
find_clients "$1"
shift
wanted=" $* "
musterrun=${MUSTERRUN:-/opt/muster/bin/musterrun}
prefix=${musterrun%/bin/*}
log=$work/log
export TMPDIR=$work/tmp
ulimit -c 0
mkdir "$TMPDIR"

# ---- what is left ----

list_left() {
  local name
  for name in musterrun muster-server hold exchange sleep; do pids_of $name | sed "s/^/process $name /"; done
  find "$TMPDIR" -mindepth 1
  find /dev/shm -mindepth 1 -user "$(id -u)" 2>/dev/null
}
nothing_left() { [ -z "$(list_left)" ]; }

# clean WHAT: nothing is left, within 5 s
clean() {
  if until_true 5 nothing_left; then ok "$1: nothing is left"; else
    not_ok "$1: what is left" "$(list_left | tr '\n' ';')"
  fi
}

# ---- runs ----

# run SECONDS OPTION... PROGRAM...: one musterrun; sets $status, and its words are in $log
run() {
  local seconds=$1
  shift
  timeout -k 5 "$seconds" "$musterrun" "$@" >"$log" 2>&1 </dev/null
  status=$?
}

passed_once() { [ "$status" = 0 ] && [ "$(grep -c '^PASS ' "$log")" = 1 ]; }

# client WHAT OPTIONS NAME [ARG]...: a client that has to pass
client() {
  local what=$1 options=$2 name=$3
  shift 3
  # shellcheck disable=SC2086  # options are several words
  run 120 $options "$clients/$name" "$@" --seconds 100
  if grep -q "^SKIP $name:" "$log"; then
    skip "$what" "$(sed -n "s/^SKIP $name: //p" "$log" | head -n 1)"
  else
    check "$what" "$(why "$log" $status)" passed_once
  fi
}

# says WHAT STATUS PATTERN: how the last run ended (a regular expression too), and that it said this
said() { [[ $status =~ ^($1)$ ]] && grep -qE "$2" "$log"; }
says() {
  check "$1" "status $status, expected $2; said: $(grep -v '^HOLD' "$log" | head -n 8 | tr '\n' ';')" said "$2" "$3"
}
none_failed() { ! grep -q '^FAIL' "$log"; }

all_hold() { [ "$(grep -c '^HOLD rank' "$log" 2>/dev/null)" = 8 ]; }

# start: a held step of 8 ranks on 4 nodes in the background; sets $step
start() {
  : >"$log"
  env --default-signal=INT,QUIT "$musterrun" -N4 -n8 "$clients/hold" --sleep 60 >"$log" 2>&1 </dev/null &
  step=$!
  until_true 30 all_hold || not_ok "start" "$(why "$log" 'unknown (not up after 30 s)')"
}

# await WHAT: the end of $step, within 15 s; sets $status
ended() { ! kill -0 "$step" 2>/dev/null; }
await() {
  until_true 15 ended || { not_ok "$1: the end" 'still there after 15 s'; kill -9 "$step"; }
  wait "$step"
  status=$?
} 2>/dev/null

two_up() { [ "$(grep -c up "$log")" = 2 ]; }
no_process_left() { ! list_left | grep -q '^process'; }

# ---- the parts ----

# Nothing of it needs an installed Slurm.
part_linking() {
  local file
  for file in "$musterrun" "$prefix/lib/muster/libslurm_standin.so" "$prefix/lib/muster/rm_slurm.so" \
    "$prefix/lib/slurm/mpi_muster.so" "$prefix/libexec/muster/muster-server"; do
    check "${file##*/} links no libslurm" "$(ldd "$file" | grep 'libslurm')" \
      eval "[ -r '$file' ] && ! ldd '$file' | grep -qE 'libslurm(full)?\.so|libslurm-'"
  done
  check 'no daemon of Slurm is there' "$(pids_of slurmd) $(pids_of slurmctld)" \
    [ -z "$(pids_of slurmd)$(pids_of slurmctld)" ]
}

part_clients() {
  local shape name n
  for shape in '-N4 -n8' '-N1 -n4' '-N4 -n16' '-N2 -n3' '-N4 -n8 --distribution=cyclic'; do
    for name in exchange modex barrier subset groups_many groups_disjoint groups_info groups_query \
      unsupported logq; do
      client "$name ($shape)" "$shape" $name
      n=${shape#*-n}
      [ $name != logq ] || check "logq's lines ($shape)" "$(tail -n 3 "$log")" \
        [ "$(grep -o 'logq: rank [0-9]* wrote this' "$log" | sort -u | wc -l)" = "${n%% *}" ]
    done
    client "groups ($shape)" "$shape" groups --groups 100
    client "hold ($shape)" "$shape" hold --sleep 1
    clean "clients ($shape)"
  done
  client 'exchange, large' '-N4 -n8' exchange --bytes 1000000 --rounds 2
}

part_use() {
  local found
  # shellcheck disable=SC2016  # for the tasks' shell
  run 30 -l -N2 -n3 sh -c 'echo "$SLURM_PROCID $SLURM_LOCALID $SLURM_NODEID $SLURM_NTASKS $SLURM_NNODES $SLURMD_NODENAME $SLURM_TASKS_PER_NODE $SLURM_STEP_ID"; [ "$SLURM_JOB_ID" = "$SLURM_JOBID" ]'
  found=$(sort "$log" | tr '\n' ';')
  check 'labels, and the environment of tasks' "status $status, $found" \
    [ "$status $found" = '0 0: 0 0 0 3 2 node0 2,1 0;1: 1 1 0 3 2 node0 2,1 0;2: 2 0 1 3 2 node1 2,1 0;' ]
  # shellcheck disable=SC2016
  run 30 -N2 -n4 -m cyclic sh -c 'echo "$SLURM_NODEID $SLURM_GTIDS"'
  check 'cyclic distribution' "$(cat "$log")" [ "$(sort -u "$log" | tr '\n' ';')" = '0 0,2;1 1,3;' ]
  found=$(seq 20000 | "$musterrun" -l -N2 -n3 tail -n 1 | sort | tr '\n' ';')
  check 'input reaches all' "$found" [ "$found" = '0: 20000;1: 20000;2: 20000;' ]
  found=$(seq 20000 | "$musterrun" -l -i 1 -N2 -n3 wc -l | sort | tr '\n' ';')
  check 'input reaches one rank' "$found" [ "$found" = '0: 0;1: 20000;2: 0;' ]
  found=$(seq 20000 | "$musterrun" -i none -n2 wc -l | tr '\n' ';')
  check 'input reaches nobody' "$found" [ "$found" = '0;0;' ]
  found=$(seq 300000 | "$musterrun" -n3 sh -c 'exec <&-; echo x' | tr '\n' ';')
  check 'input that nobody reads' "$found" [ "$found" = 'x;x;x;' ]
  run 30 -n1 sh -c 'printf "no newline"'
  check 'output as it is' "$(cat "$log")" [ "$(cat "$log")" = 'no newline' ]
  found=$("$musterrun" -n1 sh -c 'seq 200000; seq 200000 >&2' 2>"$work/err" | md5sum)
  check 'output and errors, whole and apart' "$(wc -c "$work/err")" \
    [ "$found $(md5sum <"$work/err")" = "$(seq 200000 | md5sum) $(seq 200000 | md5sum)" ]
  run 30 -n2 -N4 true
  says 'fewer tasks than nodes' 0 'warning: 2 tasks run on 2 nodes, not on 4'
  run 5 -n 0 true
  says 'a wrong number' 2 '"0" is not 1 to 10000'
  run 5 --fault=late:when=3 true
  says 'a wrong fault' 2 '"when=3" is none of: percent ms node'
  run 5 --plugin=/nonexistent.so true
  says 'no plugin' 1 'cannot load the plugin: /nonexistent.so'
  (ulimit -n 30 && exec "$musterrun" -n60 true) >"$log" 2>&1
  status=$?
  says 'too few descriptors' 1 'cannot make the pipes of 60 tasks: Too many open files'
  mkdir -p "$work/conf" && echo '{ "timeout": 3 }' >"$work/conf/muster.json"
  if [ "$(id -u)" != 0 ]; then
    MUSTER_CONF=$work/conf/muster.json run 30 -N2 -n2 "$clients/hold" --sleep 30
    says 'a mistake in muster.json' '1|137' 'muster.json line 1: .*timeout'
  fi
  clean use
}

part_ends() {
  # shellcheck disable=SC2016
  run 30 -N2 -n4 sh -c 'exit $SLURM_PROCID'
  says 'the highest exit code' 3 'task 3: Exited with exit code 3'
  # shellcheck disable=SC2016
  run 30 -N2 -n4 sh -c '[ $SLURM_PROCID != 2 ] || kill -TERM $$'
  says '128 and the signal' 143 'task 2: Terminated'
  run 30 -n2 /nonexistent
  says 'a program that is not there' 2 'execve\(\): /nonexistent: No such file'
  # shellcheck disable=SC2016
  run 15 -K -N2 -n4 sh -c '[ $SLURM_PROCID != 1 ] || exit 9; exec sleep 60'
  says 'kill on bad exit' 137 'task 1: Exited with exit code 9'
  run 15 -n2 sh -c 'sleep 60 & setsid sleep 60 & echo here'
  says 'a daemon that a task leaves behind' 0 here
  clean 'a daemon that a task leaves behind'
  for how in kill exit; do
    for where in fence construct; do
      # 137 is of those that were still there when muster ended the step.
      # libpmix up to 6 hangs the others of a node where a member of a construct died.
      [ "$(pmix_major)" -ge 7 ] || [ $where = fence ] || continue
      run 30 -N4 -n8 "$clients/hold" --victim 3 --how $how --in $where
      says "$how in $where" '7|137' '(rank|task) 3[: ]'
      # libpmix 5.0 tells one local participant only of a fence that failed (docs/limits.md).
      [ "$(pmix_major)" = 5 ] || check "$how in $where: nobody was told of success" \
        "$(grep -m 1 '^FAIL' "$log")" none_failed
    done
  done
  run 30 -N4 -n8 "$clients/hold" --victim 3 --how abort --in sleep
  says 'abort' 137 'rank 3.*PMIx_Abort with status 7: hold was told to abort'
  clean 'ends of tasks'
  local sig
  for sig in INT:130 TERM:143 HUP:129 QUIT:131; do
    start
    kill -s "${sig%:*}" $step
    await "signal ${sig%:*}"
    # 137: muster ends the step when the first task is lost, which may overtake the signal
    says "signal ${sig%:*}" "${sig#*:}|137" .
  done
  : >"$log"
  # shellcheck disable=SC2016
  "$musterrun" -N2 -n2 sh -c 'trap "echo got it; exit 5" USR1; echo up; while :; do sleep 0.1; done' >"$log" 2>&1 </dev/null &
  step=$!
  until_true 20 two_up
  kill -USR1 $step
  await 'signal USR1'
  says 'signal USR1 reaches the tasks' 5 'got it'
  : >"$log"
  env --default-signal=INT "$musterrun" -n1 sh -c 'trap "" INT; echo up; while :; do sleep 0.1; done' >"$log" 2>&1 </dev/null &
  step=$!
  until_true 20 grep -q up "$log"
  kill -INT $step
  until_true 5 grep -q interrupt "$log"
  kill -INT $step
  await 'interrupt twice'
  says 'interrupt twice' 137 interrupt
  clean signals
}

# fault KIND NAME ARG...: a client has to pass although messages are treated so
fault() {
  local kind=$1 name=$2 seed
  shift 2
  for seed in 1 2; do
    client "$kind, seed $seed: $name" "-N4 -n8 --fault=$kind --seed=$seed" "$name" "$@"
    check "$kind, seed $seed: $name: it was done" "$(tail -n 1 "$log")" \
      grep -qE "^musterrun: fault ${kind%%:*}: [1-9][0-9]* times" "$log"
  done
}

part_faults() {
  local kind n
  for kind in late late:percent=60,ms=300 duplicate:percent=50,ms=50 lost:percent=50 refused:percent=50 uid:percent=50; do
    fault $kind exchange
    fault $kind subset
    fault $kind groups_many --groups 20
    fault $kind modex
  done
  client 'all at once' "-N4 -n8 --fault=late --fault=duplicate --fault=lost --fault=refused --fault=uid" \
    groups_many --groups 20
  clean 'faults of messages'
  run 60 -v -N4 -n8 --fault=uid:percent=100 "$clients/exchange"
  says 'another uid in the header is seen' 0 'message of [0-9]+ bytes that slurmd did not write so was dropped'
  # One node never answers at all: its peers give it up, and the step ends.
  echo '{ "timeouts": { "peer": 2 } }' >"$work/peer.json"
  MUSTER_CONF=$work/peer.json run 60 -N4 -n8 --fault=refused:percent=100,node=1 "$clients/exchange"
  says 'a node that is never reached' '1|137' 'muster-server on node1 is lost'
  for n in 1 5 20 after=300 after=1000; do
    case $n in [0-9]*) n=message=$n ;; esac
    # The hold is there for what comes later than the exchange's end.
    run 60 -N4 -n8 "--fault=die:node=1,$n" sh -c "'$clients/exchange' && sleep 30"
    says "a node dies ($n)" 137 'Node failure on node1'
    check "a node dies ($n): no other node is said to" "$(grep 'Node failure' "$log" | tr '\n' ';')" \
      [ "$(grep -c 'Node failure' "$log")" = 1 ]
    clean "a node dies ($n)"
  done
  run 60 -N4 -n8 --fault=die:node=1,message=12,notice=20000 "$clients/exchange" --rounds 50
  says 'a node dies, and its peers are first to see it' 137 'muster-server on node1 is lost'
  clean 'a node dies, and its peers are first to see it'
}

part_kills() {
  start
  kill -9 $step
  await 'musterrun is killed'
  clean 'musterrun is killed'
  start
  kill -9 "$(pids_of musterrun | grep -vx "$step" | head -n 1)"
  await "a node's process is killed"
  says "a node's process is killed" 137 'Node failure on node'
  clean "a node's process is killed"
  start
  kill -9 "$(pids_of muster-server | head -n 1)"
  await 'a server is killed'
  says 'a server is killed' 137 'muster-server of step [0-9.]+ died on node'
  clean 'a server is killed'
  # Nobody is left who could remove the directory: the next run does.
  start
  # shellcheck disable=SC2046  # the first one first, or it would have the time to remove it
  kill -9 $step $(pids_of musterrun | grep -vx "$step")
  await 'all processes of musterrun are killed'
  check 'all processes of musterrun are killed: no process is left' "$(list_left | grep process)" \
    until_true 5 no_process_left
  run 30 true
  clean 'all processes of musterrun are killed, after the next run'
}

for part in linking clients use ends faults kills; do
  case $wanted in '  '|*" $part "*) part_$part ;; esac
done
summary
