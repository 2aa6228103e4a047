#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# ci/system/exits.sh: with what status srun ends, and that a step that is to end does so.
# shellcheck disable=SC2154,SC2034  # clients, work and spool are shared with lib.sh
set -uo pipefail
usage() {
  cat <<'TXT'
usage: ci/slurm -N 4 -- ci/system/exits.sh BUILDDIR [all [RUNS] | PART...]

srun ends with the status of a PMIx_Abort, else of the first task that was lost, as a shell shows it: in
several kinds of jobs, also where its agent cannot be reached. A job that is suspended or requeued
while a step is to end holds up the end, but does not prevent it, and a slurmctld that is away, or
that comes back and does not know the step, does not either. With "all": the statuses alone, many of
them, RUNS times each (1), beside those under mpi/pmix where there is that. PART is one of statuses,
early, requeued, suspended, lost, forgotten, away; by default all, with THIN=1 statuses. BETWEEN=1: two of these.
Prints "ok", "not ok" with the reason and "skip" lines; non-zero status when any failed.
TXT
}
case ${1:-} in -h|--help) usage; exit 0 ;; '') usage >&2; exit 2 ;; esac
# shellcheck source=ci/system/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
find_clients "$1"
runs=1

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
lost_rank='rank 6 on node[1-4] was killed by signal 9 .*; ending the step$'
# tells NAME PATTERN: why the step ended is the only line of muster's that the user reads
tells() {
  check "$1: the user reads why, and nothing else" "$(grep muster: "$work/$1.log" | tr '\n' ';')" \
    eval "[ $(grep -c muster: "$work/$1.log") = 1 ] && grep -q 'muster: .*$2' '$work/$1.log'"
}

# Slurm alters no job that is suspended. Its servers kill the tasks, and srun ends when the job goes on.
no_task() { ! pgrep -f "^$clients/hold" >/dev/null; }
job_is_suspended() {
  local job
  hold_step suspended '' --sleep 300 --seconds 320 || return
  job=$(squeue -h -n suspended -o %i)
  scontrol suspend "$job" || return
  kill -9 "$(victim suspended)"
  until_true 60 no_task
  check 'suspended: the tasks end' "$(pgrep -fc "^$clients/hold") are left after 60 s" no_task
  scontrol resume "$job"
  end_bound=60 step_ends suspended $SECONDS
  tells suspended "$lost_rank"
  check 'suspended: the status' "found $ended_with" [ "$ended_with" = 137 ]
}

# A server is killed while the job is suspended, and Slurm takes no order to end the step. Its slurmstepd kills the
# tasks there; else all would fence when the job goes on, and srun would show how they end then.
fewer_tasks() { [ "$(pgrep -fc "^$clients/hold")" -lt 8 ]; }
server_is_lost() {
  local job token
  sleep 600 &
  token=$!
  hold_step lost '' --until $token --seconds 320 || { kill $token; return; }
  job=$(squeue -h -n lost -o %i)
  scontrol suspend "$job" || return
  kill -9 "$(pids_of muster-server | head -n 1)"
  until_true 15 fewer_tasks
  check 'lost: the tasks of its node are killed' "$(pgrep -fc "^$clients/hold") are left after 15 s" fewer_tasks
  kill $token
  scontrol resume "$job"
  end_bound=90 step_ends lost $SECONDS
  check 'lost: the user reads of the death' "$(grep muster: "$work/lost.log" | tr '\n' ';')" \
    grep -q 'muster-server of step [0-9.]* died on node node[1-4] .*: ending the step,' "$work/lost.log"
  check 'a server is killed in a suspended job: status 137' "found $ended_with" [ "$ended_with" = 137 ]
}

# slurmctld comes back with what it had saved before the step began: it knows the job, and not the step.
answers() { sinfo -h >/dev/null 2>&1; }
start_slurmctld() { slurmctld -D >>"$work/slurmctld.out" 2>&1 & disown; until_true 60 answers; }
stop_slurmctld() { local pid; pid=$(pgrep -x slurmctld | head -n 1); kill "$1" "$pid"; until_true 60 ended "$pid"; }
runs_step() { timeout 20 srun --mpi=none --jobid="$1" -N4 -n8 true >>"$work/steps.log" 2>&1 </dev/null; }
slurmctld_forgets() {
  local job state
  state=$(scontrol show config | sed -n 's/^StateSaveLocation *= //p')
  job=$(salloc --no-shell -J forgotten -N4 -n8 2>&1 | sed -n 's/.*Granted job allocation //p')
  runs_step "$job" || { not_ok 'a forgotten step: its job' 'takes no step'; return; }
  stop_slurmctld -TERM
  cp -a "$state" "$work/state"
  start_slurmctld
  until_true 60 runs_step "$job" || { not_ok 'a forgotten step: its job' 'takes no step from a new slurmctld'; return; }
  hold_step forgotten "--jobid=$job" --sleep 300 --seconds 320 || return
  stop_slurmctld -KILL
  find "$state" -mindepth 1 -delete
  cp -a "$work/state/." "$state"
  kill -9 "$(victim forgotten)"
  start_slurmctld
  check 'a forgotten step: slurmctld knows the job alone' "$(squeue -h -s -j "$job" -o %i)" \
    eval "[ \$(squeue -h -j $job -o %T) = RUNNING ] && ! squeue -h -s -j $job -o %j | grep -q hold"
  end_bound=90 step_ends forgotten $SECONDS
  check 'a forgotten step: status 137' "found $ended_with" [ "$ended_with" = 137 ]
  scancel "$job"
}

