#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# ci/system/words.sh: what users read, and what they may set for a step of their own, under musterrun.
# shellcheck disable=SC2154,SC2034,SC2209  # clients and work are shared with lib.sh
set -uo pipefail
usage() {
  cat <<'TXT'
usage: ci/test standin
       ci/system/words.sh [--rm=NAME] BUILDDIR [PART]...

Runs musterrun ($MUSTERRUN, by default /opt/muster/bin/musterrun) as standin.sh does, and looks at
settings of one step: that they work, that mistakes are refused, what an admin forbids; and at what is shown of
operations that wait; and at servers that die or have no room; and at programs of an MPI without PMIx; or only
those PARTs: settings stall deaths full alone. Prints "ok" and "not ok" lines; non-zero status when any failed.
Needs an ordinary user: root's musterrun takes no settings file from the environment.
TXT
}
# shellcheck source=ci/system/standin_lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/standin_lib.sh"
status_program=$prefix/bin/muster-status

# ---- settings of one step ----

# A task is lost, and the others go on: only with "continue" this ends with the task's own status.
lose_one() { run 100 "$@" -N2 -n4 "$clients/hold" --victim 3 --how exit --in sleep --sleep 2; }

# Flux's own line of a job's exception repeats our words.
said_once() {
  local n
  n=$(grep -v exception "$log" | grep -cE "$2")
  check "$1: said once" "$n times: $(head -n 8 "$log" | tr '\n' ';')" [ "$n" = 1 ]
}

part_settings() {
  lose_one
  says 'a lost task ends the step' '[1-9][0-9]*' 'rank 3 .*ending the (step|job)'
  MUSTER_ON_TASK_LOSS=continue lose_one
  says 'MUSTER_ON_TASK_LOSS=continue' '[1-9]' 'rank 3 on node1 ended with exit code [0-9]+ and without PMIx_Finalize'
  check 'MUSTER_ON_TASK_LOSS=continue: nobody ends the step' "$(grep -m 1 ending "$log")" \
    eval "! grep -q 'ending the ' '$log'"
  MUSTER_ON_TASK_LOS=continue run 60 -N2 -n2 "$clients/start"
  if [ "$rm" = slurm ]; then
    says 'a name that is nearly right' '[1-9][0-9]*' 'MUSTER_ON_TASK_LOS: unknown; did you mean MUSTER_ON_TASK_LOSS\?'
  else
    check 'a name that is nearly right is not seen under Flux' "$status" [ "$status" = 0 ]
  fi
  MUSTER_TIMEOUTS_FENCE=soon run 60 -N4 -n4 "$clients/start"
  says 'a value that is not right' '[1-9][0-9]*' 'MUSTER_TIMEOUTS_FENCE: found "soon"; give a whole number, 0 to 86400 seconds'
  said_once 'a value that is not right' 'found "soon"'
  check 'a value that is not right: nothing else is said' "$(grep 'cannot have it' "$log")" eval "! grep -q 'cannot have it' '$log'"
  MUSTER_TIMEOUTS_FENCE=soon run 60 -N4 -n4 echo ran
  said_once 'a program without PMIx' 'found "soon"'
  says 'a program without PMIx runs all the same' 0 'MUSTER_TIMEOUTS_FENCE: found "soon".* run without PMIx'
  check 'a program without PMIx: both tasks ran' "$(cat "$log")" [ "$(grep -c '^ran$' "$log")" = 4 ]
  MUSTER_TREE_ARITY=4 run 60 -N2 -n2 "$clients/start"
  says 'a key of the admin' '[1-9][0-9]*' 'MUSTER_TREE_ARITY: only an admin can set "tree_arity"'
  MUSTER_ROOT=/opt run 60 -N2 -n2 "$clients/start"
  check 'a variable of another program' "$(why "$log" "$status")" [ "$status" = 0 ]
  echo '{ "step_settings": "forbid" }' >"$work/muster.json"
  MUSTER_CONF=$work/muster.json MUSTER_ON_TASK_LOSS=continue run 60 -N2 -n2 "$clients/start"
  says 'what the admin forbids' '[1-9][0-9]*' 'MUSTER_ON_TASK_LOSS=continue: .*forbid.* in muster.json forbids'
  "options_$rm"
  shown
}

