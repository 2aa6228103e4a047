#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# ci/system/spawn.sh: programs that start others, and what ends with whom.
# shellcheck disable=SC2154,SC2034  # clients, work and spool are shared with lib.sh
set -uo pipefail
usage() {
  cat <<'TXT'
usage: ci/slurm -N 4 -- ci/system/spawn.sh BUILDDIR [CHECK]...

Steps whose tasks call PMIx_Spawn: what the started processes see, which failures are told and how soon, that
nothing is left however either side ends. CHECKs: calls debug mpir how input output unread het group kin busy rounds many nested mpi family ends lives; all of them by
default. ROUNDS=N spawns N times in rounds (2), CALLERS=N tasks at once in many (8).
Prints "ok", "not ok" with the reason and "skip" lines; non-zero status when any failed.
TXT
}
case ${1:-} in -h|--help) usage; exit 0 ;; '') usage >&2; exit 2 ;; esac
# shellcheck source=ci/system/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
find_clients "$1"
shift
spool=$(spool_dir)
list_all() { list_leftovers; squeue -h -s -o 'step %i'; pgrep -x srun | sed 's/^/process srun /'; }
list_all >"$work/before"

# passes NAME LAUNCHER...: a spawner that is to pass
passes() {
  local name=$1 log=$work/log status
  shift
  timeout 200 "$@" --seconds 180 >"$log" 2>&1 </dev/null
  status=$?
  judge "$name" spawner $status "$log"
}

# ---- what is started, and what is not ----

check_calls() {
  local slow
  passes 'two nodes, all kinds of calls' salloc -Q -N2 -n8 srun --mpi="$MPI" -N2 -n2 "$clients/spawner" --n 4
  check 'each child has run' "$(tail -n 3 "$work/log" | tr '\n' ';')" [ "$(grep -c '^CHILD . of 4 in /usr colour red$' "$work/log")" = 4 ]
  slow=$(sed -n 's/^REFUSED .* after \([0-9]*\)\..*/\1/p' "$work/log" | sort -n | tail -n 1)
  check "a spawn that fails does so within 5 s: $slow s" "$(grep REFUSED "$work/log" | tr '\n' ';')" [ "${slow:-99}" -lt 5 ]
  for why in '/no/such/program: No such file' '/etc/passwd: Permission denied' 'directory /no/such/directory: No such file' \
    'More processors requested than permitted' 'requires pmix.mapby = board'; do
    check "the terminal has: $why" "$(tail -n 30 "$work/log" | tr '\n' ';')" grep -qF "$why" "$work/log"
  done
  # shellcheck disable=SC2016  # for the job's shell
  SPAWNER_FORWARD=1 passes 'a spawn that fails, with its output for the caller' salloc -Q -N2 -n8 bash -c '
    "$@" || exit; for i in {1..60}; do [ -n "$(squeue -h -s -j $SLURM_JOB_ID)" ] || exit 0; sleep 0.25; done
    squeue -h -s -j $SLURM_JOB_ID; echo "a step is left after 15 s"; exit 1' bash srun --mpi="$MPI" -N2 -n2 "$clients/spawner" --what missing
}

# The children call as soon as they run, on a node that has no server of the parent's, too.
check_group() { passes 'parents and children make a group at once' salloc -Q -N3 -n12 srun --mpi="$MPI" -N2 -n2 "$clients/spawner" --what group --n 12; }
# After a connect each side has the keys of the other.
check_kin() {
  timeout 100 salloc -Q -N2 --ntasks-per-node=4 srun --mpi="$MPI" -N2 -n2 "$clients/kin" --n 6 --seconds 80 >"$work/log" 2>&1 </dev/null
  judge 'parents and children know each other after a connect' kin $? "$work/log"
}
# Each directive. The files that a task writes are on its node.
check_how() {
  local why
  export HOW_DIR=$MUSTER_CI_DIR/shared/how
  mkdir -p "$HOW_DIR"
  chmod 1777 "$HOW_DIR"
  echo 'a line' | timeout 200 salloc -Q -N2 --ntasks-per-node=4 srun --mpi="$MPI" -N2 -n2 --input=none \
    "$clients/spawn_how" --seconds 180 >"$work/log" 2>&1
  judge 'directives' spawn_how $? "$work/log"
  for why in '^1: out of 1$' 'requires pmix.mapby = node:pe=2' 'requires pmix.bindto = l3cache' 'requires muster.nosuch = x'; do
    check "directives: the terminal has $why" "$(tail -n 5 "$work/log" | tr '\n' ';')" grep -q "$why" "$work/log"
  done
  rm -rf "$HOW_DIR"
}

