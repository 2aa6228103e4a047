#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# ci/system/exits.sh: with what status srun ends, and that a step that is to end does so.
# shellcheck disable=SC2154,SC2034  # clients, work and spool are shared with lib.sh
set -uo pipefail
usage() {
  cat <<'TXT'
usage: ci/slurm -N 4 -- ci/system/exits.sh BUILDDIR [all [RUNS]]

srun ends with the status of a PMIx_Abort, else of the first task that was lost, as a shell shows it: in
several kinds of jobs, also where its agent cannot be reached. A slurmctld that is away, a job that
is suspended or requeued while a step is to end hold up the end, but do not prevent it. With "all":
the statuses alone, many of them, RUNS times each (1), beside those under mpi/pmix where there is
that. THIN=1: no steps that are held up. Prints "ok", "not ok" with the reason and "skip" lines; non-zero status when any failed.
TXT
}
case ${1:-} in -h|--help) usage; exit 0 ;; '') usage >&2; exit 2 ;; esac
# shellcheck source=ci/system/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
find_clients "$1"
runs=${3:-1}

# statuses RUNS MPI SRUN-OPTIONS HOW STATUS: what srun ends with, each different one once
statuses() {
  local i
  for ((i = 0; i < $1; i++)); do
    # shellcheck disable=SC2086  # options are several words
    timeout 100 srun --mpi="$2" $3 "$clients/ends" --how "$4" --status "$5" --seconds 90 >"$work/log" 2>&1 </dev/null
    echo $?
  done | sort -n | uniq | tr '\n' ' '
}

# ends_with EXPECTED HOW STATUS [SRUN-OPTIONS]
ends_with() {
  local found
  found=$(statuses "$runs" "$MPI" "${4:--N2 -n4}" "$2" "$3")
  check "$2 $3${4:+ ($4)}: status $1" "found $found in $runs runs; $(tail -n 1 "$work/log")" [ "$found" = "$1 " ]
}

# as_mpi_pmix HOW STATUS: both plugins give one status, and the same
as_mpi_pmix() {
  local theirs ours
  ours=$(statuses "$runs" muster '-N2 -n4' "$1" "$2")
  theirs=$(statuses "$runs" pmix '-N2 -n4' "$1" "$2")
  check "$1 $2: $theirs as under mpi/pmix" "$ours in $runs runs" [ "$ours" = "$theirs" ]
}

# ---- statuses ----

# The node's slurmstepd has shut its way to the terminal when the server learns of it.
told_from_afar() {
  timeout 100 srun --mpi="$MPI" -N2 -n2 "$clients/ends" --how exit --status 6 --seconds 90 >"$work/log" 2>&1 </dev/null
  check 'a task that is alone on its node: srun shows why' "$(grep -v '^rank' "$work/log" | tail -n 3 | tr '\n' ';')" \
    [ "$(grep -c 'on node[1-4] ended with exit code 6 and without PMIx_Finalize; ending the step' "$work/log")" = 1 ]
}

of_het_step() {
  local status
  timeout 100 srun --mpi="$MPI" -N1 -n1 "$clients/ends" --status 41 --seconds 90 : \
    -N1 -n2 "$clients/ends" --status 41 --seconds 90 >"$work/log" 2>&1 </dev/null
  status=$?
  check 'a step of two components: status 41' "found $status; $(tail -n 1 "$work/log")" [ $status = 41 ]
}

of_batch_job() {
  local out=$MUSTER_CI_DIR/shared/exits.out
  rm -f "$out"
  timeout 100 sbatch --wait -N2 -n4 -o "$out" --wrap "srun --mpi=$MPI '$clients/ends' --status 42 --seconds 90; echo STATUS \$?" >"$work/log" 2>&1
  check 'in a batch job: status 42' "$(tail -n 1 "$out")" grep -qx 'STATUS 42' "$out"
}

# ---- a step that is to end ----

