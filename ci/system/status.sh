#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# ci/system/status.sh: whether a step that hangs says who is missing, and to whom.
# shellcheck disable=SC2154,SC2034  # clients, work and spool are shared with lib.sh
set -uo pipefail
usage() {
  cat <<'TXT'
usage: ci/slurm [OPTION]... -- ci/system/status.sh BUILDDIR

Run as root. Starts a step of the user alice of which one rank sleeps while the others are in
a fence. From any node muster-status names that rank and its node, to alice and root and
nobody else; SIGUSR1 writes a server's state; a server that is stopped is named; the
log says who is missing, of fences and of direct modex; where muster.json has the servers'
directories made, they are found. With MUSTER_CI_DEBUG=1, which
makes slurmd log at debug, the lines of transitions are looked at too. Prints "ok",
"not ok" with the reason and "skip" lines; non-zero status when any failed.
TXT
}
case ${1:-} in -h|--help) usage; exit 0 ;; '') usage >&2; exit 2 ;; esac
# shellcheck source=ci/system/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
find_clients "$1"
spool=$(spool_dir)
if [ "$(id -u)" != 0 ]; then skip status 'needs root'; summary; exit; fi
conf=/opt/muster/etc/muster/muster.json
tool=/opt/muster/bin/muster-status
says='^fence of 4 processes has waited for [0-9]+ s: missing rank 3 on node4$'

# as USER COMMAND...
as() {
  local user=$1
  shift
  setpriv --reuid "$user" --regid "$(id -g "$user")" --init-groups --inh-caps=-all env HOME=/tmp "$@"
}

# ask NODE USER ARG...: muster-status on a node; prints what it says, its status is the result
ask() {
  local node=$1 user=$2
  shift 2
  on "$node" "$user" "$tool" "$@" 2>&1
}

# ask_until PATTERN NODE USER ARG...: the same, until it says PATTERN, since on a busy machine a server may take longer
# than the tool waits for it; sets $found
ask_until() { until_true 60 ask_once "$@"; }
ask_once() {
  local pattern=$1
  shift
  found=$(ask "$@")
  grep -qE "$pattern" <<<"$found"
}

server_on() {
  local pid
  for pid in $(pids_of muster-server); do
    [ "$(readlink "/proc/$pid/ns/uts")" != "$(readlink "/proc/$(slurmd_of "$1")/ns/uts")" ] || echo "$pid"
  done
}

dir_on() { compgen -G "/proc/$(slurmd_of "$1")/root/tmp/muster.$step.????????" | head -n 1; }
logged() { grep -hE "$1" "$MUSTER_CI_DIR"/log/node*.log; }
is_logged() { logged "$1" >/dev/null; }

# is_refusal STATUS TEXT PATTERN: one line that says why, and status 1
is_refusal() { [ "$1" = 1 ] && [ "$(wc -l <<<"$2")" = 1 ] && grep -qE "^muster-status: $3" <<<"$2"; }

# refused WHAT SAYS NODE USER ARG...: muster-status refuses
refused() {
  local what=$1 why=$2 found status
  shift 2
  found=$(ask "$@")
  status=$?
  check "$what" "status $status: $found" is_refusal $status "$found" "$why"
}

holds() { [ "$(grep -c '^HOLD rank' "$work/hold.log")" = 4 ]; }
# The servers know of the fence within half a second: see docs/collectives.md.
hangs() { ask node1 alice "$step" | grep -qE "$says"; }