# Standard input that the process pushes which has spawned.
check_input() {
  passes 'standard input for 4 spawned processes' salloc -Q -N2 -n8 srun --mpi="$MPI" -N1 -n2 "$clients/spawner" --what input --n 4 --lines 20000
  timeout 200 salloc -Q -N2 -n8 srun --mpi="$MPI" -N2 -n2 "$clients/tools" --as pusher --n 2 --lines 5000 >"$work/log" 2>&1 </dev/null
  judge 'a tool whose standard input is that of what it has spawned' tools $? "$work/log"
}

# Output that comes to the process, or tool, that has spawned; that of others does not.
check_output() {
  local lines=2000
  local dir=$MUSTER_CI_DIR/shared/output
  mkdir -p "$dir"
  chmod 1777 "$dir"
  export SPAWNER_GO=$dir/go
  passes 'a pull of what 4 spawned processes print' salloc -Q -N2 -n8 srun --mpi="$MPI" -N1 -n2 "$clients/spawner" \
    --what output --n 4 --lines $lines
  check 'it is not on the terminal' "$(grep -c '^OUT\|^ERR' "$work/log") lines" [ "$(grep -c '^OUT\|^ERR' "$work/log")" = 0 ]
  rm -f "$SPAWNER_GO"
  timeout 200 salloc -Q -N2 -n8 srun --mpi="$MPI" -N2 -n2 "$clients/tools" --as spawner --n 4 --lines $lines >"$work/log" 2>&1 </dev/null
  judge 'a tool prints what it has spawned' tools $? "$work/log"
  check 'and nobody else does' "$(grep -c '^OUT\|^ERR' "$work/log") lines" [ "$(grep -c '^OUT\|^ERR' "$work/log")" = 0 ]
}

# Nor does what comes too late, or is not read.
check_unread() {
  timeout 200 salloc -Q -N1 -n8 srun --mpi="$MPI" -n1 "$clients/tools" --as spawner --n 1 --lines 120000 --stop while >"$work/log" 2>&1 </dev/null
  judge 'a tool that does not read costs no memory of servers' tools $? "$work/log"
  timeout 200 salloc -Q -N1 -n8 srun --mpi="$MPI" -n1 "$clients/tools" --as spawner --n 1 --lines 120000 --stop kill >"$work/log" 2>&1 </dev/null
  judge 'a tool that is killed' tools $? "$work/log"
  check 'what it has not taken is on the terminal' "$(tail -n 2 "$work/log" | tr '\n' ';')" grep -q '^OUT 0 119999 ' "$work/log"
  SPAWNER_FORWARD=1 SPAWNER_ENV=SPAWN_PAUSE=3 passes 'output for a process that ends' salloc -Q -N1 -n4 \
    srun --mpi="$MPI" -n2 "$clients/spawner" --what leave
  check 'what nobody pulls is on the terminal, before that and after' "$(tail -n 3 "$work/log" | tr '\n' ';')" \
    [ "$(grep -c '^CHILD' "$work/log")/$(grep -c '^LATE' "$work/log")" = 2/2 ]
}

# Processes that wait for a debugger: of a step, and spawned ones. libpmix alone says whether one of them can.
check_debug() {
  local status
  MUSTER_DEBUG=stop-in-init timeout 100 srun --mpi="$MPI" -N2 -n4 "$clients/debugged" --seconds 80 >"$work/log" 2>&1 </dev/null
  judge 'a step that waits for a debugger' debugged $? "$work/log"
  MUSTER_DEBUG=stop-in-init MUSTER_ON_TASK_LOSS=continue timeout 100 srun --mpi="$MPI" -N2 -n4 "$clients/debugged" --dead 3 --seconds 80 >"$work/log" 2>&1 </dev/null
  judge 'the same without a rank that ends before' debugged $? "$work/log"
  timeout 100 salloc -Q -N2 -n8 srun --mpi="$MPI" -N2 -n2 "$clients/debugged" --as parent --where app --n 3 --daemons node --seconds 80 >"$work/log" 2>&1 </dev/null
  judge 'spawned processes that wait for a debugger, whose daemons release them' debugged $? "$work/log"
  check 'there is a daemon a node' "$(tail -n 3 "$work/log" | tr '\n' ';')" grep -q '^DAEMONS 2$' "$work/log"
  timeout 100 salloc -Q -N2 -n8 srun --mpi="$MPI" -N2 -n2 "$clients/debugged" --as parent --where exec --n 3 --seconds 80 >"$work/log" 2>&1 </dev/null
  judge 'spawned processes that are stopped before their first instruction' debugged $? "$work/log"
  # a step that nobody releases, and another one that has never met it
  MUSTER_DEBUG=stop-in-init srun -J stopped --mpi="$MPI" -N2 -n4 "$clients/debugged" --as parent --seconds 150 >"$work/stopped.log" 2>&1 </dev/null &
  parent=$!
  until_true 60 runs stopped
  WATCHED=slurm.$(job_of stopped).0 timeout 60 srun --mpi="$MPI" -n1 "$clients/debugged" --as watcher --n 4 --seconds 50 >"$work/log" 2>&1 </dev/null
  judge 'the table of a step that this one has never met' debugged $? "$work/log"
  scancel "$(job_of stopped)"
  over stopped
  MUSTER_DEBUG=stop-in-init:1 timeout 100 srun --mpi="$MPI" -N2 -n4 "$clients/debugged" --rank 1 --seconds 80 >"$work/log" 2>&1 </dev/null
  status=$?
  if grep -q 'needs libpmix 6.1 or newer' "$work/log"; then
    check 'one rank that is to wait is refused' "$(tail -n 3 "$work/log" | tr '\n' ';')" grep -qE 'this is libpmix [45]\.[0-9.]+, which would stop all' "$work/log"
  else
    judge 'one rank that waits for a debugger' debugged $status "$work/log"
  fi
}

