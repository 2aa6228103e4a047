#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# ci/system/flux_spawn.sh: programs under flux run that start others, and what ends with whom.
# shellcheck disable=SC2154,SC2034  # clients and work are shared with lib.sh
set -uo pipefail
usage() {
  cat <<'TXT'
usage: ci/flux -N 4 [OPTION]... -- ci/system/flux_spawn.sh BUILDDIR [PART]...

Jobs whose tasks call PMIx_Spawn: what the started jobs see and print, which failures are told and how soon, and
that nothing is left however either side ends; and processes that wait for a debugger. PARTs: calls debug streams log busy rounds many nested mpi guests ends lives; all
of them by default. ROUNDS=N spawns N times in rounds (2), CALLERS=N tasks at once in many (8).
Prints "ok", "not ok" with the reason and "skip" lines; non-zero status when any failed.
TXT
}
# shellcheck source=ci/system/flux_lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/flux_lib.sh"

# spawner LOG OPTION... -- ARG...: that client
spawner() {
  local log=$1 options=()
  shift
  while [ "$1" != -- ]; do options+=("$1"); shift; done
  shift
  timeout -k 5 100 flux run -o pmi="$MPI" "${options[@]}" "$clients/spawner" "$@" --seconds 80 >"$work/$log" 2>&1 </dev/null
}

# passes WHAT OPTION... -- ARG...: one that is to pass
passes() {
  local what=$1
  shift
  spawner log "$@"
  judge "$what" spawner $? "$work/log"
}

# ---- what is started, and what is not ----

part_calls() {
  local slow why spec
  PMI_X=1 FLUX_TASK_X=1 passes 'two nodes, all kinds of calls' -N2 -n2 -o exit-timeout=77s -- --n 4
  spec=$(flux job info "$(flux jobs -a -no '{id}' --name=spawned | head -n 1)" jobspec)
  check 'options of the shell are handed on' "$spec" grep -q '"exit-timeout": *"77s"' <<<"$spec"
  check 'what each child has printed is on the terminal' "$(tail -n 3 "$work/log" | tr '\n' ';')" \
    [ "$(grep -c '^CHILD . of 4 in /usr colour red$' "$work/log")" = 4 ]
  slow=$(sed -n 's/^REFUSED .* after \([0-9]*\)\..*/\1/p' "$work/log" | sort -n | tail -n 1)
  check "a spawn that fails does so within 5 s: $slow s" "$(grep REFUSED "$work/log" | tr '\n' ';')" [ "${slow:-99}" -lt 5 ]
  for why in '/no/such/program: No such file' '/etc/passwd: Permission denied' 'directory /no/such/directory: No such file' \
    'Flux cannot start 1000 processes' 'requires pmix.mapby = board'; do
    check "the terminal has, once: $why" "$(tail -n 5 "$work/log" | tr '\n' ';')" [ "$(grep -cF "$why" "$work/log")" = 1 ]
  done
}

# debugged WHAT OPTION... -- ARG...: processes that wait for a debugger
debugged() {
  local what=$1 options=()
  shift
  while [ "$1" != -- ]; do options+=("$1"); shift; done
  timeout -k 5 100 flux run -o pmi="$MPI" "${options[@]}" "$clients/debugged" "${@:2}" --seconds 80 >"$work/log" 2>&1 </dev/null
  judge "$what" debugged $? "$work/log"
}

part_debug() {
  MUSTER_DEBUG=stop-in-init debugged 'a job that waits for a debugger' -N2 -n4 --
  debugged 'the same by an option, in the program; no deadline passes' -o muster.debug=stop-in-app:1 -o muster.timeouts.fence=1 -N2 -n4 -- \
    --where app --rank 1 --late 2500
  debugged 'spawned processes that wait for a debugger' -N2 -n2 -- --as parent --where app --n 3
  debugged 'spawned processes that are stopped before their first instruction' -N2 -n2 -- --as parent --where exec --n 3
  timeout -k 5 100 flux run -o pmi="$MPI" -N2 -n2 "$clients/debugged" --as parent --n 3 --daemons node --seconds 80 >"$work/log" 2>&1 </dev/null
  check "a debugger's daemons are refused" "$(tail -n 3 "$work/log" | tr '\n' ';')" \
    grep -q 'Flux starts no processes on the processors of others, as a debugger.s daemons are; start them by flux exec' "$work/log"
}

