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
clients, faults or parts (jobs, nested, many ...), and choose among them; SHORT=1 runs each client in one shape only.
Prints "ok", "not ok" with the reason and "skip" lines; non-zero status when any failed.
TXT
}
case ${1:-} in -h|--help) usage; exit 0 ;; '') usage >&2; exit 2 ;; esac
# shellcheck source=ci/system/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
find_clients "$1"
shift
wanted=" $* "
bound=15 clean_bound=5

is_wanted() { case $wanted in '  '|*" $1 "*) return 0 ;; *) return 1 ;; esac; }

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
    check_logged "$shape" "${n%% *}"
    run "$shape" groups --groups 200
  done
  for shape in "${mpi_shapes[@]}"; do
    n=${shape#*-n}
    for name in mpi_hello mpi_ring mpi_sessions; do
      run "$shape" $name --ranks "${n%% *}"
    done
  done
  [ -n "${SHORT:-}" ] || run '-N4 -n8' exchange --bytes 1000000 --rounds 3
}

# ---- faults ----

# The processes of a name on the host of broker RANK.
on_broker() {
  local pid uts
  uts=$(readlink "/proc/$(flux exec -r "$1" flux getattr broker.pid)/ns/uts")
  for pid in $(pids_of "$2"); do
    [ "$(readlink "/proc/$pid/ns/uts")" != "$uts" ] || echo "$pid"
  done
}

# Servers, shells and tasks, and the servers' directories, one a line.
list_all() {
  local name pid
  for name in muster-server flux-shell hold; do
    for pid in $(pids_of $name); do echo "process $name $pid"; done
  done
  find /tmp "$MUSTER_CI_DIR/run" -name 'muster.f*' 2>/dev/null | sed 's/^/directory /'
  find /dev/shm -mindepth 1 2>/dev/null | sed 's/^/shared memory /'
}
# says NAME PATTERN: a line of the job's output
says() {
  check "$1: says why" "expected /$2/, found: $(grep -v '^HOLD' "$work/$1.log" | head -n 5 | tr '\n' ';')" \
    grep -qE "$2" "$work/$1.log"
}

# start NAME HOLD-ARG...: a held job of 8 ranks on 4 nodes in the background; sets $job
start() {
  local name=$1
  shift
  : >"$work/$name.log"
  flux run -o pmi="$MPI" --job-name="$name" -N4 -n8 "$clients/hold" --seconds 900 "$@" >"$work/$name.log" 2>&1 </dev/null &
  job=$!
  all_up "$name" "$job"
}

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
tasks_ended() { [ -z "$(for t in $1; do grep -l '^State:[[:space:]]*[^Z[:space:]]' "/proc/$t/status" 2>/dev/null; done)" ]; }
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

module() {
  is_wanted module || return 0
  list_all >"$work/before"
  flux exec -r all flux module remove muster
  refused not-loaded "muster's module is not loaded in the broker on node node[1-4]: .*flux module load /.*/muster.so"
  check 'not-loaded: jobs without it go' 'flux run -o pmi=simple true failed' \
    flux run -o pmi=simple -N4 true
  flux exec -r all flux module load /opt/muster/lib/flux/modules/muster.so
  goes 'module: loaded anew'
  flux exec -r 2 flux module reload /opt/muster/lib/flux/modules/muster.so
  goes 'module: reloaded on one broker'
  clean module
}

# The list that the shell's initrc makes the default has a PMI-1 beside PMIx.
default_pmi() {
  local status
  is_wanted default || return 0
  # shellcheck disable=SC2016  # for the task
  timeout 120 flux run -N2 -n2 sh -c 'test -n "$PMI_FD" && case $PMIX_NAMESPACE in flux.f*) ;; *) false ;; esac' >"$work/default.log" 2>&1
  status=$?
  check 'default: both PMI-1 and PMIx without -o pmi' "$(why "$work/default.log" $status)" [ $status = 0 ]
}