# A debugger by MPIR, gdb, starts srun: Slurm stops the tasks at their exec, and lets them go on when srun does.
# mpir_start NAME CLIENT TASKS LAUNCHER... -- SRUN_ARG...
mpir_start() {
  local name=$1 client=$2 tasks=$3 launcher=() found
  shift 3
  while [ "$1" != -- ]; do launcher+=("$1"); shift; done
  shift
  # shellcheck disable=SC2016  # for gdb
  timeout 100 "${launcher[@]}" gdb -q -batch -x "$work/start.gdb" -x "$work/table.gdb" -ex "shell ps -C $client -o stat=" \
    -ex delete -ex continue --args "$(command -v srun)" --mpi="$MPI" "$@" --seconds 80 >"$work/log" 2>&1 </dev/null
  found=$(grep -cE "^T[a-zA-Z+<]*\$|^ROW node[1-9] $clients/$client [0-9]+\$|^PASS $client|exited normally\]\$" "$work/log")
  check "$name under a debugger: $tasks stopped tasks, which go on with it" "$found; $(tail -n 5 "$work/log" | tr '\n' ';')" \
    [ "$found" = $((2 * tasks + 2)) ]
}

# It attaches to the sruns of a step and of what that has spawned, and leaves them.
mpir_attach() {
  local pid found=0 rows
  begin attached SPAWN_PAUSE=100 tell '' || return
  for pid in $(pgrep -x srun); do   # each srun has a second process, which knows of no task
    gdb -q -batch -p "$pid" -x "$work/table.gdb" 2>&1 </dev/null
  done >"$work/log"
  rows=$(sed -n 's/^ROW node[1-9] .* \([0-9]*\)$/\1/p' "$work/log" | sort -u)
  for pid in $rows; do [[ $(ps -o comm=,stat= -p "$pid") != spawner*' S'* ]] || found=$((found + 1)); done
  check 'a debugger attaches to sruns: 2 tasks and 2 spawned ones, which go on' "$found; $(grep ROW "$work/log" | tr '\n' ';')" [ "$found" = 4 ]
  scancel "$(job_of attached).1"
  over attached 0
}

check_mpir() {
  cat >"$work/start.gdb" <<'GDB'
set pagination off
set confirm off
handle SIGUSR1 SIGUSR2 SIGCONT SIGCHLD SIGPIPE SIGALRM nostop noprint pass
break main
run
set var *(int *)&MPIR_being_debugged = 1
break MPIR_Breakpoint
continue
GDB
  # a row: host, program and process
  cat >"$work/table.gdb" <<'GDB'
set $i = 0
while $i < *(int *)&MPIR_proctable_size
  set $row = *(char ***)&MPIR_proctable + 3 * $i
  printf "ROW %s %s %d\n", $row[0], $row[1], *(int *)&$row[2]
  set $i = $i + 1
end
GDB
  mpir_start 'srun, whose tasks spawn' spawner 2 salloc -Q -N2 -n8 -- -N2 -n2 "$clients/spawner" --what good
  mpir_start 'srun of two components' exchange 4 salloc -Q -N1 -n2 : -N1 -n2 -- --het-group=0,1 -n2 "$clients/exchange"
  mpir_attach
}