# What the processes read that are not meant by a push is empty: they end, and Flux waits for none of them.
part_streams() {
  local n
  passes 'standard input that is pushed, by a task' -N2 -n2 -- --what input --n 3 --lines 20000
  check 'who reads nothing has an empty input' "$(grep -m 1 exit-timeout "$work/log")" eval "! grep -q exit-timeout '$work/log'"
  timeout -k 5 100 flux run -o pmi="$MPI" -N2 -n2 "$clients/tools" --as pusher --n 2 --lines 5000 >"$work/log" 2>&1 </dev/null
  judge 'by a tool' tools $? "$work/log"
  export SPAWNER_GO=$MUSTER_CI_DIR/shared/go
  passes 'a pull of what is printed' -N1 -n2 -- --what output --n 4 --lines 2000
  n=$(grep -c '^OUT\|^ERR' "$work/log")
  check 'it is not on the terminal' "$n lines" [ "$n" = 0 ]
  SPAWN_ZERO=1 passes 'a byte of 0 that is printed' -N1 -n1 -- --what good
  n=$(grep -ac '^ZERO.BYTE$' "$work/log")/$(grep -ac '^CHILD' "$work/log")
  check 'it is on the terminal' "$n" eval "[ ${n%/*} = ${n#*/} ] && [ ${n%/*} -gt 0 ]"
}

# A job whose output log has, beside its own, events that no shell writes today: of several ranks, of repeated data, of a
# stream that ends without eof.
part_log() {
  local id
  # shellcheck disable=SC2016  # for the shell in the job
  id=$(flux submit -n1 sh -c 'for e; do flux kvs eventlog append output data "$e"; done' sh \
    '{"stream":"stdout","rank":"0-1","data":"both\nhalf "}' '{"stream":"stdout","rank":"[0,2]","data":"no end"}' \
    '{"stream":"stderr","rank":"1","data":"x","repeat":3}')
  flux job wait-event -t 60 "$id" clean >"$work/log" 2>&1
  flux python /opt/muster/share/muster/flux/output.py "$FLUX_URI" "$id" 2>&1 | sort >"$work/log"
  check "a job's output log is read to its end" "$(tr '\n' ';' <"$work/log")" \
    [ "$(tr '\n' ';' <"$work/log")" = '0: both;0: half no end;1: both;1: half ;1: xxx;2: no end;' ]
}

# All processors of the instance are the parent's.
part_busy() {
  local begin=$SECONDS
  spawner log -N4 --exclusive -n4 -- --what good
  check 'without free processors a spawn fails within 5 s' "after $((SECONDS - begin)) s: $(tail -n 3 "$work/log" | tr '\n' ';')" \
    eval "[ $((SECONDS - begin)) -le 8 ] && grep -q 'PMIx_Spawn: expected .*OUT.OF.RESOURCE' '$work/log'"
  check 'and says so' "$(tail -n 3 "$work/log" | tr '\n' ';')" grep -q 'Flux has no free processors for 2 processes' "$work/log"
}

part_rounds() {
  passes 'one after another, from two tasks' -N2 -n2 -- --what good --spawners 2 --rounds "${ROUNDS:-2}"
}

part_many() {
  local n=${CALLERS:-8}
  passes "$n at once" -N2 -n"$n" -- --what good --n 1 --spawners "$n"
}

# Both say PASS.
check_nested() { check "$1" "$(tail -n 3 "$work/log" | tr '\n' ';')" [ "$(grep -c '^PASS spawner' "$work/log")" = "$2" ]; }
part_nested() {
  spawner log -N1 -n1 -- --what nested
  check_nested 'a spawned program that spawns' 2
  timeout 100 flux alloc -N2 flux run -o pmi="$MPI" -N1 -n1 "$clients/spawner" --what good --seconds 80 >"$work/log" 2>&1 </dev/null
  check_nested 'in an instance in a job' 1
}

# Open MPI 6 does not connect between nodes that are one machine: all has to be on one, that of an instance of its own.
part_mpi() {
  local alloc=() nodes=2
  [ -x "$clients/mpi_spawn" ] || { skip 'MPI_Comm_spawn' 'no mpicc'; return; }
  case $(mpicc --showme:version 2>/dev/null) in
    *'Open MPI 6.'*) alloc=(flux alloc -N1) nodes=1 ;;
  esac
  timeout 100 "${alloc[@]}" flux run -o pmi="$MPI" -N$nodes -n2 "$clients/mpi_spawn" --seconds 80 >"$work/log" 2>&1 </dev/null
  judge 'MPI_Comm_spawn, _multiple, merge, disconnect' mpi_spawn $? "$work/log"
}

