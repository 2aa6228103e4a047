#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# ci/system/grow.sh: programs whose job grows and shrinks, as an ordinary user.
# shellcheck disable=SC2154,SC2034  # clients and work are shared with lib.sh
set -uo pipefail
usage() {
  cat <<'TXT'
usage: ci/slurm -N 4 --as alice --own --conf SchedulerParameters=permit_job_expansion -- ci/system/grow.sh BUILDDIR [CHECK]...

Steps whose tasks call PMIx_Allocation_request. CHECKs: grow mpi shares wrong gone; all of them by default. And forbidden, for
a cluster without permit_job_expansion.
Prints "ok", "not ok" with the reason and "skip" lines; non-zero status when any failed.
TXT
}
case ${1:-} in -h|--help) usage; exit 0 ;; '') usage >&2; exit 2 ;; esac
# shellcheck source=ci/system/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
find_clients "$1"
shift
cd "$MUSTER_CI_DIR/shared" || exit 125 # where the user can write, as scontrol would

# step JOB-OPTIONS CLIENT-OPTIONS: one task of the client in a job of its own; its output is $work/log
step() {
  # shellcheck disable=SC2086  # options are several words
  timeout 100 salloc -Q -p own -N1 $1 srun --mpi="$MPI" -n1 "$clients/grow" --seconds 80 $2 >"$work/log" 2>&1 </dev/null
}
says() { check "$1" "$(tail -n 3 "$work/log" | tr '\n' ';')" grep -qE "$2" "$work/log"; }
jobs_are() { [ "$(squeue -h -o %j | sort | tr '\n' ' ')" = "$1" ]; }

# Slurm 22.05 takes no further change of a job that has grown, unless it has a database.
check_grow() {
  local shrinks=1
  case $(srun --version) in *' 22.'*) shrinks=0 ;; esac
  step --exclusive "--nodes 2 --shrinks $shrinks"
  judge 'two nodes come, are used by a spawn, and go' grow $? "$work/log"
  check 'the new processes run on the new nodes' "$(tail -n 3 "$work/log" | tr '\n' ';')" \
    [ "$(grep -cE '^CHILD [01] on node[23]$' "$work/log")" = 3 ]
  check 'scontrol leaves no scripts' "$(echo *)" [ "$(echo *resize*)" = '*resize*' ]
  step --exclusive '--what extend --nodes 0 --cpus 20'
  says 'as many nodes as have so many processors' '^ANSWER .*SUCCESS node[1-4],node[1-4]$'
}

check_mpi() {
  [ -x "$clients/mpi_grow" ] || { skip 'an MPI program that grows' 'no mpicc'; return; }
  export OMPI_MCA_mpi_yield_when_idle=1 OMPI_MCA_btl_tcp_if_include=lo OMPI_MCA_pml=ob1 OMPI_MCA_btl=self,tcp
  case $(mpicc --showme:version 2>/dev/null) in *'Open MPI 6.'*) skip 'an MPI program that grows' 'Open MPI 6 takes an interface for each node'; return ;; esac
  timeout 100 salloc -Q -p own -N1 --exclusive srun --mpi="$MPI" -n2 "$clients/mpi_grow" --seconds 80 >"$work/log" 2>&1 </dev/null
  judge 'an MPI program that grows' mpi_grow $? "$work/log"
}

check_shares() {
  step -n2 '--what extend'
  says 'a job that shares its nodes does not grow' 'start it with --exclusive'
}

check_wrong() {
  step --exclusive '--what wrong'
  judge 'what makes no sense is refused' grow $? "$work/log"
  step '--exclusive --time=60' '--what time --limit 1800'
  says 'a shorter time limit' '^ANSWER .*SUCCESS'
  step '--exclusive --time=60' '--what time --limit 7200'
  says 'a longer time limit is refused' '^ANSWER .*NO.PERMISSIONS'
}

check_forbidden() {
  step --exclusive '--what extend'
  says 'a site that lets no job grow: says why' 'lacks permit_job_expansion'
  says 'and the status' '^ANSWER .*NO.PERMISSIONS'
}

# The other nodes are taken, so that the expander waits.
check_gone() {
  salloc -Q -p own -N3 --exclusive --no-shell -J hog
  step --exclusive '--what extend --wait 2'
  says 'nodes that do not become free in time' '^ANSWER .*TIMEOUT'
  salloc -Q -p own -N1 --exclusive -J parent srun --mpi="$MPI" -n1 "$clients/grow" --what extend --seconds 80 >"$work/log" 2>&1 </dev/null &
  check 'an expander waits' "$(squeue -h)" until_true 60 jobs_are 'hog muster-grow parent '
  # shellcheck disable=SC2046  # one word each
  kill -9 $(pids_of srun)
  check 'it ends with a killed srun' "$(squeue -h)" until_true 60 jobs_are 'hog '
  wait $!
  scancel -n hog
}

[ $# -gt 0 ] || set -- grow mpi shares wrong gone
for what; do "check_$what"; done
summary