# An allocation of two components: children are in that of their parent.
check_het() {
  local group
  for group in 0 1; do
    passes "a heterogeneous allocation, component $group" salloc -Q -N1 -n2 : -N1 -n2 \
      srun --mpi="$MPI" --het-group=$group -n1 "$clients/spawner" --what good --n 1
  done
  # One srun starts both components of a step, and its agent what each of them spawns.
  local each=(--mpi="$MPI" -N1 -n1 "$clients/spawner" --what good --n 1 --spawners 2)
  passes 'a step of two components, each of which spawns' salloc -Q -N2 --ntasks-per-node=4 srun "${each[@]}" : "${each[@]}"
}

# All processors are the parent's.
# srun waits for a second for processors that another step has.
check_busy() {
  passes 'a step that has all processors' srun --mpi="$MPI" -N1 -n4 -c4 "$clients/spawner" --what good --rounds 2
  local first next
  { read -r first; read -r next; } < <(sed -n 's/^SPAWNED after \([0-9]*\) ms$/\1/p' "$work/log")
  check "its first spawn takes no second longer than the next one: $first ms, $next ms" "$(tail -n 3 "$work/log" | tr '\n' ';')" \
    [ "${first:-9999}" -lt $((${next:-0} + 800)) ]
}
check_rounds() { passes 'one after another, from two tasks' salloc -Q -N2 -n8 srun --mpi="$MPI" -N2 -n2 "$clients/spawner" --what good --spawners 2 --rounds "${ROUNDS:-2}"; }
check_many() {
  local n=${CALLERS:-8}
  passes "$n at once" srun --mpi="$MPI" -N2 -n"$n" "$clients/spawner" --what good --n 1 --spawners "$n"
}
# Both say PASS.
check_nested() {
  timeout 200 salloc -Q -N1 -n8 srun --mpi="$MPI" -N1 -n1 "$clients/spawner" --what nested --seconds 180 >"$work/log" 2>&1 </dev/null
  check 'a spawned program that spawns' "status $?; $(tail -n 3 "$work/log" | tr '\n' ';')" [ "$(grep -c '^PASS spawner' "$work/log")" = 2 ]
}

# Open MPI 6 does not connect between nodes that have one address. So each gets an interface of its own, which a script in
# front of the program names. Sets $own.
own_interfaces() {
  local n
  for n in 1 2; do
    ip link add "own$n" type veth peer name "peer$n" && ip address add "10.77.0.$n/24" dev "own$n" && \
      ip link set "own$n" up && ip link set "peer$n" up || return
  done
  own=$MUSTER_CI_DIR/shared/mpi_family
  # shellcheck disable=SC2016  # for the task's shell
  printf '#!/bin/bash\nOMPI_MCA_btl_tcp_if_include=own${SLURMD_NODENAME#node} exec -a "$0" "%s" "$@"\n' \
    "$clients/mpi_family" >"$own" && chmod 755 "$own"
}

# family NODES [PROGRAM]: two parents
family() {
  timeout 100 salloc -Q -N"$1" -n8 srun --mpi="$MPI" -N"$1" -n2 "${2:-$clients/mpi_family}" >"$work/log" 2>&1 </dev/null
  judge "spawn, merge, disconnect, finalize; $1 nodes" mpi_family $? "$work/log"
}

check_mpi() {
  local nodes six=''
  [ -x "$clients/mpi_spawn" ] || { skip 'MPI_Comm_spawn' 'no mpicc'; return; }
  case $(mpicc --showme:version 2>/dev/null) in *'Open MPI 6.'*) six=1 ;; esac
  export OMPI_MCA_mpi_yield_when_idle=1
  if [ -n "$six" ]; then
    check 'each node has an interface' 'ip has failed' own_interfaces
    OMPI_MCA_reachable=weighted family 2 "$own"
  fi
  export OMPI_MCA_btl_tcp_if_include=lo
  family 1
  [ -n "$six" ] || family 2
  export OMPI_MCA_pml=ob1 OMPI_MCA_btl=self,tcp
  for nodes in 1 2; do
    [ -z "$six" ] || [ $nodes = 1 ] || continue
    timeout 200 salloc -Q -N$nodes -n8 srun --mpi="$MPI" -N$nodes -n2 "$clients/mpi_spawn" --seconds 180 >"$work/log" 2>&1 </dev/null
    judge "MPI_Comm_spawn, _multiple, merge, disconnect; $nodes nodes" mpi_spawn $? "$work/log"
  done
}

