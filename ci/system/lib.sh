# shellcheck shell=bash disable=SC2154,SC2034  # clients and spool are shared with the scripts
# SPDX-License-Identifier: BSD-3-Clause
# What the system tests share: counting, finding the clients, starting steps and looking at what
# they leave behind. Sourced by the scripts beside it, inside ci/slurm.

MPI=${MPI:-muster}
passed=0 failed=0 skipped=0
work=$(mktemp -d) || exit 125
chmod 755 "$work"
trap 'rm -rf "$work"' EXIT
mkfifo "$work/nobody" || exit 125

# On the machine of CI a process that does next to nothing costs ten milliseconds of a processor, and two thirds of what a
# script spent went to those. So this shell itself does what is done for each test and at each look.

# nap SECONDS: nobody writes there
nap() { read -rt "$1" <>"$work/nobody" || :; }

ok() { echo "ok $1"; passed=$((passed + 1)); }
not_ok() { echo "not ok $1: $2"; failed=$((failed + 1)); }
skip() { echo "skip $1: $2"; skipped=$((skipped + 1)); }

# The clients that run under every resource manager, without arguments: all of them on several nodes, on one node, where
# libpmix does more by itself, those in which processes wait for each other, and in other shapes of job those to
# which it matters which rank is where. The script's first shape is that of several nodes.
every_client=(keys exchange departed subset groups_many groups_disjoint groups_info groups_query groups_wildcard
  queries control monitored credential connect groups_add groups_bootstrap groups_order events invite tools unsupported logq)
node_clients=(exchange subset groups_many groups_info groups_wildcard connect groups_add groups_bootstrap groups_order
  events invite)
placed_clients=(keys exchange subset groups_many groups_add groups_bootstrap logq)

# clients_of SHAPE: which of them run in it; sets $of_shape
clients_of() {
  case $1 in
    "${shapes[0]}") of_shape=("${every_client[@]}") ;;
    '-N1 -n4') of_shape=("${node_clients[@]}") ;;
    *) of_shape=("${placed_clients[@]}") ;;
  esac
}

# check WHAT WHY COMMAND...: ok WHAT if COMMAND succeeds
check() {
  local what=$1 why=$2
  shift 2
  if "$@"; then ok "$what"; else not_ok "$what" "$why"; fi
}

# Under Slurm: no job is left, and no node has one to end.
nodes_rest() { [ -z "$(squeue -h; sinfo -h -N -o '%N %T' | grep -E 'alloc|mix|comp')" ]; }

nodes_are_idle() {
  check "all nodes are idle within $clean_bound s" "$(squeue -h; sinfo -h -N -o '%N %T')" until_true $clean_bound nodes_rest
}

# summary: that no step holds a node longer, unless $idle says that it was looked at, and the last line
idle=
summary() {
  if [ -z "$idle" ] && squeue -h >/dev/null 2>&1; then nodes_are_idle; fi
  echo "$passed passed, $failed failed, $skipped skipped"
  [ "$failed" = 0 ]
}

