#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# ci/system/flux_module.sh: the broker module and the server's back end with real brokers, and
# neither shell nor server: rm_probe plays the servers of a job.
# shellcheck disable=SC2154  # work is shared with lib.sh
set -uo pipefail
usage() {
  cat <<'TXT'
usage: ci/flux -N 4 --no-module -- ci/system/flux_module.sh BUILDDIR

Loads the module as a thread and as a process, changes its settings, has the servers of a job
send each other messages while modules are loaded anew, looks what the module shows of servers that
hang or talk nonsense, and kills one of them. As root also:
what other users may and may not do. Kills a broker in the end. Prints "ok", "not ok" with the
reason and "skip" lines; non-zero status when any failed.
TXT
}
case ${1:-} in -h|--help) usage; exit 0 ;; '') usage >&2; exit 2 ;; esac
# shellcheck source=ci/system/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
build=$(cd "$1/plugins/flux" && pwd) || exit 125
so=$build/muster.so
flux=$(dirname "$(dirname "$(readlink -f "$(command -v flux)")")")
library=$(find "$flux/lib" -name libflux-core.so.2 | head -n 1)
nodes=$(flux getattr size)
all=$(seq -s , 0 $((nodes - 1)))
nobody=(setpriv --reuid nobody --regid nogroup --clear-groups env HOME=/nonexistent)
chmod 777 "$work"

everywhere() { flux exec "$@" >"$work/exec.log" 2>&1; }
uri() { flux exec -r "$1" flux getattr local-uri; }

# a_job OPTION...: submits a job that does nothing, without a server of its own, and sets $job to its
# number once it runs
a_job() {
  local id
  id=$(flux submit -o pmi=simple "$@") && flux job wait-event -q -t 20 "$id" start && job=$(flux job id --to=dec "$id")
}

# probe LOG NODE BROKERS COMMAND...: a server of $job, of that node. $as may be another user's prefix.
probe() {
  local log=$1 node=$2 brokers=$3 rank
  shift 3
  rank=$(cut -d , -f $((node + 1)) <<<"$brokers")
  FLUX_URI=$(uri "$rank") "${as[@]}" timeout 90 \
    "$build/rm_probe" "$build/rm_flux.so" "$library" "$job" "$node" "$brokers" "$@" >"$log" 2>&1
}
as=()

# on_all NAME COMMAND...: a server on each node, in the background; their logs are $work/NAME.NODE
on_all() {
  local name=$1 node
  shift
  pids=()
  for ((node = 0; node < nodes; node++)); do
    probe "$work/$name.$node" "$node" "$all" "$@" &
    pids+=($!)
  done
}

# all_ended_well: whether all of them ended well
all_ended_well() {
  local pid bad=0
  for pid in "${pids[@]}"; do wait "$pid" || bad=1; done
  return $bad
}

# verdict WHAT COMMAND...: ok WHAT if the command before has succeeded; else COMMAND tells why
verdict() {
  local status=$? what=$1
  shift
  if [ $status = 0 ]; then ok "$what"; else not_ok "$what" "$("$@" 2>&1 | tr '\n' ';')"; fi
}

# check_ended WHAT NAME
check_ended() {
  all_ended_well
  verdict "$1" tail -qn 3 "$work/$2".*
}

ready() { [ "$(cat "$work/$1".* 2>/dev/null | grep -c '^ready')" = "$nodes" ]; }
said() { grep -qs "$2" "$work/$1"; }
config() { flux config load <<<"$1" >"$work/config" 2>&1; }
settings() { flux python -c 'import flux; print(flux.Flux().rpc("muster.config").get_str())'; }
loaded() { [ "$(flux exec flux module list 2>/dev/null | grep -c '^muster ')" = "$1" ]; }
stats() { timeout 30 flux module stats muster >"$work/stats" 2>&1; }
servers() { timeout 30 flux module stats muster | grep -c '"client"'; }
no_server() { [ "$(servers)" = 0 ]; }
one_server() { [ "$(servers)" = 1 ]; }

loading() {
  local how
  for how in '' --exec; do
    # shellcheck disable=SC2086  # an option or none
    everywhere flux module load $how "$so" && loaded "$nodes"
    verdict "module load $how" tail -n 1 "$work/exec.log"
    everywhere flux module reload $how "$so"
    verdict "module reload $how" tail -n 1 "$work/exec.log"
    everywhere flux module remove muster && loaded 0
    verdict "module remove $how" tail -n 1 "$work/exec.log"
  done
  ! everywhere flux module load "$so" colour=blue
  verdict 'an argument is refused' echo 'it was taken'
  job=1
  ! probe "$work/none" 0 "$all" lost && said none '^refused: .*flux module load /.*/muster.so'
  verdict 'without the module the server says what to do' tail -n 1 "$work/none"
  everywhere -r 0 flux module load "$so"
  ! probe "$work/none" 1 "$all" lost && said none '^refused: .*flux module load /.*/muster.so'
  verdict 'and so it does where only a broker above has it' tail -n 1 "$work/none"
  everywhere -r "1-$((nodes - 1))" flux module load "$so"
}