# Children spawn others before they part from their parents; and one is killed after that, which does nothing to a parent.
check_family() {
  local words
  [ -x "$clients/mpi_family" ] || { skip 'families of MPI programs' 'no mpicc'; return; }
  export OMPI_MCA_btl_tcp_if_include=lo OMPI_MCA_mpi_yield_when_idle=1
  for words in mufi:muSfi mufis:mufik; do
    timeout 100 salloc -Q -N1 -n8 srun --mpi="$MPI" -N1 -n2 "$clients/mpi_family" --parents-do "${words%:*}" \
      --children-do "${words#*:}" >"$work/log" 2>&1 </dev/null
    judge "a family of MPI programs, $words" mpi_family $? "$work/log"
  done
}

# ---- what ends with whom ----

# begin NAME ENV WHAT: a step in the background whose child sleeps; sets $parent, once the child is up
begin() {
  local name=$1
  : >"$work/$name.log"
  # shellcheck disable=SC2086  # variables
  env $4 SPAWNER_ENV="$2" srun -J "$name" --mpi="$MPI" -N1 -n2 "$clients/spawner" --what "$3" --seconds 150 >"$work/$name.log" 2>&1 </dev/null &
  parent=$!
  until_true 60 grep -q '^CHILD 1 of 2' "$work/$name.log" && return
  not_ok "$name: start" "$(tail -n 3 "$work/$name.log" | tr '\n' ';')"
  kill $parent
  return 1
}

# over NAME [STATUS]: $parent has ended, and nothing is left
over() {
  local status
  if until_true 60 ended "$parent"; then
    wait "$parent"
    status=$?
    check "$1: srun has ended${2:+ with $2}" "with $status; $(tail -n 3 "$work/$1.log" | tr '\n' ';')" [ "${2:-$status}" = $status ]
  else
    not_ok "$1: srun's end" "still there after 60 s; $(tail -n 3 "$work/$1.log" | tr '\n' ';')"
    kill -9 "$parent"
    wait "$parent"
  fi 2>/dev/null
  clean "$1"
}

runs() { [ -n "$(squeue -h -s -n "$1" -o %i)" ]; }
job_of() { squeue -h -n "$1" -o %i; }
child_lives() { [ "$(squeue -h -s -o %i | grep -c "^$1\.1")" = 1 ]; }

# The user presses Ctrl-C once more, and srun has ended. Each srun of the terminal wants two within a second of its own.
pressed_once_more() {
  printf '\003' >&7
  ended "$parent"
}

# Ctrl-C of a terminal, twice within a second, ends a step and what it has spawned: that terminal is the children's, too.
interrupt() {
  command -v script >/dev/null || { skip 'Ctrl-C' 'no script(1), which has a terminal'; return; }
  mkfifo "$work/keys"
  : >"$work/interrupted.log"
  SPAWNER_ENV=SPAWN_PAUSE=100 script -qfec "srun --mpi=$MPI -N1 -n2 '$clients/spawner' --what hold --seconds 150" \
    "$work/interrupted.log" <"$work/keys" >/dev/null 2>&1 &
  parent=$!
  exec 7<>"$work/keys" # a reader of its own, so that a key behind the end of script(1) does no harm
  if until_true 60 grep -q '^CHILD 1 of 2' "$work/interrupted.log"; then
    until_true 60 pressed_once_more
    over interrupted 130
  else
    not_ok 'interrupted: start' "$(tail -n 3 "$work/interrupted.log" | tr '\n' ';')"
    kill $parent
  fi
  exec 7>&-
}

check_ends() {
  begin outlived SPAWN_PAUSE=3 leave '' && over outlived 0
  begin aborted SPAWN_PAUSE=100 abort '' && over aborted 9
  begin cancelled SPAWN_PAUSE=100 hold '' && { scancel "$(job_of cancelled).0"; over cancelled; }
  interrupt
}

check_lives() {
  local job
  begin lingers SPAWN_PAUSE=100 leave MUSTER_SPAWN_LINGER=1 && over lingers 0
  begin job-cancelled SPAWN_PAUSE=100 hold '' && { scancel "$(job_of job-cancelled)"; over job-cancelled; }
  begin killed SPAWN_PAUSE=100 hold '' && { kill -9 $parent; job=$(job_of killed); [ -z "$job" ] || scancel "$job"; over killed; }
  begin childs SPAWN_ABORT=5 tell '' && over childs 0
  check 'childs: the parent is told of the status' "$(tail -n 3 "$work/childs.log" | tr '\n' ';')" grep -q '^ENDED with 5$' "$work/childs.log"
  begin child-cancelled SPAWN_PAUSE=100 tell '' && { scancel "$(job_of child-cancelled).1"; over child-cancelled 0; }
}

[ $# -gt 0 ] || set -- calls debug mpir how input output unread het group kin busy rounds many nested mpi family ends lives
for what; do "check_$what"; done
clean 'all'
summary