# Much of what is tested waits for most of its time, and does so beside others: aside COMMAND... runs one in the
# background, and join_asides shows and counts what all of them have printed, in their order.
asides=()
aside() {
  local out=$work/aside.${#asides[@]}
  "$@" >"$out" &
  asides+=("$! $out")
}
join_asides() {
  local one
  for one in "${asides[@]}"; do
    wait "${one%% *}"
    cat "${one#* }"
    passed=$((passed + $(grep -c '^ok ' "${one#* }")))
    failed=$((failed + $(grep -c '^not ok ' "${one#* }")))
    skipped=$((skipped + $(grep -c '^skip ' "${one#* }")))
  done
  asides=()
}

# keys_below ODD LAUNCHER...: the client keys below a task's program that has left its directory, and
# had arguments that are empty, have blanks, and ODD. The keys are to say how that program was started.
keys_below() {
  # shellcheck disable=SC2016  # for the task's shell
  local odd=$1 log=$work/below.log bash status script='cd /; "$0" --seconds 100; exit $?'
  shift
  bash=$(type -P bash)
  (
    cd /var || exit
    export KEYS_WDIR=/var KEYS_APP_ARGV="$bash -c $script $clients/keys  two  words $odd "
    timeout 120 "$@" "$bash" -c "$script" "$clients/keys" '' 'two  words' "$odd" '' >"$log" 2>&1 </dev/null
  )
  status=$?
  judge 'keys, below a program that has gone elsewhere' keys $status "$log"
}

# find_clients BUILDDIR: sets $clients to where the test programs are
find_clients() {
  local dir
  for dir in "$1/ci/clients" "$1"; do
    [ -x "$dir/exchange" ] && clients=$(cd "$dir" && pwd) && return
  done
  echo "${0##*/}: no clients in ${1:-no directory}; usage: ${0##*/} BUILDDIR" >&2
  exit 125
}

pmix_major() { pkg-config --modversion pmix | cut -d. -f1; }

# until_true SECONDS COMMAND...: whether COMMAND succeeds within SECONDS, or, where the machine has much else to do and a
# look takes long, within three looks for each. It costs nothing to give many SECONDS to what is sure to come. After half
# a second looks become rarer: one at what a step has left takes a tenth of a processor's second.
until_true() {
  local end=$((SECONDS + $1)) looks=$((3 * $1)) early=5
  shift
  until "$@"; do
    [ $SECONDS -lt $end ] || [ $looks -gt 0 ] || return 1
    looks=$((looks - 1))
    if [ $((early--)) -gt 0 ]; then nap 0.1; else nap 0.3; fi
  done
}

# why LOG STATUS: the lines that tell most. Of ranks that fail, those that have lost their server often failed because
# of another one.
why() {
  local line fails=() lines lost='' hung='' ours=''
  mapfile -t lines 2>/dev/null <"$1"
  [ ${#lines[@]} -gt 0 ] || lines=('')
  for line in "${lines[@]}"; do
    case $line in
      FAIL*UNREACH*) lost=${lost:-$line} ;;
      FAIL*) [ ${#fails[@]} -ge 3 ] || fails+=("$line") ;;
      *watchdog*) hung=${hung:-$line} ;;
      *[Mm][Uu][Ss][Tt][Ee][Rr]*) ours=${ours:-$line} ;;
    esac
  done
  line=$(IFS=';'; echo "${fails[*]}")
  [ -n "$line" ] || line=${lost:-${hung:-${ours:-${lines[-1]}}}}
  case $2 in 124) line="no end in time; $line" ;; esac
  echo "status $2: $line"
}

# differs FACT VALUE NODE OTHER NODES: the pattern of what a server says when FACT is VALUE on NODE and OTHER on
# NODES. Any two nodes whose values differ may meet first, and either may be the one that speaks.
differs() { echo "$1 is ($2 on node $3 and $4 on node $5|$4 on node $5 and $2 on node $3): "; }

