# shellcheck shell=bash disable=SC2154,SC2034  # clients and work are shared with the scripts
# SPDX-License-Identifier: BSD-3-Clause
# What the tests of two jobs that meet share, whatever starts the jobs. Sourced after lib.sh, as root; the script
# sets launch=(COMMAND OPTION...), and has begin_holder and end_holder where it harms one.

run=0

# as USER COMMAND...
as() { local user=$1; shift; setpriv --reuid "$user" --regid "$user" --init-groups "$@"; }

# part LOG OPTIONS CLIENT ARG...: one job of alice in the background; sets $job
part() {
  local log=$1 options=$2
  shift 2
  # shellcheck disable=SC2086  # options are several words
  as alice timeout -k 5 200 "${launch[@]}" $options "$@" >"$work/$log" 2>&1 </dev/null &
  job=$!
}

# both WHAT PID PID LOG LOG: whether both jobs pass
both() {
  local what=$1 first second
  wait "$2"; first=$?
  wait "$3"; second=$?
  if [ "$first $second" = '77 77' ] && grep -q '^SKIP' "$work/$4"; then
    skip "$what" "$(sed -n 's/^SKIP [a-z_]*: //p' "$work/$4" | head -n 1)"
  else
    check "$what" "$(why "$work/$4" $first); $(why "$work/$5" $second)" \
      [ "$first $second" = '0 0' ]
  fi
}

# publish WHAT CLIENT-ARG...: two jobs of two nodes each, of 4 and 3 ranks
publish() {
  local a b
  run=$((run + 1))
  part a '-N2 -n4' "$clients/publish" --part 0 --run $run --others 3 "${@:2}"; a=$job
  part b '-N2 -n3' "$clients/publish" --part 1 --run $run --others 4 "${@:2}"; b=$job
  both "$1" "$a" "$b" a b
}

groups() {
  local a b
  part a '-N2 -n4' "$clients/groups_join" --total 7 "${@:2}"; a=$job
  part b '-N2 -n3' "$clients/groups_join" --total 7 "${@:2}"; b=$job
  both "$1" "$a" "$b" a b
}

