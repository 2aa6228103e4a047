#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# ci/system/standin_faults.sh: faults of messages and of connections, and processes that are killed, under musterrun.
# shellcheck disable=SC2154,SC2034  # clients and work are shared with lib.sh
set -uo pipefail
usage() {
  cat <<'TXT'
usage: ci/test standin
       ci/system/standin_faults.sh [--rm=NAME] BUILDDIR [PART]...

As standin.sh: each fault that musterrun makes of messages and of direct connections, and what is left when a part
of it is killed; or only those PARTs: faults direct slow kills.
TXT
}
# shellcheck source=ci/system/standin_lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/standin_lib.sh"

# fault KIND NAME ARG...: a client has to pass although messages are treated so, and no server is given up for it
fault() {
  local kind=$1 name=$2 seed=1
  shift 2
  [ "$rm" = slurm ] || seed=2
  client "$kind, seed $seed: $name" "-N4 -n8 --fault=$kind --seed=$seed" "$name" "$@"
  check "$kind, seed $seed: $name: it was done" "$(tail -n 1 "$log")" \
    grep -qE "^musterrun: fault ${kind%%:*}: [1-9][0-9]* times" "$log"
  check "$kind, seed $seed: $name: all servers answer" "$(grep -m 2 'is lost' "$log")" eval "! grep -q 'is lost' '$log'"
}

# No server counts the time in which nothing runs, whether the job is stopped or the machine.
stands_still() {
  local i pids job
  mkdir -p "$work/conf" && echo '{ "timeouts": { "peer": 2 } }' >"$work/conf/muster.json"
  MUSTER_CONF=$work/conf/muster.json timeout -k 5 100 "${musterrun[@]}" -N4 -n8 "$clients/barrier" \
    --late 0 --turns 25 --seconds 90 >"$log" 2>&1 </dev/null &
  job=$!
  for i in 1 2; do
    sleep 1
    pids=$(pids_of musterrun; pids_of muster-server; pids_of barrier)
    # shellcheck disable=SC2086  # several numbers
    kill -STOP $pids && sleep 4 && kill -CONT $pids
  done
  check 'the job is stopped twice' "$(why "$log" unknown)" kill -0 $job
  wait $job
  status=$?
  check 'a job that is stopped, and goes on' "$(why "$log" $status)" passed_once
}

# Faults of messages by the resource manager's way, which all messages go.
part_faults() {
  local kind n MUSTER_CONF=$work/native.json
  export MUSTER_CONF
  echo '{ "direct": { "mode": "off" } }' >"$MUSTER_CONF"
  # Below 250 ms: as long a server awaits the last messages of one that has left (common/server/peers/departed.c).
  for kind in late late:percent=60,ms=240 duplicate:percent=50,ms=50 lost:percent=50 refused:percent=50 uid:percent=50; do
    fault $kind groups_many --groups 20
    [ "$rm" = slurm ] || continue # what is above the transport is the same
    fault $kind exchange
    fault $kind subset
  done
  # For the most part of its time it waits for what there is not.
  fault late modex
  fault refused:percent=50 modex
  # Servers that leave meet a row of refusals, which ends long after their tasks.
  fault refused:percent=85 hold --sleep 1
  client 'all at once' "-N4 -n8 --fault=late --fault=duplicate --fault=lost --fault=refused --fault=uid" \
    groups_many --groups 20
  # the clocks are the server's own
  [ "$(id -u)" = 0 ] || [ "$rm" = flux ] || stands_still
  clean 'faults of messages'
  run 100 -vv -N4 -n8 --fault=uid:percent=100 "$clients/exchange"
  case $rm in
    slurm) n='message of [0-9]+ bytes was dropped: slurmd writes another head' ;;
    flux) n='a message is refused: the server there is another user' ;;
  esac
  says 'another uid is seen' 0 "$n"
  # One node never answers at all: its peers give it up, and the step ends.
  echo '{ "timeouts": { "peer": 2 }, "direct": { "mode": "off" } }' >"$work/peer.json"
  MUSTER_CONF=$work/peer.json run 100 -N4 -n8 --fault=refused:percent=100,node=1 "$clients/exchange"
  says 'a node that is never reached' "1|$killed" 'muster-server on node1 is lost'
  for n in 1 5 20 after=300 after=1000; do
    case $n in [0-9]*) n=message=$n ;; esac
    # The hold is there for what comes later than the exchange's end.
    run 100 -N4 -n8 "--fault=die:node=$leaf,$n" sh -c "'$clients/exchange' && sleep 80"
    says "a node dies ($n)" "$killed" "Node failure on node$leaf"
    check "a node dies ($n): no other node is said to" "$(grep 'Node failure' "$log" | tr '\n' ';')" \
      [ "$(grep -c 'Node failure' "$log")" = 1 ]
    clean "a node dies ($n)"
  done
  run 100 -N4 -n8 "--fault=die:node=$leaf,message=12,notice=20000" "$clients/exchange" --rounds 50
  says 'a node dies, and its peers are first to see it' "$killed" "muster-server on node$leaf is lost"
  clean 'a node dies, and its peers are first to see it'
}

