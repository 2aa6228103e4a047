#!/usr/bin/env bash
# ci/system/slurm.sh: all test clients through srun --mpi=muster, in several shapes of step.
# shellcheck disable=SC2154,SC2034  # clients, work and spool are shared with lib.sh
set -uo pipefail
usage() {
  cat <<'TXT'
usage: ci/slurm [OPTION]... -- ci/system/slurm.sh BUILDDIR [NAME]...

Runs the clients in BUILDDIR (or BUILDDIR/ci/clients), or only those NAMEd, by srun and
prints a line for each: "ok", "not ok" with the reason, or "skip". Ends with non-zero
status when any failed. MPI=NAME takes another plugin than muster; SHORT=1 runs each in
one shape only, and nothing long. Needs four nodes.
TXT
}
case ${1:-} in -h|--help) usage; exit 0 ;; '') usage >&2; exit 2 ;; esac
# shellcheck source=ci/system/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
find_clients "$1"
plugins=$clients/../../plugins/slurm
shift
wanted=" $* "

shapes=('-N4 -n8' '-N1 -n4' '-N4 -n16' '-N2 -n3' '-N4 -n8 --distribution=cyclic')

[ -z "${SHORT:-}" ] || shapes=('-N4 -n8')

# What Open MPI needs for several nodes on one machine, and more ranks than cores.
export OMPI_MCA_pml=ob1 OMPI_MCA_btl=self,tcp OMPI_MCA_btl_tcp_if_include=lo OMPI_MCA_mpi_yield_when_idle=1

# run SHAPE NAME [ARG]...: one client in one shape
run() {
  local shape=$1 name=$2 log="$work/$2.log" status seconds=100 tries=0
  shift 2
  case $name in mpi_*) seconds=40 tries=3 ;; esac
  case $wanted in '  '|*" $name "*) ;; *) return 0 ;; esac
  local what="$name${*:+ $*} ($shape)"
  if [ ! -x "$clients/$name" ]; then skip "$what" 'not built'; return; fi
  # shellcheck disable=SC2086  # a shape is several words
  timeout 120 srun --mpi="$MPI" $shape "$clients/$name" "$@" --seconds "$seconds" >"$log" 2>&1 </dev/null
  status=$?
  # Open MPI's own, on a busy machine: docs/limits.md, "Open MPI". Said, and run again.
  while [ $status != 0 ] && [ $tries -gt 0 ] && grep -q '^rank.*watchdog: still in: MPI_' "$log"; do
    skip "$what: one try" "it hung in $(sed -n 's/^rank.*watchdog: still in: //p' "$log" | head -n 1); see docs/limits.md"
    tries=$((tries - 1))
    # shellcheck disable=SC2086
    timeout 120 srun --mpi="$MPI" $shape "$clients/$name" "$@" --seconds "$seconds" >"$log" 2>&1 </dev/null
    status=$?
  done
  grep -E '^(BENCH|NOTE)' "$log" | sed 's/^/# /'
  if grep -q "^SKIP $name:" "$log"; then
    skip "$what" "$(sed -n "s/^SKIP $name: //p" "$log" | head -n 1)"
  elif [ $status != 0 ]; then
    not_ok "$what" "$(why "$log" $status)"
  elif [ "$(grep -c "^PASS $name:" "$log")" != 1 ]; then
    not_ok "$what" "expected PASS once, found it $(grep -c "^PASS $name:" "$log") times"
  else
    ok "$what"
  fi
}

# The lines that every rank of a step of N logs come out of srun.
check_logged() {
  local shape=$1 n=$2
  case $wanted in '  '|*' logq '*) ;; *) return 0 ;; esac
  local found
  found=$(grep -o 'logq: rank [0-9]* wrote this' "$work/logq.log" | sort -u | wc -l)
  check "logq's lines ($shape)" "expected $n, found $found" [ "$found" = "$n" ]
}

all_hold() { [ "$(grep -c '^HOLD rank' "$work/beside.log")" = 8 ]; }