# Servers of a job on all brokers hang together as the brokers do, and of a job on some others as near
# to it as can be: below the first one.
trees() {
  local rank expected
  is_wanted trees || return 0
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
nested() {
  is_wanted nested || return 0
  list_all >"$work/before"
  timeout 120 flux alloc -N2 flux run -o pmi="$MPI" -N2 -n4 "$clients/exchange" --seconds 100 >"$work/nested.log" 2>&1 </dev/null
  check 'nested: a job of an instance in a job' "$(why "$work/nested.log" $?)" grep -q '^PASS exchange' "$work/nested.log"
  clean nested
}

# configure [LINE]...: the table [muster] of all brokers' settings
configure() {
  local conf=$MUSTER_CI_DIR/flux.toml rest
  rest=$(sed '/^\[muster\]/,$d' "$conf")
  { echo "$rest"; [ $# = 0 ] || printf '%s\n' '[muster]' "$@"; } >"$conf"
  flux config reload
}

# hears_ready: a job whose servers' information reaches the user, if they log it
hears_ready() { flux run -o pmi="$MPI" -o verbose -N4 -n8 "$clients/start" 2>&1 | grep -q 'ready: 2 of 8 tasks'; }

settings() {
  local dir=$MUSTER_CI_DIR/shared/tmpdir there
  is_wanted settings || return 0
  list_all >"$work/before"
  check 'settings: information is not logged by default' 'it was' eval '! hears_ready'
  configure 'log_level = "info"'
  check 'settings: the table [muster] counts' 'information was not logged' hears_ready
  mkdir "$dir"
  configure "tmpdir = \"$dir\""
  if start settings --sleep 3; then
    there=$(find "$dir" -maxdepth 1 -name 'muster.f*' -perm 700 | wc -l)
    check 'settings: the servers are in tmpdir' "found $there of 4 directories" [ "$there" = 4 ]
    wait "$job"
    check 'settings: the job' "$(why "$work/settings.log" $?)" grep -q '^PASS hold' "$work/settings.log"
  fi
  clean settings
  check 'settings: tmpdir is empty again' "found $(ls "$dir")" rmdir "$dir"
  refused no-tmpdir "cannot open the directory tmpdir=$dir: No such file"
  configure 'tmpdir = ""'
  check 'settings: an empty tmpdir is the default' 'a job failed' \
    flux run -o pmi="$MPI" -N4 -n8 "$clients/start"
  # shellcheck disable=SC2016  # for eval
  check 'settings: a mistake is refused' "$(cat "$work/mistake.log" 2>/dev/null)" \
    eval '! configure "on_task_loss = \"sometimes\"" >"$work/mistake.log" 2>&1 && grep -q on_task_loss "$work/mistake.log"'
  configure
}

# asks RANK STEP: muster-status there knows whom the job waits for
asks() {
  flux exec -r "$1" /opt/muster/bin/muster-status "$2" >"$work/muster-status.log" 2>&1
  check "status: on broker $1, of two jobs, by ${2%"${2#?}"}..." "$(head -n 3 "$work/muster-status.log" | tr '\n' ';')" \
    grep -qE 'construct has waited .*: missing ranks? .*7.* on node4' "$work/muster-status.log"
}

# The job's id is enough, in any form, where two jobs of the user are on the broker.
status() {
  local id other job_of_other
  is_wanted status || return 0
  list_all >"$work/before"
  start other || return
  other=$job
  start status --victim 7 --delay 4000 --how exit --in construct || return
  id=$(flux jobs -n --name=status -o '{id.dec}')
  asks 2 "$(flux job id --to=f58 "$id")"
  asks 0 "$(flux job id --to=f58plain "$id")"
  asks 3 "$id"
  job_of_other=$(flux jobs -n --name=other -o '{id}')
  flux exec -r 1 /opt/muster/bin/muster-status "$job_of_other" >"$work/muster-status.log" 2>&1
  check 'status: the other one of the two' "$(head -n 3 "$work/muster-status.log" | tr '\n' ';')" \
    eval "grep -q '4 of 4 nodes answer' '$work/muster-status.log' && ! grep -q construct '$work/muster-status.log'"
  wait "$job"
  flux cancel "$job_of_other"
  wait "$other"
  flux exec -r 1 /opt/muster/bin/muster-status "$job_of_other" >"$work/muster-status.log" 2>&1
  check 'status: where it was looked for' "$(cat "$work/muster-status.log")" \
    grep -q 'no server of step .* runs on this node.*/jobtmp-' "$work/muster-status.log"
  clean status
}

# What the modules of all brokers say of operations, a line each: "RANK silent WHY", "RANK KIND STATE COUNT"
# (of the broker's sums), "RANK KIND STATE missing NODE RANKS".
stats_lines() {
  timeout 60 flux python - <<'PY'
import flux

handle = flux.Flux()
for rank in range(int(handle.attr_get("size"))):
    stats = handle.rpc("muster.stats-get", nodeid=rank).get()
    for kind, states in stats.get("under_way", {}).items():
        for state, count in states.items() if kind != "waits" else ():
            print(rank, kind, state, count)
    for server in stats["servers"]:
        if "silent" in server:
            print(rank, "silent", server["silent"])
        for tracker in server.get("state", {}).get("trackers", []):
            for missing in tracker["missing"]:
                print(rank, tracker["kind"], tracker["state"], "missing", missing["node"], missing["ranks"])
    print(rank, "servers", len(stats["servers"]))
PY
}

# stats_say PATTERN...: whether there is such a line for each
stats_say() {
  local pattern
  stats_lines >"$work/stats.lines" 2>&1
  for pattern in "$@"; do grep -qE "^[0-3] $pattern\$" "$work/stats.lines" || return; done
}
nothing_in_stats() { stats_say 'servers 0' && [ "$(wc -l <"$work/stats.lines")" = "$(flux getattr size)" ]; }
found_stats() { tr '\n' ';' <"$work/stats.lines"; }

# hangs KIND RANK NODE STATE [OPTION]: a job in such an operation, which RANK on NODE does not call, so that who
# decides is in that state; before and after the module is loaded anew with OPTION
hangs() {
  local kind=$1 rank=$2 waits="$1 $4 missing $3 .*$2.*" hung
  list_all >"$work/before"
  start "stats-$kind" --victim "$rank" --delay 60000 --how exit --in "$kind" || return
  until_true 10 stats_say "$kind $4 1" "$waits" 'servers 1'
  check "stats: a $kind that waits, and for whom" "found $(found_stats)" stats_say "$kind $4 1" "$waits" 'servers 1'
  if [ "$(id -u)" = 0 ]; then
    hung=$(on_broker 3 muster-server)
    kill -STOP "$hung"
    check "stats: a server that hangs in a $kind, and the others" "found $(found_stats)" \
      stats_say 'silent no answer within 2 s' "$waits"
    kill -CONT "$hung"
  fi
  flux exec -r all flux module reload "${@:5}" /opt/muster/lib/flux/modules/muster.so
  check "stats: the same when the module was loaded anew${5:+ ($5)}" "found $(found_stats)" \
    until_true 10 stats_say "$kind $4 1" "$waits"
  flux cancel --all
  wait "$job"
  check "stats: nothing of it afterwards" "found $(found_stats)" until_true 10 nothing_in_stats
  clean "stats-$kind"
}

stats() {
  is_wanted stats || return 0
  hangs construct 7 node4 gather --exec
  hangs fence 1 node1 early
}

# Many at once, each with a directory, a server and a registration on each node.
many() {
  local i pids=() failures
  is_wanted many || return 0
  list_all >"$work/before"
  for i in 1 2 3 4 5 6; do
    timeout 100 flux run -o pmi="$MPI" -N4 -n8 "$clients/exchange" --seconds 90 >"$work/many.$i" 2>&1 </dev/null &
    pids+=($!)
  done
  wait "${pids[@]}"
  failures=$(cat "$work"/many.* | grep -v '^PASS')
  check 'many: six jobs at once' "$(head -n 3 <<<"$failures" | tr '\n' ';')" \
    [ "$(cat "$work"/many.* | grep -c '^PASS')" = 6 ]
  clean many
}

# survive NAME ARG...: a client of which a rank is killed, and whose job goes on
survive() {
  local log=$work/$1.log status
  timeout 120 flux run -o pmi="$MPI" -o exit-timeout=none -N4 -n8 "$clients/$1" "${@:2}" --seconds 100 >"$log" 2>&1 </dev/null
  status=$?
  if grep -q "^SKIP $1:" "$log"; then
    skip "$*" "$(sed -n "s/^SKIP $1: //p" "$log" | head -n 1)"
  else
    check "$*: the others go on" "$(why "$log" $status)" \
      eval "[[ $status = 13[78] ]] && [ \$(grep -c '^PASS $1:' '$log') = 1 ] && ! grep -qE '^FAIL|watchdog' '$log'"
  fi
}

survivors() {
  local who
  is_wanted survivors || return 0
  list_all >"$work/before"
  configure 'on_task_loss = "continue"'
  for who in member invitee leader group; do survive losses --who $who; done
  configure
  clean survivors
}

# ---- jobs that form groups with each other ----

# join JOB...: jobs at once, each "SHAPE|ARGUMENTS of groups_join"; sets $statuses, one each, and leaves
# their output in $work/join.0, $work/join.1 ...
join() {
  local spec pid pids=() n=0
  statuses=''
  for spec in "$@"; do
    # shellcheck disable=SC2086  # several words
    timeout 120 flux run -o pmi="$MPI" ${spec%|*} "$clients/groups_join" --seconds 100 ${spec#*|} >"$work/join.$n" 2>&1 </dev/null &
    pids+=($!)
    n=$((n + 1))
  done
  for pid in "${pids[@]}"; do
    wait "$pid"
    statuses+=${statuses:+ }$?
  done
}

# join_tells N: the line of each of the N logs that tells most
join_tells() { local i; for ((i = 0; i < $1; i++)); do why "$work/join.$i" "$(cut -d ' ' -f $((i + 1)) <<<"$statuses")"; done | tr '\n' ';'; }

# joined WHAT JOB...: all of them pass, and nobody is said to be lost
joined() {
  local what=$1 n=$(($# - 1)) logs
  shift
  join "$@"
  logs=$(eval echo "$work/join.{0..$((n - 1))}")
  # shellcheck disable=SC2086  # several files
  check "jobs: $what" "$(join_tells $n)" eval "[ \$(cat $logs | grep -c '^PASS groups_join') = $n ] && [ -z '${statuses//[0 ]/}' ]"
  # shellcheck disable=SC2086
  check "jobs: $what: nobody was said to be lost" "$(cat $logs | grep -E -m 3 'lost|dropped|refused')" \
    eval "! cat $logs | grep -qE 'lost|dropped|refused'"
}

jobs_part() {
  is_wanted jobs || return 0
  list_all >"$work/before"
  join '-N1 -n1|--total 1 --jobs 1'
  if grep -q '^SKIP' "$work/join.0"; then
    skip jobs "$(sed -n 's/^SKIP [a-z_]*: //p' "$work/join.0")"
    return
  fi
  joined 'two jobs on one node each' '-N1 -n2|--total 4' '-N1 -n2|--total 4'
  joined 'two jobs on the same nodes' '-N4 -n8|--total 16' '-N4 -n8|--total 16'
  joined 'three jobs of different sizes' '-N3 -n5|--total 10 --jobs 3' '-N1 -n1|--total 10 --jobs 3' '-N2 -n4|--total 10 --jobs 3'
  joined 'a job that ends while the other waits for it' '-N2 -n4|--total 6 --quit 1 --part 0' '-N1 -n2|--total 6 --quit 1 --part 1'
  join '-N2 -n4|--total 6 --quit 2 --part 0' '-N1 -n2|--total 6 --quit 2 --part 1'
  check 'jobs: a job that is killed while the other waits for it' "$(join_tells 2)" \
    eval "grep -q '^PASS groups_join: 4 of 6' '$work/join.0' && [ '${statuses% *}' = 0 ] && [ '${statuses#* }' != 0 ]"
  # Of an instance in a job, which is a session of its own.
  # shellcheck disable=SC2016  # for the shell there
  timeout 100 flux alloc -N2 sh -c '
    flux run -o pmi="$1" -N1 -n2 "$0" --total 4 --seconds 80 & flux run -o pmi="$1" -N1 -n2 "$0" --total 4 --seconds 80; wait' \
    "$clients/groups_join" "$MPI" >"$work/join.nested" 2>&1 </dev/null
  check 'jobs: two jobs of an instance in a job' "$(why "$work/join.nested" $?)" \
    [ "$(grep -c '^PASS groups_join' "$work/join.nested")" = 2 ]
  clean jobs
  # shellcheck disable=SC2016  # for eval
  check 'jobs: where they met is forgotten' "$(flux module stats muster)" \
    until_true 5 eval 'flux module stats muster | grep -q "\"meetings\": *0"'
}

# ---- jobs of several users ----

# submit_as USER SHAPE CLIENT [ARG]...: a job of another user than the instance's owner; prints its id
submit_as() {
  local uid spec
  uid=$(id -u "$1") spec=$work/spec.$1
  # shellcheck disable=SC2086  # a shape is several words
  flux submit --dry-run --cwd=/tmp -o pmi="$MPI" $2 "$clients/$3" "${@:4}" >"$spec"
  { printf 'version\0i1\0userid\0i%s\0mechanism\0snone\0' "$uid" | base64 -w 0; echo -n .; base64 -w 0 "$spec"; echo .none; } >"$spec.signed"
  FLUX_HANDLE_USERID=$uid flux job submit --flags=signed "$spec.signed"
}

# attach ID USER: waits for a job; its output is in $work/USER.log
attach() { timeout 90 flux job attach "$1" >"$work/$2.log" 2>&1 </dev/null; }

users_part() {
  local id other uri status users
  is_wanted users || return 0
  if [ "$(id -u)" != 0 ]; then skip users 'needs root, for jobs of others'; return; fi
  list_all >"$work/before"
  for uri in $(flux exec -r all flux getattr local-uri) "/$(flux getattr rundir)/"; do uri=${uri#*/}; chmod o+rx "${uri%/*}"; done
  id=$(submit_as alice '-N4 -n8' exchange --seconds 60)
  other=$(submit_as bob '-N4 -n8' exchange --seconds 60)
  attach "$id" alice
  status=$?
  attach "$other" bob
  check 'users: jobs of two users on the same nodes' "$(why "$work/alice.log" $status) $(why "$work/bob.log" $?)" \
    [ "$(cat "$work"/{alice,bob}.log | grep -c '^PASS exchange')" = 2 ]
  id=$(submit_as alice '-N4 -n8' hold --sleep 3)
  attach "$id" alice &
  until_true 20 all_hold "$work/alice.log"
  users=$(ps -o user= -C muster-server,flux-shell,hold | sort | uniq -c | tr -s ' \n' ' ')
  check 'users: shells, servers and tasks are the user'\''s' "found $users" [ "$users" = ' 16 alice ' ]
  wait $!
  check 'users: and the job passes' "$(why "$work/alice.log" $?)" grep -q '^PASS hold' "$work/alice.log"
  configure 'timeouts.construct = 4'
  id=$(submit_as alice '-N1 -n2' groups_join --total 4 --seconds 60)
  other=$(submit_as bob '-N1 -n2' groups_join --total 4 --seconds 60)
  attach "$id" alice
  attach "$other" bob
  if grep -q '^SKIP' "$work/alice.log"; then
    skip 'users: a bootstrap' "$(sed -n 's/^SKIP [a-z_]*: //p' "$work/alice.log" | head -n 1)"
  else
    check 'users: leaders of two users do not meet' "$(grep -hm 1 ^FAIL "$work"/{alice,bob}.log | tr '\n' ';')" \
      eval "grep -q 'found PMIX_ERR_TIMEOUT' '$work/alice.log' && grep -q 'found PMIX_ERR_TIMEOUT' '$work/bob.log' && ! cat '$work'/{alice,bob}.log | grep -q '^PASS'"
  fi
  configure
  clean users
}

kill_broker() {
  local broker
  broker=$(flux exec -r 3 flux getattr broker.pid)
  kill -9 "$broker"
}

if [ "$MPI" != muster ]; then clients; summary; exit; fi
clients
default_pmi
trees
nested
many
jobs_part
users_part
survivors
settings
status
stats
module
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
