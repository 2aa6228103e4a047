#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# ci/system/standin.sh: the test clients under musterrun, without Slurm and without Flux.
# shellcheck disable=SC2154,SC2034  # clients and work are shared with lib.sh
set -uo pipefail
usage() {
  cat <<'TXT'
usage: ci/test standin
       ci/system/standin.sh [--rm=NAME] BUILDDIR [PART]...

Runs musterrun ($MUSTERRUN, by default /opt/muster/bin/musterrun), which plays the resource
manager NAME, slurm (the default) or flux: the clients in BUILDDIR
(or BUILDDIR/ci/clients) in several shapes, what a user sees of it, each of its faults, and
what is left when a part of it is killed; or only those PARTs: linking clients keys use
ends faults direct kills. Prints "ok", "not ok" with the reason and "skip" lines; non-zero status when
any failed. It takes each process musterrun, muster-server or hold that it sees for a
leftover of its own, so it needs a pid namespace for itself: ci/test gives it one.
TXT
}
case ${1:-} in -h|--help) usage; exit 0 ;; '') usage >&2; exit 2 ;; esac
rm=slurm
case $1 in --rm=*) rm=${1#--rm=}; shift ;; esac
# shellcheck source=ci/system/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
find_clients "$1"
shift
wanted=" $* "
looked_twice() { [ "$(grep -c ': 2 of 2 nodes answer$' "$work/watched")" -ge 2 ]; }
program=${MUSTERRUN:-/opt/muster/bin/musterrun}
prefix=${program%/bin/*}
musterrun=("$program" "--rm=$rm")
# A status of tasks that were ended: killed, or by the SIGTERM that comes first.
case $rm in
  slurm) killed=137 step_of='step [0-9.]+' leaf=1 ;;
  flux) killed='137|143' step_of='job f[0-9A-Za-z]+' leaf=2 ;; # node 3 is below node 1, and lost with it
  *) usage >&2; exit 2 ;;
esac
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
  timeout -k 5 "$seconds" "${musterrun[@]}" "$@" >"$log" 2>&1 </dev/null
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

# start: a held step of 8 ranks on 4 nodes in the background; sets $step
start() {
  : >"$log"
  env --default-signal=INT,QUIT "${musterrun[@]}" -N4 -n8 "$clients/hold" --sleep 60 >"$log" 2>&1 </dev/null &
  step=$!
  until_true 30 all_hold "$log" || not_ok "start" "$(why "$log" 'unknown (not up after 30 s)')"
}

# await WHAT: the end of $step, within 15 s; sets $status
await() {
  until_true 15 ended "$step" || { not_ok "$1: the end" 'still there after 15 s'; kill -9 "$step"; }
  wait "$step"
  status=$?
} 2>/dev/null

two_up() { [ "$(grep -c up "$log")" = 2 ]; }
no_process_left() { ! list_left | grep -q '^process'; }

# ---- the parts ----

# Nothing of it needs an installed resource manager.
part_linking() {
  local file files
  case $rm in
    slurm) files=("$prefix/lib/muster/libslurm_standin.so" "$prefix/lib/slurm/mpi_muster.so") ;;
    flux) files=("$prefix/lib/muster/libflux_core_standin.so" "$prefix/lib/flux/modules/muster.so"
      "$prefix/lib/flux/shell/plugins/muster-shell.so") ;;
  esac
  for file in "$program" "$prefix/lib/muster/rm_$rm.so" "${files[@]}" "$clients/../../common/muster-server"; do
    check "${file##*/} links no library of a resource manager" "$(ldd "$file" | grep -E 'libslurm|libflux')" \
      eval "[ -r '$file' ] && ! ldd '$file' | grep -qE 'libslurm(full)?\.so|libslurm-|libflux-'"
  done
  check 'no daemon is there' "$(pids_of slurmd) $(pids_of slurmctld) $(pids_of flux-broker-0)" \
    [ -z "$(pids_of slurmd)$(pids_of slurmctld)$(pids_of flux-broker-0)" ]
}

