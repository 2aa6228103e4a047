#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# ci/system/spawn.sh: programs that start others, and what ends with whom.
# shellcheck disable=SC2154,SC2034  # clients, work and spool are shared with lib.sh
set -uo pipefail
usage() {
  cat <<'TXT'
usage: ci/slurm -N 4 -- ci/system/spawn.sh BUILDDIR [CHECK]...

Steps whose tasks call PMIx_Spawn: what the started processes see, which failures are told and how soon, that
nothing is left however either side ends. CHECKs: calls busy rounds many nested mpi ends lives; all of them by
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
    check "the terminal has: $why" "$(tail -n 5 "$work/log" | tr '\n' ';')" grep -qF "$why" "$work/log"
  done
}

# All processors are the parent's.
check_busy() { passes 'a step that has all processors' srun --mpi="$MPI" -N1 -n4 "$clients/spawner" --what good; }
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

# Open MPI 6 does not connect between nodes that are one machine; for coll/han of 5.0 see docs/limits.md.
check_mpi() {
  local nodes
  case $(mpicc --showme:version 2>/dev/null) in *'Open MPI 5.'*) export OMPI_MCA_coll=^han ;; esac
  [ -x "$clients/mpi_spawn" ] || { skip 'MPI_Comm_spawn' 'no mpicc'; return; }
  export OMPI_MCA_pml=ob1 OMPI_MCA_btl=self,tcp OMPI_MCA_btl_tcp_if_include=lo OMPI_MCA_mpi_yield_when_idle=1
  for nodes in 1 2; do
    case $nodes$(mpicc --showme:version 2>/dev/null) in 2*'Open MPI 6.'*) continue ;; esac
    timeout 200 salloc -Q -N$nodes -n8 srun --mpi="$MPI" -N$nodes -n2 "$clients/mpi_spawn" --seconds 180 >"$work/log" 2>&1 </dev/null
    judge "MPI_Comm_spawn, _multiple, merge, disconnect; $nodes nodes" mpi_spawn $? "$work/log"
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
  until_true 30 grep -q '^CHILD 1 of 2' "$work/$name.log" && return
  not_ok "$name: start" "$(tail -n 3 "$work/$name.log" | tr '\n' ';')"
  kill $parent
  return 1
}

# over NAME [STATUS]: $parent has ended, and nothing is left
over() {
  local status
  if until_true 30 ended "$parent"; then
    wait "$parent"
    status=$?
    check "$1: srun has ended${2:+ with $2}" "with $status; $(tail -n 3 "$work/$1.log" | tr '\n' ';')" [ "${2:-$status}" = $status ]
  else
    not_ok "$1: srun's end" "still there after 30 s; $(tail -n 3 "$work/$1.log" | tr '\n' ';')"
    kill -9 "$parent"
    wait "$parent"
  fi 2>/dev/null
  clean "$1"
}

job_of() { squeue -h -n "$1" -o %i; }
child_lives() { [ "$(squeue -h -s -o %i | grep -c "^$1\.1")" = 1 ]; }

check_ends() {
  begin outlived SPAWN_PAUSE=3 leave '' && over outlived 0
  begin aborted SPAWN_PAUSE=100 abort '' && over aborted 9
  begin cancelled SPAWN_PAUSE=100 hold '' && { scancel "$(job_of cancelled).0"; over cancelled; }
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

[ $# -gt 0 ] || set -- calls busy rounds many nested mpi ends lives
for what; do "check_$what"; done
clean 'all'
summary