# Direct connections, and what they stand on when they fail: the same clients pass, and none waits long.
part_direct() {
  local kind
  echo '{ "log_level": "info" }' >"$work/direct.json"
  MUSTER_CONF=$work/direct.json run 100 -v -N4 -n8 "$clients/exchange" --rounds 50
  says 'messages go directly' 0 'transport: a direct connection to node'
  # A server that has left refuses connections, or has closed one; a server that cuts one says why itself.
  check 'no way back to the resource manager while all servers are there' "$(grep 'no direct' "$log")" \
    [ "$(grep 'no direct' "$log" | grep -vcE 'Connection refused|it has closed the connection|it closes the connection')" = 0 ]
  # 4.5 MB of nine servers; the second fence has the data of the first as well
  MUSTER_CONF=$work/direct.json client 'large fences' '-v -N9 -n9' exchange --bytes 500000 --rounds 2
  check 'they go in pieces' "$(grep -c 'go in [0-9]* pieces' "$log") of them did" \
    [ "$(grep -c 'the data of a fence of 9 servers go in 9 pieces' "$log")" = 2 ]
  [ "$rm" = slurm ] || { clean 'direct connections'; return; } # they are the same under Flux
  for kind in late refused:percent=50 duplicate:percent=50; do
    client "directly, and $kind" "-N4 -n8 --fault=$kind" groups_many --groups 20
  done
  # in each state of connections
  fault cut:percent=10 groups_many --groups 20 --rounds 3
  fault flipped:percent=20 exchange
  fault unreachable exchange
  # Somebody on the way. What the clients get is what was put; of each connection that is not what it was there is one line.
  fault repeated:percent=10 exchange
  fault swapped:percent=30 exchange --bytes 200000 --rounds 2
  client 'something between' '-v -N4 -n8 --fault=inserted:percent=20' exchange
  check 'something between: it is said' "$(grep -c 'no direct connection' "$log") lines, $(tail -n 1 "$log")" \
    grep -q 'no direct connection with node[0-3]: something that it has not written came in its name' "$log"
  MUSTER_CONF=$work/direct.json client 'directly, and overheard' '-v -N4 -n8 --fault=read' exchange
  check 'directly, and overheard: nothing can be read' "$(tail -n 1 "$log")" grep -qx 'musterrun: fault read: 0 times' "$log"
  check 'directly, and overheard: it was' "$(grep -c 'a direct connection' "$log") lines" grep -q 'a direct connection to node' "$log"
  for kind in publish events; do
    client "$kind, and overheard" '-N4 -n4 --fault=read' flood --what $kind --from last --most 50 --lasts 60
    check "$kind, and overheard: nothing can be read" "$(tail -n 1 "$log")" grep -qx 'musterrun: fault read: 0 times' "$log"
  done
  fault silent:percent=2 groups_many --groups 20
  # As where one node's firewall lets no connection in, and where its settings have no direct connections.
  echo '{ "direct": { "address": "nosuch0" } }' >"$work/nowhere.json"
  run 100 -v --conf="1=$work/nowhere.json" -N4 -n8 "$clients/exchange"
  says 'a node without that interface' 0 'there are no direct connections: no interface "nosuch0" that is up'
  echo '{ "direct": { "mode": "off" } }' >"$work/off.json"
  MUSTER_CONF=$work/direct.json run 100 -v --conf="2=$work/off.json" -N4 -n8 "$clients/groups_many" --groups 20
  says 'a node that has them off' 0 'transport: a direct connection to node'
  check 'nobody connects to it' "$(grep 'to node2\|from node2' "$log")" \
    [ "$(grep -c 'connection to node2\|connection from node2' "$log")" = 0 ]
  # Where the settings let messages go no other way, they wait, and a server that cannot be connected to counts as lost.
  echo '{ "direct": { "mode": "require" }, "timeouts": { "peer": 2 } }' >"$work/required.json"
  MUSTER_CONF=$work/required.json fault cut:percent=10 groups_many --groups 20
  MUSTER_CONF=$work/required.json run 100 -N4 -n8 --fault=unreachable:percent=100 "$clients/exchange"
  says 'required, and none can be made' "$killed" \
    'is lost: in 2 s there was no direct connection with it, which muster.json requires: .*Connection refused'
  check 'nothing passes' "$(grep PASS "$log")" eval "! grep -q PASS '$log'"
  MUSTER_CONF=$work/required.json run 100 --conf="2=$work/off.json" -N4 -n8 "$clients/exchange"
  says 'required, and off on one node' "$killed" 'direct.mode is (not )?"require" on node node[0-3] and (not )?"require" on node'
  MUSTER_CONF=$work/required.json run 100 -N2 -n2 "$clients/spawner"
  says 'required, and spawned' '[1-9].*' 'PMIx_Spawn by rank 0 fails: muster.json has direct.mode "require"'
  echo '{ "direct": { "address": "::1" }, "log_level": "info" }' >"$work/six.json"
  if grep -q ' lo$' /proc/net/if_inet6 2>/dev/null; then
    MUSTER_CONF=$work/six.json run 100 -v -N4 -n8 "$clients/exchange"
    says 'IPv6 alone' 0 'transport: a direct connection to node'
  else
    skip 'IPv6 alone' 'this machine has none'
  fi
  clean 'direct connections'
}