# A Flux without flux-security takes jobs of the instance's owner alone. With it, the job is signed by munge.
part_guests() {
  if [ "$(id -u)" != 0 ]; then skip guests 'needs root, for jobs of others'; return; fi
  let_users_in
  attach "$(submit_as alice '-N2 -n2' spawner --what good --seconds 60)" alice
  check 'another user spawns, or reads why not' "$(tail -n 3 "$work/alice.log" | tr '\n' ';')" \
    grep -qE "PMIx_Spawn by rank 0: (Flux refuses the job: only instance owner|a job cannot be submitted: .*munge.* No such file)" "$work/alice.log"
  grep -q 'munge' "$work/alice.log" || return 0
  mkdir -m 755 /run/munge
  mkdir -m 700 "$work/munge"
  head -c 64 /dev/urandom >"$work/munge/key"
  chmod 600 "$work/munge/key"
  chmod 755 "$work"
  munged --force --key-file="$work/munge/key" --pid-file="$work/munge/pid" --log-file="$work/munge/log" --seed-file="$work/munge/seed" \
    --socket=/run/munge/munge.socket.2 2>/dev/null
  attach "$(submit_as alice '-N2 -n2' spawner --what good --seconds 60)" alice
  check 'another user, with flux-security and munge, spawns' "$(tail -n 3 "$work/alice.log" | tr '\n' ';')" grep -q '^PASS spawner' "$work/alice.log"
  kill "$(cat "$work/munge/pid")"
}

# ---- what ends with whom ----

# begin NAME SPAWNER_ENV WHAT OPTION...: a job in the background whose child sleeps; sets $parent, once the child is up
begin() {
  local name=$1 env=$2 what=$3
  shift 3
  : >"$work/$name.log"
  spawner "$name.log" --job-name="$name" --env=SPAWNER_ENV="$env" -N1 -n2 "$@" -- --what "$what" &
  parent=$!
  until_true 30 grep -q '^CHILD 1 of 2' "$work/$name.log" && return
  not_ok "$name: start" "$(tail -n 3 "$work/$name.log" | tr '\n' ';')"
  flux cancel --all
  return 1
}

# over NAME [STATUS]: $parent has ended, and nothing is left
over() {
  local status
  if until_true 15 ended "$parent"; then
    wait "$parent"
    status=$?
    check "$1: flux run has ended${2:+ with $2}" "with $status; $(tail -n 3 "$work/$1.log" | tr '\n' ';')" [ "${2:-$status}" = $status ]
  else
    not_ok "$1: flux run's end" "still there after 15 s; $(tail -n 3 "$work/$1.log" | tr '\n' ';')"
    flux cancel --all
    wait "$parent"
  fi 2>/dev/null
  clean "$1"
}

id_of() { flux jobs -no '{id}' --name="$1"; }
shell_of() { pgrep -f "flux-shell $(flux job id --to=dec "$(id_of "$1")")\$"; }

part_ends() {
  begin outlived SPAWN_PAUSE=3 leave && over outlived 0
  begin aborted SPAWN_PAUSE=100 abort && over aborted 9
  begin cancelled SPAWN_PAUSE=100 hold && { flux cancel "$(id_of cancelled)"; over cancelled; }
}

part_lives() {
  begin lingers SPAWN_PAUSE=100 leave -o muster.spawn_linger=1 && over lingers 0
  begin shell-killed SPAWN_PAUSE=100 hold && { kill -9 "$(shell_of shell-killed)"; over shell-killed; }
  begin childs SPAWN_ABORT=5 tell && over childs 0
  check 'childs: the parent is told of the status' "$(tail -n 3 "$work/childs.log" | tr '\n' ';')" grep -q '^ENDED with 5$' "$work/childs.log"
  begin child-cancelled SPAWN_PAUSE=100 tell && { flux cancel "$(id_of spawned)"; over child-cancelled 0; }
}

only_parts calls debug streams log busy rounds many nested mpi guests ends lives
summary