options_slurm() {
  run 30 -o muster.on_task_loss=continue true
  says 'Slurm has no such option' 2 'MUSTER_ON_TASK_LOSS=continue'
}

options_flux() {
  lose_one -o muster.on_task_loss=continue
  says '-o muster.on_task_loss=continue' '[1-9]' 'rank 3 on node1 ended with exit code [0-9]+ and without PMIx_Finalize'
  check '-o muster.on_task_loss=continue: nobody ends the job' "$(grep -m 1 ending "$log")" \
    eval "! grep -q 'ending the ' '$log'"
  run 60 -o muster.timeouts.fenze=5 "$clients/start"
  says 'an option that is nearly right' '[1-9][0-9]*' '-o muster.timeouts.fenze: unknown; did you mean -o muster.timeouts.fence\?'
  run 60 -o muster.timeouts=5 "$clients/start"
  says 'an option that is a group' '[1-9][0-9]*' '-o muster.timeouts: this is a group of keys'
}

# What is in force, asked while the step runs.
shown() {
  local step
  MUSTER_STALL_REPORT=3 MUSTER_TIMEOUTS_FENCE=77 "${musterrun[@]}" -N4 -n8 "$clients/hold" --sleep 300 --seconds 320 >"$log" 2>&1 </dev/null &
  step=$!
  until_true 60 all_hold "$log"
  until_true 60 ask
  check 'muster-status shows what is in force, and by whom' "$(head -n 3 "$work/asked" | tr '\n' ';')" \
    grep -q 'settings: timeouts.fence 77 (by: step), stall_report 3 (by: step)' "$work/asked"
  kill -TERM $step
  wait $step
}
ask() {
  local dir
  dir=$(find "$TMPDIR" -type d -name 'muster.*.*' 2>/dev/null | head -n 1)
  [ -n "$dir" ] && "$status_program" --dir="${dir%/*}" "$(basename "$dir" | sed 's/^muster\.//; s/\.[0-9a-f]*$//')" >"$work/asked" 2>&1
}

# ---- what waits ----

# wait_late COMMAND...: ranks 0 and 1 come late to a fence: when COMMAND has ended
wait_late() {
  local late step
  : >"$log"
  "$@" &
  late=$!
  "${musterrun[@]}" -N2 -n4 "$clients/hold" --until $late --late 2 --sleep 0 --seconds 200 >"$log" 2>&1 </dev/null &
  step=$!
  wait $late
  wait $step
  status=$?
}
stall_shown() { until_true 100 grep -q 'goes on waiting' "$log" && sleep 3; } # in which none may follow

part_stall() {
  local n
  MUSTER_STALL_REPORT=1 wait_late stall_shown
  says 'a stall is shown' 0 'waiting for [0-9]+ s: fence.*missing.* on node0; the (step|job) goes on waiting; .*muster-status'
  n=$(grep -c 'goes on waiting' "$log")
  check 'a stall is shown once' "$n times" [ "$n" = 1 ]
  # each node's server awaits the rank that commits late
  MUSTER_STALL_REPORT=1 run 100 -N3 -n6 "$clients/modex" --rounds 1 --late 4000
  says 'several nodes have stalls' 0 'waiting for [0-9]+ s: .*muster-status'
  n=$(grep -c 'goes on waiting' "$log")
  check 'several nodes have stalls: one is shown' "$n times" [ "$n" = 1 ]
  # two ids of one group: the construct times out, and the ranks go on
  MUSTER_STALL_REPORT=1 MUSTER_TIMEOUTS_CONSTRUCT=5 run 100 -N2 -n6 "$clients/hold" --in construct --odd 3
  says 'a stall names what the missing node waits in' 0 \
    'group "(hold|odd)" construct: 1 of 2 nodes missing: one or more of ranks (0-2|3-5) on (node[01]); \3 waits in another operation: group "(hold|odd)" construct'
  # what the deadline counts is the time that ranks take to come, before and after: much, on a busy machine
  MUSTER_STALL_REPORT=1 MUSTER_TIMEOUTS_FENCE=12 run 100 -N3 -n6 "$clients/control" --pause 13
  says 'a pause is named, and no deadline passes in it' 0 'missing: .*; paused by PMIx_Job_control: 1 of 6 processes; the (step|job) goes on waiting'
  says 'a checkpoint that a rank does not do is told' 0 'checkpoint "two": rank 5 on node2 did not raise PMIX_JCTRL_CHECKPOINT_COMPLETE within 1 s'
  MUSTER_STALL_REPORT=1 MUSTER_STALL_TERMINAL=never wait_late sleep 5
  check 'a stall is not shown' "$(why "$log" "$status")" eval "[ $status = 0 ] && ! grep -q 'goes on waiting' '$log'"
}

