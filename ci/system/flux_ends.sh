#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# ci/system/flux_ends.sh: with what status a job under flux run ends, and what is said of it.
# shellcheck disable=SC2154,SC2034  # clients and work are shared with lib.sh
set -uo pipefail
usage() {
  cat <<'TXT'
usage: ci/flux -N 4 [OPTION]... -- ci/system/flux_ends.sh BUILDDIR [PART]...

Ends jobs of the client hold in BUILDDIR (or BUILDDIR/ci/clients) in several ways, and looks at the
exit status of flux run and at the exceptions in the job's eventlog: statuses (PMIx_Abort, exit
codes, signals), server (one is killed), others (flux cancel, flux job raise: no exception but theirs), together (all tasks of a node), unload (the module
of a broker, under a job), pmix (two PMIx servers asked for). Prints "ok", "not ok" with the reason
and "skip" lines; non-zero status when any failed.
TXT
}
# shellcheck source=ci/system/flux_lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/flux_lib.sh"

# exceptions NAME: the fatal exceptions of the job of that name, one a line: TYPE NOTE
exceptions() {
  flux job eventlog --format=json "$(flux jobs -a -n -c 1 --name="$1" -o '{id}')" |
    flux python -c '
import json
import sys

for line in sys.stdin:
    event = json.loads(line)
    if event["name"] == "exception" and event["context"]["severity"] == 0:
        print(event["context"]["type"], event["context"]["note"])'
}

# ends NAME STATUS PATTERN HOLD-ARG...: a job in which rank 3 does something ends with that status, and has one
# exception, which says why
ends() {
  local name=$1 due=$2 pattern=$3 status
  shift 3
  timeout 60 flux run -o pmi="$MPI" --job-name="$name" -N4 -n8 "$clients/hold" --victim 3 --seconds 50 "$@" >"$work/$name.log" 2>&1 </dev/null
  status=$?
  exceptions "$name" >"$work/exceptions"
  check "$name: status $due" "status $status; $(grep -m 1 job.exception "$work/$name.log")" [ "$status" = "$due" ]
  check "$name: one exception, which says why" "$(tr '\n' ';' <"$work/exceptions")" \
    eval "[ \$(wc -l <'$work/exceptions') = 1 ] && grep -qE '^exec $pattern' '$work/exceptions'"
}

part_statuses() {
  local status
  # Flux has no 0 for a job with an exception.
  for status in 0:1 1:1 7:7 255:255; do
    ends "abort-${status%:*}" "${status#*:}" "rank 3 on node2 called PMIx_Abort with status ${status%:*}" --how abort --status "${status%:*}"
  done
  for status in 0:1 7:7 128:128 255:255; do
    ends "exit-${status%:*}" "${status#*:}" "rank 3 on node2 ended with" --how exit --in fence --status "${status%:*}"
  done
  ends kill 137 'rank 3 on node2 was killed by signal 9' --in construct
}

# ended_by NAME TYPE COMMAND...: a held job that COMMAND, with the job's id behind it, ends has the exception of
# that alone, though all its tasks are killed between PMIx_Init and PMIx_Finalize
ended_by() {
  local name=$1 type=$2 job status
  shift 2
  start "$name" || return
  "$@" "$(flux jobs -n --name="$name" -o '{id}')"
  wait "$job"
  status=$?
  check "$name: status 143" "status $status" [ $status = 143 ]
  exceptions "$name" >"$work/exceptions"
  check "$name: no task is blamed" "$(grep -v ^HOLD "$work/$name.log" | head -n 5 | tr '\n' ';')" \
    eval "! grep -qE 'killed by signal|without PMIx_Finalize' '$work/$name.log'"
  check "$name: no exception but that one" "$(tr '\n' ';' <"$work/exceptions")" \
    eval "[ \$(wc -l <'$work/exceptions') = 1 ] && grep -q '^$type' '$work/exceptions'"
}

# Its shell sees that and has the job ended. The tasks wait in a construct.
part_server() {
  local job status
  start server --victim 7 --delay 90000 --in construct || return
  kill -9 "$(pids_of muster-server | head -n 1)"
  wait "$job"
  status=$?
  check 'server: status 137' "status $status; $(grep -m 1 job.exception "$work/server.log")" [ $status = 137 ]
  exceptions server >"$work/exceptions"
  check 'server: one exception, which says why' "$(tr '\n' ';' <"$work/exceptions")" \
    eval "[ \$(wc -l <'$work/exceptions') = 1 ] && grep -qE '^exec muster-server of job .* died on node' '$work/exceptions'"
}