check_views() {
  local node found status
  for node in node1 node2 node3 node4; do
    ask_until ' 4 of 4 nodes answer$' $node alice "$step"
    check "from $node: who is missing" "$found" grep -qE "$says" <<<"$found"
    check "from $node: all nodes answer" "$found" grep -qx "step $step of alice: 4 of 4 nodes answer" <<<"$found"
    check "from $node: a line for each node" "$found" \
      [ "$(grep -cE '^node[1-4]: muster .*, libpmix .*; tasks: 1 connected; other servers: [0-9]+ direct, [0-9]+ native; [01] waiting; for tools: "muster[.][^"]*"$' <<<"$found")" = 4 ]
  done
  found=$(ask node2 root "$step")
  check 'root sees it' "$found" grep -qE "$says" <<<"$found"
  ask_until '"silent":\[\]' node2 alice --json "$step"
  check 'as JSON' "$found" grep -qE '^\{"nodes":\[\{"step":"'"$step"'".*"missing":\[\{"node":"node4","nspace":"[^"]*","ranks":"3"\}\].*"silent":\[\],"version":1\}$' <<<"$found"
  check 'the JSON is as its schema has it' "$(ci/lib/check-schema docs/muster-status.schema.json <<<"$found" 2>&1 | tail -n 3)" \
    is_by_schema "$found"
  found=$(ask node2 alice --stats --json "$step")
  check 'what was counted, as JSON' "$found" is_by_schema "$found"
  found=$(on node2 alice "$tool" "$step" 2>&1 >/dev/full)
  status=$?
  check 'output that cannot be written' "status $status: $found" is_refusal $status "$found" 'cannot write: No space left on device'
  found=$(ask node2 alice --local "$step")
  check 'one node alone' "$found" grep -qx "step $step of alice: 1 of 1 nodes answer" <<<"$found"
  found=$(as alice srun --jobid="${step%.*}" --overlap --mpi=none -N1 -n1 -w node3 "$tool" "$step" 2>&1)
  check 'by srun, as a user does it' "$found" grep -qE "$says" <<<"$found"
}

is_by_schema() { ci/lib/check-schema docs/muster-status.schema.json <<<"$1" >/dev/null 2>&1; }

check_lists() {
  local found
  found=$(ask node2 alice)
  check 'without a step: hers' "$found" [ "$found" = "step $step of alice" ]
  found=$(ask node2 root --json)
  check 'root lists everybody'"'"'s' "$found" [ "$found" = '{"steps":[{"step":"'"$step"'","unit":"step","user":"alice"}],"version":1}' ]
  check 'the list is as its schema has it' "$found" is_by_schema "$found"
  ask_until ' 4 of 4 nodes answer$' node2 alice "${step%.0}"
  check "a job's number alone" "$found" grep -qx "step $step of alice: 4 of 4 nodes answer" <<<"$found"
  refused 'bob has none' 'no step or job of bob has a server on this node; looked in /tmp' node2 bob
}

check_strangers() {
  local dir fake found
  refused 'bob is refused' "step $step is alice's; only its owner and root may look at it" node1 bob "$step"
  dir=$(dir_on node1)
  check 'the socket is for alice alone' "$(stat -c '%U %a %n' "$dir" "$dir/status")" \
    [ "$(stat -c '%U %a' "$dir" "$dir/status" | tr '\n' ' ')" = 'alice 700 alice 600 ' ]
  # bob's own directory of that name deceives nobody.
  fake=/tmp/muster.$step.00000000
  on node1 bob mkdir -m 777 "$fake"
  check "bob's directory is made" "no $fake" on node1 bob ln -s "/tmp/${dir##*/}/status" "$fake/status"
  found=$(ask node1 alice "$step")
  check "bob's directory is passed over" "$found" grep -qE "$says" <<<"$found"
  refused "bob's link is not followed" "the server of step $step on this node cannot be asked" node1 root --user bob "$step"
  on node1 bob rm -r "$fake"
  # Nor does a process of his that answers in such a directory.
  fake=/tmp/muster.4711.7.00000000
  # shellcheck disable=SC2016  # perl's variables
  on node1 bob perl -MIO::Socket::UNIX -e 'my $dir = shift; mkdir $dir, 0700;
    my $s = IO::Socket::UNIX->new(Local => "$dir/status", Listen => 5) or die "listen: $!";
    mkdir "$dir/up"; select undef, undef, undef, 0.1 while -e "$dir/up"' "$fake" &
  check "bob's process listens" "no $fake/up" until_true 60 on node1 bob test -e "$fake/up"
  found=$(ask node1 root)
  check "root's list has no process of bob's" "$found" [ "$found" = "step $step of alice" ]
  on node1 bob rmdir "$fake/up"
  wait $!
  on node1 bob rm -r "$fake"
  refused 'a step that is not there' 'no server of step 999999.0 runs on this node' node1 alice 999999.0
  found=$(ask node1 root --user nobody-of-that-name "$step")
  check 'a user that there is not' "status $?: $found" [ "$?: $found" = '2: muster-status: --user: there is no user nobody-of-that-name' ]
  found=$(ask node1 root --user "$(id -u alice)" "$step")
  check 'a user by number' "$found" grep -qE "$says" <<<"$found"
  refused 'what is no step' '".*" names no step' node1 alice ..
}

check_signal() {
  local server file
  server=$(server_on node2) file=$(dir_on node2)/status.json
  kill -USR1 "$server"
  check 'SIGUSR1 writes the state' "no $file" until_true 60 [ -e "$file" ]
  check 'the file is for alice alone' "$(stat -c '%U %a' "$file")" [ "$(stat -c '%U %a' "$file")" = 'alice 600' ]
  check 'the file has the state' "$(head -c 300 "$file")" grep -q "^{\"step\":\"$step\",\"unit\":\"step\",\"size\":4,\"node\":\"node2\",.*\"trackers\":\[{.*}$" "$file"
  check 'the step goes on' "server $server is gone" [ "$(server_on node2)" = "$server" ]
}

check_silent() {
  local server found
  server=$(server_on node2)
  kill -STOP "$server"
  ask_until ' 3 of 4 nodes answer$' node1 alice "$step"
  kill -CONT "$server"
  check 'a server that does not answer is named' "$found" grep -qx 'node2: no answer within 5 s' <<<"$found"
  check 'the others answer' "$found" grep -qx "step $step of alice: 3 of 4 nodes answer" <<<"$found"
}

check_log() {
  local nameless
  check 'the log says who is missing' "$(logged 'waiting for' | tail -n 1)" \
    is_logged "$step node[1-4]: waiting for [0-9]+ s: fence of 4 processes: 1 of 4 nodes missing: rank 3 on node4"
  check 'the file of SIGUSR1 is in the log' "$(logged SIGUSR1 | tail -n 1)" \
    is_logged "$step node2: SIGUSR1: the state is in /tmp/muster\.$step\.[0-9a-f]{8}/status\.json"
  if [ -z "${MUSTER_CI_DEBUG:-}" ]; then skip 'lines of transitions' 'needs MUSTER_CI_DEBUG=1'; return; fi
  check 'a line a transition' "$(logged 'idle ->' | tail -n 1)" \
    is_logged "$step node1: tracker: fence of 4 processes #[0-9a-f]{16} after [0-9]+ ms: (call|child): idle -> (gather|early)"
  nameless=$(logged 'mpi/muster: ' | grep -vE 'mpi/muster: [0-9]+\.[0-9]+ node[1-4]: ')
  check 'all lines name step and node' "$(head -n 3 <<<"$nameless")" [ -z "$nameless" ]
}

# Every rank gets from every other; the last one commits 4 s late.
check_modex() {
  if [ "$(pmix_major)" -lt 5 ]; then
    skip 'a direct modex that waits' 'libpmix 4.2 does not wait for a commit on one node: the client fences first'
    return
  fi
  as alice srun --mpi="$MPI" -N4 -n4 "$clients/modex" --late 4000 >"$work/modex.log" 2>&1 </dev/null
  check 'modex with a late rank' "$(why "$work/modex.log" $?)" grep -q '^PASS modex' "$work/modex.log"
  check 'the log says of whom a direct modex waits' "$(logged 'waiting for' | tail -n 1)" \
    is_logged ' node[1-3]: waiting for [0-9]+ s: direct modex of [^ ]+ rank 3, key "m0\.number": no answer of node4'
}

# Directories that are made elsewhere: muster.json says where, to the tool as well.
check_tmpdir() {
  local log=$work/tmpdir.log found
  on node1 root mkdir -m 1777 /tmp/elsewhere
  echo '{ "tmpdir": "/tmp/elsewhere" }' >"$conf"
  : >"$log"
  as alice srun --mpi="$MPI" -w node1 -N1 -n1 "$clients/hold" --sleep 300 --seconds 320 >"$log" 2>&1 </dev/null &
  srun=$!
  if until_true 60 grep -q '^HOLD rank' "$log"; then
    step=$(squeue -h -s -u alice -o %i | grep -E '^[0-9]+\.[0-9]+$' | head -n 1)
    found=$(ask node1 alice "$step")
    check 'tmpdir of muster.json: the server is found' "$found" grep -qx "step $step of alice: 1 of 1 nodes answer" <<<"$found"
    refused 'another directory: --dir is named' 'no server of step .*with --dir .* /tmp ' node1 alice --dir /tmp "$step"
  else
    not_ok 'tmpdir of muster.json: the start of a step' "$(why "$log" 'unknown (not up after 60 s)')"
  fi
  scancel -u alice
  wait $srun
  until_true 60 on node1 root rmdir /tmp/elsewhere
}

gone() { [ -z "$(server_on "$1")" ]; }
silent_of_loss() { ! grep -q 'is lost' "$1"; }

# Rank 2, on node3, sleeps 50 ms before each of 20 fences: srun shows a line when the step has ended, and alice and root see what
# her home has of it.
check_late() {
  local log=$work/late.log home status found
  home=$(getent passwd alice | cut -d: -f6)
  mkdir -p "$home" && chown alice: "$home"
  as alice env MUSTER_STATS=keep HOME="$home" srun --mpi="$MPI" -w 'node[1-4]' -N4 -n4 "$clients/late" --rank 2 --fences 20 >"$log" 2>&1 </dev/null
  status=$?
  check 'at the end srun says which node was late' "status $status: $(tr '\n' ';' <"$log")" \
    grep -qE '^srun: mpi/muster: [0-9]+\.0: 20 fences waited .* of .*; last: node3 in (1[89]|20) \([0-9]+ %\), (4[5-9]|5[0-5]) ms late by median.*; counts are kept: muster-status --stats [0-9]+\.0$' "$log"
  step=$(sed -n 's/.*muster-status --stats //p' "$log")
  found=$(on node1 alice env HOME="$home" "$tool" --stats "$step" 2>&1)
  check 'she sees it' "$found" grep -qE '^fence +20 +80 .* node3: last in (1[89]|20) ' <<<"$found"
  found=$(on node1 root env HOME="$home" "$tool" --stats "$step" 2>&1)
  check 'and root not by its HOME' "$found" grep -q "^muster-status: no server of step $step runs" <<<"$found"
  found=$(ask node1 root --stats --user alice "$step")
  check 'root sees it in her home' "$found" grep -qE '^fence +20 +80 .* node3: last in (1[89]|20) ' <<<"$found"
  ln -sf /etc/shadow "$home/.local/state/muster/stats/muster.$step.stats.json"
  found=$(ask node1 root --stats --user alice "$step")
  check 'and with her rights only' "$found" grep -q ': Permission denied$' <<<"$found"
  rm -r "$home/.local"
}

# Of a node whose tasks have ended there is no server any more, and nobody waits for it.
check_ended() {
  local log=$work/ended.log found
  : >"$log"
  as alice srun --mpi="$MPI" -w node1,node2 -N2 -n2 bash -c "'$clients/barrier'; [ \$SLURM_PROCID = 1 ] || sleep 300" >"$log" 2>&1 </dev/null &
  srun=$!
  if until_true 60 grep -q '^PASS barrier' "$log" && until_true 60 gone node2; then
    step=$(squeue -h -s -u alice -o %i | grep -E '^[0-9]+\.[0-9]+$' | head -n 1)
    found=$(ask node1 alice "$step")
    check 'a node whose tasks have ended' "$found" grep -qx 'node2: its tasks have ended' <<<"$found"
  else
    not_ok 'a step whose tasks on one node end' "$(why "$log" 'unknown (not so after 120 s)')"
  fi
  scancel -u alice
  wait $srun
  check 'which is no error' "$(cat "$log")" silent_of_loss "$log"
}

level=warning
[ -z "${MUSTER_CI_DEBUG:-}" ] || level=debug
mkdir -p "${conf%/*}"
# With trees so narrow a server asks others through relays: node1 has node2 ask node3.
echo '{ "stall_report": 1, "log_level": "'"${level}"'", "tree_arity": 2 }' >"$conf"
chmod 644 "$conf"
list_leftovers >"$work/before"
touch "$work/hold.log"
as alice srun --mpi="$MPI" -N4 -n4 "$clients/hold" --in fence --victim 3 --how exit --delay 600000 \
  --seconds 700 >"$work/hold.log" 2>&1 </dev/null &
srun=$!
if until_true 60 holds; then
  step=$(squeue -h -s -u alice -o %i | grep -E '^[0-9]+\.[0-9]+$' | head -n 1)
  check 'the hang is seen' "$(ask node1 alice "$step")" until_true 60 hangs
  check_views
  check_lists
  check_strangers
  check_signal
  check_silent
  check_log
else
  not_ok 'start of a step of alice' "$(why "$work/hold.log" 'unknown (not up after 60 s)')"
fi
kill $srun
scancel -u alice
wait $srun 2>/dev/null
check 'nothing is left' "$(new_leftovers "$work/before" | tr '\n' ';')" until_true 60 nothing_new "$work/before"
[ -z "${step:-}" ] || refused 'a step that has ended' "no server of step $step runs on this node: the step has ended" node1 alice "$step"
check_modex
check_late
check_ended
check_tmpdir
rm "$conf"
summary