# logged SHAPE: the client logq, whose lines are to come out
logged() {
  local shape=$1 n=${1#*-n}
  client "logq ($shape)" "$shape" logq
  check "logq's lines ($shape)" "$(tail -n 3 "$log")" \
    [ "$(grep -o 'logq: rank [0-9]* wrote this' "$log" | sort -u | wc -l)" = "${n%% *}" ]
}

# slurm.sh has all of them with the same libpmix and the same plugin, under the Slurm that is played here.
few_clients() {
  client 'exchange (-N4 -n8)' '-N4 -n8' exchange
  client 'groups_many (-N1 -n4)' '-N1 -n4' groups_many
  logged '-N4 -n8 --distribution=cyclic'
}

# For this back end nothing else runs them where there is no Flux.
all_clients() {
  local shape name
  for shape in '-N4 -n8' '-N1 -n4' '-N4 -n8 --distribution=cyclic'; do
    clients_of "$shape"
    for name in "${of_shape[@]}"; do
      if [ "$name" = logq ]; then logged "$shape"; else client "$name ($shape)" "$shape" "$name"; fi
    done
  done
  client 'modex (-N4 -n8)' '-N4 -n8' modex
  client 'barrier (-N4 -n8)' '-N4 -n8' barrier
  client 'groups (-N4 -n8)' '-N4 -n8' groups --groups 100
  client 'exchange, large' '-N4 -n8' exchange --bytes 1000000 --rounds 2
}

part_clients() {
  if [ "$rm" = flux ]; then all_clients; else few_clients; fi
  client 'hold (-N2 -n3)' '-N2 -n3' hold --sleep 1
  clean clients
}

not_asked() { grep 'not asked' "$log" | grep -vE ' PMIX_(CPUSET|LOCALITY_STRING|PACKAGE_RANK|PARENT_ID|PSET_NAME) '; }

# The table of keys, in all that musterrun can lay out, and beside another step.
part_keys() {
  local shape beside list=0,1,1,2,0,2,0
  [ "$rm" = flux ] || list=2,0,0,1,2,2,0   # a task of Flux cannot say how many nodes are before its own
  for shape in '-N4 -n8' '-N4 -n10 -m cyclic' '-N4 -n10 -m plane=2' "-m arbitrary=$list" '-N3 -n7' '-N2 -n40' '-N1 -n1'; do
    client "keys ($shape)" "$shape" keys
    # nothing is bound, and of Flux no variables say how large a job's instance is
    [ "$rm" = flux ] || check "all keys are asked for ($shape)" "$(not_asked)" [ -z "$(not_asked)" ]
  done
  start
  beside=$step
  mv "$log" "$work/beside.log"
  client 'keys, beside another step' '-N3 -n5 -m cyclic' keys
  if [ "$rm" = flux ]; then keys_below ü "${musterrun[@]}" -N2 -n4; else keys_below $'\xff\xfe' "${musterrun[@]}" -N2 -n4; fi
  check 'the step beside it' "$(tail -n 1 "$work/beside.log")" kill -0 "$beside"
  kill "$beside"
  wait "$beside"
  clean keys
}

use_slurm() {
  local found
  # shellcheck disable=SC2016  # for the tasks' shell
  run 30 -l -N2 -n3 sh -c 'echo "$SLURM_PROCID $SLURM_LOCALID $SLURM_NODEID $SLURM_NTASKS $SLURM_NNODES $SLURMD_NODENAME $SLURM_TASKS_PER_NODE $SLURM_STEP_ID"; [ "$SLURM_JOB_ID" = "$SLURM_JOBID" ]'
  found=$(sort "$log" | tr '\n' ';')
  check 'labels, and the environment of tasks' "status $status, $found" \
    [ "$status $found" = '0 0: 0 0 0 3 2 node0 2,1 0;1: 1 1 0 3 2 node0 2,1 0;2: 2 0 1 3 2 node1 2,1 0;' ]
  # shellcheck disable=SC2016
  run 30 -N2 -n4 -m cyclic sh -c 'echo "$SLURM_NODEID $SLURM_GTIDS"'
  check 'cyclic distribution' "$(cat "$log")" [ "$(sort -u "$log" | tr '\n' ';')" = '0 0,2;1 1,3;' ]
  # shellcheck disable=SC2016
  run 30 -N2 -n5 -m plane=2 sh -c 'echo "$SLURM_NODEID $SLURM_GTIDS"'
  check 'planes' "$(cat "$log")" [ "$(sort -u "$log" | tr '\n' ';')" = '0 0,1,4;1 2,3;' ]
  # shellcheck disable=SC2016
  run 30 -m arbitrary=1,2,0,1 sh -c 'echo "$SLURM_NODEID $SLURM_GTIDS"'
  check 'arbitrary distribution' "$(cat "$log")" [ "$(sort -u "$log" | tr '\n' ';')" = '0 2;1 0,3;2 1;' ]
}

use_flux() {
  local found
  # shellcheck disable=SC2016  # for the tasks' shell
  run 30 -l -N2 -n3 sh -c 'echo "$FLUX_TASK_RANK $FLUX_TASK_LOCAL_ID $FLUX_JOB_SIZE $FLUX_JOB_NNODES $MUSTERRUN_NODE"; [ "flux.$FLUX_JOB_ID" = "$PMIX_NAMESPACE" ] && [ -d "$FLUX_JOB_TMPDIR" ] && [ -S "${FLUX_URI#local://}" ]'
  found=$(sort "$log" | tr '\n' ';')
  check 'labels, and the environment of tasks' "status $status, $found" \
    [ "$status $found" = '0 0: 0 0 3 2 node0;1: 1 1 3 2 node0;2: 2 0 3 2 node1;' ]
  # shellcheck disable=SC2016
  run 30 -N2 -n4 -m cyclic sh -c 'echo "$MUSTERRUN_NODE $FLUX_TASK_LOCAL_ID $FLUX_TASK_RANK"'
  found=$(sort "$log" | tr '\n' ';')
  check 'cyclic distribution' "$found" [ "$found" = 'node0 0 0;node0 1 2;node1 0 1;node1 1 3;' ]
}

# Command lines of mpirun and srun.
part_habits() {
  # shellcheck disable=SC2016  # for the tasks' shells
  local show='echo "$(basename "$PWD") $COLOUR"' option
  run 30 -l -n 2 echo first : -np 3 echo second
  check 'several programs' "status $status: $(tr '\n' ';' <"$log")" \
    [ "$(sort "$log" | tr '\n' ';')" = '0: first;1: first;2: second;3: second;4: second;' ]
  client '--host' '--host a:2,b' exchange
  printf 'x slots=2 # two\n\ny\n' >"$work/hosts"
  client '--hostfile' "--hostfile $work/hosts -n 4" exchange
  printf 'x slots=many\n' >"$work/hosts"
  run 5 --hostfile "$work/hosts" true
  says 'a wrong host file' 2 'hosts line 1: not NAME slots=TASKS'
  run 30 -x COLOUR=red -x HOME -n 2 --wdir /usr --output="$work/out.%t" --error="$work/err" sh -c "$show; echo wrong >&2"
  check '-x, --wdir, --output and --error' "status $status: $(head "$work"/out.* "$work/err" | tr '\n' ';')" \
    [ "$status$(cat "$work/out.0" "$work/out.1" "$work/err" | tr '\n' ';')" = '0usr red;usr red;wrong;wrong;' ]
  run 30 -n 2 --chdir /nonexistent true
  says 'a directory that is not there' 2 'error: --wdir: /nonexistent: No such file'
  run 30 --timeout 1 -n 2 sleep 60
  says '--timeout' 124 '1 s are over; the tasks are killed'
  run 30 -N2 -n 5 sh -c 'exit 3'
  says 'tasks that end alike are told of together' 3 'tasks [0-9]+[-,][-,0-9]+: Exited with exit code 3'
  for option in --lable:'did you mean --label' --map-by:'--distribution says' --mpi=pmix:'leave the option out' --zzz:'unknown; see'; do
    run 5 "${option%%:*}" true
    says "the option ${option%%:*}" 2 "musterrun: ${option%%:*}: .*${option#*:}"
  done
}

part_use() {
  local found n
  "use_$rm"
  found=$(seq 20000 | "${musterrun[@]}" -l -N2 -n3 tail -n 1 | sort | tr '\n' ';')
  check 'input reaches all' "$found" [ "$found" = '0: 20000;1: 20000;2: 20000;' ]
  found=$(seq 20000 | "${musterrun[@]}" -l -i 1 -N2 -n3 wc -l | sort | tr '\n' ';')
  check 'input reaches one rank' "$found" [ "$found" = '0: 0;1: 20000;2: 0;' ]
  found=$(seq 20000 | "${musterrun[@]}" -i none -n2 wc -l | tr '\n' ';')
  check 'input reaches nobody' "$found" [ "$found" = '0;0;' ]
  found=$(seq 300000 | "${musterrun[@]}" -n3 sh -c 'exec <&-; echo x' | tr '\n' ';')
  check 'input that nobody reads' "$found" [ "$found" = 'x;x;x;' ]
  run 30 -n1 sh -c 'printf "no newline"'
  check 'output as it is' "$(cat "$log")" [ "$(cat "$log")" = 'no newline' ]
  found=$("${musterrun[@]}" -n1 sh -c 'seq 200000; seq 200000 >&2' 2>"$work/err" | md5sum)
  check 'output and errors, whole and apart' "$(wc -c "$work/err")" \
    [ "$found $(md5sum <"$work/err")" = "$(seq 200000 | md5sum) $(seq 200000 | md5sum)" ]
  PSETS_EXPECTED=ocean=0-3:ice=4-7 client 'process sets' '-N4 -n8 --pset ocean=0-3:ice=4-7' psets
  run 30 -n2 -N4 true
  says 'fewer tasks than nodes' 0 'warning: 2 tasks run on 2 nodes, not on 4'
  run 5 -n 0 true
  says 'a wrong number' 2 '"0" is not 1 to 10000'
  run 30 -np 2 echo program
  says 'the number of tasks as mpirun has it' 0 '^program'
  run 5 true : -n 2 true
  says 'a second program without its tasks' 2 'each of several programs begins with how many tasks'
  part_habits
  run 5 -m arbitrary=0,2 true
  says 'a node without a task' 2 'no task is on node1'
  run 5 -m arbitrary=0,,1 true
  says 'a wrong list of nodes' 2 '"0,,1" is not a list'
  run 5 --fault=late:when=3 true
  says 'a wrong fault' 2 '"when=3" is none of: percent ms node'
  run 5 --plugin=/nonexistent.so true
  says 'no plugin' 1 'cannot load the plugin: /nonexistent.so'
  (ulimit -n 30 && exec "${musterrun[@]}" -n60 true) >"$log" 2>&1
  status=$?
  says 'too few descriptors' 1 'cannot make the pipes of 60 tasks: Too many open files'
  # first musterrun lacks them, then the plugin in slurmstepd or the job shell, then the server
  for n in 8 {12..24} 28 32 64; do
    (ulimit -n "$n" && exec timeout -k 5 30 "${musterrun[@]}" -N1 -n1 "$clients/start") >"$log" 2>&1 </dev/null
    status=$?
    says "$n descriptors" "[1-9]|$killed" 'Too many open files|it may open [0-9]+ files, and needs 65'
  done
  # its servers are found by no more than being there
  "${musterrun[@]}" -N2 -n8 "$clients/hold" --sleep 60 >"$log" 2>&1 </dev/null &
  launcher=$!
  until_true 30 all_hold "$log" || not_ok 'start of a step to be listed' "$(why "$log" 'unknown (not up after 30 s)')"
  listed=$("$prefix/bin/muster-status")
  check 'muster-status lists the step' "$listed" grep -qxE "$step_of of .*" <<<"$listed"
  listed=${listed#* }
  step=${listed%% *}
  listed=$("$prefix/bin/muster-status" "$step")
  check 'and shows it by that name' "$listed" grep -qE 'of .*: 2 of 2 nodes answer$' <<<"$listed"
  "$prefix/bin/muster-status" --watch=1 "$step" >"$work/watched" 2>&1 &
  watcher=$!
  check '--watch looks again' "$(cat "$work/watched")" until_true 30 looked_twice
  kill $launcher
  wait $launcher
  until_true 30 ended $watcher || kill $watcher
  wait $watcher
  check '--watch ends with the step' "status $?: $(tail -n 1 "$work/watched")" \
    grep -qE '^(the server of .* has ended|no server of|.* (broke off|does not answer|says nothing))' <<<"$(tail -n 1 "$work/watched")"
  mkdir -p "$work/conf" && echo '{ "timeout": 3 }' >"$work/conf/muster.json"
  if [ "$(id -u)" != 0 ]; then
    MUSTER_CONF=$work/conf/muster.json run 30 -N2 -n2 "$clients/hold" --sleep 30
    says 'a mistake in muster.json' "1|$killed" 'muster.json line 1: .*timeout'
    MUSTER_CONF=$work/conf/nothing.json run 30 -N2 -n2 "$clients/start"
    says 'settings that are not there' "1|$killed" 'nothing.json: there is no such file'
    # the server's directory is another one
    MUSTER_CONF=conf/muster.json run 30 -N2 -n2 "$clients/start"
    says 'settings by a relative path' "1|$killed" 'muster.json: there is no such file; give the whole path'
    echo '{ "tree_arity": 8 }' >"$work/conf/muster.json"
    run 30 --conf="1=$work/conf/muster.json" -N3 -n3 "$clients/hold" --sleep 30
    says 'settings that differ' "1|$killed" "$(differs tree_arity 8 node1 16 'node[02]')set it to one value"
  fi
  if [ "$(id -u)" != 0 ]; then
    echo '{ "memory_max": 32 }' >"$work/conf/muster.json"
    MUSTER_CONF=$work/conf/muster.json run 30 -N2 -n4 "$clients/exchange" --bytes 8000000
    # 141: libpmix wrote to the server that was gone
    says 'no memory is left' "1|141|$killed" 'memory is used up: .* 32 MiB'
    # one server has room for it, and four servers of one user on one machine have not
    echo '{ "memory_max": 256 }' >"$work/conf/muster.json"
    MUSTER_CONF=$work/conf/muster.json run 60 -N1 -n8 "$clients/exchange" --bytes 2000000
    says 'one server has memory enough' 0 '^PASS exchange'
    MUSTER_CONF=$work/conf/muster.json run 60 -N4 -n8 "$clients/exchange" --bytes 2000000
    says 'the memory of all servers of a user is bounded' "1|141|$killed" \
      'memory is used up: the [2-4] servers of this user on this node want .* MiB together, .* 256 MiB'
  fi
  clean use
}

part_ends() {
  # shellcheck disable=SC2016
  run 30 -N2 -n4 sh -c 'exit $PMIX_RANK'
  says 'the highest exit code' 3 'task 3: Exited with exit code 3'
  # shellcheck disable=SC2016
  run 30 -N2 -n4 sh -c '[ $PMIX_RANK != 2 ] || kill -TERM $$'
  says '128 and the signal' 143 'task 2: Terminated'
  run 30 -n2 /nonexistent
  says 'a program that is not there' 2 'execve\(\): /nonexistent: No such file'
  # shellcheck disable=SC2016
  run 15 -K -N2 -n4 sh -c '[ $PMIX_RANK != 1 ] || exit 9; exec sleep 60'
  says 'kill on bad exit' "$killed" 'task 1: Exited with exit code 9'
  run 15 -n2 sh -c 'sleep 60 & setsid sleep 60 & echo here'
  says 'a daemon that a task leaves behind' 0 here
  clean 'a daemon that a task leaves behind'
  for how in kill exit; do
    for where in fence construct; do
      # libpmix up to 6 hangs the others of a node where a member of a construct died.
      [ "$(pmix_major)" -ge 7 ] || [ $where = fence ] || continue
      run 30 -N4 -n8 "$clients/hold" --victim 3 --how $how --in $where
      # As the first lost task ended: with exit code 7, or by SIGKILL.
      case $how in kill) due=137 ;; exit) due=7 ;; esac
      says "$how in $where" "$due" '(rank|task) 3[: ]'
      # libpmix 5.0 tells one local participant only of a fence that failed (docs/limits.md).
      [ "$(pmix_major)" = 5 ] || check "$how in $where: nobody was told of success" \
        "$(grep -m 1 '^FAIL' "$log")" none_failed
    done
  done
  run 30 -N4 -n8 "$clients/hold" --victim 3 --how abort --in sleep
  says 'abort' 7 'rank 3.*PMIx_Abort with status 7: hold was told to abort'
  clean 'ends of tasks'
  local sig
  for sig in INT:130 TERM:143 HUP:129 QUIT:131; do
    start
    kill -s "${sig%:*}" $step
    await "signal ${sig%:*}"
    # 137: muster ends the step when the first task is lost, which may overtake the signal
    says "signal ${sig%:*}" "${sig#*:}|$killed" .
  done
  : >"$log"
  # shellcheck disable=SC2016
  "${musterrun[@]}" -N2 -n2 sh -c 'trap "echo got it; exit 5" USR1; echo up; while :; do sleep 0.1; done' >"$log" 2>&1 </dev/null &
  step=$!
  until_true 20 two_up
  kill -USR1 $step
  await 'signal USR1'
  says 'signal USR1 reaches the tasks' 5 'got it'
  : >"$log"
  env --default-signal=INT "${musterrun[@]}" -n1 sh -c 'trap "" INT; echo up; while :; do sleep 0.1; done' >"$log" 2>&1 </dev/null &
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
  local kind=$1 name=$2 seed=1
  shift 2
  [ "$rm" = slurm ] || seed=2
  client "$kind, seed $seed: $name" "-N4 -n8 --fault=$kind --seed=$seed" "$name" "$@"
  check "$kind, seed $seed: $name: it was done" "$(tail -n 1 "$log")" \
    grep -qE "^musterrun: fault ${kind%%:*}: [1-9][0-9]* times" "$log"
}

