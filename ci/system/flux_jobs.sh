#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# ci/system/flux_jobs.sh: several jobs at once under Flux, of one user and of several; what is shown of them.
# shellcheck disable=SC2154,SC2034  # clients and work are shared with lib.sh
set -uo pipefail
usage() {
  cat <<'TXT'
usage: ci/flux -N 4 [OPTION]... -- ci/system/flux_jobs.sh BUILDDIR [PART]...

Runs jobs of the clients in BUILDDIR (or BUILDDIR/ci/clients) at once: many (six), jobs (they form groups
with each other), meet (they publish and look up, also while the module is loaded anew, and connect by name, and by MPI), direct
(servers connect to each other, do not, or meet a firewall), psets (sets that the user names), users (jobs of others than the instance's owner), survivors (a rank is lost and the job goes
on); and looks at jobs that hang: status (muster-status, muster-attach), late (counts, a trace, a pause), stats (flux module stats).
Prints "ok", "not ok" with the reason and "skip" lines; non-zero status when any failed.
TXT
}
# shellcheck source=ci/system/flux_lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/flux_lib.sh"

# Many at once, each with a directory, a server and a registration on each node.
part_many() {
  local i pids=() failures
  for i in 1 2 3 4 5 6; do
    timeout 100 flux run -o pmi="$MPI" -N4 -n8 "$clients/exchange" --seconds 90 >"$work/many.$i" 2>&1 </dev/null &
    pids+=($!)
  done
  wait "${pids[@]}"
  failures=$(cat "$work"/many.* | grep -v '^PASS')
  check 'many: six jobs at once' "$(head -n 3 <<<"$failures" | tr '\n' ';')" \
    [ "$(cat "$work"/many.* | grep -c '^PASS')" = 6 ]
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

part_survivors() {
  local who
  configure 'on_task_loss = "continue"'
  for who in member invitee leader group; do survive losses --who $who; done
  configure
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

# joined WHAT JOB...: all of them pass, and no log says that a process is lost
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

# meetings N: whether so many users' servers meet
meetings() { flux module stats muster | grep -q "\"meetings\": *$1"; }

# Leaders wait at the server of a third job, as that has published first, and that server is killed.
their_holder_dies() {
  local server publisher first
  configure 'log_level = "debug"'
  until_true 20 meetings 0 || not_ok 'jobs: no meeting is left' "$(flux module stats muster)"
  part 0 '-N1 -n1' "$clients/publish" --part 0 --run 9 --others 1; publisher=$job
  until_true 20 meetings 1 || not_ok 'jobs: a holder' "$(tail -n 1 "$work/meet.0")"
  server=$(pids_of muster-server)
  part 1 '-o verbose=2 -N1 -n2' "$clients/groups_join" --total 4; first=$job
  until_true 20 grep -q 'holder: seeks, then follows' "$work/meet.1" || not_ok 'jobs: a leader waits' "$(tail -n 1 "$work/meet.1")"
  kill -9 "$server"
  part 0 '-N1 -n2' "$clients/groups_join" --total 4
  met 'leaders wait at a server that is killed' groups_join "$job" "$first"
  wait "$publisher"
  configure
}

part_jobs() {
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
  their_holder_dies
  # Of an instance in a job, which is a session of its own.
  # shellcheck disable=SC2016  # for the shell there
  timeout 100 flux alloc -N2 sh -c '
    flux run -o pmi="$1" -N1 -n2 "$0" --total 4 --seconds 80 & flux run -o pmi="$1" -N1 -n2 "$0" --total 4 --seconds 80; wait' \
    "$clients/groups_join" "$MPI" >"$work/join.nested" 2>&1 </dev/null
  check 'jobs: two jobs of an instance in a job' "$(why "$work/join.nested" $?)" \
    [ "$(grep -c '^PASS groups_join' "$work/join.nested")" = 2 ]
  check 'jobs: where they met is forgotten' "$(flux module stats muster)" until_true 5 meetings 0
}

# ---- jobs that meet ----

# part N SHAPE CLIENT ARG...: one of two jobs, in the background; its output is in $work/meet.N; sets $job
part() {
  local n=$1 shape=$2
  shift 2
  # shellcheck disable=SC2086  # a shape is several words
  timeout 120 flux run -o pmi="$MPI" $shape "$@" --seconds 100 >"$work/meet.$n" 2>&1 </dev/null &
  job=$!
}

# met WHAT CLIENT PID PID: both jobs pass
met() {
  local first second
  wait "$3"; first=$?
  wait "$4"; second=$?
  check "meet: $1" "$(why "$work/meet.0" $first); $(why "$work/meet.1" $second)" \
    eval "[ '$first $second' = '0 0' ] && [ \$(cat '$work'/meet.[01] | grep -c '^PASS $2') = 2 ]"
}

# publishers RUN ARG...: two jobs that find each other's values; sets $first and $second
publishers() {
  local run=$1
  shift
  part 0 '-N2 -n4' "$clients/publish" --part 0 --run "$run" --others 3 "$@"; first=$job
  part 1 '-N2 -n3' "$clients/publish" --part 1 --run "$run" --others 4 "$@"; second=$job
}
publish_waits() { flux module stats muster | grep -q '"client"'; }

part_meet() {
  local first second
  publishers 1 --bound 1
  met 'two jobs publish and look up' publish "$first" "$second"
  publishers 2 --stay 3000
  until_true 20 publish_waits || not_ok 'meet: publishers' 'they do not come up'
  flux exec -r all flux module reload /opt/muster/lib/flux/modules/muster.so
  met 'they do so while the module is loaded anew' publish "$first" "$second"
  export CONNECT_MEET=$MUSTER_CI_DIR/shared/connect
  mkdir "$CONNECT_MEET"
  part 0 '-N3 -n4' "$clients/connect" --mode jobs --part 0; first=$job
  part 1 '-N2 -n3' "$clients/connect" --mode jobs --part 1; second=$job
  met 'two jobs connect by name' connect "$first" "$second"
  rm "$CONNECT_MEET"/*
  part 0 '-N3 -n4' "$clients/named" --jobs 2 --part 0; first=$job
  part 1 '-N2 -n3' "$clients/named" --jobs 2 --part 1; second=$job
  met 'two jobs get a namespace by their connect' named "$first" "$second"
  mpi_meets
}

# By a published name, and by a port that is in a file.
mpi_meets() {
  local first second what='MPI_Comm_accept and MPI_Comm_connect, two nodes each'
  case $(mpicc --showme:version 2>/dev/null) in
    '') skip "meet: $what" 'no mpicc'; return ;;
    *'Open MPI 6.'*) skip "meet: $what" 'Open MPI 6 does not connect between nodes that are one machine'; return ;;
  esac
  export MPI_MEET_FILE=$MUSTER_CI_DIR/shared/port
  part 0 '-N2 -n3' "$clients/mpi_meet" --part 0 --run 1 --others 2; first=$job
  part 1 '-N2 -n2' "$clients/mpi_meet" --part 1 --run 1 --others 3; second=$job
  met "$what" mpi_meet "$first" "$second"
}

# ---- direct connections, and none ----

# exchanged WHAT PATTERN [SECONDS]: a job passes, and its servers say that of their connections, within as long behind it
exchanged() {
  local status
  # shellcheck disable=SC2016  # for the task's shell
  timeout 120 flux run -o pmi="$MPI" -o verbose -N4 -n8 sh -c '"$0" --seconds 60 --rounds 20 && sleep "$1"' \
    "$clients/exchange" "${3:-0}" >"$work/exchanged.log" 2>&1 </dev/null
  status=$?
  judge "direct: $1" exchange $status "$work/exchanged.log"
  says exchanged "$2"
}
connected='transport: a direct connection (to|from) node'
refused='transport: no direct connection with node[1-4]: .* messages go by Flux.s brokers'

# What comes for these ports is dropped from now on; part_direct has servers listen there.
firewall() { nft "add table inet muster; add chain inet muster in { type filter hook input priority 0; }; add rule inet muster in tcp dport 41000-41199 drop"; }
no_firewall() { nft delete table inet muster; }

part_direct() {
  configure 'log_level = "info"'
  exchanged 'on' "$connected"
  configure 'log_level = "info"' 'direct.mode = "off"'
  exchanged 'off' 'ready: 2 of 8 tasks'
  check 'direct: off means none' "$(grep -m 1 'direct connection' "$work/exchanged.log")" eval "! grep -q 'direct connection' '$work/exchanged.log'"
  if [ "$(id -u)" = 0 ] && command -v nft >/dev/null; then
    configure 'log_level = "info"' 'direct.port = 41000' 'direct.ports = 200'
    firewall
    exchanged 'a firewall drops all' "$refused" 4   # a try takes 2 s
    no_firewall
  else
    skip 'direct: a firewall' 'needs root and nft'
  fi
  configure
}

part_psets() {
  local status
  PSETS_EXPECTED=ocean=0-1:ice=2-3 timeout 100 flux run -o pmi="$MPI" -N2 -n4 -o muster.pset=ocean=0-1:ice=2-3 \
    "$clients/psets" >"$work/psets.log" 2>&1 </dev/null
  status=$?
  judge 'psets: named by -o muster.pset' psets $status "$work/psets.log"
}

# ---- jobs of several users ----

# refuses_bob WHAT PATTERN COMMAND...: what he asks for, of a job of alice's
refuses_bob() {
  local found
  found=$(setpriv --reuid bob --regid "$(id -g bob)" --init-groups --inh-caps=-all "${@:3}" 2>&1)
  check "users: $1 of her job is not for another user" "$found" grep -qxE "muster-[a-z]*: $2.*" <<<"$found"
}

# tool_finds ID: a tool of alice's by the URI that muster-status shows, and by the namespace; bob's gets nothing by either
tool_finds() {
  local found how uri who
  uri=$(setpriv --reuid alice --regid "$(id -g alice)" --init-groups muster-status "$1" | sed -nE 's/^node2: .*; for tools: "(.*)"$/\1/p')
  if ! type pps >/dev/null 2>&1; then skip 'users: tools' 'no pps'; return; fi
  for how in "--uri $uri" "--namespace muster.flux.$(flux job id --to=f58plain "$1")"; do
    for who in alice bob; do
      # shellcheck disable=SC2086  # an option and its value
      found=$(setpriv --reuid "$who" --regid "$(id -g "$who")" --init-groups --inh-caps=-all timeout 20 pps $how 2>&1; echo "status $?")
      if [ "$who" = alice ]; then
        check "users: her tool finds a server by ${how%% *}" "$(tr '\n' ';' <<<"$found")" eval "grep -qE 'flux\.f|hold' <<<\$found && grep -qx 'status 0' <<<\$found"
      else
        check "users: another user's does not" "$(tr '\n' ';' <<<"$found")" eval "! grep -qE 'flux\.f|hold' <<<\$found && ! grep -qx 'status 0' <<<\$found"
      fi
    done
  done
}

part_users() {
  local id other status users token job
  if [ "$(id -u)" != 0 ]; then skip users 'needs root, for jobs of others'; return; fi
  let_users_in
  id=$(submit_as alice '-N4 -n8' exchange --seconds 60)
  other=$(submit_as bob '-N4 -n8' exchange --seconds 60)
  attach "$id" alice
  status=$?
  attach "$other" bob
  check 'users: jobs of two users on the same nodes' "$(why "$work/alice.log" $status) $(why "$work/bob.log" $?)" \
    [ "$(cat "$work"/{alice,bob}.log | grep -c '^PASS exchange')" = 2 ]
  sleep 300 &
  token=$!
  id=$(submit_as alice '-N4 -n8' hold --until $token --seconds 280)
  attach "$id" alice &
  job=$!
  until_true 20 all_hold "$work/alice.log"
  users=$(ps -o user= -C muster-server,flux-shell,hold | sort | uniq -c | tr -s ' \n' ' ')
  check 'users: shells, servers and tasks are the user'\''s' "found $users" [ "$users" = ' 16 alice ' ]
  refuses_bob 'the stacks' "job .* is alice's; only its owner and root may look at it" muster-status --stacks "$id"
  refuses_bob 'a command' "job .* is alice's; only its owner and root may look at it" muster-attach "$id" -- true
  tool_finds "$id"
  refuses_bob 'the state' 'no server of job .* runs on this node' muster-status "$id"
  kill $token
  wait $token 2>/dev/null
  wait $job
  check 'users: and the job passes' "$(why "$work/alice.log" $?)" grep -q '^PASS hold' "$work/alice.log"
  id=$(submit_as alice '-N1 -n2' publish --part 0 --run 90 --others 2 --stay 1)
  other=$(submit_as bob '-N1 -n2' publish --part 1 --run 90 --others 2 --alone 1)
  attach "$other" bob
  check "users: another user's job finds nothing" "$(why "$work/bob.log" $?)" grep -q '^PASS publish: nothing' "$work/bob.log"
  other=$(submit_as alice '-N1 -n2' publish --part 1 --run 90 --others 2 --stay 1)
  attach "$id" alice
  check 'users: a job of the same user finds it' "$(why "$work/alice.log" $?)" grep -q '^PASS publish' "$work/alice.log"
  attach "$other" alice
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
}

# ---- what is shown ----

# asks RANK STEP: muster-status there knows whom the job waits for
asks() {
  flux exec -r "$1" /opt/muster/bin/muster-status "$2" >"$work/muster-status.log" 2>&1
  check "status: on broker $1, of two jobs, by ${2%"${2#?}"}..." "$(head -n 3 "$work/muster-status.log" | tr '\n' ';')" \
    grep -qE 'construct has waited .*: missing .*ranks? .*7.* on node4' "$work/muster-status.log"
}

no_looker() { [ -z "$(pids_of muster-status)$(pids_of muster-attach)$(pgrep -f '^sleep 4711$')" ] && [[ $(letters_of hold) != *[Tt]* ]]; }
one_stopped() { [[ $(letters_of hold) = *T* ]]; }

# ranks STEP: what its ranks do, and a command beside them, from any host of the instance
ranks() {
  local found tool status
  found=$(muster-status --stacks "$1" 2>&1)
  check 'status: --stacks has the ranks of all nodes' "$(tr '\n' ';' <<<"$found")" \
    eval "grep -qE '^7 ranks  main > PMIx_Group_construct  .0-6 on 4 nodes.$' <<<\$found && grep -qE '^1 rank   main > .*sleep.* .7 on node4.$' <<<\$found"
  found=$(muster-status --stacks 2>&1)
  check 'status: --stacks of one of two jobs has to be told which' "$found" grep -qE 'which step\? f[^ ]+, f[^ ]+ run; give one$' <<<"$found"
  # shellcheck disable=SC2016  # for the shell there
  found=$(muster-attach --ranks 1-2 "$1" -- sh -c 'echo %n $(cat /proc/%p/comm) $((1 + 1)) %%' 2>&1 | sort | tr '\n' ';')
  check 'status: muster-attach beside ranks' "$found" [ "$found" = '[1] node1 hold 2 %;[2] node2 hold 2 %;' ]
  muster-attach --ranks 0-7 "$1" -- sh -c '[ %r != 5 ] || exit 7' >"$work/attach.log" 2>&1
  status=$?
  check 'status: the status of muster-attach' "$status: $(cat "$work/attach.log")" [ $status = 7 ]
  muster-attach "$1" -- sh -c 'sleep 4711 & while kill -STOP %p; do sleep 0.1; done' >"$work/killed.log" 2>&1 &
  tool=$!
  check 'status: a command has stopped a task' "$(letters_of hold | tr '\n' ' ')" until_true 20 one_stopped
  kill -9 $tool
  wait $tool 2>/dev/null
  check 'status: muster-attach is killed: no task stays stopped, and nothing of it is left' \
    "$(letters_of hold | tr '\n' ' ') $(pgrep -af '^sleep 4711$')" until_true 20 no_looker
}

# The job's id is enough, in any form, where two jobs of the user are on the broker.
part_status() {
  local id other job_of_other
  start other || return
  other=$job
  start status --victim 7 --delay 60000 --how exit --in construct || return
  id=$(flux jobs -n --name=status -o '{id.dec}')
  asks 2 "$(flux job id --to=f58 "$id")"
  asks 0 "$(flux job id --to=f58plain "$id")"
  asks 3 "$id"
  asks 1 "$(flux job id --to=words "$id")"
  asks 2 "$(flux job id --to=emoji "$id")"
  asks 0 "$(flux job id --to=hex "$id")"
  asks 3 "$(flux job id --to=dothex "$id")"
  asks 1 "$(flux job id --to=kvs "$id")"
  asks 2 "flux.$(flux job id --to=f58plain "$id")"
  ranks "$(flux job id --to=words "$id")"
  job_of_other=$(flux jobs -n --name=other -o '{id}')
  flux exec -r 1 /opt/muster/bin/muster-status "$job_of_other" >"$work/muster-status.log" 2>&1
  check 'status: the other one of the two' "$(head -n 3 "$work/muster-status.log" | tr '\n' ';')" \
    eval "grep -q '4 of 4 nodes answer' '$work/muster-status.log' && ! grep -q construct '$work/muster-status.log'"
  flux cancel --all
  wait "$job" "$other"
  flux exec -r 1 /opt/muster/bin/muster-status "$job_of_other" >"$work/muster-status.log" 2>&1
  check 'status: where it was looked for' "$(cat "$work/muster-status.log")" \
    grep -q 'no server of job .* runs on this node.*/jobtmp-' "$work/muster-status.log"
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

# The user's own counts and trace of a job, and its control.
part_late() {
  local dir=$MUSTER_CI_DIR/shared/late found
  mkdir "$dir"
  MUSTER_TRACE=$dir timeout 90 flux run -o pmi="$MPI" -o muster.stats=1 --env="MUSTER_STATS_DIR=$dir" -N4 -n8 "$clients/late" --fences 20 --seconds 80 \
    >"$work/late.log" 2>&1 </dev/null
  says late 'muster: .*: 20 fences waited .*; last: node3 in (1[89]|20) .*; counts are kept: .*; traces of 4 of 4 nodes are written: '
  found=$(muster-status --stats "$dir"/muster.*.stats.json 2>&1)
  check 'late: the counts of the job, afterwards' "$found" grep -qE '^fence +20 +80 .* node3: last in (1[89]|20) \(' <<<"$found"
  found=$(muster-status --trace "$dir"/muster.*.node[1-4].json 2>&1 | head -c 1000)
  check 'late: its trace' "$found" grep -q '"name":"fence of 8 processes","cat":"fence"' <<<"$found"
  MUSTER_STALL_REPORT=1 MUSTER_TIMEOUTS_FENCE=2 timeout 90 flux run -o pmi="$MPI" -N3 -n6 "$clients/control" --pause 4 --seconds 80 \
    >"$work/control.log" 2>&1 </dev/null
  judge 'late: a pause, in which no deadline passes' control $? "$work/control.log"
  says control 'paused'
  rm -r "$dir"
}

part_stats() {
  hangs construct 7 node4 gather --exec
  hangs fence 1 node1 early
}

only_parts many jobs meet direct psets users survivors status late stats
summary
