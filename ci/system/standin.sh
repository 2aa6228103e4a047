#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# ci/system/standin.sh: the test clients under musterrun, without Slurm and without Flux.
# shellcheck disable=SC2154,SC2034  # clients and work are shared with lib.sh
set -uo pipefail
usage() {
  cat <<'TXT'
usage: ci/test standin
       ci/system/standin.sh [--rm=NAME] BUILDDIR [PART]...

Runs musterrun ($MUSTERRUN, by default /opt/muster/bin/musterrun), which plays the resource
manager NAME, slurm (the default) or flux: the clients in BUILDDIR
(or BUILDDIR/ci/clients) in several shapes, what a user sees of it, and how tasks end; or only
those PARTs: linking clients keys use mistakes status late settings log ends. Prints "ok", "not ok" with the reason and
"skip" lines; non-zero status when any failed. It takes each process musterrun, muster-server or
hold that it sees for a leftover of its own, so it needs a pid namespace for itself: ci/test
gives it one.
TXT
}
# shellcheck source=ci/system/standin_lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/standin_lib.sh"
looked_twice() { [ "$(grep -c ': 2 of 2 nodes answer$' "$work/watched")" -ge 2 ]; }

# Nothing of it needs an installed resource manager.
part_linking() {
  local file files
  case $rm in
    slurm) files=("$prefix/lib/muster/libslurm_standin.so" "$prefix/lib/slurm/mpi_muster.so") ;;
    flux) files=("$prefix/lib/muster/libflux_core_standin.so" "$prefix/lib/flux/modules/muster.so"
      "$prefix/lib/flux/shell/plugins/muster-shell.so") ;;
  esac
  for file in "$program" "$prefix/lib/muster/rm_$rm.so" "${files[@]}" "$clients/../../common/muster-server"; do
    check "${file##*/} links no library of a resource manager" "$(ldd "$file" | grep -E 'libslurm|libflux')" \
      eval "[ -r '$file' ] && ! ldd '$file' | grep -qE 'libslurm(full)?\.so|libslurm-|libflux-'"
  done
  check 'no daemon is there' "$(pids_of slurmd) $(pids_of slurmctld) $(pids_of flux-broker-0)" \
    [ -z "$(pids_of slurmd)$(pids_of slurmctld)$(pids_of flux-broker-0)" ]
}