# Nobody counts the time in which nothing runs, be it that the job is stopped or the machine.
stands_still() {
  local i pids job
  mkdir -p "$work/conf" && echo '{ "timeouts": { "peer": 2 } }' >"$work/conf/muster.json"
  MUSTER_CONF=$work/conf/muster.json timeout -k 5 100 "${musterrun[@]}" -N4 -n8 "$clients/barrier" \
    --late 0 --turns 25 --seconds 90 >"$log" 2>&1 </dev/null &
  job=$!
  for i in 1 2; do
    sleep 1
    pids=$(pids_of musterrun; pids_of muster-server; pids_of barrier)
    # shellcheck disable=SC2086  # several numbers
    kill -STOP $pids && sleep 4 && kill -CONT $pids
  done
  check 'the job is stopped twice' "$(why "$log" unknown)" kill -0 $job
  wait $job
  status=$?
  check 'a job that is stopped, and goes on' "$(why "$log" $status)" passed_once
}

# Faults of messages by the resource manager's way, which all messages go.
part_faults() {
  local kind n MUSTER_CONF=$work/native.json
  export MUSTER_CONF
  echo '{ "direct": { "mode": "off" } }' >"$MUSTER_CONF"
  for kind in late late:percent=60,ms=300 duplicate:percent=50,ms=50 lost:percent=50 refused:percent=50 uid:percent=50; do
    fault $kind exchange
    fault $kind subset
    fault $kind groups_many --groups 20
  done
  # For the most part of its time it waits for what there is not.
  fault late modex
  fault refused:percent=50 modex
  # Servers that leave meet a row of refusals, which ends long after their tasks.
  fault refused:percent=85 hold --sleep 1
  client 'all at once' "-N4 -n8 --fault=late --fault=duplicate --fault=lost --fault=refused --fault=uid" \
    groups_many --groups 20
  # the clocks are the server's own
  [ "$(id -u)" = 0 ] || [ "$rm" = flux ] || stands_still
  clean 'faults of messages'
  run 60 -vv -N4 -n8 --fault=uid:percent=100 "$clients/exchange"
  case $rm in
    slurm) n='message of [0-9]+ bytes that slurmd did not write so was dropped' ;;
    flux) n='a message is refused: the server there is another user' ;;
  esac
  says 'another uid is seen' 0 "$n"
  # One node never answers at all: its peers give it up, and the step ends.
  echo '{ "timeouts": { "peer": 2 }, "direct": { "mode": "off" } }' >"$work/peer.json"
  MUSTER_CONF=$work/peer.json run 60 -N4 -n8 --fault=refused:percent=100,node=1 "$clients/exchange"
  says 'a node that is never reached' "1|$killed" 'muster-server on node1 is lost'
  for n in 1 5 20 after=300 after=1000; do
    case $n in [0-9]*) n=message=$n ;; esac
    # The hold is there for what comes later than the exchange's end.
    run 60 -N4 -n8 "--fault=die:node=$leaf,$n" sh -c "'$clients/exchange' && sleep 30"
    says "a node dies ($n)" "$killed" "Node failure on node$leaf"
    check "a node dies ($n): no other node is said to" "$(grep 'Node failure' "$log" | tr '\n' ';')" \
      [ "$(grep -c 'Node failure' "$log")" = 1 ]
    clean "a node dies ($n)"
  done
  run 60 -N4 -n8 "--fault=die:node=$leaf,message=12,notice=20000" "$clients/exchange" --rounds 50
  says 'a node dies, and its peers are first to see it' "$killed" "muster-server on node$leaf is lost"
  clean 'a node dies, and its peers are first to see it'
}

