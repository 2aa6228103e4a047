#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# ci/system/standin_spawn.sh: programs that start others, under musterrun that plays Slurm.
# shellcheck disable=SC2154,SC2034  # clients and work are shared with lib.sh
set -uo pipefail
usage() {
  cat <<'TXT'
usage: ci/test standin
       ci/system/standin_spawn.sh [--rm=slurm] BUILDDIR [PART]...

As standin.sh: PMIx_Spawn and MPI_Comm_spawn, and what becomes of parent and child when the other one or musterrun
ends; or only those PARTs: calls debug ends.
TXT
}
# shellcheck source=ci/system/standin_lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/standin_lib.sh"

# spawns WHAT COUNT ARGS...: that many programs pass, the parent's among them
spawns() {
  local what=$1 count=$2
  shift 2
  run 120 "$@" --seconds 100
  check "$what" "$(why "$log" $status)" [ "$status.$(grep -c '^PASS ' "$log")" = "0.$count" ]
}

# ends_with WHAT STATUS WHAT_IS_SPAWNED ENV OPTION...: a parent whose child sleeps for 300 s; it is over long before that
ends_with() {
  local what=$1 expected=$2 kind=$3 env=$4 begin=$SECONDS
  shift 4
  SPAWNER_ENV=$env run 120 "$@" -N2 -n2 "$clients/spawner" --what "$kind" --seconds 110
  check "$what" "status $status, expected $expected, after $((SECONDS - begin)) s; $(tail -n 3 "$log" | tr '\n' ';')" \
    [ "$status $((SECONDS - begin < 90))" = "$expected 1" ]
  clean "$what"
}

# child_up: $step in the background, whose child is up
child_up() {
  : >"$log"
  SPAWNER_ENV=SPAWN_PAUSE=300 "${musterrun[@]}" -N2 -n2 "$clients/spawner" --what hold --seconds 290 >"$log" 2>&1 </dev/null &
  step=$!
  until_true 60 grep -q '^CHILD 1 of 2' "$log" || not_ok 'a spawned program' "$(why "$log" 'unknown (not up after 60 s)')"
}

part_calls() {
  local why nodes
  spawns 'all kinds of calls' 1 --slots=4 -N2 -n2 "$clients/spawner" --n 4
  for why in '/no/such/program: No such file' '/etc/passwd: Permission denied' 'directory /no/such/directory: No such file' \
    'More processors requested than permitted' 'requires pmix.mapby = board'; do
    check "it is told: $why" "$(tail -n 5 "$log" | tr '\n' ';')" grep -qF "$why" "$log"
  done
  check 'each child has run, as it was told to' "$(tail -n 3 "$log" | tr '\n' ';')" \
    [ "$(grep -c '^CHILD . of 4 in /usr colour red$' "$log")" = 4 ]
  spawns 'no limit without --slots' 1 -n1 "$clients/spawner" --what good --n 9
  spawns '8 at once' 1 -N2 -n8 "$clients/spawner" --what good --n 1 --spawners 8
  spawns '20 one after another' 1 -N2 -n2 "$clients/spawner" --what good --n 2 --rounds 10
  spawns 'standard input for spawned processes' 1 -N2 -n2 "$clients/spawner" --what input --n 3 --lines 20000
  spawns 'a spawned program that spawns' 2 -N2 -n2 "$clients/spawner" --what nested
  mkdir "$work/how"
  echo 'a line' >"$work/line"
  input=$work/line HOW_DIR=$work/how spawns 'directives' 1 --slots=8 --input=none -N2 -n2 "$clients/spawn_how"
  check 'directives: output with ranks' "$(tail -n 3 "$log" | tr '\n' ';')" grep -q '^1: out of 1$' "$log"
  for nodes in 1 2; do
    [ -x "$clients/mpi_spawn" ] || { skip "MPI_Comm_spawn; $nodes nodes" 'no mpicc'; continue; }
    OMPI_MCA_pml=ob1 OMPI_MCA_btl=self,tcp OMPI_MCA_btl_tcp_if_include=lo OMPI_MCA_mpi_yield_when_idle=1 \
      spawns "MPI_Comm_spawn, _multiple, merge, disconnect; $nodes nodes" 1 -N$nodes -n2 "$clients/mpi_spawn"
  done
  clean 'spawns'
}

# Processes that nobody releases.
part_debug() {
  local how
  spawns "a debugger's daemons, one a process" 1 --slots=3 -N2 -n2 "$clients/debugged" --as parent --n 3 --daemons proc
  check 'there are 3 of them' "$(tail -n 3 "$log" | tr '\n' ';')" grep -q '^DAEMONS 3$' "$log"
  MUSTER_DEBUG=stop-in-app:1 MUSTER_TIMEOUTS_FENCE=1 spawns 'no deadline passes while a process waits for a debugger' 1 \
    -N2 -n4 "$clients/debugged" --where app --rank 1 --late 2500
  MUSTER_DEBUG=stop-in-init MUSTER_STALL_REPORT=1 "${musterrun[@]}" -N2 -n4 "$clients/debugged" --as parent --seconds 100 >"$log" 2>&1 </dev/null &
  step=$!
  until_true 60 grep -q 'waiting for 1 s: processes wait for a debugger to release them; stopped by a debugger: 4 of 4 processes, at pmix-init' "$log" ||
    not_ok 'the terminal says that processes wait for a debugger' "$(why "$log" 'unknown (not said after 60 s)')"
  kill -TERM "$step"
  await 'musterrun is told to end, and processes wait'
  for how in none signal resume; do
    spawns "processes that are stopped on exec: $how" 1 --slots=3 -N2 -n2 "$clients/debugged" --as parent --where exec --n 3 --daemons $how
  done
  MUSTER_STALL_REPORT=1 "${musterrun[@]}" -N2 -n2 "$clients/debugged" --as parent --where exec --n 3 --late 90000 --seconds 100 >"$log" 2>&1 </dev/null &
  step=$!
  until_true 60 grep -q 'stopped by a debugger: 3 of 3 processes, at exec' "$log" ||
    not_ok 'the terminal says that spawned processes wait for a debugger' "$(why "$log" 'unknown (not said after 60 s)')"
  kill -TERM "$step"
  await 'musterrun is told to end, and spawned processes are stopped on exec'
  MUSTER_DEBUG=stop run 60 -n1 "$clients/debugged" --as parent
  check 'a text that makes no sense' "$(tail -n 3 "$log" | tr '\n' ';')" grep -q 'MUSTER_DEBUG: found "stop"; give stop-in-init or stop-in-app' "$log"
  clean 'debug'
}

part_ends() {
  ends_with 'the parent ends first' 0 leave SPAWN_PAUSE=3
  ends_with 'the parent aborts' 9 abort SPAWN_PAUSE=300
  ends_with 'the child aborts' 0 tell SPAWN_ABORT=5
  ends_with 'the time of both is over' 124 hold SPAWN_PAUSE=300 --timeout=4
  ends_with "the child's time is over" 124 leave SPAWN_PAUSE=300 --timeout=4
  child_up
  kill -TERM "$step"
  await 'musterrun is told to end'
  clean 'musterrun is told to end, and a spawned step'
  child_up
  kill -9 "$step"
  await 'musterrun is killed'
  clean 'musterrun is killed, and a spawned step'
}

parts calls debug ends