# Two jobs that have each other's names from a file connect, on nodes that do not ask, too.
connects() {
  local a b
  export CONNECT_MEET=$MUSTER_CI_DIR/shared/connect
  as alice mkdir "$CONNECT_MEET"
  part a '-N3 -n4' "$clients/connect" --mode jobs --part 0; a=$job
  part b '-N2 -n3' "$clients/connect" --mode jobs --part 1; b=$job
  both 'two jobs connect by name' "$a" "$b" a b
  rm "$CONNECT_MEET"/*
  part a '-N3 -n4' "$clients/named" --jobs 2 --part 0; a=$job
  part b '-N2 -n3' "$clients/named" --jobs 2 --part 1; b=$job
  both 'two jobs get a namespace by their connect' "$a" "$b" a b
}

# A job's process set is known on all nodes of another one that meets it, and so is its end, also on nodes whose server has
# had nothing to do with the job.
sets_end() {
  local a b
  run=$((run + 1))
  MUSTER_PSETS=gone=0-1 part a '-N2 -n4' "$clients/psets" --part 0 --run $run; a=$job
  part b '-N2 -n4' "$clients/psets" --part 1 --run $run; b=$job
  both "another job's process set ends with it" "$a" "$b" a b
}

# Open MPI 6 does not connect two nodes that have one address, as all of a cluster here have. Gives each node of it an
# interface and sets $own_address, what starts a program with that of its node.
own_address=()
own_addresses() {
  local n nodes=node address
  [ ${#own_address[@]} = 0 ] || return 0
  nodes=$(sinfo -h -o %D) || return 1
  for ((n = 1; n <= nodes; n++)); do
    address=10.77.0.$n/24
    ip link add "node$n" type veth peer name "peer$n" && ip address add "$address" dev "node$n" &&
      ip link set "node$n" up && ip link set "peer$n" up || return 1
  done
  # shellcheck disable=SC2016  # for the shell that runs the program
  printf '#!/bin/sh\nOMPI_MCA_btl_tcp_if_include=$(hostname) exec "$@"\n' >"$MUSTER_CI_DIR/shared/own_address"
  chmod 755 "$MUSTER_CI_DIR/shared/own_address"
  own_address=("$MUSTER_CI_DIR/shared/own_address")
  export OMPI_MCA_reachable=weighted # another component looks where the kernel would send, which is to itself
}

# mpi_meets NODES: MPI_Comm_accept and MPI_Comm_connect, by a published name and by a port that is in a file.
mpi_meets() {
  local a b what="MPI_Comm_accept and MPI_Comm_connect; $1 nodes"
  [ -x "$clients/mpi_meet" ] || { skip "$what" 'no mpicc'; return; }
  export OMPI_MCA_pml=ob1 OMPI_MCA_btl=self,tcp OMPI_MCA_btl_tcp_if_include=lo OMPI_MCA_mpi_yield_when_idle=1
  case $1$(mpicc --showme:version 2>/dev/null) in
    2*'Open MPI 6.'*)
      [ "${launch[0]}" = srun ] || { skip "$what" 'Open MPI 6 does not connect nodes of one address'; return; }
      own_addresses >"$work/addresses" 2>&1 || { skip "$what" "no interfaces: $(head -n 1 "$work/addresses")"; return; } ;;
  esac
  run=$((run + 1))
  export MPI_MEET_FILE=$MUSTER_CI_DIR/shared/port.$run
  part a "-N$1 -n3" "${own_address[@]}" "$clients/mpi_meet" --part 0 --run $run --others 2; a=$job
  part b "-N$1 -n2" "${own_address[@]}" "$clients/mpi_meet" --part 1 --run $run --others 3; b=$job
  both "$what" "$a" "$b" a b
}

# ---- the holder ----

no_server() { [ -z "$(pids_of muster-server)" ]; }

# An older job of alice, which lasts as long as $gate: the next ones take its server for the holder; sets $holder, $server,
# $gate
start_holder() {
  until_true 60 no_server
  : >"$work/holder"
  sleep 300 & gate=$!
  begin_holder --until "$gate" --seconds 320
  until_true 60 grep -qs "^HOLD rank" "$work/holder" || not_ok holder "$(why "$work/holder" 'not up')"
  server=$(pids_of muster-server)
  [[ $server =~ ^[0-9]+$ ]] || not_ok 'the holder is alone' "servers: $server"
}

# begin_pair K OPTIONS-OF-A OPTIONS-OF-B: two jobs that publish, look up and make groups for three seconds; adds to
# $begun
begin_pair() {
  run=$((run + 1))
  part "a$1" "$2" "$clients/publish" --part 0 --run $run --others 3 --stay 3000 --late "${LATE:-0}"; begun+=("$job a$1")
  part "b$1" "$3" "$clients/publish" --part 1 --run $run --others 2 --stay 3000 --late "${LATE:-0}"; begun+=("$job b$1")
}

# pairs_pass WHAT: whether all that have begun end well, and what context ids they had
pairs_pass() {
  local what=$1 bad='' status
  for job in "${begun[@]}"; do
    wait "${job% *}"
    status=$?
    [ $status = 0 ] || bad+="${job#* }: $(why "$work/${job#* }" $status); "
  done
  cat "$work"/a[0-9]* | sed -n '/^CONTEXT/p' >>"$work/contexts"
  check "$what" "$bad" [ -z "$bad" ]
  [ -z "$bad" ] || [ -z "${keep:-}" ] || keep_logs "$what"
}

# while_away WHAT OPTIONS COMMAND...: COMMAND harms the holder while pairs of jobs, with the launcher's OPTIONS, meet;
# some have met before, and some have only just begun
while_away() {
  local what=$1 options=$2 k begun=()
  shift 2
  start_holder
  for ((k = 0; k < pairs; k++)); do
    begin_pair $k "$options -N2 -n2" "$options -N2 -n3"
    sleep 0.3
  done
  sleep 0.5
  "$@"
  pairs_pass "$what"
  in_order
  end_holder
}

# Context ids of all pairs so far.
contexts_differ() {
  check "no context id came twice: $(wc -l <"$work/contexts")" "$(sort "$work/contexts" | uniq -d | head -n 3 | tr '\n' ';')" \
    [ -z "$(sort "$work/contexts" | uniq -d)" ]
}

# Its task finalizes.
in_order() { kill "$gate"; wait "$gate"; } 2>/dev/null
killed() { kill -9 "$server"; }
stopped() { kill -STOP "$server"; sleep 1; kill -CONT "$server"; }

# Bob asks for what alice has published, and has not taken it away. bob LOG COMMAND...: as bob
meets_nobody() {
  local a b
  run=$((run + 1))
  part a '-N1 -n2' "$clients/publish" --part 0 --run $run --others 2 --stay 1; a=$job
  timeout 200 setpriv --reuid bob --regid bob --init-groups "${launch[@]}" -N1 -n2 "$clients/publish" \
    --part 1 --run $run --others 2 --alone 1 >"$work/bob" 2>&1 </dev/null
  check "another user's job finds nothing" "$(why "$work/bob" $?)" grep -q '^PASS publish: nothing' "$work/bob"
  part b '-N1 -n2' "$clients/publish" --part 1 --run $run --others 2 --stay 1; b=$job
  both 'alice finds it after that' "$a" "$b" a b
}