# judge WHAT NAME STATUS LOG: how a client that says PASS or SKIP once has ended
judge() {
  local line passes=0 skipped_for=''
  while IFS= read -r line; do
    case $line in
      "PASS $2:"*) passes=$((passes + 1)) ;;
      "SKIP $2:"*) skipped_for=${skipped_for:-${line#"SKIP $2: "}} ;;
    esac
  done <"$4"
  if [ -n "$skipped_for" ]; then
    skip "$1" "$skipped_for"
  elif [ "$3" != 0 ]; then
    not_ok "$1" "$(why "$4" "$3")"
  else
    check "$1" "expected PASS once, found it $passes times" [ "$passes" = 1 ]
  fi
}

# ---- what is left ----

# The script's list_all has a line for each thing that a step or job should not leave behind.
new_of_all() { list_all | new_lines "$1"; }
nothing_new_of_all() { [ -z "$(new_of_all "$1")" ]; }

# new_lines FILE: of the lines read, those that FILE has not
new_lines() {
  local line
  local -A before=()
  while IFS= read -r line; do before[x$line]=1; done <"$1"
  while IFS= read -r line; do [ -n "${before[x$line]:-}" ] || echo "$line"; done
}

# clean NAME: nothing has come since list_all was written to $work/before. Slurm's own record of the job, which ends when
# its slurmds and slurmctld come to it, may stay longer.
clean() {
  if without_slurm=1 until_true $clean_bound nothing_new_of_all "$work/before" &&
    until_true $end_bound nothing_new_of_all "$work/before"; then
    ok "$1: nothing is left"
  else
    not_ok "$1: what is left" "$(new_of_all "$work/before" | tr '\n' ';')"
  fi
}

# ---- tools that stop processes ----

# make_fake DIR: a program by the name of eu-stack that stops its process, and then hangs; sets $fake
make_fake() {
  fake=$1
  mkdir -p "$fake"
  # shellcheck disable=SC2016  # for the shell there
  printf '#!/bin/sh\nkill -STOP "$3"\nexec sleep 4711\n' >"$fake/eu-stack"
  chmod 755 "$fake" "$fake/eu-stack"
}

# letters_of NAME: the letters of the states of the processes of that name
letters_of() {
  local pid
  for pid in $(pids_of "$1"); do sed 's/.*) \(.\).*/\1/' "/proc/$pid/stat"; done 2>/dev/null
}

# ---- held steps ----

# kill_together: those whose numbers are read die without time to see the others die
# shellcheck disable=SC2016
kill_together() { xargs sh -c 'kill -STOP "$@"; kill -9 "$@"' sh; }

# Where a slurmstepd has been killed, five seconds go until somebody asks, and seven or more in which srun waits for it.
# On a busy machine all of it takes several times as long; what the tasks wait for in between takes minutes.
end_bound=60 clean_bound=5

# has_lines N PREFIX FILE: whether N lines begin so
has_lines() {
  local line n=0
  while IFS= read -r line; do [[ $line != "$2"* ]] || n=$((n + 1)); done <"$3"
  [ $n = "$1" ]
} 2>/dev/null
all_hold() { has_lines 8 'HOLD rank' "$1"; }
ended() { ! kill -0 "$1" 2>/dev/null; }

# all_up NAME PID: whether the held tasks that PID has started are up; else it is ended
all_up() {
  until_true 60 all_hold "$work/$1.log" && return
  not_ok "$1: start" "$(why "$work/$1.log" 'unknown (not up after 60 s)')"
  kill "$2" 2>/dev/null
  wait "$2"
  return 1
}

# Where the logs of the nodes end now, and what they have got since.
mark_logs() {
  local log
  wc -l "$MUSTER_CI_DIR"/log/node*.log >"$work/logs"
}
logged_since() {
  local lines log
  while read -r lines log; do [ "$log" = total ] || tail -n "+$((lines + 1))" "$log"; done <"$work/logs"
}

# says_why WHAT PATTERN LOG: the output of a step that was harmed since mark_logs says why, the lines of its
# clients left out. srun drops what comes once a task has ended by SIGKILL or SIGTERM.
says_why() {
  local said
  said=$(grep -vE '^(HOLD|FAIL|rank [0-9]+:)' "$3")
  if grep -qE "$2" <<<"$said"; then
    ok "$1: says why"
  elif grep -qE ': (Killed|Terminated)$' <<<"$said" && grep -qE "$2" <(logged_since); then
    skip "$1: says why" 'srun dropped it when a task had been killed; the log of slurmd has it'
  else
    not_ok "$1: says why" "expected /$2/, found: $(head -n 5 <<<"$said" | tr '\n' ';')"
  fi
}

# hold_step NAME SRUN-OPTIONS HOLD-ARG...: a held step of 8 ranks on 4 nodes in the background; sets $step
hold_step() {
  local name=$1 options=$2
  shift 2
  : >"$work/$name.log"
  mark_logs
  # shellcheck disable=SC2086  # options are several words or none
  srun --mpi="$MPI" -J "$name" -N4 -n8 $options "$clients/hold" "$@" >"$work/$name.log" 2>&1 </dev/null &
  step=$!
  all_up "$name" "$step"
}

# step_ends NAME BEGIN: $step, which was harmed at the second BEGIN, ends in time; sets $ended_with
step_ends() {
  ended_with=none
  if until_true $end_bound ended "$step"; then
    wait "$step"
    ended_with=$?
    ok "$1: the step ended in $((SECONDS - $2)) s with status $ended_with"
  else
    not_ok "$1: the step's end" "still there after $end_bound s; $(tail -n 1 "$work/$1.log")"
    scancel -n "$1"
    kill "$step"
    wait "$step"
  fi 2>/dev/null
}

# ---- processes and what steps leave ----

slurmd_of() {
  local pid words
  local -a names
  look_at_processes
  for pid in "${!names[@]}"; do
    [ "${names[pid]}" = slurmd ] || continue
    mapfile -d '' -t words <"/proc/$pid/cmdline"
    [[ "${words[*]}" != *" -N $1" ]] || { echo "$pid"; return; }
  done
} 2>/dev/null
# on NODE USER COMMAND...
on() {
  local node=$1 user=$2
  shift 2
  nsenter -t "$(slurmd_of "$node")" -m -u -r -w setpriv --reuid "$user" --regid "$(id -g "$user")" \
    --init-groups --inh-caps=-all "$@"
}
slurmd_listens() { grep -q "$(printf ':%04X 00000000:0000 0A' $((17000 + ${1#node})))" /proc/net/tcp; }
slurmd_is_silent() { ! slurmd_listens "$1"; }

# anchor_node NODE: its name spaces would go with its last process; sets $slurmd_command, what its slurmd was started
# with, without -c, which would have it forget its steps
anchor_node() {
  local slurmd
  slurmd=$(slurmd_of "$1")
  mapfile -d '' -t slurmd_command < <(grep -zE '^(LD_PRELOAD|SLURM_CONF)=' "/proc/$slurmd/environ"; grep -zvx -e -c "/proc/$slurmd/cmdline")
  nsenter --target "$slurmd" --mount --uts --root sleep infinity &
  anchor=$!
  until_true 60 is_anchored "$slurmd" || not_ok "$1" 'its name space cannot be kept'
}
is_anchored() { [ "$(readlink "/proc/$anchor/ns/mnt")" = "$(readlink "/proc/$1/ns/mnt")" ]; }

# stop_slurmd NODE: by kill -9
stop_slurmd() {
  anchor_node "$1"
  kill -9 "$(slurmd_of "$1")"
}

# start_slurmd NODE: again, in the name spaces that anchor_node has kept, once the killed one has left its
# port, which takes its threads a while on a busy machine
start_slurmd() {
  until_true 60 slurmd_is_silent "$1" || not_ok "$1" 'its slurmd does not end'
  nsenter --target "$anchor" --mount --uts --root --wd env -u SLURM_CONF "${slurmd_command[@]}" </dev/null >/dev/null 2>&1 &
  until_true 60 slurmd_listens "$1" || not_ok "$1" 'its slurmd does not come back'
  kill "$anchor"
}

# look_at_processes: sets the array $names, which is the caller's, by the processes' numbers; zombies, which wait for
# pid 1, are left out
look_at_processes() {
  local stat pid rest
  names=()
  for stat in /proc/[0-9]*/stat; do
    read -r pid rest <"$stat" || continue
    rest=${rest#(}
    case ${rest##*) } in Z*) ;; *) names[pid]=${rest%)*} ;; esac
  done
} 2>/dev/null

# pids_of NAME: the processes with that name
pids_of() {
  local pid
  local -a names
  look_at_processes
  for pid in "${!names[@]}"; do [ "${names[pid]}" != "${1:0:15}" ] || echo "$pid"; done
}

# The directory that holds all nodes' spool directories.
spool_dir() {
  local template
  template=$(scontrol show config | sed -n 's/^SlurmdSpoolDir *= //p')
  echo "${template%%%[nh]*}"
}

# Servers, sockets, directories and shared memory, one a line, and jobs whose nodes are not idle yet. $without_slurm
# leaves out what Slurm has to be asked for.
list_leftovers() {
  list_files_and_servers
  [ -n "${without_slurm:-}" ] || squeue -h -t CG -o 'job %i on %N' 2>/dev/null
}

# Each node has a /tmp and a /dev/shm of its own, seen through its slurmd.
list_files_and_servers() (
  shopt -s nullglob dotglob
  look_at_processes
  for pid in "${!names[@]}"; do
    case ${names[pid]} in
      muster-server) echo "process muster-server $pid" ;;
      slurmd)
        for file in "/proc/$pid/root/tmp"/muster.*; do echo "directory $file"; done
        for file in "/proc/$pid/root/dev/shm"/*; do echo "shared memory $file"; done ;;
    esac
  done
  [ -n "${spool:-}" ] || return 0
  for file in "$spool"/*/*; do [ ! -S "$file" ] || echo "socket $file"; done
)

# new_leftovers BEFORE: what is there now and was not in the file BEFORE
new_leftovers() { list_leftovers | new_lines "$1"; }

nothing_new() { [ -z "$(without_slurm=1 new_leftovers "$1")" ] && [ -z "$(new_leftovers "$1")" ]; }
