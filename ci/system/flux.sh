#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# ci/system/flux.sh: the test clients under flux run, and what happens when a part is lost.
# shellcheck disable=SC2154,SC2034  # clients and work are shared with lib.sh
set -uo pipefail
usage() {
  cat <<'TXT'
usage: ci/flux -N 4 [OPTION]... -- ci/system/flux.sh BUILDDIR [NAME]...

Runs the clients in BUILDDIR (or BUILDDIR/ci/clients) by flux run, in several shapes of
job, and then the faults: a task, a server or a shell is killed, a job is cancelled, the
module is not loaded or loaded anew, and in the end a broker is killed. Each time the job
ends within 15 s, the user reads why, and within 5 s nothing of it is left. NAMEs are of
clients, faults or parts (default, trees, nested ...), and choose among them; SHORT=1 runs each client in one shape only.
Prints "ok", "not ok" with the reason and "skip" lines; non-zero status when any failed.
TXT
}
# shellcheck source=ci/system/flux_lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/flux_lib.sh"
bound=15

# ---- the clients ----

shapes=('-N4 -n8' '-N1 -n4' '-N4 -n16' '-N2 -n3' '-N4 -n8 --taskmap=cyclic')
[ -z "${SHORT:-}" ] || shapes=('-N4 -n8')

# Open MPI 6.0.0rc2 does not connect between nodes that are one machine.
mpi_shapes=("${shapes[@]}")
case $(mpicc --showme:version 2>/dev/null) in *'Open MPI 6.'*) mpi_shapes=('-N1 -n4' '-N1 -n2') ;; esac

# run SHAPE NAME [ARG]...: one client in one shape
run() {
  local shape=$1 name=$2 log="$work/$2.log" status seconds=100 tries=0
  shift 2
  is_wanted "$name" || return 0
  local what="$name${*:+ $*} ($shape)"
  if [ ! -x "$clients/$name" ]; then skip "$what" 'not built'; return; fi
  case $name in mpi_*) seconds=40 tries=3 ;; esac
  # shellcheck disable=SC2086  # a shape is several words
  timeout 120 flux run -o pmi="$MPI" $shape "$clients/$name" "$@" --seconds "$seconds" >"$log" 2>&1 </dev/null
  status=$?
  # Open MPI's own, on a busy machine: docs/limits.md, "Open MPI". Said, and run again.
  while [ $status != 0 ] && [ $tries -gt 0 ] && grep -q '^rank.*watchdog: still in: MPI_' "$log"; do
    skip "$what: one try" "it hung in $(sed -n 's/^rank.*watchdog: still in: //p' "$log" | head -n 1); see docs/limits.md"
    tries=$((tries - 1))
    # shellcheck disable=SC2086
    timeout 120 flux run -o pmi="$MPI" $shape "$clients/$name" "$@" --seconds "$seconds" >"$log" 2>&1 </dev/null
    status=$?
  done
  judge "$what" "$name" "$status" "$log"
}

check_logged() {
  local shape=$1 n=$2 found
  is_wanted logq || return 0
  found=$(grep -o 'logq: rank [0-9]* wrote this' "$work/logq.log" | sort -u | wc -l)
  check "logq's lines ($shape)" "expected $n, found $found" [ "$found" = "$n" ]
}

