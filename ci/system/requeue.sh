#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# ci/system/requeue.sh: a job is requeued, and a node of its first run comes back; another job waits for it.
# shellcheck disable=SC2154,SC2034  # clients, work and spool are shared with lib.sh
set -uo pipefail
usage() {
  cat <<'TXT'
usage: ci/slurm -N 4 -- ci/system/requeue.sh BUILDDIR

Run as root. All processes of node3 stop while a batch job of alice has a step there; node3 counts as down, Slurm
requeues the job, and it runs its step again under the same number on the other nodes. Then the first
run's task and server on node3 go on, and after them its slurmd. The second run must not notice, and
nothing of the first one stays. Then a job connects with another one, which is requeued meanwhile: that connect fails, and the next
one, with the second run, succeeds. Prints "ok", "not ok" with the reason and "skip" lines; non-zero
status when any failed.
TXT
}
case ${1:-} in -h|--help) usage; exit 0 ;; '') usage >&2; exit 2 ;; esac
# shellcheck source=ci/system/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
find_clients "$1"
if [ "$(id -u)" != 0 ]; then skip requeue 'needs root'; summary; exit; fi
spool=$(spool_dir) conf=/opt/muster/etc/muster/muster.json
dir=$MUSTER_CI_DIR/shared/requeue
alice=(setpriv --reuid alice --regid alice --init-groups)

# ---- the job ----

# Run 0 and run 1 of it write logs of their own; the tasks of each sleep as long as its marker lives.
mkdir -m 777 "$dir"
for run in 0 1; do
  sleep 600 &
  markers[run]=$!
done
cat >"$dir/job" <<TXT
#!/bin/bash
markers=(${markers[*]})
run=\${SLURM_RESTART_COUNT:-0}
srun --mpi=$MPI -N3 -n3 "$clients/hold" --until "\${markers[run]}" --seconds 300 >"$dir/\$run.log" 2>&1
echo "STATUS \$?" >>"$dir/\$run.log"
TXT

has() { grep -q "$2" "$dir/$1.log" 2>/dev/null; }
runs_well() { [ "$(grep -c '^HOLD rank' "$dir/$1.log" 2>/dev/null)" = 3 ]; }
state() { squeue -h -j "$job" -o %T 2>/dev/null; }

is_pending() { [ "$(state)" = PENDING ]; }

# ---- the node that comes back ----

# of_node3 NAME...: its processes of these names
of_node3() {
  local pid uts
  uts=$(readlink "/proc/$(slurmd_of node3)/ns/uts")
  for pid in $(for name in "$@"; do pids_of "$name"; done); do
    [ "$(readlink "/proc/$pid/ns/uts")" != "$uts" ] || echo "$pid"
  done
}
gone() { [ -z "$(of_node3 "$@")" ]; }

# Whether all of the second run's servers answer and have no frame that came twice, or waits for one before it. A direct
# connection would have some come twice (docs/transport.md, "Losses").
none_repeated() {
  nsenter --target "$(slurmd_of node1)" --mount --uts --root --wd \
    /opt/muster/bin/muster-status --json --user alice "$job.0" >"$work/state" 2>&1
  grep -oE '"(duplicates_dropped|held)": ?[0-9]+' "$work/state" >"$work/counts"
  grep -q '"silent": *\[ *\]' "$work/state" && grep -q duplicates "$work/counts" && ! grep -qv ' *0$' "$work/counts"
}

# shellcheck disable=SC2329  # called by the trap
end_all() {
  [ -z "${frozen:-}" ] || xargs -r kill -CONT <<<"$frozen" 2>/dev/null
  kill "${markers[@]}" 2>/dev/null
  rm -rf "$work" "$dir" "$conf"
}
trap end_all EXIT

mkdir -p "${conf%/*}"
echo '{ "direct": { "mode": "off" } }' >"$conf"
list_leftovers | sort >"$work/before"
job=$("${alice[@]}" sbatch --parsable -N3 -n3 --ntasks-per-node=1 --requeue -o /dev/null "$dir/job")
until_true 60 runs_well 0
check 'the first run is up' "$(why "$dir/0.log" unknown)" runs_well 0
frozen=$(of_node3 slurmd slurmstepd muster-server hold)
xargs kill -STOP <<<"$frozen"
scontrol update nodename=node3 state=down reason=frozen
until_true 60 is_pending
# Slurm puts the second start off for two minutes; but a slurmd refuses one in the second of the first one's end.
scontrol update "job=$job" StartTime=now+3seconds
until_true 60 runs_well 1
check 'the second run is up' "state $(state); $(tail -n 1 "$dir/1.log" 2>&1)" runs_well 1

# The task of the first run goes on, and calls for a fence.
kill "${markers[0]}"
first=$(of_node3 slurmstepd muster-server hold)
xargs kill -CONT <<<"$first"
until_true 60 gone hold
check 'no frame of the first run counts in the second' "$(head -c 2000 "$work/state" 2>/dev/null)" until_true 60 none_repeated
# slurmd has the first run's step ended.
xargs kill -CONT <<<"$frozen" 2>/dev/null
until_true 60 gone muster-server slurmstepd hold
check 'nothing of the first run stays' "$(of_node3 muster-server slurmstepd hold | tr '\n' ' ')" gone muster-server slurmstepd hold
check 'the second run goes on' "$(tail -n 3 "$dir/1.log" | tr '\n' ';')" eval '! has 1 STATUS'
kill "${markers[1]}"
until_true 60 has 1 STATUS
check 'the second run passes' "$(why "$dir/1.log" "$(sed -n 's/^STATUS //p' "$dir/1.log")")" \
  eval 'has 1 "^STATUS 0" && has 1 "^PASS hold"'
until_true 60 nothing_new "$work/before"
check 'nothing is left' "$(new_leftovers "$work/before" | tr '\n' ';')" nothing_new "$work/before"
scancel "$job" 2>/dev/null
rm "$conf"

# ---- a job that waits for one that is requeued ----

# submit PART OPTION...: a job of it
submit() {
  local part=$1
  shift
  cat >"$dir/part$part.job" <<TXT
#!/bin/bash
export CONNECT_MEET=$dir
srun --mpi=$MPI "$clients/connect" --mode again --part $part >>"$dir/part$part.log" 2>&1
echo "STATUS \$?" >>"$dir/part$part.log"
TXT
  "${alice[@]}" sbatch --parsable "$@" --requeue -o /dev/null "$dir/part$part.job"
}

# Whether the connect with the first run is under way.
connects() {
  nsenter --target "$(slurmd_of node1)" --mount --uts --root --wd \
    /opt/muster/bin/muster-status --user alice "$stays.0" >"$work/state" 2>&1
  grep -q 'connect.* missing' "$work/state"
}

stays=$(submit 0 -N1 -n1 -w node1)
job=$(submit 1 -N2 -n2)
until_true 60 connects
check 'a job connects with one that does not call' "$(cat "$work/state" "$dir"/part*.log 2>&1)" connects
scontrol requeue "$job"
until_true 60 has part0 '^CONNECT ended'
check 'the connect ends with the job' "$(why "$dir/part0.log" unknown)" has part0 '^CONNECT ended'
until_true 60 is_pending
scontrol update "job=$job" StartTime=now+3seconds
until_true 120 has part0 '^STATUS'
until_true 60 has part1 '^PASS'
for i in 0 1; do
  check "the next connect has the second run: part $i" "$(why "$dir/part$i.log" unknown)" has "part$i" '^PASS connect'
done
scancel "$stays" "$job" 2>/dev/null
summary