# Direct connections, and what they stand on when they fail: the same clients pass, and none waits long.
part_direct() {
  local kind
  echo '{ "log_level": "info" }' >"$work/direct.json"
  MUSTER_CONF=$work/direct.json run 60 -v -N4 -n8 "$clients/exchange" --rounds 50
  says 'messages go directly' 0 'transport: a direct connection to node'
  check 'no way back to the resource manager while all servers are there' "$(grep 'no direct' "$log")" \
    [ "$(grep 'no direct' "$log" | grep -vc 'Connection refused')" = 0 ]
  for kind in late refused:percent=50 duplicate:percent=50; do
    client "directly, and $kind" "-N4 -n8 --fault=$kind" groups_many --groups 20
  done
  # As where one node's firewall lets nobody in, and where its settings have no direct connections.
  echo '{ "direct": { "address": "nosuch0" } }' >"$work/nowhere.json"
  run 60 -v --conf="1=$work/nowhere.json" -N4 -n8 "$clients/exchange"
  says 'a node without that interface' 0 'there are no direct connections: no interface "nosuch0" that is up'
  echo '{ "direct": { "mode": "off" } }' >"$work/off.json"
  MUSTER_CONF=$work/direct.json run 60 -v --conf="2=$work/off.json" -N4 -n8 "$clients/exchange"
  says 'a node that has them off' 0 'transport: a direct connection to node'
  check 'nobody connects to it' "$(grep 'to node2\|from node2' "$log")" \
    [ "$(grep -c 'connection to node2\|connection from node2' "$log")" = 0 ]
  echo '{ "direct": { "address": "::1" }, "log_level": "info" }' >"$work/six.json"
  if grep -q ' lo$' /proc/net/if_inet6 2>/dev/null; then
    MUSTER_CONF=$work/six.json run 60 -v -N4 -n8 "$clients/exchange"
    says 'IPv6 alone' 0 'transport: a direct connection to node'
  else
    skip 'IPv6 alone' 'this machine has none'
  fi
  clean 'direct connections'
}