configuring() {
  local before other
  before=$(flux config get)
  check 'no table, no settings' "$(settings)" [ "$(settings)" = '{}' ]
  config '{"muster": {"timeouts": {"fence": 7}}}'
  check 'the table is told to servers' "$(settings)" [ "$(settings)" = '{"timeouts": {"fence": 7}}' ]
  ! config '{"muster": {"timeouts": {"fense": 7}}}' && said config '\[muster\]: key "timeouts.fense": unknown; did you mean "timeouts.fence"'
  verdict 'a mistake is named' tail -n 1 "$work/config"
  for other in 7 '[]'; do
    ! config "{\"muster\": $other}" && said config '\[muster\] is not a table'
    verdict "$other in the place of the table is refused" tail -n 1 "$work/config"
  done
  check 'and the old values stay' "$(settings)" [ "$(settings)" = '{"timeouts": {"fence": 7}}' ]
  config "$before"
}

# A job has servers once.
new_job() {
  flux cancel "$job"
  a_job -N"$nodes" -n"$nodes" sleep inf
}

messages() {
  a_job -N"$nodes" -n"$nodes" sleep inf
  on_all small exchange 200 1000
  check_ended 'messages of 1 kB' small
  new_job
  on_all big exchange 3 3000000
  check_ended 'messages of 3 MB' big
  new_job
  check 'servers that have left are forgotten' "$(flux module stats muster)" [ "$(servers)" = 0 ]
  on_all reload exchange 1000 100 "$work/go"
  until_true 20 ready reload
  everywhere -r 1 flux module reload "$so" && everywhere flux module reload "$so"
  verdict 'modules are loaded anew under way' tail -n 1 "$work/exec.log"
  until_true 20 one_server
  check 'stats-get shows the server' "$(flux module stats muster)" [ "$(servers)" = 1 ]
  touch "$work/go"
  check_ended 'and no message is lost' reload
}

# The probe below a process of on_all()
pid_of() {
  local below
  pgrep -x -P "$1" rm_probe && return
  below=$(pgrep -x -P "$1" timeout) && pgrep -x -P "$below" rm_probe
}

all_answer() { [ "$(servers)" = 4 ] && stats && said stats '"silent": *2'; }

# What servers say of their operations, one of which hangs, one of which talks nonsense and one of which says
# more than there is; each of a job of its own, on broker 0.
states() {
  local name pids=() asking status
  local -A texts=(
    [good]='{"under_way":{"construct":{"gather":3}},"trackers":[{"operation":"group \u001b[31m","missing":[{"ranks":"5,9"}]}]}'
    [nonsense]='{"under_way":' [silent]='{}' [large]="{\"client\":\"$(head -c 70000 /dev/zero | tr '\0' x)\"}")
  for name in good nonsense silent large; do
    a_job -N"$nodes" -n"$nodes" sleep inf
    MUSTER_PROBE_STATE=${texts[$name]} probe "$work/state.$name" 0 "$all" stay &
    pids+=($!)
    until_true 20 said "state.$name" '^ready'
  done
  kill -STOP "$(pid_of "${pids[2]}")"
  stats
  said stats '"gather": *3' && said stats '"ranks": *"5,9"' && said stats '"operation": *"group ?\[31m"'
  verdict 'stats-get shows what a server says of its operations' cat "$work/stats"
  said stats 'makes no sense' && said stats 'is too long' && said stats 'no answer within 2 s' && said stats '"silent": *3'
  verdict 'and which ones say nothing of use' cat "$work/stats"
  stats &
  asking=$!
  everywhere -r 0 flux module reload "$so"
  verdict 'the module is loaded anew while somebody waits for that' tail -n 1 "$work/exec.log"
  wait $asking
  status=$?
  [ $status = 0 ] || said stats 'is unloaded\|not implemented'
  verdict 'who gets an answer' cat "$work/stats"
  kill -CONT "$(pid_of "${pids[2]}")"
  until_true 20 all_answer
  verdict 'the one that hung says something again' cat "$work/stats"
  for name in 0 1 2 3; do kill "$(pid_of "${pids[$name]}")"; done
  wait "${pids[@]}"
  flux cancel --all
  check 'and nothing is kept of those that have gone' "$(flux module stats muster)" until_true 5 no_server
}