# logged SHAPE: the client logq, whose lines are to come out
logged() {
  local shape=$1 n=${1#*-n}
  client "logq ($shape)" "$shape" logq
  check "logq's lines ($shape)" "$(tail -n 3 "$log")" \
    [ "$(grep -o 'logq: rank [0-9]* wrote this' "$log" | sort -u | wc -l)" = "${n%% *}" ]
}

# slurm.sh has all of them with the same libpmix and the same plugin, under the Slurm that is played here.
few_clients() {
  client 'exchange (-N4 -n8)' '-N4 -n8' exchange
  client 'groups_many (-N1 -n4)' '-N1 -n4' groups_many
  logged '-N4 -n8 --distribution=cyclic'
}

# For this back end nothing else runs them where there is no Flux. On one node nothing goes by it: slurm.sh has that.
all_clients() {
  local shape name shapes=('-N4 -n8' '-N4 -n8 --distribution=cyclic')
  client 'exchange (-N1 -n4)' '-N1 -n4' exchange
  for shape in "${shapes[@]}"; do
    clients_of "$shape"
    for name in "${of_shape[@]}"; do
      if [ "$name" = logq ]; then logged "$shape"; else client "$name ($shape)" "$shape" "$name"; fi
    done
  done
  client 'modex (-N4 -n8)' '-N4 -n8' modex
  client 'barrier (-N4 -n8)' '-N4 -n8' barrier
  client 'groups (-N4 -n8)' '-N4 -n8' groups --groups 100
  client 'exchange, large' '-N4 -n8' exchange --bytes 1000000 --rounds 2
}

part_clients() {
  if [ "$rm" = flux ]; then all_clients; else few_clients; fi
  client 'hold (-N2 -n3)' '-N2 -n3' hold --sleep 1
  client 'pull (-N2 -n4 --distribution=cyclic)' '-N2 -n4 --distribution=cyclic' pull
  clean clients
}

not_asked() { grep 'not asked' "$log" | grep -vE ' PMIX_(CPUSET|DEBUG_[A-Z_]*|LOCALITY_STRING|PACKAGE_RANK|PARENT_ID|PSET_NAME) '; }

# The table of keys, in all that musterrun can lay out, and beside another step.
part_keys() {
  local shape beside list=0,1,1,2,0,2,0
  [ "$rm" = flux ] || list=2,0,0,1,2,2,0   # a task of Flux cannot say how many nodes are before its own
  for shape in '-N4 -n8' '-N4 -n10 -m cyclic' '-N4 -n10 -m plane=2' "-m arbitrary=$list" '-N3 -n7' '-N2 -n40' '-N1 -n1'; do
    client "keys ($shape)" "$shape" keys
    # nothing is bound, and of Flux no variables say how large a job's instance is
    [ "$rm" = flux ] || check "all keys are asked for ($shape)" "$(not_asked)" [ -z "$(not_asked)" ]
  done
  start
  beside=$step
  mv "$log" "$work/beside.log"
  client 'keys, beside another step' '-N3 -n5 -m cyclic' keys
  if [ "$rm" = flux ]; then keys_below ü "${musterrun[@]}" -N2 -n4; else keys_below $'\xff\xfe' "${musterrun[@]}" -N2 -n4; fi
  check 'the step beside it' "$(tail -n 1 "$work/beside.log")" kill -0 "$beside"
  kill "$beside"
  wait "$beside"
  clean keys
}

use_slurm() {
  local found
  # shellcheck disable=SC2016  # for the tasks' shell
  run 60 -l -N2 -n3 sh -c 'echo "$SLURM_PROCID $SLURM_LOCALID $SLURM_NODEID $SLURM_NTASKS $SLURM_NNODES $SLURMD_NODENAME $SLURM_TASKS_PER_NODE $SLURM_STEP_ID"; [ "$SLURM_JOB_ID" = "$SLURM_JOBID" ]'
  found=$(sort "$log" | tr '\n' ';')
  check 'labels, and the environment of tasks' "status $status, $found" \
    [ "$status $found" = '0 0: 0 0 0 3 2 node0 2,1 0;1: 1 1 0 3 2 node0 2,1 0;2: 2 0 1 3 2 node1 2,1 0;' ]
  # shellcheck disable=SC2016
  run 60 -N2 -n4 -m cyclic sh -c 'echo "$SLURM_NODEID $SLURM_GTIDS"'
  check 'cyclic distribution' "$(cat "$log")" [ "$(sort -u "$log" | tr '\n' ';')" = '0 0,2;1 1,3;' ]
  # shellcheck disable=SC2016
  run 60 -N2 -n5 -m plane=2 sh -c 'echo "$SLURM_NODEID $SLURM_GTIDS"'
  check 'planes' "$(cat "$log")" [ "$(sort -u "$log" | tr '\n' ';')" = '0 0,1,4;1 2,3;' ]
  # shellcheck disable=SC2016
  run 60 -m arbitrary=1,2,0,1 sh -c 'echo "$SLURM_NODEID $SLURM_GTIDS"'
  check 'arbitrary distribution' "$(cat "$log")" [ "$(sort -u "$log" | tr '\n' ';')" = '0 2;1 0,3;2 1;' ]
}

use_flux() {
  local found
  # shellcheck disable=SC2016  # for the tasks' shell
  run 60 -l -N2 -n3 sh -c 'echo "$FLUX_TASK_RANK $FLUX_TASK_LOCAL_ID $FLUX_JOB_SIZE $FLUX_JOB_NNODES $MUSTERRUN_NODE"; [ "flux.$FLUX_JOB_ID" = "$PMIX_NAMESPACE" ] && [ -d "$FLUX_JOB_TMPDIR" ] && [ -S "${FLUX_URI#local://}" ]'
  found=$(sort "$log" | tr '\n' ';')
  check 'labels, and the environment of tasks' "status $status, $found" \
    [ "$status $found" = '0 0: 0 0 3 2 node0;1: 1 1 3 2 node0;2: 2 0 3 2 node1;' ]
  # shellcheck disable=SC2016
  run 60 -N2 -n4 -m cyclic sh -c 'echo "$MUSTERRUN_NODE $FLUX_TASK_LOCAL_ID $FLUX_TASK_RANK"'
  found=$(sort "$log" | tr '\n' ';')
  check 'cyclic distribution' "$found" [ "$found" = 'node0 0 0;node0 1 2;node1 0 1;node1 1 3;' ]
}

# Command lines of mpirun and srun.
part_habits() {
  # shellcheck disable=SC2016  # for the tasks' shells
  local show='echo "$(basename "$PWD") $COLOUR"' option
  run 60 -l -n 2 echo first : -np 3 echo second
  check 'several programs' "status $status: $(tr '\n' ';' <"$log")" \
    [ "$(sort "$log" | tr '\n' ';')" = '0: first;1: first;2: second;3: second;4: second;' ]
  client '--host' '--host a:2,b' exchange
  printf 'x slots=2 # two\n\ny\n' >"$work/hosts"
  client '--hostfile' "--hostfile $work/hosts -n 4" exchange
  printf 'x slots=many\n' >"$work/hosts"
  run 30 --hostfile "$work/hosts" true
  says 'a wrong host file' 2 'hosts line 1: not NAME slots=TASKS'
  run 60 -x COLOUR=red -x HOME -n 2 --wdir /usr --output="$work/out.%t" --error="$work/err" sh -c "$show; echo wrong >&2"
  check '-x, --wdir, --output and --error' "status $status: $(head "$work"/out.* "$work/err" | tr '\n' ';')" \
    [ "$status$(cat "$work/out.0" "$work/out.1" "$work/err" | tr '\n' ';')" = '0usr red;usr red;wrong;wrong;' ]
  run 60 -n 2 --chdir /nonexistent true
  says 'a directory that is not there' 2 'error: --wdir: /nonexistent: No such file'
  run 60 --timeout 1 -n 2 sleep 60
  says '--timeout' 124 '1 s are over; the tasks are killed'
  run 60 -N2 -n 5 sh -c 'exit 3'
  says 'tasks that end alike are told of together' 3 'tasks [0-9]+[-,][-,0-9]+: Exited with exit code 3'
  for option in --lable:'did you mean --label' --map-by:'--distribution says' --mpi=pmix:'leave the option out' --zzz:'unknown; see'; do
    run 30 "${option%%:*}" true
    says "the option ${option%%:*}" 2 "musterrun: ${option%%:*}: .*${option#*:}"
  done
}

# What servers have in memory of their own, in kB, until $work/served is there.
look_at_servers() {
  local pid
  until [ -e "$work/served" ]; do
    for pid in $(pids_of muster-server); do sed -nE 's/^RssAnon:\s*([0-9]+) kB/\1/p' "/proc/$pid/status"; done
    nap 0.1
  done 2>/dev/null
}

# All pipes with both ends take 1,536 descriptors. What libpmix 4.2 keeps for each task it has served may not grow with the tasks.
many_ranks() {
  local musterrun=(bash -c 'ulimit -n 1024 && exec "$@"' - "$program" "--rm=$rm") most
  look_at_servers >"$work/servers" &
  client '256 ranks on a node, with 1,024 descriptors' '-N1 -n256' rounds --rounds 1
  : >"$work/served"
  wait $!
  most=$(sort -n "$work/servers" | tail -n 1)
  check 'their server takes less than 16 MB' "${most:-nothing} kB" [ "${most:-16000}" -lt 16000 ]
}

part_use() {
  local found
  "use_$rm"
  found=$(seq 20000 | "${musterrun[@]}" -l -N2 -n3 tail -n 1 | sort | tr '\n' ';')
  check 'input reaches all' "$found" [ "$found" = '0: 20000;1: 20000;2: 20000;' ]
  found=$(seq 20000 | "${musterrun[@]}" -l -i 1 -N2 -n3 wc -l | sort | tr '\n' ';')
  check 'input reaches one rank' "$found" [ "$found" = '0: 0;1: 20000;2: 0;' ]
  found=$(seq 20000 | "${musterrun[@]}" -i none -n2 wc -l | tr '\n' ';')
  check 'input reaches nobody' "$found" [ "$found" = '0;0;' ]
  found=$(seq 300000 | "${musterrun[@]}" -n3 sh -c 'exec <&-; echo x' | tr '\n' ';')
  check 'input that nobody reads' "$found" [ "$found" = 'x;x;x;' ]
  run 60 -n1 sh -c 'printf "no newline"'
  check 'output as it is' "$(cat "$log")" [ "$(cat "$log")" = 'no newline' ]
  found=$("${musterrun[@]}" -n1 sh -c 'seq 200000; seq 200000 >&2' 2>"$work/err" | md5sum)
  check 'output and errors, whole and apart' "$(wc -c "$work/err")" \
    [ "$found $(md5sum <"$work/err")" = "$(seq 200000 | md5sum) $(seq 200000 | md5sum)" ]
  PSETS_EXPECTED=ocean=0-3:ice=4-7 client 'process sets' '-N4 -n8 --pset ocean=0-3:ice=4-7' psets
  found=$(bash -c '. "$2/share/bash-completion/completions/musterrun"; _muster "$1" --faul; echo "${COMPREPLY[*]}"' - "$program" "$prefix")
  check 'bash completes an option' "$found" [ "$found" = --fault= ]
  [ "$rm" = flux ] || part_habits # of whom musterrun plays, its options know nothing
  [ "$rm" = flux ] || many_ranks
  clean use
}

# On the command line, and of the machine.
part_mistakes() {
  local n
  run 60 -n2 -N4 true
  says 'fewer tasks than nodes' 0 'warning: 2 tasks run on 2 nodes, not on 4'
  run 30 -n 0 true
  says 'a wrong number' 2 '"0" is not 1 to 10000'
  run 60 -np 2 echo program
  says 'the number of tasks as mpirun has it' 0 '^program'
  run 30 true : -n 2 true
  says 'a second program without its tasks' 2 'each of several programs begins with how many tasks'
  run 30 -m arbitrary=0,2 true
  says 'a node without a task' 2 'no task is on node1'
  run 30 -m arbitrary=0,,1 true
  says 'a wrong list of nodes' 2 '"0,,1" is not a list'
  run 30 --fault=late:when=3 true
  says 'a wrong fault' 2 '"when=3" is none of: percent ms node'
  run 30 -N3 -n3 --plugin=/nonexistent.so true
  says 'no plugin' 1 'cannot load the plugin: /nonexistent.so'
  check 'no plugin: said once' "$(cat "$log")" [ "$(grep -c 'cannot load' "$log")" = 1 ]
  (close_inherited && ulimit -n 30 && exec "${musterrun[@]}" -n60 true) >"$log" 2>&1
  status=$?
  says 'too few descriptors' 1 'cannot make the pipes of 60 tasks: Too many open files'
  # first musterrun lacks them, then the plugin in slurmstepd or the job shell, then the server
  for n in 8 {12..24} 28 32 64; do
    (close_inherited && ulimit -n "$n" && exec timeout -k 5 100 "${musterrun[@]}" -N1 -n1 "$clients/start") >"$log" 2>&1 </dev/null
    status=$?
    says "$n descriptors" "[1-9]|$killed" 'Too many open files|it may open [0-9]+ files, and needs 65'
  done
  clean mistakes
}

# What this shell has inherited counts too, and differs from one caller to the next.
close_inherited() {
  local fd
  for fd in "/proc/$BASHPID/fd"/*; do
    fd=${fd##*/}
    [ "$fd" -le 2 ] || eval "exec $fd>&-"
  done
}