part_others() {
  local turn
  for turn in 1 2 3; do ended_by cancel$turn cancel flux cancel; done
  ended_by raise mine flux job raise --type=mine --severity=0
}

# all_told SERVER: whether the shell has told that server, which is stopped, of the end of eight tasks: 12 bytes each wait in
# its control socket, BOOT_FD_CONTROL
all_told() { [ "$(ss -xHp state established | awk -v who="pid=$1,fd=3)" 'index($0, who) { print $2 }')" -ge 96 ]; }

# Tasks of one node that are killed at once while they wait for each other. libpmix before 7 would free the operation once
# for each of them.
part_together() {
  local job status server tasks log=$work/together.log
  if [ "$(id -u)" != 0 ]; then skip together 'needs root, to see what a stopped server has not read'; return; fi
  configure 'log_level = "info"'
  timeout 60 flux run -o pmi="$MPI" -o verbose -N1 -n8 "$clients/hold" --victim 0 --delay 50000 --in fence --seconds 55 >"$log" 2>&1 </dev/null &
  job=$!
  all_up together $job || return
  server=$(pids_of muster-server) tasks=$(pids_of hold | sort -n)
  kill -STOP "$server" # so that it sees all at once, and first the one that the others wait for
  kill -9 "${tasks%%[[:space:]]*}"
  until_true 10 tasks_ended "${tasks%%[[:space:]]*}"
  kill_together <<<"${tasks#*[[:space:]]}"
  until_true 10 all_told "$server" || not_ok 'together: the shell knows of all ends' "$(ss -xp | grep "pid=$server,")"
  kill -CONT "$server"
  wait $job
  status=$?
  check "together: status 137" "status $status" [ $status = 137 ]
  says together 'all 8 tasks on node1 were killed by signal 9'
  check 'together: the server does not crash' "$(grep -m 1 crashes "$log")" eval "! grep -q crashes '$log'"
  configure
}

# The module of a broker is unloaded, and is not back in time. The tasks wait in a construct.
part_unload() {
  local job status module=/opt/muster/lib/flux/modules/muster.so
  configure 'timeouts.peer = 6'
  start unload --victim 7 --delay 90000 --in construct || return
  flux exec -r 1 flux module remove muster
  check 'unload: the admin is told, and what to do' "$(flux exec -r 1 flux dmesg | grep muster | tail -n 3)" \
    eval "flux exec -r 1 flux dmesg | grep -q 'unloaded under 1 running job: .*flux module load $module'"
  check 'unload: the user is told while the job runs' "$(grep -v ^HOLD "$work/unload.log" | head -n 3)" \
    until_true 5 grep -q "node2: .*module is not loaded.*flux module load $module.*after 6 s the job is ended" "$work/unload.log"
  wait "$job"
  status=$?
  check 'unload: the job does not end with 0' "status $status" [ $status = 137 ]
  exceptions unload >"$work/exceptions"
  check 'unload: one exception, which says why and what to do' "$(tr '\n' ';' <"$work/exceptions")" \
    eval "[ \$(wc -l <'$work/exceptions') = 1 ] && grep -q '^exec node2 is cut off .*flux module load $module' '$work/exceptions'"
  check 'unload: Flux'\''s own words are not shown' "$(grep 'No service matching' "$work/unload.log")" \
    eval "! grep -q 'No service matching' '$work/unload.log'"
  flux exec -r 1 flux module load $module
  configure
}

# Whichever plugin were the last would win, without a word.
part_pmix() {
  local list status
  for list in muster,pmix pmix,muster simple,pmix,muster; do
    timeout 60 flux run -o pmi=$list -N1 -n1 true >"$work/pmix.log" 2>&1
    status=$?
    check "pmix: -o pmi=$list is refused" "status $status: $(head -n 2 "$work/pmix.log" | tr '\n' ';')" \
      eval "[ $status != 0 ] && grep -q 'asks for two PMIx servers.*leave one of them out' '$work/pmix.log'"
  done
}

only_parts statuses server others together unload pmix
summary
