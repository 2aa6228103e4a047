#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# ci/system/tools.sh: OpenPMIx's own tools, beside a step of alice.
# shellcheck disable=SC2154,SC2034  # clients, work and spool are shared with lib.sh
set -uo pipefail
usage() {
  cat <<'TXT'
usage: ci/slurm -N 2 [OPTION]... -- ci/system/tools.sh BUILDDIR [PART]...

Run as root. Starts a step of the user alice on two nodes. Her tools find its servers: by namespace, by process, by URI, by
file, and without a word; pps as srun starts it beside the step, and as it is started there; muster-status names each node's
URI; pattrs says what muster serves; pctrl pauses a rank, ends it, and then the step. To bob none of them says anything. When the step ends nothing is left of it.

muster-status --stacks, started where srun is, shows what each rank does, to alice and root; when it is killed, no task
stays stopped, and nothing of it is left. muster-attach runs a command on each node, or beside ranks, as alice, and
leaves as little when it is killed.

PART is find or stacks; by default all. Prints "ok", "not ok" with the reason and "skip" lines; non-zero status when any failed.
TXT
}
case ${1:-} in -h|--help) usage; exit 0 ;; '') usage >&2; exit 2 ;; esac
# shellcheck source=ci/system/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
find_clients "$1"
shift
parts=("$@")
[ $# -gt 0 ] || parts=(find stacks)
for part in "${parts[@]}"; do
  case $part in find|stacks) ;; *) usage >&2; exit 2 ;; esac
done
spool=$(spool_dir)
list_all() { list_leftovers; }
if [ "$(id -u)" != 0 ]; then skip tools 'needs root'; summary; exit; fi
status_tool=/opt/muster/bin/muster-status

as_alice() { setpriv --reuid alice --regid "$(id -g alice)" --init-groups --inh-caps=-all env HOME=/tmp "$@"; }
# as_alice_alone COMMAND... &: the same; $! is the command itself, and no shell
as_alice_alone() { exec setpriv --reuid alice --regid "$(id -g alice)" --init-groups --inh-caps=-all env HOME=/tmp "$@"; }

# start_step CLIENT ARG...: alice's, which goes on without a lost task, of four ranks on two nodes, in the background; sets $job, $step
holds() { has_lines 4 'HOLD rank' "$work/step.log"; }
start_step() {
  list_all >"$work/before"
  mark_logs
  : >"$work/step.log"
  as_alice env MUSTER_ON_TASK_LOSS=continue srun --mpi="$MPI" --kill-on-bad-exit=0 -N2 --ntasks-per-node=2 "$@" >"$work/step.log" 2>&1 </dev/null &
  srun=$!
  until_true 60 holds || not_ok 'the step starts' "$(why "$work/step.log" unknown)"
  job=$(squeue -h -o %i)
  step=$job.0
}


# by WHAT NODE USER TOOL...: the tool says PATTERN in $says, and ends with 0
by() {
  local what=$1 found status
  shift
  found=$(on "$1" "$2" env HOME=/tmp timeout 20 "${@:3}" 2>&1)
  status=$?
  check "$what" "status $status: $(head -n 12 <<<"$found" | tr '\n' ';')" eval "[ $status = 0 ] && grep -qE '$says' <<<\"\$found\""
}

# ---- a tool finds a server ----