all_stopped() { [ "$(letters_of hold | grep -c T)" = 8 ]; }
none_stopped() { [[ $(letters_of hold) != *[Tt]* ]]; }
no_looker() { [ -z "$(pids_of muster-status)$(pids_of sleep)" ]; }

# What all ranks do, and nothing of the tool is left when it is killed while it has stopped them.
look_at_stacks() {
  local found tool
  found=$("$prefix/bin/muster-status" --stacks "$step" 2>&1)
  check '--stacks: what all ranks do' "$found" \
    grep -qE '^8 ranks  main > .*sleep.*  \(0-7 on node0,node1\)$' <<<"$found"
  make_fake "$work/fake"
  PATH=$fake:$PATH "$prefix/bin/muster-status" --stacks "$step" >"$work/killed" 2>&1 &
  tool=$!
  check 'a tool has stopped the tasks' "$(letters_of hold | tr '\n' ' ')" until_true 60 all_stopped
  kill -9 $tool
  wait $tool 2>/dev/null
  check 'it is killed: no task stays stopped' "$(letters_of hold | tr '\n' ' ')" until_true 60 none_stopped
  check 'it is killed: nothing of it is left' "$(pids_of muster-status)" until_true 60 no_looker
}

# A command on each node, and beside ranks.
attach() {
  local found
  found=$("$prefix/bin/muster-attach" "$step" -- echo on %n 2>&1 | sort | tr '\n' ';')
  check 'muster-attach on each node' "$found" [ "$found" = '[node0] on node0;[node1] on node1;' ]
  found=$("$prefix/bin/muster-attach" --ranks 2,5 "$step" -- readlink /proc/%p/exe 2>&1 | sort | tr '\n' ';')
  check 'muster-attach beside ranks' "$found" [ "$found" = "[2] $clients/hold;[5] $clients/hold;" ]
  found=$("$prefix/bin/muster-attach" --ranks 2,9 "$step" -- true 2>&1)
  check 'muster-attach: no such rank' "status $?: $found" [ "$found" = 'muster-attach: --ranks: there is no rank 9; the ranks are 0-7' ]
}