losses() {
  a_job -N"$nodes" -n"$nodes" sleep inf
  on_all lost lost
  until_true 20 ready lost
  kill -KILL "$(pid_of "${pids[2]}")"
  unset 'pids[2]'
  check_ended "a server's death is told to the others" lost
  probe "$work/abort" 0 "$all" abort 'the "user" said so'
  flux job wait-event -q -t 20 "$job" clean &&
    flux job eventlog "$job" | grep -q 'exception type="exec" severity=0 note="the \\"user\\" said so"'
  verdict "the job's end, as an exception" flux job eventlog "$job"
}

# An RPC of somebody else, and whether the answer is the one that is due
asks() {
  local topic=$1 due=$2
  "${nobody[@]}" flux python -c "import flux; flux.Flux().rpc('muster.$topic').get()" >"$work/asks" 2>&1
  said asks "$due"
  verdict "another user's muster.$topic" tail -n 1 "$work/asks"
}

# submit_guest [OPTION]...: a job of two nodes, the user nobody's; no process of it runs. Prints its id
submit_guest() {
  flux submit --dry-run -o pmi=simple -N2 -n2 --setattr=system.exec.test.run_duration=100s true >"$work/spec"
  flux python - "$work/spec" "$(id -u nobody)" >"$work/signed" <<'PY'
import base64
import sys

header = f"version\0i1\0userid\0i{sys.argv[2]}\0mechanism\0snone\0".encode()
spec = open(sys.argv[1], "rb").read()
print(".".join((base64.b64encode(header).decode(), base64.b64encode(spec).decode(), "none")))
PY
  FLUX_HANDLE_USERID=$(id -u nobody) flux job submit --flags=signed "$@" "$work/signed"
}

# a_guest_job: sets $job to the number of one that runs
a_guest_job() {
  local id
  id=$(submit_guest) && flux job wait-event -q -t 20 "$id" start && job=$(flux job id --to=dec "$id")
}

# askers JOB GO: 70 registrations of nobody's, of a job of theirs that does not run, which the module waits
# for. They leave when the file GO is there.
askers() {
  "${nobody[@]}" flux python - "$@" <<'PY'
import os
import struct
import sys
import time

import flux
from _flux._core import ffi, lib

handle = flux.Flux()
data = ffi.from_buffer(struct.pack(">IQIII", 6, int(sys.argv[1]), 0, 1, 0))  # PACKET_VERSION 6
asked = [lib.flux_rpc_raw(handle.handle, b"muster.register", data, len(data), 0xFFFFFFFF, lib.FLUX_RPC_STREAMING) for _ in range(70)]
refused = sum(lib.flux_future_wait_for(future, 10) == 0 for future in asked[64:])
waiting = not any(lib.flux_future_is_ready(future) for future in asked[:64])
print("refused", refused if waiting else "all", flush=True)
deadline = time.monotonic() + 60
while not os.path.exists(sys.argv[2]) and time.monotonic() < deadline:
    time.sleep(0.1)
PY
}

# A server that comes while too many of its user's ask waits, and is not refused.
a_busy_module() {
  local asking late ranks
  ranks=$(ranks_of "$job")
  askers "$(flux job id --to=dec "$(submit_guest --urgency=0)")" "$work/enough" >"$work/askers" 2>&1 &
  asking=$!
  until_true 20 said askers '^refused 6'
  verdict 'how many of a user'\''s servers ask at once is bounded' cat "$work/askers"
  probe "$work/late" 0 "$ranks" reach flux.f1 2 &
  late=$!
  until_true 20 said late 'too many'
  verdict 'one more is told so' cat "$work/late"
  touch "$work/enough"
  wait $asking $late
  said late '^ready'
  verdict 'and comes in when they are through' tail -n 3 "$work/late"
}

# ranks_of JOB: of one on two brokers
ranks_of() { flux jobs -no '{ranks}' "$1" | tr -d '[]' | tr - ,; }