# The lost task is alone on its node, whose server leaves: the tasks of other nodes would hang. srun itself may wait for
# slurmctld with the end of its job.
slurmctld_is_away() {
  hold_step away '' --sleep 300 --seconds 320 || return
  stop_slurmctld -TERM
  kill -9 "$(victim away)"
  until_true 60 no_task
  check 'slurmctld is away: the tasks end' "$(pgrep -fc "^$clients/hold") are left after 60 s" no_task
  start_slurmctld
  end_bound=90 step_ends away $SECONDS
  tells away "$lost_rank"
  check 'slurmctld was away: the status' "$ended_with" [ "$ended_with" = 137 ]
}

# Its tasks end by themselves, which is no fault of the server that wants to have them ended.
requeued=$MUSTER_CI_DIR/shared/exits.requeued
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
  check 'a requeued job: no false error' "$(grep -m 1 'cannot be ended' "$requeued")" eval "! grep -q 'cannot be ended' '$requeued'"
  scancel "$job"
}

if [ "${2:-}" = all ]; then
  runs=${3:-1}
  srun --mpi=list 2>&1 | grep -q 'pmix' || { skip 'statuses beside mpi/pmix' 'this Slurm has none'; summary; exit; }
  for status in 0 1 7 127 128 200 255; do as_mpi_pmix abort $status; done
  for status in 0 3 255; do as_mpi_pmix finalize $status; done
  for signal in 9 11 15; do as_mpi_pmix signal $signal; done
  summary
  exit
fi
part_statuses() {
  ends_with 7 abort 7
  [ -z "${BETWEEN:-}" ] || { ends_with 134 signal 6; return; }
  ends_with 255 abort 255 '-N1 -n2'
  ends_with 3 exit 3
  ends_with 1 exit 0
  ends_with 134 signal 6
  ends_with 5 finalize 5
  ends_with 9 abort 9 '-N4 -n4 --export=NONE'
  told_from_afar
  of_het_step
  of_batch_job
}
# Slurm is still launching the step.
part_early() {
  local i n=7 lines found options victim
  for options in '-N1 -n1' '-N1 -n2' '-N4 -n8'; do
    found=0 victim=$((${options##*n} > 1))
    for ((i = 0; i < n; i++)); do
      # shellcheck disable=SC2086  # options are two words
      timeout 100 srun --mpi="$MPI" $options "$clients/ends" --victim $victim --how crash --status 11 --seconds 90 >"$work/log" 2>&1 </dev/null
      lines=$(grep -c "rank $victim on node[1-4] was killed by signal 11 .*; ending the step" "$work/log")
      [ "$lines" != 1 ] || found=$((found + 1))
    done
    if [ $found -lt $n ] && [ $found -gt 0 ] && [ "$options" = '-N1 -n1' ] && [[ $(srun --version) = *' 26.'* ]]; then
      skip "a crash right after PMIx_Init ($options)" "srun showed why in $found of $n runs: srun of 26.05 may end before that"
      continue
    fi
    check "a crash right after PMIx_Init ($options): srun shows why, once" "in $found of $n runs; $(tail -n 2 "$work/log" | tr '\n' ';')" [ $found = $n ]
  done
}
part_requeued() { job_is_requeued; }
part_suspended() { job_is_suspended; }
part_lost() { server_is_lost; }
part_forgotten() { slurmctld_forgets; }
part_away() {
  nodes_are_idle
  slurmctld_is_away
  idle=seen # before: a slurmstepd that has not reached slurmctld at its end tries again once a minute
}
parts=("${@:2}")
if [ $# -le 1 ] && [ -n "${THIN:-}" ]; then parts=(statuses)
elif [ $# -le 1 ]; then parts=(statuses early requeued suspended lost forgotten away); fi
for part in "${parts[@]}"; do
  if [ "$part" != statuses ] && [ "$(id -u)" != 0 ]; then skip "$part" 'needs root'; else "part_$part"; fi
done
summary
