#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# ci/system/bound.sh: what programs find when Slurm binds their tasks to processors.
# shellcheck disable=SC2154  # clients and work are lib.sh's
set -uo pipefail
usage() {
  cat <<'TXT'
usage: ci/slurm --conf TaskPlugin=task/affinity -N 2 [OPTION]... -- ci/system/bound.sh BUILDDIR

Runs the client keys with its tasks bound in several ways, and a task that is given one processor, to
which it is confined with --cgroup: PMIx tells it of no other one. The nodes are all this machine, so
processors 0 and 1 have to be there, and no more are used. THIN=1: each way once.
TXT
}
case ${1:-} in -h|--help) usage; exit 0 ;; '') usage >&2; exit 2 ;; esac
# shellcheck source=ci/system/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
find_clients "$1"

# Only a step that a program has started has a parent, and no set was named.
not_asked() { grep 'not asked' "$work/keys.log" | grep -vE ' PMIX_(DEBUG_[A-Z_]*|PARENT_ID|PSET_NAME) '; }

# run BOUND SHAPE...: the client, whose tasks have to be bound (1) or need not (0)
run() {
  local bound=$1 status
  shift
  timeout 120 srun --mpi="$MPI" "$@" "$clients/keys" --bound "$bound" --seconds 100 >"$work/keys.log" 2>&1 </dev/null
  status=$?
  check "keys ($*)" "$(why "$work/keys.log" $status)" grep -q '^PASS keys:' "$work/keys.log"
  [ "$bound" = 0 ] || check "all keys are asked for ($*)" "$(not_asked)" [ -z "$(not_asked)" ]
}

if [ "$(nproc)" -lt 2 ]; then
  skip keys 'this machine has one processor'
else
  # Each several times: whether clients are told of a binding must not hang on who is faster.
  for ((i = 0; i < (${THIN:-0} ? 1 : 3); i++)); do
    run 1 -N1 -n2 --cpu-bind=map_cpu:1,0
    run 1 -N1 -n2 --cpu-bind=cores
  done
  run 1 -N2 -n2 --cpu-bind=map_cpu:0
  run 0 -N2 -n4 --cpu-bind=none
  timeout 120 srun --mpi="$MPI" -N1 -n1 -c1 --cpu-bind=none "$clients/topology" \
    --shared 1 --seconds 100 >"$work/topology.log" 2>&1 </dev/null
  judge 'topology of one processor' topology $? "$work/topology.log"
fi
summary