victim() { sed -n 's/^HOLD rank 6 pid //p' "$work/$1.log"; }
stuck='cannot be ended yet: .*scancel'
# told_once NAME: several servers may have tried
told_once() {
  local n
  n=$(grep -c "$stuck" "$work/$1.log")
  check "$1: the user is told, once" "$n times" [ "$n" = 1 ]
}

# The lost task is alone on its node, whose server leaves: the tasks of other nodes would hang.
slurmctld_is_away() {
  local pid
  pid=$(pgrep -x slurmctld | head -n 1)
  hold_step away '' --sleep 300 --seconds 320 || return
  kill "$pid"
  until_true 60 ended "$pid"
  kill -9 "$(victim away)"
  until_true 100 grep -q "$stuck" "$work/away.log"
  slurmctld -D >"$work/slurmctld.out" 2>&1 &
  end_bound=90 step_ends away $SECONDS
  told_once away
  check 'slurmctld was away: the status' "$ended_with" [ "$ended_with" = 137 ]
}

# Slurm alters no job that is suspended.
job_is_suspended() {
  local job
  hold_step suspended '' --sleep 300 --seconds 320 || return
  job=$(squeue -h -n suspended -o %i)
  scontrol suspend "$job" || return
  kill -9 "$(victim suspended)"
  until_true 60 grep -q "$stuck" "$work/suspended.log"
  scontrol resume "$job"
  end_bound=60 step_ends suspended $SECONDS
  told_once suspended
}

# Its tasks end by themselves, which is no fault of the server that wants to have them ended.
requeued=$MUSTER_CI_DIR/shared/exits.requeued
not_stuck() { ! grep -q "$stuck" "$requeued"; }
no_stepd() { [ -z "$(pids_of slurmstepd)" ]; }
is_pending() { [ "$(squeue -h -j "$1" -o %T)" = PENDING ]; }
job_is_requeued() {
  local job
  rm -f "$requeued"
  job=$(sbatch --parsable --requeue -N4 -n8 -o "$requeued" --wrap \
    "srun --mpi=$MPI bash -c 'trap \"\" TERM; exec \$0 --sleep 300 --seconds 320' '$clients/hold'")
  until_true 60 all_hold "$requeued"
  scontrol requeue "$job"
  # its tasks bear SIGTERM, and one is lost while the job is no more and its step still is
  kill -9 "$(sed -n 's/^HOLD rank 6 pid //p' "$requeued")"
  check 'a requeued job waits for its next run' "$(squeue -h -j "$job")" until_true 60 is_pending "$job"
  until_true 60 no_stepd
  check 'a requeued job: no false error' "$(grep -m 1 "$stuck" "$requeued")" not_stuck
  scancel "$job"
}

if [ "${2:-}" = all ]; then
  srun --mpi=list 2>&1 | grep -q 'pmix' || { skip 'statuses beside mpi/pmix' 'this Slurm has none'; summary; exit; }
  for status in 0 1 7 127 128 200 255; do as_mpi_pmix abort $status; done
  for status in 0 3 255; do as_mpi_pmix finalize $status; done
  for signal in 9 11 15; do as_mpi_pmix signal $signal; done
  summary
  exit
fi
ends_with 7 abort 7
ends_with 255 abort 255 '-N1 -n2'
ends_with 3 exit 3
ends_with 1 exit 0
ends_with 134 signal 6
ends_with 5 finalize 5
ends_with 9 abort 9 '-N4 -n4 --export=NONE'
told_from_afar
of_het_step
of_batch_job
[ -z "${THIN:-}" ] || { summary; exit; }
if [ "$(id -u)" != 0 ]; then skip 'a step that is to end' 'needs root'; summary; exit; fi
job_is_requeued
job_is_suspended
nodes_are_idle
slurmctld_is_away
idle=seen # before: a slurmstepd that has not reached slurmctld at its end tries again once a minute
summary