# ---- deaths ----

# What the user reads of a server that dies: by what, as far as that can be known.
are_up() { [ "$(grep -c '^up$' "$log")" = 2 ]; }
part_deaths() {
  local sig major minor runs
  for sig in 'SEGV:crashes by signal 11 .segmentation fault.' 'BUS:crashes by signal 7 .bus error.: most likely the file system'; do
    start
    kill -s "${sig%%:*}" "$(pids_of muster-server | head -n 1)"
    await "a server that crashes (${sig%%:*})"
    says "a server that crashes (${sig%%:*})" '[1-9][0-9]*' "muster-server ${sig#*:}"
  done
  rm -f "$work/killed"
  : >"$log"
  timeout 200 "${musterrun[@]}" -N2 -n2 sh -c "echo up; until [ -e $work/killed ]; do sleep 0.1; done; echo ran" >"$log" 2>&1 </dev/null &
  runs=$!
  until_true 60 are_up
  kill -9 "$(pids_of muster-server | head -n 1)"
  until_true 60 grep -q 'run on, since none has used PMIx' "$log"
  : >"$work/killed"
  wait $runs
  status=$?
  says 'a server that is killed before it is used' 0 'muster-server of .* died on node node[0-9].* run on, since none has used PMIx'
  start
  kill -9 "$(pids_of muster-server | head -n 1)"
  await 'a server that is killed'
  IFS=. read -r major minor _ < <(uname -r)
  if [ $((major * 100 + ${minor%%[!0-9]*})) -ge 615 ]; then
    says 'a server that is killed' '[1-9][0-9]*' 'muster-server of .* died on node node[0-9] \(it was ended by signal 9, Killed'
  else
    skip 'a server that is killed' 'only Linux 6.15 tells how'
  fi
}

# Servers that find no room say so before they start. /tmp is of the test's own.
part_full() {
  local file=$TMPDIR/fill
  if [ "$(df --output=fstype "$TMPDIR" | tail -n 1)" != tmpfs ] || [ "$(df --output=size "$TMPDIR" | tail -n 1)" -gt 70000 ]; then
    skip 'a full file system' "$TMPDIR is not a small tmpfs"
    return
  fi
  head -c 200M /dev/zero >"$file" 2>/dev/null
  run 60 -N2 -n2 "$clients/start"
  says 'a full file system' '[1-9][0-9]*' '=.* has [0-9]+ KiB free, and muster-server needs 1024 KiB'
  rm -f "$file"
}

# ---- an MPI without PMIx ----

# A library of its name stands for MPICH. alone COMMAND...: on two nodes, and how often that is said
alone() {
  run 60 -N2 -n4 env LD_PRELOAD="$1" sleep 0.5
  check "$2: status 0" "$(why "$log" "$status")" [ "$status" = 0 ]
  n=$(grep -c 'runs by itself' "$log")
  check "$2: said $3 times" "$n times" [ "$n" = "$3" ]
}
part_alone() {
  local n name
  for name in libmpich.so.12 libmpi.so.40 libopen-pal.so.40; do gcc -shared -x c -o "$work/$name" /dev/null; done
  alone "$work/libmpich.so.12" 'an MPI without PMIx' 1
  says 'an MPI without PMIx: the remedy' 0 \
    'no task on this node has asked for PMIx, and the program uses libmpich.so.12: .* 4 tasks runs by itself.* start programs of this MPI with: (srun --mpi=pmi2|flux run -o pmi=simple)'
  alone "$work/libmpi.so.40 $work/libopen-pal.so.40" 'Open MPI that is not used' 0
}

parts settings stall deaths full alone