part_find() {
  local uri found status pid file
  start_step "$clients/hold" --sleep 300 --seconds 320
  # 4.2 and 5.0 print the namespaces alone
  says='(Active nspaces: |^Namespace )slurm.'$step
  [ "$(pmix_major)" -lt 6 ] || says='^ +3 .* node2 .*/hold$'
  found=$(as_alice srun --jobid="$job" --overlap --mpi=none -N1 -n1 -w node1 pps --namespace "muster.slurm.$step" 2>&1)
  check 'pps, as srun starts it beside the step' "$(head -n 12 <<<"$found" | tr '\n' ';')" grep -qE "$says" <<<"$found"
  file=$(compgen -G "/proc/$(slurmd_of node1)/root/tmp/muster.$step.????????/pmix.node1.tool.[0-9]*")
  pid=${file##*.}
  by 'pps by the number of the process' node1 alice pps --pid "$pid"
  by 'pps by a file' node1 alice pps --uri "file:/tmp/${file#*/root/tmp/}"
  by 'pps without a word' node1 alice pps
  by 'pps without a word, on the other node' node2 alice pps
  until_true 60 all_answer
  for node in node1 node2; do
    uri=$(sed -nE "s/^$node: .*; for tools: \"(.*)\"\$/\1/p" <<<"$asked")
    by "pps by the URI of $node that muster-status shows" $node alice pps --uri "$uri"
    check "the files of $node are alice's alone" "$(stat -c '%U %a' "${file%/*}")" [ "$(stat -c '%U %a' "${file%/*}")" = 'alice 700' ]
    # from wherever a process of his is
    found=$(on $node bob timeout 20 pps --uri "$uri" 2>&1)
    status=$?
    check "bob gets nothing by the URI of $node" "status $status: $found" eval "[ $status != 0 ] && ! grep -q 'slurm.$step' <<<\"\$found\""
  done
  found=$(on node1 bob timeout 20 pps 2>&1)
  check 'bob finds nothing' "$found" eval "! grep -q 'slurm.$step' <<<\"\$found\""
  found=$(on node1 bob timeout 20 srun --jobid="$job" --overlap --mpi=none -N1 -n1 true 2>&1)
  check 'Slurm does not let bob in' "$found" grep -qE 'Access/permission denied|Invalid' <<<"$found"
  served
  check 'the step goes on' "$(tail -n 3 "$work/step.log" | tr '\n' ';')" kill -0 "$srun"
  end_it
  clean 'the end of the step'
}
# What libpmix says that its host serves. 4.2's server crashes when it is asked.
served() {
  local found
  if [ "$(pmix_major)" = 4 ]; then skip 'pattrs' 'crashes the server of libpmix 4.2'; return; fi
  says='^PMIx_Group_destruct$'
  by 'pattrs: the functions of the host' node1 alice pattrs --host-fns
  [ "$(pmix_major)" -gt 5 ] || return 0
  says='^PMIX_GROUP_ADD_MEMBERS '
  by 'pattrs: directives of the host' node1 alice pattrs --host all
  says='^PMIX_QUERY_PROC_TABLE '
  by 'pattrs: keys of the host' node1 alice pattrs --host all
}
# By job control, where there is pctrl.
end_it() {
  local status
  if ! type pctrl >/dev/null 2>&1; then
    skip 'pctrl' 'not there'
    scancel "$job"
    wait "$srun"
    return
  fi
  says='PAUSE granted'
  by 'pctrl pauses a rank of another node' node1 alice pctrl --pause --targets "slurm.$step:3"
  check 'the rank is stopped' "$(last_state)" until_true 20 last_is T
  asked=$(on node2 alice "$status_tool" "$step" 2>&1)
  check 'muster-status says that it is paused' "$(head -n 2 <<<"$asked" | tr '\n' ';')" grep -qx 'paused by PMIx_Job_control: 1 processes' <<<"$asked"
  says='RESUME granted'
  by 'pctrl resumes it' node1 alice pctrl --resume --targets "slurm.$step:*"
  check 'the rank goes on' "$(last_state)" until_true 20 last_is S
  says='TERMINATE granted'
  by 'pctrl ends a rank of another node' node1 alice pctrl --terminate --targets "slurm.$step:3"
  check 'the rank is lost, and says why' "$(tail -n 3 "$work/step.log" | tr '\n' ';')" until_true 20 ends_by_15
  says='KILL granted'
  by 'pctrl ends the step' node1 alice pctrl --kill --targets "slurm.$step:*"
  wait "$srun"
  status=$?
  check 'the step ends with the status of a kill' "status $status: $(tail -n 3 "$work/step.log" | tr '\n' ';')" [ $status = 137 ]
  check 'the terminal says who has ended it' "$(tail -n 3 "$work/step.log" | tr '\n' ';')" \
    grep -qE 'muster: .*pctrl.* calls PMIx_Job_control for all processes: signal 9' "$work/step.log"
}
last_state() { local pid; pid=$(sed -n 's/^HOLD rank 3 pid //p' "$work/step.log"); sed 's/.*) //; s/ .*//' "/proc/$pid/stat"; }
last_is() { [ "$(last_state)" = "$1" ]; }
ends_by_15() { grep -qE 'rank 3 on node2 was killed by signal 15|pctrl.* calls PMIx_Job_control for rank 3: signal 15' <(logged_since) "$work/step.log"; }
all_answer() { asked=$(on node2 alice "$status_tool" "$step" 2>&1) && grep -q ' 2 of 2 nodes answer$' <<<"$asked"; }

# ---- what the ranks do ----

all_stopped() { [ "$(letters_of hold | grep -c T)" = 4 ]; }
none_stopped() { [[ $(letters_of hold) != *[Tt]* ]]; }
no_looker() { [ -z "$(pids_of muster-status)$(pids_of muster-attach)$(pids_of eu-stack)$(pgrep -f '^sleep 4711$')" ]; }
stacks_said() {
  grep -qE '^fence of 4 processes has waited for [0-9]+ s: missing (rank 3|one or more of ranks 2-3) on node2$' <<<"$found" &&
    grep -qE '^3 ranks  main > PMIx_Fence  \(0-2 on node1,node2\)$' <<<"$found" &&
    grep -qE '^1 rank   main > sleep_ms > .*nanosleep.*  \(3 on node2\)$' <<<"$found"
}
look_at_stacks() { found=$(as_alice "$status_tool" --stacks "$step" 2>&1) && stacks_said; }

# attached WHAT LINES COMMAND...: the lines that muster-attach prints, sorted, with ";" at their ends
attached() {
  local what=$1 lines=$2 found
  shift 2
  found=$("$@" 2>&1 | sort | tr '\n' ';')
  check "$what" "$found" [ "$found" = "$lines" ]
}

# Beside the held step: a command on each node, and beside ranks.
attach() {
  local tool_attach=/opt/muster/bin/muster-attach tool status
  # shellcheck disable=SC2016  # for the shell there
  attached 'a command on each node' '[node1] on node1 4 %;[node2] on node2 4 %;' \
    as_alice "$tool_attach" "$step" -- sh -c 'echo on %n $((2 + 2)) %%'
  # shellcheck disable=SC2016  # for the shell there
  attached 'a command beside ranks, as the owner' "[1] $clients/hold alice;[2] $clients/hold alice;" \
    "$tool_attach" --ranks 1-2 "$step" -- sh -c 'echo $(readlink /proc/%p/exe) $(id -un)'
  as_alice "$tool_attach" --ranks 3 "$step" -- sh -c 'exit 7' >"$work/attach.log" 2>&1
  status=$?
  check 'its status' "status $status: $(cat "$work/attach.log")" [ $status = 7 ]
  attached 'bob may not' "muster-attach: step ${step%.0} is alice's; only its owner and root may look at it;" \
    setpriv --reuid bob --regid "$(id -g bob)" --init-groups --inh-caps=-all "$tool_attach" "$step" -- true
  as_alice_alone "$tool_attach" "$step" -- sh -c 'sleep 4711 & while kill -STOP %p; do sleep 0.1; done' >"$work/killed.log" 2>&1 &
  tool=$!
  check 'a command has stopped the tasks' "$(letters_of hold | tr '\n' ' ')" until_true 60 all_stopped
  kill -9 $tool
  wait $tool 2>/dev/null
  check 'muster-attach is killed: no task stays stopped' "$(letters_of hold | tr '\n' ' ')" until_true 60 none_stopped
  check 'muster-attach is killed: nothing of it is left' "$(pids_of muster-attach) $(pgrep -af '^sleep 4711$')" until_true 60 no_looker
}

part_stacks() {
  local found='' tool
  start_step "$clients/hold" --in fence --victim 3 --delay 600000 --seconds 700
  until_true 60 look_at_stacks
  check 'what the ranks do, to alice' "$(tr '\n' ';' <<<"$found")" stacks_said
  found=$(as_alice "$status_tool" --stacks 2>&1)
  check 'to alice, who names no step' "$(tr '\n' ';' <<<"$found")" stacks_said
  found=$(as_alice "$status_tool" --stacks "$((job + 1000))" 2>&1)
  check 'a wrong number: where the right one is' "$found" grep -q 'squeue --me --steps lists yours' <<<"$found"
  found=$("$status_tool" --stacks "${step%.0}" 2>&1)
  check 'to root' "$(tr '\n' ';' <<<"$found")" stacks_said
  found=$(as_alice "$status_tool" --stacks --json "$step" 2>&1)
  check 'as JSON' "$(ci/lib/check-schema docs/muster-status.schema.json <<<"$found" 2>&1 | tail -n 3)" \
    eval "grep -q '\"stack\":\[.*\"PMIx_Fence\"' <<<\"\$found\" && ci/lib/check-schema docs/muster-status.schema.json <<<\"\$found\""
  found=$(setpriv --reuid bob --regid "$(id -g bob)" --init-groups --inh-caps=-all "$status_tool" --stacks "$step" 2>&1)
  check 'bob is refused' "status $?: $found" [ "$found" = "muster-status: step ${step%.0} is alice's; only its owner and root may look at it" ]
  make_fake "$MUSTER_CI_DIR/shared/fake"
  as_alice_alone env PATH="$fake:$PATH" "$status_tool" --stacks "$step" >"$work/killed.log" 2>&1 &
  tool=$!
  check 'a tool has stopped the tasks' "$(letters_of hold | tr '\n' ' ')" until_true 60 all_stopped
  kill -9 $tool
  wait $tool 2>/dev/null
  check 'it is killed: no task stays stopped' "$(letters_of hold | tr '\n' ' ')" until_true 60 none_stopped
  check 'it is killed: nothing of it is left' "$(pids_of muster-status) $(pids_of eu-stack)" until_true 60 no_looker
  attach
  check 'the step goes on' "$(tail -n 3 "$work/step.log" | tr '\n' ';')" kill -0 "$srun"
  scancel "$job"
  wait "$srun"
  clean 'the end of the step that was looked at'
}

for part in "${parts[@]}"; do "part_$part"; done
summary