# All below a broker are lost with it; of rank 0 that is all nodes.
kill_broker() {
  local fault
  for fault in node=1 node=0; do
    run 60 -N4 -n8 "--fault=die:$fault,after=1000" "$clients/hold" --sleep 30
    says "a broker that others need dies ($fault)" "$killed" 'the broker has lost its parent in the tree'
    clean "a broker that others need dies ($fault)"
  done
}

part_kills() {
  start
  kill -9 $step
  await 'musterrun is killed'
  clean 'musterrun is killed'
  start
  kill -9 "$(pids_of musterrun | grep -vx "$step" | head -n 1)"
  await "a node's process is killed"
  says "a node's process is killed" "$killed" 'Node failure on node'
  clean "a node's process is killed"
  [ "$rm" = slurm ] || kill_broker
  start
  kill -9 "$(pids_of muster-server | head -n 1)"
  await 'a server is killed'
  says 'a server is killed' 137 "muster-server of $step_of died on node"
  clean 'a server is killed'
  # Nobody is left who could remove the directory: the next run does.
  start
  # shellcheck disable=SC2046  # the first one first, or it would have the time to remove it
  kill -9 $step $(pids_of musterrun | grep -vx "$step") 2>/dev/null # their children end with them
  await 'all processes of musterrun are killed'
  check 'all processes of musterrun are killed: no process is left' "$(list_left | grep process)" \
    until_true 5 no_process_left
  run 30 true
  clean 'all processes of musterrun are killed, after the next run'
}

for part in linking clients keys use ends faults direct kills; do
  case $wanted in '  '|*" $part "*) part_$part ;; esac
done
summary