clients() {
  local shape name n
  if [ -z "${SHORT:-}" ]; then
    for shape in '-N3 -n7' '-N1 -n1' '-N4 -n8 --taskmap=manual:[[0,2,1,2],[2,1,2,1],[3,1,2,1]]' \
      '-N4 -n9 --taskmap=cyclic:2' '-N4 -n8 -o cpu-affinity=off'; do
      run "$shape" keys
    done
  fi
  ! is_wanted keys || keys_below ü flux run -o pmi="$MPI" -N2 -n4
  for shape in "${shapes[@]}"; do
    clients_of "$shape"
    for name in "${of_shape[@]}" modex barrier; do
      run "$shape" "$name"
    done
    n=${shape#*-n}
    [[ " ${of_shape[*]} " != *' logq '* ]] || check_logged "$shape" "${n%% *}"
    run "$shape" groups --groups 200
  done
  # unbuffered: pieces that are no whole lines
  [ "$MPI" != muster ] || run '-u -N2 -n4 --taskmap=cyclic' pull
  for shape in "${mpi_shapes[@]}"; do
    n=${shape#*-n}
    for name in mpi_hello mpi_ring mpi_sessions; do
      run "$shape" $name --ranks "${n%% *}"
    done
  done
  [ -n "${SHORT:-}" ] || run '-N4 -n8' exchange --bytes 1000000 --rounds 3
}

# ---- faults ----

# harmed NAME PATTERN FAULT HOLD-ARG...: FAULT is a function that does the harm to a held job
harmed() {
  local name=$1 pattern=$2 fault=$3 begin
  shift 3
  is_wanted "$name" || return 0
  list_all >"$work/before"
  start "$name" "$@" || return
  begin=$SECONDS
  "$fault" "$name" || not_ok "$name: the harm" 'nothing was there to be harmed'
  if until_true $bound ended "$job"; then
    wait "$job"
    check "$name: the job ended in $((SECONDS - begin)) s with an error" "status $?" [ $? != 0 ]
  else
    not_ok "$name: the job's end" "still there after $bound s; $(tail -n 1 "$work/$name.log")"
    flux cancel --all
    wait "$job"
  fi 2>/dev/null
  says "$name" "$pattern"
  check "$name: the cause is the job's first exception" "$(grep -m 1 job.exception "$work/$name.log")" \
    eval "grep -m 1 job.exception '$work/$name.log' | grep -qE '$pattern'"
  check "$name: nobody was told of success" "$(grep -m 1 '^FAIL' "$work/$name.log")" \
    [ "$(grep -c '^FAIL' "$work/$name.log")" = 0 ]
  clean "$name"
}

itself() { :; }
kill_task() { on_broker 1 hold | sed -n 1p | xargs kill -9; }
# Whose host its is only root may see.
kill_server() { pids_of muster-server | sed -n 1p | xargs kill -9; }
# Its shell says nothing before the others have had the job ended. Whose host it is only root may see.
kill_server_behind_shell() {
  local shell
  shell=$(on_broker 1 flux-shell)
  kill -STOP "$shell"
  on_broker 1 muster-server | xargs kill -9
  until_true 10 grep -q job.exception "$work/$1.log"
  kill -CONT "$shell"
}
# Its tasks have ended by it before its shell looks; those of other nodes have ended in order, or wait.
kill_server_with_tasks() {
  local shell tasks
  shell=$(on_broker 1 flux-shell)
  tasks=$(on_broker 1 hold)
  kill -STOP "$shell"
  on_broker 1 muster-server | xargs kill -9
  until_true 10 tasks_ended "$tasks"
  kill -CONT "$shell"
}
kill_shell() { on_broker 1 flux-shell | xargs kill -9; }
cancel() { flux cancel --all; }

# goes NAME: a job passes
goes() {
  timeout 120 flux run -o pmi="$MPI" -N4 -n8 "$clients/exchange" --seconds 100 >"$work/goes.log" 2>&1 </dev/null
  check "$1" "$(why "$work/goes.log" $?)" grep -q '^PASS exchange' "$work/goes.log"
}

# refused NAME PATTERN: a job fails at once and says why
refused() {
  local status begin=$SECONDS
  timeout 120 flux run -o pmi="$MPI" -N4 -n8 "$clients/start" >"$work/$1.log" 2>&1 </dev/null
  status=$?
  check "$1: the job ends with an error within 10 s" "$(why "$work/$1.log" $status), $((SECONDS - begin)) s" \
    eval "[ $status != 0 ] && [ $((SECONDS - begin)) -le 10 ]"
  says "$1" "$2"
}

part_module() {
  flux exec -r all flux module remove muster
  refused not-loaded "muster's module is not loaded in the broker on node node[1-4]: .*flux module load /.*/muster.so"
  check 'not-loaded: jobs without it go' 'flux run -o pmi=simple true failed' \
    flux run -o pmi=simple -N4 true
  flux exec -r all flux module load /opt/muster/lib/flux/modules/muster.so
  goes 'module: loaded anew'
  flux exec -r 2 flux module reload /opt/muster/lib/flux/modules/muster.so
  goes 'module: reloaded on one broker'
}

# The list that the shell's initrc makes the default has a PMI-1 beside PMIx.
part_default() {
  local status
  # shellcheck disable=SC2016  # for the task
  timeout 120 flux run -N2 -n2 sh -c 'test -n "$PMI_FD" && case $PMIX_NAMESPACE in flux.f*) ;; *) false ;; esac' >"$work/default.log" 2>&1
  status=$?
  check 'default: both PMI-1 and PMIx without -o pmi' "$(why "$work/default.log" $status)" [ $status = 0 ]
}

# Servers of a job on all brokers hang together as the brokers do, and of a job on some others as near
# to it as can be: below the first one.
part_trees() {
  local rank expected
  configure 'log_level = "info"'
  flux run -o pmi="$MPI" -o verbose -N4 -n4 "$clients/start" >"$work/trees.log" 2>&1 </dev/null
  expected=$(for rank in 1 2 3; do echo "node$((rank + 1)): trees of servers: below node$(($(flux overlay parentof $rank) + 1))"; done)
  check "trees: in the shape $(flux getattr tbon.topo)" "expected $expected, found $(grep trees: "$work/trees.log" | tr '\n' ';')" \
    [ "$(grep -o 'node[234]: trees of servers: .*' "$work/trees.log" | sort)" = "$expected" ]
  flux run -o pmi="$MPI" -o verbose --requires=ranks:1-3 -N3 -n3 "$clients/start" >"$work/trees.log" 2>&1 </dev/null
  check 'trees: without the broker above all' "$(grep trees: "$work/trees.log" | tr '\n' ';')" \
    grep -q 'node2: trees of servers: at the root' "$work/trees.log"
  configure
}

# An instance in a job of the instance, which has a module of its own.
part_nested() {
  timeout 120 flux alloc -N2 flux run -o pmi="$MPI" -N2 -n4 "$clients/exchange" --seconds 100 >"$work/nested.log" 2>&1 </dev/null
  check 'nested: a job of an instance in a job' "$(why "$work/nested.log" $?)" grep -q '^PASS exchange' "$work/nested.log"
}

# Of a shell and a server that are killed together nobody says so, and no operation waits for them. The directory
# stays, until the next job there.
part_swept() {
  local status
  if [ "$(id -u)" != 0 ]; then skip swept 'whose host a server is on only root sees'; return; fi
  start swept || return
  { on_broker 1 flux-shell; on_broker 1 muster-server; } | kill_together
  until_true $bound ended "$job" || { not_ok 'swept: the end of a job that waits for nothing' "still there after $bound s"; flux cancel --all; }
  wait "$job"
  status=$?
  check 'swept: its status is 137' "status $status; $(grep -m 1 job.exception "$work/swept.log")" [ $status = 137 ]
  says swept 'job.exception.*muster-server on node2 is lost: its process has ended'
  check 'swept: a directory stays of the two that were killed' "$(list_all | tr '\n' ';')" \
    eval "list_all | grep -q '^directory .*/jobtmp-1-'"
  flux run -o pmi="$MPI" -N4 -n8 "$clients/start" >"$work/swept.log" 2>&1 </dev/null
}

# hears_ready: a job whose servers' information reaches the user, if they log it
hears_ready() { flux run -o pmi="$MPI" -o verbose -N4 -n8 "$clients/start" 2>&1 | grep -q 'ready: 2 of 8 tasks'; }

part_settings() {
  local dir=$MUSTER_CI_DIR/shared/tmpdir there token
  check 'settings: information is not logged by default' 'it was' eval '! hears_ready'
  configure 'log_level = "info"'
  check 'settings: the table [muster] counts' 'information was not logged' hears_ready
  mkdir "$dir"
  configure "tmpdir = \"$dir\""
  sleep 300 &
  token=$!
  if start settings --until $token; then
    there=$(find "$dir" -maxdepth 1 -name 'muster.f*' -perm 700 | wc -l)
    check 'settings: the servers are in tmpdir' "found $there of 4 directories" [ "$there" = 4 ]
    kill $token
    wait $token 2>/dev/null
    wait "$job"
    check 'settings: the job' "$(why "$work/settings.log" $?)" grep -q '^PASS hold' "$work/settings.log"
  fi
  check 'settings: tmpdir is empty again' "found $(ls "$dir")" until_true $clean_bound rmdir "$dir" 2>/dev/null
  refused no-tmpdir "cannot open the directory tmpdir=$dir: No such file"
  configure 'tmpdir = ""'
  check 'settings: an empty tmpdir is the default' 'a job failed' \
    flux run -o pmi="$MPI" -N4 -n8 "$clients/start"
  # shellcheck disable=SC2016  # for eval
  check 'settings: a mistake is refused' "$(cat "$work/mistake.log" 2>/dev/null)" \
    eval '! configure "on_task_loss = \"sometimes\"" >"$work/mistake.log" 2>&1 && grep -q on_task_loss "$work/mistake.log"'
  configure
}

kill_broker() {
  local broker
  broker=$(flux exec -r 3 flux getattr broker.pid)
  kill -9 "$broker"
}

if [ "$MPI" != muster ]; then clients; summary; exit; fi
clients
parts default trees nested swept settings module
harmed kill-task 'rank [0-9] on node2 was killed by signal 9' kill_task
harmed kill-in-fence 'rank 2 on node2 (was killed by signal 9|(is lost|has ended); then)' itself --victim 2 --in fence
harmed exit-in-construct 'rank 5 on node3 ended with exit code 7' itself --victim 5 --how exit --in construct
harmed abort 'hold was told to abort' itself --victim 3 --how abort
dead='muster-server (of job f[0-9A-Za-z]+ died on node|on) node[1-4]'
harmed kill-server "$dead" kill_server
harmed kill-server-in-construct "$dead" kill_server --victim 7 --delay 60000 --how exit --in construct
[ "$(id -u)" != 0 ] || harmed kill-server-with-tasks "$dead" kill_server_with_tasks --victim 7 --delay 60000 --how exit --in construct
[ "$(id -u)" != 0 ] || harmed kill-server-behind-shell 'muster-server on node2 is lost' kill_server_behind_shell --victim 7 --delay 60000 --how exit --in construct
harmed kill-shell 'the shell of job f[0-9A-Za-z]+ on node node2 was killed' kill_shell
harmed cancel 'type=cancel' cancel
harmed kill-broker 'muster-server on node4 is lost|node4' kill_broker --victim 7 --delay 60000 --how exit --in construct
summary
