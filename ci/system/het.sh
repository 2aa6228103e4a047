#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# ci/system/het.sh: steps of several components, each an application of one namespace.
# shellcheck disable=SC2154,SC2034  # clients, work and spool are shared with lib.sh
set -uo pipefail
usage() {
  cat <<'TXT'
usage: ci/slurm [OPTION]... -- ci/system/het.sh BUILDDIR

Runs clients in heterogeneous steps, "srun PROGRAM : PROGRAM", of one allocation and over
the components of a heterogeneous job: they pass as in any step, the keys are right for
each component, a task or a server that is killed in one component ends all of them, an
abort too, and nothing is left. THIN=1: which ranks there are, and where, and that a task's end ends all, as a
release of Slurm can change that; with BETWEEN=1 only the ranks of two kinds of steps. Needs four nodes. Prints "ok",
"not ok" with the reason and "skip" lines; non-zero status when any failed.
TXT
}
case ${1:-} in -h|--help) usage; exit 0 ;; '') usage >&2; exit 2 ;; esac
# shellcheck source=ci/system/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
find_clients "$1"
spool=$(spool_dir)
bound=60 clean_bound=5
tool=/opt/muster/bin/muster-status

holding() { [ "$(grep -c '^HOLD rank' "$1" 2>/dev/null)" = "$2" ]; }

# compose SHAPES NAME [ARG]...: sets $command, SHAPES being "-N1 -n2 : -N2 -n5"; keys is told of its
# component
compose() {
  local shapes=$1 name=$2 app=0 shape
  shift 2
  command=()
  while read -r shape; do
    [ $app = 0 ] || command+=(:)
    # shellcheck disable=SC2206  # a shape is several words
    command+=(--mpi="$MPI" $shape "$clients/$name" --seconds 100 "$@")
    [ "$name" != keys ] || command+=(--app "$app")
    app=$((app + 1))
  done <<<"${shapes// : /$'\n'}"
}

# run SHAPES NAME [ARG]...: a client as all components of one step
run() {
  local log="$work/$2.log" status
  compose "$@"
  timeout 120 srun --jobid="$job" --overlap "${command[@]}" >"$log" 2>&1 </dev/null
  status=$?
  shift
  if grep -q "^SKIP $1:" "$log"; then
    skip "$what: $*" "$(sed -n "s/^SKIP $1: //p" "$log" | head -n 1)"
  elif [ $status != 0 ]; then
    not_ok "$what: $*" "$(why "$log" $status)"
  else
    check "$what: $*" "expected PASS once, found it $(grep -c "^PASS $1:" "$log") times" \
      [ "$(grep -c "^PASS $1:" "$log")" = 1 ]
  fi
}

# one_dies SHAPES RANKS SAYS ARG...: of a held step of RANKS one task comes to its end and takes all along
one_dies() {
  local shapes=$1 ranks=$2 says=$3 step status begin=$SECONDS
  shift 3
  list_leftovers >"$work/before"
  compose "$shapes" hold "$@"
  mark_logs
  srun --jobid="$job" --overlap "${command[@]}" >"$work/hold.log" 2>&1 </dev/null &
  step=$!
  if until_true $((bound + 20)) ended $step; then
    wait $step
    status=$?
    check "$what: hold $*: the step ended with an error" "$(why "$work/hold.log" $status)" [ $status != 0 ]
  else
    not_ok "$what: hold $*: the step's end" "still there after $((SECONDS - begin)) s; $(tail -n 1 "$work/hold.log")"
    scancel "$job"
    kill $step
    wait $step
  fi 2>/dev/null
  check "$what: hold $*: all had started" "$(grep -c '^HOLD rank' "$work/hold.log") of $ranks" holding "$work/hold.log" "$ranks"
  says_why "$what: hold $*" "$says" "$work/hold.log"
  if until_true $clean_bound nothing_new "$work/before"; then
    ok "$what: hold $*: nothing is left"
  else
    not_ok "$what: hold $*: what is left" "$(new_leftovers "$work/before" | tr '\n' ';')"
  fi
}

# hold SHAPES LOG RANKS: a held step in the background, which goes on until let_go; sets $step
hold() {
  sleep 600 &
  holder=$!
  compose "$1" hold --seconds 620 --until $holder
  srun --jobid="$job" --overlap "${command[@]}" >"$2" 2>&1 </dev/null &
  step=$!
  check "$what: $3 ranks are held" "$(tail -n 1 "$2")" until_true 60 holding "$2" "$3"
}

# let_go LOG: the step passes
let_go() {
  kill $holder
  wait $holder
  wait $step
  check "$what: the step that was held" "$(why "$1" $?)" grep -q '^PASS hold' "$1"
} 2>/dev/null

# shows_all SHAPES RANKS NODES: muster-status on the last node has all nodes of all components
shows_all() {
  local nodes=$3 id found
  hold "$1" "$work/hold.log" "$2"
  id=$(sed -n 's/^socket .*muster\.\([0-9]*\.[0-9]*\)\.[0-9a-f]*$/\1/p' <(list_leftovers) | sort -u)
  # shellcheck disable=SC2086  # options are several words or none
  found=$(srun --jobid="$job" $last_group --overlap --mpi=none -N1 -n1 "$tool" "$id" 2>&1 </dev/null)
  check "$what: muster-status" "$found" grep -q "^step $id of .*: $nodes of $nodes nodes answer" <<<"$found"
  found=$("$tool" --stacks "$id" 2>&1)
  check "$what: muster-status --stacks has all components" "$found" \
    eval "grep -q '^step $id of .*: $nodes of $nodes nodes answer' <<<\"\$found\" && grep -q '^ *$2 ranks  main > ' <<<\"\$found\""
  let_go "$work/hold.log"
}