# server_of PID: the muster-server whose parent is that process, as it is of the tasks
server_of() {
  local pid
  for pid in $(pids_of muster-server); do
    [ "$(ps -o ppid= -p "$pid" | tr -d ' ')" != "$1" ] || echo "$pid"
  done
}
most_memory() { # MiB that a server has had
  local pid
  for pid in $(pids_of muster-server); do sed -n 's/^VmHWM:\s*\([0-9]*\) kB/\1/p' "/proc/$pid/status"; done |
    sort -n | tail -n 1 | awk '{ print int($1 / 1024) }'
}

# floods WHAT MIB PATTERN ARG...: a server stands still while a process floods it; no server has more than that many MiB, which
# is half of what they would have, and all goes on
floods() {
  local what=$1 mib=$2 pattern=$3 server most
  shift 3
  : >"$log"
  MUSTER_CONF=$work/slow.json timeout -k 5 100 "${musterrun[@]}" -N4 -n4 "$clients/flood" --seconds 90 "$@" >"$log" 2>&1 </dev/null &
  step=$!
  until_true 60 grep -q 'stand still is a child of' "$log"
  server=$(server_of "$(sed -n 's/.* is a child of //p' "$log")")
  check "$what: a server stands still" "$(why "$log" unknown)" kill -STOP "$server"
  check "$what: the flood ends" "$(why "$log" unknown)" until_true 60 grep -q 'flood: [0-9]* accepted' "$log"
  most=$(most_memory)
  kill -CONT "$server"
  wait "$step"
  status=$?
  check "$what: memory" "$most MiB, expected $mib at most" [ "$most" -le "$mib" ]
  check "$what: all goes on" "$(why "$log" $status)" passed_once
  [ -z "$pattern" ] || check "$what: it is said" "$(tail -n 3 "$log")" grep -qE "$pattern" "$log"
}

# What a server does not take has a bound, and what is beyond that fails by itself.
part_slow() {
  echo '{ "tree_arity": 2 }' >"$work/slow.json"
  floods 'events for one node' 200 'is not sent to node3: 64 MiB of events wait here' --what aimed --bytes 20000 --most 20000 --lasts 40
  floods 'publish' 400 'publish, look up or unpublish is refused, as 32 MiB' --what publish --from last --bytes 200000 --most 4000 --lasts 40
  echo '{ }' >"$work/slow.json"
  floods 'events for all' 150 'is not sent to other nodes: 16 MiB of events wait here' --bytes 20000 --most 20000 --lasts 40
  clean 'floods'
}

# All below a broker are lost with it; of rank 0 that is all nodes.
kill_broker() {
  local fault
  for fault in node=1 node=0; do
    run 100 -N4 -n8 "--fault=die:$fault,after=1000" "$clients/hold" --sleep 80
    says "a broker that others need dies ($fault)" "$killed" 'the broker has lost its parent in the tree'
    clean "a broker that others need dies ($fault)"
  done
}

# The watch of a step of Slurm has a unit test, whose time goes faster: plugins/slurm/test_watch.c.
server_is_stopped() {
  local server
  server=$(pids_of muster-server | head -n 1)
  kill -STOP "$server"
  check 'a server is stopped: the user is told' "$(tail -n 3 "$log")" \
    until_true 150 grep -q "has not answered for 60 s: its process $server there is stopped" "$log"
  kill -CONT "$server"
  check 'a server goes on: the user is told' "$(tail -n 3 "$log")" until_true 60 grep -q 'answers again' "$log"
}

part_kills() {
  start
  kill -9 $step
  await 'musterrun is killed'
  clean 'musterrun is killed'
  start
  kill -9 "$(pids_of musterrun | grep -vx "$step" | head -n 1)"
  await "a node's process is killed"
  says "a node's process is killed" "$killed" 'Node failure on node'
  clean "a node's process is killed"
  [ "$rm" = slurm ] || kill_broker
  start
  [ "$rm" = slurm ] || server_is_stopped
  kill -9 "$(pids_of muster-server | head -n 1)"
  await 'a server is killed'
  says 'a server is killed' 137 "muster-server of $step_of died on node"
  clean 'a server is killed'
  # No process is left that could remove the directory: the next run does.
  start
  # shellcheck disable=SC2046  # the first one first, or it would have the time to remove it
  kill -9 $step $(pids_of musterrun | grep -vx "$step") 2>/dev/null # their children end with them
  await 'all processes of musterrun are killed'
  check 'all processes of musterrun are killed: no process is left' "$(list_left | grep process)" \
    until_true 30 no_process_left
  run 30 true
  clean 'all processes of musterrun are killed, after the next run'
}

parts faults direct slow kills