# Its servers are found by no more than being there.
part_status() {
  local launcher watcher listed
  "${musterrun[@]}" -N2 -n8 "$clients/hold" --sleep 300 --seconds 320 >"$log" 2>&1 </dev/null &
  launcher=$!
  until_true 60 all_hold "$log" || not_ok 'start of a step to be listed' "$(why "$log" 'unknown (not up after 60 s)')"
  listed=$("$prefix/bin/muster-status")
  check 'muster-status lists the step' "$listed" grep -qxE "$step_of of .*" <<<"$listed"
  listed=${listed#* }
  step=${listed%% *}
  listed=$("$prefix/bin/muster-status" "$step")
  check 'and shows it by that name' "$listed" grep -qE 'of .*: 2 of 2 nodes answer$' <<<"$listed"
  look_at_stacks
  attach
  "$prefix/bin/muster-status" --watch=1 "$step" >"$work/watched" 2>&1 &
  watcher=$!
  check '--watch looks again' "$(cat "$work/watched")" until_true 60 looked_twice
  kill $launcher
  wait $launcher
  until_true 60 ended $watcher || kill $watcher
  wait $watcher
  check '--watch ends with the step' "status $?: $(tail -n 1 "$work/watched")" \
    grep -qE '^(the server of .* has ended|no server of|.* (broke off|does not answer|says nothing))' <<<"$(tail -n 1 "$work/watched")"
  clean status
}

# is_late SUMMARY: node2 was last nearly always, by 50 ms, within a tenth
is_late() {
  python3 -c 'import json, sys
last = json.load(sys.stdin)["last"][0]
sys.exit(not (last["node"] == "node2" and last["count"] >= 36 and 45000 <= last["median_us"] <= 55000))' <<<"$1" 2>/dev/null
}

# is_trace TRACE: 20 fences on each of 4 nodes, with the late one marked, and arrows from it where another node decides
is_trace() {
  python3 -c 'import json, sys
events = json.load(sys.stdin)["traceEvents"]
slices = [e for e in events if e["ph"] == "X"]
late = [e for e in slices if e["name"].startswith("LAST, ")]
starts, ends = ([e for e in events if e["ph"] == ph] for ph in "sf")
late = [e for e in late if e["pid"] == 2]
sys.exit(not (len(slices) == 80 and len(late) >= 18 and len(starts) == len(ends)))' <<<"$1"
}

is_metrics() { promtool check metrics <<<"$1" >/dev/null 2>&1; }

# Rank 5, on node2, sleeps 50 ms before each of 40 fences.
part_late() {
  local launcher found
  "${musterrun[@]}" -N4 -n8 "$clients/late" --fences 40 --stay 300 --seconds 320 >"$log" 2>&1 </dev/null &
  launcher=$!
  until_true 60 grep -q STAYS "$log" || not_ok 'start of a step with a late rank' "$(why "$log" 'unknown (not up after 60 s)')"
  step=$("$prefix/bin/muster-status")
  step=${step#* }
  step=${step%% *}
  found=$("$prefix/bin/muster-status" --stats --json "$step")
  check 'the late node is named, and how late it is' "$found" is_late "$found"
  found=$("$prefix/bin/muster-status" --stats "$step")
  check 'as tables' "$found" grep -qE '^fence +40 +160 .* node2: last in (3[6-9]|40) \(' <<<"$found"
  check 'with a bar' "$found" grep -qE '^node2 .* #{30}$' <<<"$found"
  found=$("$prefix/bin/muster-status" --openmetrics "$step")
  check 'as OpenMetrics' "$found" grep -qE '^muster_late_seconds_count\{.*kind="fence",node="node2"\} (3[6-9]|40)$' <<<"$found"
  ! type promtool >/dev/null 2>&1 || check 'promtool takes it' "$(promtool check metrics <<<"$found" 2>&1)" is_metrics "$found"
  kill $launcher
  wait $launcher
  mkdir "$work/traces" "$work/kept"
  MUSTER_TRACE=$work/traces MUSTER_STATS=1 run 60 -N4 -n8 "$clients/late" --fences 20
  says 'a line at the end names it, too' 0 'muster: .*: 20 fences waited .* of .*; last: node2 in (1[89]|20) \((90|95|100) %\), (4[5-9]|5[0-5]) ms late by median, [0-9.]+ m?s at most; traces of 4 of 4 nodes are written: muster-status --trace .*/traces/muster\..*\.\*\.json >trace.json$'
  check 'a trace of each server' "$(ls -l "$work/traces")" [ "$(compgen -G "$work/traces/muster.*.node[0-3].json" | wc -l)" = 4 ]
  found=$("$prefix/bin/muster-status" --trace "$work"/traces/* 2>"$work/aligned")
  check 'which are put together' "$(head -n 3 <<<"$found")$(cat "$work/aligned")" is_trace "$found"
  MUSTER_TRACE=$work/traces/none run 60 -N2 -n2 "$clients/late" --fences 1
  says 'traces in no directory' 0 'muster: .*: MUSTER_TRACE: no trace is written: .*/traces/none/muster.*: No such file or directory; give '
  part_late_kept
  clean late
}

# The same of a step that has ended.
part_late_kept() {
  local file found step
  MUSTER_STATS_DIR=$work/kept run 60 -N4 -n8 "$clients/late" --fences 40
  says 'counts are kept' 0 "muster: .*: counts are kept: muster-status --stats $work/kept/muster\..*\.stats\.json\$"
  file=$(compgen -G "$work/kept/muster.*.stats.json")
  check 'in one file, the user'"'"'s alone' "$(ls -l "$work/kept")" [ "$(stat -c %a "$file")" = 600 ]
  found=$("$prefix/bin/muster-status" --stats --json "$file")
  check 'as JSON of the file' "$found" is_late "$found"
  step=${file##*/muster.}
  step=${step%.stats.json}
  found=$(MUSTER_STATS_DIR=$work/kept "$prefix/bin/muster-status" --stats "$step")
  check 'as tables of the step' "$found" grep -qE ': 4 of 4 nodes have counted, ended after [0-9]+ s$' <<<"$found"
  check 'with all calls' "$found" grep -qE '^fence +40 +160 .* node2: last in (3[6-9]|40) \(' <<<"$found"
  found=$("$prefix/bin/muster-status" --openmetrics "$file")
  check 'as OpenMetrics of the file' "$found" grep -qE '^muster_late_seconds_count\{.*kind="fence",node="node2"\} (3[6-9]|40)$' <<<"$found"
  for file in '{' '[]' '{"ended":true}'; do
    echo "$file" >"$work/kept/other.json"
    found=$("$prefix/bin/muster-status" --stats "$work/kept/other.json" 2>&1)
    check "a file of something else, $file" "$found" grep -q ': these are no counts of a step$' <<<"$found"
  done
  found=$("$prefix/bin/muster-status" --stats --watch "$work/kept/other.json" 2>&1)
  check 'nothing more will come' "$found" grep -q 'a file is of a step that has ended' <<<"$found"
  part_late_home
  MUSTER_STATS_DIR=$work/kept/none run 60 -N2 -n2 "$clients/late" --fences 1
  says 'counts in no directory' 0 'muster: .*: MUSTER_STATS_DIR: no counts are kept: .*/none/muster.*: No such file or directory; give '
}

# The same without a directory: below the user's home, where the oldest go.
part_late_home() {
  local dir=$work/home/.local/state/muster/stats found step
  mkdir -p "$dir"
  touch -d '1 day ago' "$dir"/muster.{100..199}.0.stats.json
  touch -d '31 days ago' "$dir/muster.0.0.01234567.stats.part"
  HOME=$work/home MUSTER_STATS=keep run 60 -N4 -n8 "$clients/late" --fences 40
  says 'a user keeps counts at home' 0 'muster: .*: 40 fences waited .*; counts are kept: muster-status --stats [^/]*$'
  check 'the oldest give way' "$(compgen -G "$dir/*" | tail -n 3)" [ "$(compgen -G "$dir/*" | wc -l)" = 100 ]
  step=$(sed -n 's/.*muster-status --stats //p' "$log")
  found=$(MUSTER_STATS_DIR=$dir "$prefix/bin/muster-status" --stats --json "$step")
  check 'as JSON of a step that was kept at home' "$found" is_late "$found"
  [ "$(id -u)" != 0 ] || chown 12345 "$work/home"
  HOME=$([ "$(id -u)" = 0 ] && echo "$work/home" || echo /usr) MUSTER_STATS=keep run 60 -N1 -n1 "$clients/late" --fences 1
  says 'in a home of another user' 0 'muster: .*; no counts are kept: /.*: Operation not permitted; give MUSTER_STATS_DIR$'
  HOME='' MUSTER_STATS=keep run 60 -N1 -n1 "$clients/late" --fences 1
  says 'without a home' 0 'muster: .*; no counts are kept: HOME is no absolute path; set it, or give MUSTER_STATS_DIR$'
}

# A log of the user's own has the reason of each refusal, and each transition if asked for; the log of all has none. It is
# the server's, which is the same for all.
part_log() {
  [ "$rm" = slurm ] || return 0
  local node named='info: .* PMIx_Group_construct of "[^"]*": PMIX_GROUP_LOCAL_ONLY is the string "tomorrow"; give '
  mkdir "$work/own"
  cd "$work/own" || return
  MUSTER_LOG=muster.%n.log run 60 -v -N2 -n4 "$clients/unsupported"
  says 'a program that is refused' 0 '^PASS unsupported'
  for node in node0 node1; do
    check "the reason is in the log of $node" "$(cat "muster.$node.log")" grep -q "$named" "muster.$node.log"
  done
  check 'a rank that there is not is in the log' "$(cat muster.node0.log)" grep -q 'has no rank 4; its ranks are 0 to 3' muster.node0.log
  check 'the log of all has no such line' "$(grep "$named" "$log")" [ "$(grep -c PMIX_GROUP_LOCAL_ONLY "$log")" = 0 ]
  MUSTER_LOG=$work/own/debug.%n MUSTER_LOG_LEVEL=debug run 60 -v -N2 -n4 "$clients/barrier"
  check 'each transition is in it' "$(tail -n 3 debug.node1)" grep -q ' debug: .* node1: handoff: a fence' debug.node1
  check 'the log of all has none' "$(grep handoff "$log")" [ "$(grep -c handoff "$log")" = 0 ]
  MUSTER_LOG_LEVEL=debug run 60 -N2 -n2 "$clients/start"
  says 'a level without a file' "1|$killed" 'needs a file of its own: set MUSTER_LOG'
  ln -s debug.node1 link
  MUSTER_LOG='link' run 60 -N1 -n2 "$clients/barrier"
  says 'a symbolic link' 0 'MUSTER_LOG is not written: .*/own/link: it is a symbolic link'
  cd - >/dev/null || return
  clean log
}

# Files of settings; root has none of its own.
part_settings() {
  [ "$(id -u)" != 0 ] || return
  mkdir -p "$work/conf" && echo '{ "timeout": 3 }' >"$work/conf/muster.json"
  MUSTER_CONF=$work/conf/muster.json run 60 -N2 -n2 "$clients/hold" --sleep 30
  says 'a mistake in muster.json' "1|$killed" 'muster.json line 1: .*timeout'
  MUSTER_CONF=$work/conf/nothing.json run 60 -N2 -n2 "$clients/start"
  says 'settings that are not there' "1|$killed" 'nothing.json: there is no such file'
  # the server's directory is another one
  MUSTER_CONF=conf/muster.json run 60 -N2 -n2 "$clients/start"
  says 'settings by a relative path' "1|$killed" 'muster.json: there is no such file; give the whole path'
  echo '{ "tree_arity": 8 }' >"$work/conf/muster.json"
  run 60 --conf="1=$work/conf/muster.json" -N3 -n3 "$clients/hold" --sleep 30
  says 'settings that differ' "1|$killed" "$(differs tree_arity 8 node1 16 'node[02]')set it to one value"
  [ "$rm" = slurm ] || { clean settings; return; } # what follows is between servers and the machine
  echo '{ "memory_max": 32 }' >"$work/conf/muster.json"
  MUSTER_CONF=$work/conf/muster.json run 60 -N2 -n4 "$clients/exchange" --bytes 8000000
  # 141: libpmix wrote to the server that was gone
  says 'no memory is left' "1|141|$killed" 'memory is used up: .* 32 MiB'
  # one server has room for it, and four servers of one user on one machine have not
  echo '{ "memory_max": 256 }' >"$work/conf/muster.json"
  MUSTER_CONF=$work/conf/muster.json run 300 -N1 -n8 "$clients/exchange" --bytes 2000000 --seconds 290
  says 'one server has memory enough' 0 '^PASS exchange'
  MUSTER_CONF=$work/conf/muster.json run 300 -N4 -n8 "$clients/exchange" --bytes 2000000 --seconds 290
  says 'the memory of all servers of a user is bounded' "1|141|$killed" \
    'memory is used up: the [2-4] servers of this user on this node want .* MiB together, .* 256 MiB'
  clean settings
}

part_ends() {
  MUSTER_TIMEOUTS_PEER=300 client 'all but the last one leave at once' '-N8 -n8' departed --how last
  client 'time that is left' '-N2 -n4 --timeout=50' queries --limit 50
  # shellcheck disable=SC2016
  run 60 -N2 -n4 sh -c 'exit $PMIX_RANK'
  says 'the highest exit code' 3 'task 3: Exited with exit code 3'
  # shellcheck disable=SC2016
  run 60 -N2 -n4 sh -c '[ $PMIX_RANK != 2 ] || kill -TERM $$'
  says '128 and the signal' 143 'task 2: Terminated'
  run 60 -n2 /nonexistent
  says 'a program that is not there' 2 'execve\(\): /nonexistent: No such file'
  # shellcheck disable=SC2016
  run 50 -K -N2 -n4 sh -c '[ $PMIX_RANK != 1 ] || exit 9; exec sleep 60'
  says 'kill on bad exit' "$killed" 'task 1: Exited with exit code 9'
  run 50 -n2 sh -c 'sleep 60 & setsid sleep 60 & echo here'
  says 'a daemon that a task leaves behind' 0 here
  clean 'a daemon that a task leaves behind'
  for how in kill exit; do
    for where in fence construct; do
      # libpmix up to 6 hangs the others of a node where a member of a construct died.
      [ "$(pmix_major)" -ge 7 ] || [ $where = fence ] || continue
      run 60 -N4 -n8 "$clients/hold" --victim 3 --how $how --in $where
      # As the first lost task ended: with exit code 7, or by SIGKILL.
      case $how in kill) due=137 ;; exit) due=7 ;; esac
      says "$how in $where" "$due" '(rank|task) 3[: ]'
      # libpmix 5.0 tells one local participant only of a fence that failed (docs/limits.md).
      [ "$(pmix_major)" = 5 ] || check "$how in $where: nobody was told of success" \
        "$(grep -m 1 '^FAIL' "$log")" none_failed
    done
  done
  [ "$(pmix_major)" != 4 ] || export PMIX_MCA_gds=hash # docs/limits.md
  # What the servers make of it is the same for all; who is told of the task's end is not.
  if [ "$rm" = slurm ]; then beside=(order dies killed outlives); else beside=(order); fi
  for how in "${beside[@]}"; do
    client "a program beside a rank: $how" '-N2 -n4' beside --child "$how" --count 2
    run 60 -N2 -n4 "$clients/beside" --child "$how" --then kill --seconds 50
    says "a rank is killed that had a program beside it: $how" 137 '(rank|task) 3[: ]'
  done
  [ "$rm" = flux ] || client 'a program beside each rank' '-N2 -n4' beside --child order --parents 4
  # shellcheck disable=SC2016
  run 60 -N2 -n4 sh -c '"$0" "$@"; sleep 50' "$clients/hold" --victim 3 --how exit --sleep 50
  says 'a program that is lost, whose shell goes on' 1 'rank 3 on .* ended without PMIx_Finalize; ending'
  # shellcheck disable=SC2016
  run 60 -N2 -n4 sh -c '"$0" "$@"; sleep 2' "$clients/beside" --child dies
  says 'a program beside a rank: the user is told' 0 'a program that rank 3 on .* env -u PMIX_NAMESPACE'
  unset PMIX_MCA_gds
  run 60 -N4 -n8 "$clients/hold" --victim 3 --how abort --in sleep
  says 'abort' 7 'rank 3.*PMIx_Abort with status 7: hold was told to abort'
  run 60 -N1 -n2 "$clients/hold" --victim 1 --how mute-abort --in sleep
  says 'abort without words' 7 'rank 1.*PMIx_Abort with status 7(; |$)'
  run 60 -N2 -n4 "$clients/ends" --how some --victim 3 --sleep 300
  says 'abort of one' 7 'rank 0 .*PMIx_Abort with status 7 for rank 3: ends was told to; ending'
  # all tasks of its node, which is no sign here that the RM has ended them
  MUSTER_ON_TASK_LOSS='continue' run 60 -N4 -n4 "$clients/ends" --how some --victim 3 --sleep 300
  says 'abort of one, and the step goes on: it is killed' 137 'rank 3 on .* was killed by signal 9'
  check 'abort of one, and the step goes on: the others end well' "$(why "$log" $status)" grep -q '^PASS ends' "$log"
  clean 'ends of tasks'
  local sig
  for sig in INT:130 TERM:143 HUP:129 QUIT:131; do
    start
    kill -s "${sig%:*}" $step
    await "signal ${sig%:*}"
    # 137: muster ends the step when the first task is lost, which may overtake the signal
    says "signal ${sig%:*}" "${sig#*:}|$killed" .
  done
  : >"$log"
  # shellcheck disable=SC2016
  "${musterrun[@]}" -N2 -n2 sh -c 'trap "echo got it; exit 5" USR1; echo up; while :; do sleep 0.1; done' >"$log" 2>&1 </dev/null &
  step=$!
  until_true 60 two_up
  kill -USR1 $step
  await 'signal USR1'
  says 'signal USR1 reaches the tasks' 5 'got it'
  : >"$log"
  env --default-signal=INT "${musterrun[@]}" -n1 sh -c 'trap "" INT; echo up; while :; do sleep 0.1; done' >"$log" 2>&1 </dev/null &
  step=$!
  until_true 60 grep -q up "$log"
  kill -INT $step
  until_true 60 grep -q interrupt "$log"
  kill -INT $step
  await 'interrupt twice'
  says 'interrupt twice' 137 interrupt
  clean signals
}

parts linking clients keys use mistakes status late settings log ends