# A step beside another one of the same allocation.
keys_beside() {
  local job holder
  case $wanted in '  '|*' keys '*) ;; *) return 0 ;; esac
  job=$(salloc --no-shell -N4 -n16 2>&1 | sed -n 's/.*Granted job allocation //p')
  srun --jobid="$job" --mpi="$MPI" --overlap -N4 -n8 "$clients/hold" --sleep 600 >"$work/beside.log" 2>&1 </dev/null &
  holder=$!
  if until_true 20 all_hold; then
    run "--jobid=$job --overlap -N3 -n7 -m cyclic" keys
    check 'the step beside it' "$(why "$work/beside.log" ended)" kill -0 $holder
  else
    not_ok 'start of a step to be beside' "$(why "$work/beside.log" 'unknown (not up after 20 s)')"
  fi
  scancel "$job"
  wait $holder
}

# The keys in layouts that the other clients need not see.
if [ -z "${SHORT:-}" ]; then
  for shape in '-N4 -n10 -m plane=2' '-N3 -n7' '-N4 -n9 --ntasks-per-node=3 -m cyclic' '-N2 -n40 -O' '-N1 -n1'; do
    run "$shape" keys
  done
  printf 'node%s\n' 3 1 3 4 1 1 4 >"$work/hosts"
  SLURM_HOSTFILE=$work/hosts run '-n7 -m arbitrary' keys
  keys_beside
fi

for shape in "${shapes[@]}"; do
  for name in keys exchange modex barrier subset groups_many groups_disjoint groups_info groups_query \
    groups_add groups_bootstrap unsupported logq; do
    run "$shape" $name
  done
  n=${shape#*-n}
  check_logged "$shape" "${n%% *}"
  run "$shape" groups --groups 200
done
if [ -z "${SHORT:-}" ]; then
  run '-N4 -n8' groups --groups 300 --same-id 1
  # Up to 5.0 libpmix itself leaks what it tracks of a group, some KB for each local member.
  case $(pmix_major) in 4 | 5) rss=65536 ;; *) rss=512 ;; esac
  run '-N4 -n8' groups --groups 1000 --warmup 100 --leak 1 --rss $rss
  run '-N4 -n64' groups_bootstrap --rounds 1
  run '-N4 -n8' groups_many --groups 200 --rounds 3
  run '-N4 -n8' exchange --bytes 1000000 --rounds 3
  run '-N4 -n8' bench_collectives
  run '-N4 -n16' bench_collectives --bytes 100000 --rounds 20
fi

# Open MPI 6.0.0rc2 does not connect between nodes that are one machine.
mpi_shapes=("${shapes[@]}")
case $(mpicc --showme:version 2>/dev/null) in *'Open MPI 6.'*) mpi_shapes=('-N1 -n4' '-N1 -n2') ;; esac
for shape in "${mpi_shapes[@]}"; do
  n=${shape#*-n}
  for name in mpi_hello mpi_ring mpi_sessions; do
    run "$shape" $name --ranks "${n%% *}"
  done
done

# A plugin of another release says that it is, in one line with the remedy, before Slurm drops it.
other_release() {
  local this want
  this=$(srun --version | cut -d' ' -f2 | cut -d- -f1)
  want="is built for Slurm 23.02.99 and this is Slurm $this: build muster with -Dslurm_version=$this"
  mkdir "$work/other"
  cp "$plugins/mpi_muster_other.so" "$work/other/mpi_muster.so"
  sed "s,:/opt/muster/lib/slurm,:$work/other," "$SLURM_CONF" >"$work/slurm.conf"
  ! SLURM_CONF=$work/slurm.conf srun --mpi=muster -N1 true >"$work/other.log" 2>&1 </dev/null &&
    [ "$(grep -cF "$want" "$work/other.log")" = 1 ]
}
case $wanted in
  '  '|*' other_release '*)
    if other_release; then
      ok 'a plugin of another Slurm release'
    else
      not_ok 'a plugin of another Slurm release' "$(tail -n 3 "$work/other.log")"
    fi ;;
esac
summary