guests() {
  local before ranks node theirs
  if [ "$(id -u)" != 0 ]; then skip 'other users' 'needs root'; return; fi
  before=$(flux config get)
  config '{"access": {"allow-guest-user": true}, "exec": {"testexec": {"allow-guests": true}}}'
  for ((node = 0; node < nodes; node++)); do chmod o+rx "$(uri "$node" | sed 's,^local://\(.*\)/[^/]*$,\1,')"; done
  chmod o+rx "$(flux getattr rundir)"
  for node in gone home stats-get config-reload; do asks $node 'requires owner credentials'; done
  asks register 'registers with its own broker'
  a_job -N"$nodes" -n"$nodes" sleep inf
  theirs=$job
  as=("${nobody[@]}")
  ! probe "$work/other" 0 "$all" lost && said other "refused: .*another user's"
  verdict "another user's job is refused" tail -n 1 "$work/other"
  job=1
  ! probe "$work/none" 0 "$all" lost && said none '^refused: .*whose job it is'
  verdict 'a job that there is not is refused' tail -n 1 "$work/none"
  a_guest_job
  ranks=$(ranks_of "$job")
  ! probe "$work/far" 0 "$all" lost && said far '^refused: .*these brokers'
  verdict 'brokers that are not the job'\''s are refused' tail -n 1 "$work/far"
  pids=()
  for node in 0 1; do
    probe "$work/own.$node" $node "$ranks" exchange 20 1000 &
    pids+=($!)
  done
  check_ended 'the own job: messages' own
  a_busy_module
  as=() job=$theirs
  on_all forged lost
  until_true 20 ready forged
  "${nobody[@]}" flux python -c 'import flux; flux.Flux().event_send("muster.offline", {"ranks": "1"})'
  everywhere flux event pub after   # what came before it has been seen by all
  ! grep -q '^lost' "$work"/forged.*
  verdict 'a forged loss of a broker is not believed' cat "$work"/forged.*
  kill "$(pid_of "${pids[0]}")"   # which ends the others
  wait
  several_jobs
  config "$before"
}

namespace() { echo "flux.$(flux job id --to=f58plain "$1")"; }

# Servers of two jobs of nobody's and one of ours.
several_jobs() {
  local first ours meet=()
  as=()
  a_job -N"$nodes" -n"$nodes" sleep inf
  ours=$job
  probe "$work/meet.ours" 0 "$all" meet "$work/met" &
  meet+=($!)
  until_true 20 said meet.ours '^home' && [ "$(grep ^home "$work/meet.ours")" = "home $(namespace "$ours") 0 of $nodes" ]
  verdict 'the first server that asks is where its user'\''s servers meet' tail -n 1 "$work/meet.ours"
  as=("${nobody[@]}")
  a_guest_job
  first=$job
  probe "$work/meet.first" 1 "$(ranks_of "$job")" meet "$work/met" &
  meet+=($!)
  until_true 20 said meet.first '^home' && [ "$(grep ^home "$work/meet.first")" = "home $(namespace "$first") 1 of 2" ]
  verdict "another user's servers meet elsewhere" tail -n 1 "$work/meet.first"
  probe "$work/meet.zero" 0 "$(ranks_of "$job")" stay &
  meet+=($!)
  until_true 20 said meet.zero '^ready'
  a_guest_job   # the second one
  probe "$work/second" 0 "$(ranks_of "$job")" meet /dev/null && said second "^home $(namespace "$first") 1 of 2"
  verdict 'a second job of that user is sent there' tail -n 2 "$work/second"
  probe "$work/second" 0 "$(ranks_of "$job")" reach "$(namespace "$first")" 2
  verdict 'and may send there' tail -n 2 "$work/second"
  ! probe "$work/second" 0 "$(ranks_of "$job")" reach "$(namespace "$ours")" "$nodes" && said second "^lost 2: .*another user's"
  verdict "to another user's job it may not" tail -n 2 "$work/second"
  ! probe "$work/second" 0 "$(ranks_of "$job")" reach flux.f1 2 && said second '^lost 2: '
  verdict 'to one that there is not, neither' tail -n 2 "$work/second"
  as=()
  ! job=$ours probe "$work/second" 1 "$all" reach "$(namespace "$first")" 2 && said second "^lost $nodes: .*another user's"
  verdict 'nor may ours to that of a guest' tail -n 2 "$work/second"
  kill "$(pid_of "${meet[2]}")"
  touch "$work/met"
  wait "${meet[@]}"
  until_true 5 eval 'flux module stats muster | grep -q "\"meetings\": *0"'
  verdict 'where servers that have left met is forgotten' flux module stats muster
}

a_broker_dies() {
  local last=$((nodes - 1)) node
  a_job -N"$nodes" -n"$nodes" sleep inf
  pids=()
  for ((node = 0; node < last; node++)); do
    probe "$work/broker.$node" "$node" "$all" lost &
    pids+=($!)
  done
  until_true 20 one_server
  kill -KILL "$(flux exec -r $last flux getattr broker.pid)"
  check_ended "a broker's death is told" broker
  grep -q "^lost $last: its broker is lost" "$work/broker.0"
  verdict 'as what it is' tail -n 2 "$work/broker.0"
  flux exec -r "0-$((last - 1))" flux module remove muster >"$work/exec.log" 2>&1
  verdict 'and modules still unload' tail -n 1 "$work/exec.log"
}

loading
configuring
messages
states
losses
guests
a_broker_dies
summary