# server_dies SHAPES RANKS: the server of node4, which is in the last component, is killed
find_server() {
  local pid
  for pid in $(new_leftovers "$work/before" | sed -n 's/^process muster-server //p'); do
    [ "$(nsenter --target "$pid" --uts hostname)" != node4 ] || server=$pid
  done
  [ -n "$server" ]
}
server_dies() {
  local server=
  list_leftovers >"$work/before"
  hold "$1" "$work/hold.log" "$2"
  check "$what: a server to kill" "none on node4, of $(new_leftovers "$work/before" | tr '\n' ';')" until_true 60 find_server
  kill -9 "$server"
  check "$what: the step of the killed server ends" "$(tail -n 1 "$work/hold.log")" until_true $bound ended $step
  kill $holder
  wait $holder
  wait $step
  check "$what: nothing is left of it" "$(new_leftovers "$work/before" | tr '\n' ';')" \
    until_true $clean_bound nothing_new "$work/before"
} 2>/dev/null

last_dies() { one_dies "$1" "$2" "rank $(($2 - 1)) .* was killed" --victim $(($2 - 1)) --how kill --in sleep --sleep 600 --seconds 620; }

# all_of SHAPES RANKS NODES: what depends on which rank is where, and of which application
all_of() {
  local name
  aside run "$1" modex
  aside run "$1" groups_bootstrap
  for name in exchange subset groups_many groups_info queries tools logq; do
    run "$1" $name
  done
  join_asides
  shows_all "$@"
  server_dies "$1" "$2"
  one_dies "$1" "$2" 'rank 0 .*abort' --victim 0 --how abort --in sleep --sleep 600 --seconds 620
}

# What the job has; srun puts the step's nodes in the place of these.
job=$(salloc --no-shell -N4 --ntasks-per-node=8 2>&1 | sed -n 's/.*Granted job allocation //p')
last_group=''
export KEYS_SLURM_JOB_NODELIST='node[1-4]' KEYS_SLURM_JOB_CPUS_PER_NODE='8(x4)' KEYS_SLURM_JOB_NUM_NODES=4
what='two components of a step'
run '-N1 -n2 : -N3 -n7' keys
if [ -z "${BETWEEN:-}" ]; then
  last_dies '-N1 -n2 : -N3 -n7' 9
  what='three components of a step'
  run '-N1 -n1 : -N2 -n5 -m cyclic : -N1 -n3' keys
  what='two components of a step, on some of the nodes'
  run '-N1 -n1 : -N1 -n1' keys
fi
if [ -z "${THIN:-}" ]; then
  what='three components of a step'
  PSETS_EXPECTED=component0=0-0:component1=1-5:component2=6-8 run '-N1 -n1 : -N2 -n5 -m cyclic : -N1 -n3' psets
  MUSTER_PSETS=air:ocean:ice PSETS_EXPECTED=air=0-0:ocean=1-5:ice=6-8 run '-N1 -n1 : -N2 -n5 -m cyclic : -N1 -n3' psets
fi
scancel "$job"

# One step in each of two components at the same time: they are not of one another.
apart() {
  hold '--het-group=0 -n2' "$work/first.log" 2
  compose '--het-group=1 -n5' hold --sleep 0
  timeout 120 srun --jobid="$job" --overlap "${command[@]}" >"$work/second.log" 2>&1 </dev/null
  check "$what: a step in the second beside one in the first" "$(why "$work/second.log" $?)" \
    grep -q '^PASS hold: 5 ranks' "$work/second.log"
  let_go "$work/first.log"
}

what='three components of a heterogeneous job'
begun=$(salloc --no-shell -N1 --ntasks-per-node=8 : -N2 --ntasks-per-node=8 : -N1 --ntasks-per-node=8 2>&1)
job=$(sed -n 's/.*Granted job allocation //p' <<<"$begun")
last_group=--het-group=2
check "$what: the job" "$begun" [ -n "$job" ]
all_shapes='--het-group=0 -n2 : --het-group=1 -n5 : --het-group=2 -n2'
run "$all_shapes" keys
run "$all_shapes" pull
[ -n "${THIN:-}" ] || all_of "$all_shapes" 9 4
if [ -n "${BETWEEN:-}" ]; then scancel "$job"; summary; exit; fi
last_dies "$all_shapes" 9
what='two of three components of a heterogeneous job'
run '--het-group=1 -n4 : --het-group=2 -n3' exchange
run '--het-group=0,2 -n2' exchange
what='components of a heterogeneous job'
apart
scancel "$job"

what='two components without an allocation'
compose '-N1 -n2 : -N2 -n4' exchange
timeout 120 srun "${command[@]}" >"$work/exchange.log" 2>&1 </dev/null
check "$what: exchange" "$(why "$work/exchange.log" $?)" grep -q '^PASS exchange:' "$work/exchange.log"

summary
