#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# ci/system/days.sh: bad days of a step: parts that are missing, full or killed, and many steps.
# shellcheck disable=SC2154,SC2034  # clients, work and spool are shared with lib.sh
set -uo pipefail
usage() {
  cat <<'TXT'
usage: ci/slurm -N 4 [OPTION]... -- ci/system/days.sh BUILDDIR [--full] [PART]...

Run as root. On one node of four something is missing, hangs, is full, used up or killed,
also while tasks are launched, or steps are cancelled while they start. A slurmd that is away while servers leave, and a socket that a
crash has left, do no harm. Else each time the step ends in time and the user reads
why in a line of muster's, and within 5 s nothing of it is left, neither processes nor
sockets, directories and shared memory; a step that lives through all of it passes.

PART is one of missing, full, used, mixed, away, stale, cgroups, killed, launching, cancelled,
many; by default all. cgroups is for those of version 2. With --full 40 steps are cancelled and
not 10, and 200 run one after another and 20 at once. Prints "ok", "not ok" with the reason and
"skip" lines; non-zero status when any failed.
TXT
}
case ${1:-} in -h|--help) usage; exit 0 ;; '') usage >&2; exit 2 ;; esac
# shellcheck source=ci/system/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
find_clients "$1"
shift
lots=1 in_turn=20 at_once=10
if [ "${1:-}" = --full ]; then lots=4 in_turn=200 at_once=20; shift; fi
parts=("$@")
[ $# -gt 0 ] || parts=(missing full used mixed away stale cgroups killed launching cancelled many)
spool=$(spool_dir)
shared=$MUSTER_CI_DIR/shared
bad=node2
by_cgroup=$(scontrol show config | grep '^ProctrackType .*cgroup')
if [ "$(id -u)" != 0 ]; then skip days 'needs root'; summary; exit; fi

# ---- the node that has a bad day ----

# The mounts below are made outside of the node's root, which need not have mount(8).
root=$(readlink "/proc/$(slurmd_of $bad)/root")
root=${root%/}
server=/opt/muster/libexec/muster/muster-server

in_node() { nsenter --target "$(slurmd_of $bad)" --mount "$@"; }

# over PATH MOUNT-OPTION...: something else over PATH, on the bad node only; under lifts it
over() {
  local path=$1
  shift
  in_node mount -n "$@" "$root$path"
}
under() { in_node umount -n -l "$root$1"; }

# Its /tmp is a file system of its own, with the cluster's files mounted below.
remount_tmp() { in_node mount -n -o "remount,$1" "$root/tmp"; }

# The processes on the bad node, by what their names look like.
on_bad() {
  local pid uts
  uts=$(readlink "/proc/$(slurmd_of $bad)/ns/uts")
  for pid in $(pgrep -f "$1"); do
    [ "$(readlink "/proc/$pid/ns/uts")" != "$uts" ] || echo "$pid"
  done
}

# of_job NAME: the number of the job of that name
of_job() { squeue -h -n "$1" -o %A; }

tasks_of() { local pid; for pid in $(on_bad "^$clients/hold"); do ! grep -qsz "^SLURM_JOB_ID=$(of_job "$1")\$" "/proc/$pid/environ" || echo "$pid"; done; }
stepd_of() { on_bad "^slurmstepd: \\[$(of_job "$1")\\."; }
server_of() { new_of_all "$work/before" | sed -n 's/^process muster-server //p' | grep -xFf <(on_bad muster-server); }

# ---- judging ----

# What list_leftovers lists, and tasks and slurmstepds.
list_all() {
  # without Slurm's own sockets, and the numbers of slurmds that come and go
  list_leftovers | sed -E '/^socket .*_[0-9.]+$/d; s|/proc/[0-9]+/root||'
  pgrep -f "^$clients/" | sed 's/^/process task /'
  pids_of slurmstepd | sed 's/^/process slurmstepd /'
  cgroups_left | sed 's/^/cgroup /'
}

# Those of jobs, of version 1 or 2, which are the cluster's own.
cgroups_left() {
  local dir
  [ -n "$by_cgroup" ] || return 0
  { find /sys/fs/cgroup/*/slurm_*/uid_*/job_* /sys/fs/cgroup/system.slice/*.scope/* \
    -name system -prune -o -name slurmd -prune -o -type d -print 2>/dev/null || true; } |
    while read -r dir; do is_bare "$dir" || echo "$dir"; done
}

# is_bare CGROUP: whether it is a job's of the freezer of version 1, with nothing in it. slurmstepd leaves
# that and removes it when it has joined a thread; if that is still ending, the kernel counts it as slurmstepd
# and Slurm lets the cgroup stay (docs/limits-admin.md). It looks as if the server had been there too long, which
# would not happen once: only one is borne.
is_bare() {
  case $1 in */freezer/slurm_*/uid_*/job_*/*) return 1 ;; */freezer/slurm_*/uid_*/job_*) ;; *) return 1 ;; esac
  [ -z "$(cat "$1/cgroup.procs" 2>/dev/null)" ] && [ -z "$(find "$1" -mindepth 1 -type d 2>/dev/null)" ]
}
few_bare() {
  bare=$(find /sys/fs/cgroup/freezer/slurm_*/uid_*/job_* -maxdepth 0 2>/dev/null || true)
  [ "$(wc -w <<<"$bare")" -le 1 ]
}

# says NAME PATTERN: a line of ours, or where PATTERN begins with "slurm:" of Slurm's, says why
says() {
  local pattern="muster.*($2)"
  [ "${2#slurm:}" = "$2" ] || pattern=${2#slurm:}
  says_why "$1" "$pattern" "$work/$1.log"
}

# refused NAME PATTERN [PROGRAM ARG...]: a step over all nodes ends by itself, and says why
refused() {
  local status program=("${@:3}")
  [ $# -gt 2 ] || program=("$clients/start")
  list_all >"$work/before"
  mark_logs
  # longer than a server may take to start
  timeout 60 srun --mpi=muster -J "$1" -N4 --ntasks-per-node=2 "${program[@]}" >"$work/$1.log" 2>&1 </dev/null
  status=$?
  check "$1: the step ends with an error" "$(why "$work/$1.log" $status)" \
    eval "[ $status != 0 ] && [ $status != 124 ]"
  says "$1" "$2"
  clean "$1"
}

# held NAME HOLD-ARG...: a held step in the background; sets $step
held() {
  local name=$1
  shift
  hold_step "$name" --ntasks-per-node=2 --seconds 900 "$@"
}

# harmed NAME PATTERN FAULT HOLD-ARG...: FAULT is a function that does the harm to a held step
harmed() {
  local name=$1 pattern=$2 fault=$3 begin
  shift 3
  list_all >"$work/before"
  held "$name" "$@" || return
  begin=$SECONDS
  "$fault" "$name" || not_ok "$name: the harm" "nothing was there to be harmed"
  step_ends "$name" $begin
  says "$name" "$pattern"
}

launching() { [ -e "$shared/launching" ]; }

# launched NAME PATTERN FAULT: FAULT does the harm while tasks of the bad node are there and have not
# become the program yet, as their prolog waits for the file's end
launched() {
  local begin
  cat >"$shared/prolog" <<TXT
#!/bin/sh
[ "\$(hostname)" = $bad ] || exit 0
: >>$shared/launching
while [ -e $shared/launching ]; do sleep 0.1; done
TXT
  chmod 755 "$shared/prolog"
  list_all >"$work/before"
  : >"$work/$1.log"
  rm -f "$shared/launching"
  mark_logs
  srun --mpi=muster -J "$1" -N4 --ntasks-per-node=2 --task-prolog="$shared/prolog" "$clients/start" >"$work/$1.log" 2>&1 </dev/null &
  step=$!
  until_true 20 launching || not_ok "$1: the launch" "$(why "$work/$1.log" unknown)"
  begin=$SECONDS
  "$3"
  step_ends "$1" $begin
  says "$1" "$2"
  clean "$1"
  check "$1: no prolog is left" "$(on_bad "$shared/prolog")" [ -z "$(on_bad "$shared/prolog")" ]
}

# ---- the parts ----

# instead LINE...: a shell script in the place of muster-server on the bad node
instead() {
  printf '%s\n' '#!/bin/sh' "$@" >"$shared/server.new"
  chmod 755 "$shared/server.new"
  mv "$shared/server.new" "$shared/server"
  over "$server" --bind "$shared/server"
}

# Tasks of one node have a /tmp of their own, as job_container/tmpfs gives them, which a plugin does here. No
# directory in /tmp serves them, and one elsewhere does.
tmp_of_tasks() {
  local status conf=/opt/muster/etc/muster/muster.json dir=/run/slurm/elsewhere copy=/run/slurm/keys stack=$MUSTER_CI_DIR/plugstack.conf
  cat >"$shared/own_tmp.c" <<'TXT'
#include <sched.h>
#include <slurm/spank.h>
#include <string.h>
#include <sys/mount.h>
#include <unistd.h>
SPANK_PLUGIN(own_tmp, 1)
int slurm_spank_task_init_privileged(spank_t spank, int ac, char **av)
{
    char host[64] = "";
    (void)spank, (void)ac;
    gethostname(host, sizeof host - 1);
    if (strcmp(host, av[0]))
        return 0;
    if (unshare(CLONE_NEWNS) || mount("none", "/tmp", 0, MS_PRIVATE, 0))
        return -1;
    return mount("own", "/tmp", "tmpfs", 0, "mode=1777");
}
TXT
  if ! cc -D_GNU_SOURCE -shared -fPIC -o "$shared/own_tmp.so" "$shared/own_tmp.c" 2>"$work/own_tmp.log"; then
    skip tmp-of-tasks "cannot be built: $(head -n 1 "$work/own_tmp.log")"
    return
  fi
  echo "required $shared/own_tmp.so $bad" >"$stack"
  refused tmp-of-tasks 'tasks of step [0-9.]+ on node node2 do not see the directory /tmp/muster\..*: set tmpdir in ' "$clients/keys"
  mkdir -p "${conf%/*}"
  mkdir -m 1777 $dir
  cp "$clients/keys" $copy   # the tree may be in /tmp
  echo "{ \"tmpdir\": \"$dir\" }" >$conf
  list_all >"$work/before"
  timeout 120 srun --mpi=muster -N4 --ntasks-per-node=2 $copy --seconds 100 >"$work/tmpdir.log" 2>&1 </dev/null
  status=$?
  check 'tmp-of-tasks: with tmpdir elsewhere the step passes' "$(why "$work/tmpdir.log" $status)" [ $status = 0 ]
  clean 'tmp-of-tasks, elsewhere'
  rm $conf $copy
  rmdir $dir
  : >"$stack"
}

# A user whom one node does not know: libpmix's server must not look for his home.
unknown_user() {
  local status
  grep -v ^alice: /etc/passwd >"$shared/passwd"
  over /etc/passwd --bind "$shared/passwd"
  list_all >"$work/before"
  timeout 120 setpriv --reuid alice --regid alice --init-groups srun --mpi=muster -N4 --ntasks-per-node=2 \
    "$clients/start" >"$work/user.log" 2>&1 </dev/null
  status=$?
  check 'unknown-user: the step' "$(why "$work/user.log" $status)" [ $status = 0 ]
  clean unknown-user
  under /etc/passwd
}

part_missing() {
  local library
  library=$(ldd "$server" | sed -n 's/.*libpmix\.so.* => \([^ ]*\).*/\1/p')
  library=$(realpath "$library")
  over "$library" --bind /dev/null
  refused no-libpmix 'on node node2 .*libpmix'
  under "$library"
  over "$server" --bind /dev/null
  refused not-executable "cannot start $server: exec: Permission denied"
  under "$server"
  over "${server%/*}" -t tmpfs muster
  refused no-server "cannot start $server: exec: No such file"
  under "${server%/*}"
  instead 'exit 3'
  refused silent-end 'ended before it was ready on node node2 \(its exit status is 3\)'
  under "$server"
  # what it says is anybody's text
  instead "printf 'oh\\033[31m dear\\n' >&2; exit 3"
  refused last-words 'ended before it was ready on node node2 .*last words were: oh.\[31m dear'
  under "$server"
  over /opt/muster/lib/slurm -t tmpfs muster
  refused no-plugin 'slurm:Task launch for StepId=[0-9.]+ failed on node node2: '
  check 'no-plugin: the log of slurmd says why' "$(logged_since | grep -v muster: | tail -n 3 | tr '\n' ';')" \
    grep -q 'Cannot create context for mpi/muster' <(logged_since)
  under /opt/muster/lib/slurm
  unknown_user
  tmp_of_tasks
  instead 'exec sleep 100'
  refused hangs-at-start 'was not ready within 30 s on node node2'
  under "$server"
}

# has_descriptors NAME AT-LEAST: a held step passes, and its server has so many descriptors
has_descriptors() {
  local limit
  list_all >"$work/before"
  held "$1" --sleep 1 || return
  limit=$(prlimit --pid "$(server_of | head -n 1)" --nofile --output SOFT --noheadings --raw)
  check "$1: the server has all descriptors that it may have" "found $limit, expected at least $2" [ "$limit" -ge "$2" ]
  wait "$step"
  check "$1: the step" "$(why "$work/$1.log" $?)" grep -q '^PASS hold' "$work/$1.log"
  clean "$1"
}

part_full() {
  local limit soft hard slurmd status
  slurmd=$(slurmd_of $bad)
  read -r soft hard < <(prlimit --pid "$slurmd" --nofile --output SOFT,HARD --noheadings --raw)
  limit=$(ulimit -S -n)
  ulimit -S -n 48   # Slurm gives it to the tasks
  has_descriptors user-few-descriptors "$hard"
  ulimit -S -n "$limit"
  prlimit --pid "$slurmd" --nofile=64:
  has_descriptors slurmd-few-descriptors "$hard"
  prlimit --pid "$slurmd" --nofile="$soft:"
  remount_tmp "nr_inodes=$(in_node stat -f -c '%c %d' "$root/tmp" | awk '{ print $1 - $2 }')"
  refused tmp-full 'TmpFS=/tmp has .*remove files there'
  remount_tmp nr_inodes=0
  over /tmp --rbind "$root/tmp"   # not itself, which a server writes in
  remount_tmp bind,ro
  refused tmp-read-only 'cannot make a directory .*Read-only'
  under /tmp
  remount_tmp "size=$(in_node stat -f -c '%b %f %S' "$root/tmp" | awk '{ print ($1 - $2 + 8) * $3 }')"
  in_node dd if=/dev/zero of="$root/tmp/full" bs=4k count=100 2>/dev/null
  list_all >"$work/before"
  timeout 120 srun --mpi=muster -N4 --ntasks-per-node=2 "$clients/start" >"$work/blocks.log" 2>&1 </dev/null
  status=$?
  # libpmix 4.2 needs none
  check 'tmp-without-blocks: passes, or says why' "$(why "$work/blocks.log" $status)" \
    eval "[ $status = 0 ] || grep -q 'muster.*node2' '$work/blocks.log'"
  clean tmp-without-blocks
  in_node rm "$root/tmp/full"
  remount_tmp size=50%
  over /run/slurm/spool --bind "$root/run/slurm/spool"
  over /run/slurm/spool -o remount,bind,ro
  # slurmstepd needs a socket of its own there, before ours
  refused spool-read-only 'slurm:.'
  under /run/slurm/spool
}

few_descriptors() {
  local server
  server=$(server_of)
  prlimit --pid "$server" --nofile="$(find "/proc/$server/fd" -mindepth 1 | wc -l):"
}
connect_to_few() { few_descriptors; rm "$shared/launching"; }
write_to_few() { few_descriptors; kill $token; }

# What a server may have is used up.
part_used() {
  local conf=/opt/muster/etc/muster/muster.json token
  instead 'ulimit -n 65' "exec ${clients%/ci/clients}/common/muster-server"
  refused descriptors-at-start 'node2 cannot serve: it may open 65 files, and needs 66 for 2 tasks'
  under "$server"
  launched descriptors-of-tasks 'node2: no descriptor is left for a connection, of the [0-9]+ that' connect_to_few
  sleep infinity &
  token=$!
  harmed descriptors-of-messages 'node2: no descriptor is left for a connection, of the [0-9]+ that' write_to_few --until $token
  clean descriptors-of-messages
  wait $token 2>/dev/null
  mkdir -p "${conf%/*}"
  echo '{ "memory_max": 32 }' >$conf
  refused memory 'memory is used up: .* 32 MiB of a server \(memory_max in muster.json\)' "$clients/exchange" --bytes 8000000
  rm $conf
}

# node2 has the libpmix of another Debian release, with a muster-server that was built for it and
# clients of its own.
part_mixed() {
  local lib=/usr/lib/x86_64-linux-gnu/pmix2/lib other=${clients/forky/trixie} n
  local theirs=${MUSTER_CACHE:-/var/cache/muster}/roots/trixie$lib
  if [ "$other" = "$clients" ] || ! in_node test -d "$theirs"; then
    skip mixed 'takes the root forky, and beside it trixie with its libpmix'
    return
  elif [ ! -x "$other/hold" ]; then
    skip mixed "nothing is built in ${other%/ci/clients}"
    return
  fi
  in_node cp -a "$theirs" "$shared/libpmix"
  for n in "$lib"/libpmix.so.2.*; do [ -e "$shared/libpmix/${n##*/}" ] || ln -s libpmix.so.2 "$shared/libpmix/${n##*/}"; done
  cat >"$shared/mixed" <<TXT
#!/bin/sh
[ "\$(hostname)" != $bad ] || exec $other/hold "\$@"
exec $clients/hold "\$@"
TXT
  chmod 755 "$shared/mixed"
  over "$lib" --bind "$shared/libpmix"
  over "$server" --bind "${other%/ci/clients}/common/muster-server"
  list_all >"$work/before"
  mark_logs
  timeout 120 srun --mpi=muster -N4 --ntasks-per-node=2 "$shared/mixed" --sleep 1 >"$work/mixed.log" 2>&1 </dev/null
  n=$?
  under "$server"
  under "$lib"
  check 'mixed: the step ends with an error' "$(why "$work/mixed.log" $n)" eval "[ $n != 0 ] && [ $n != 124 ]"
  says mixed "$(differs libpmix '5\.0\.[0-9]+' node2 '7\.0\.0' 'node[134]')"
  check 'mixed: it is said once' "$(grep 'libpmix is' "$work/mixed.log" | tr '\n' ';')" \
    [ "$(grep -c 'libpmix is' "$work/mixed.log")" = 1 ]
  # libpmix 5.0 tells one participant of each node only; those of the other nodes are of another
  check 'mixed: no other node is told of success' "$(grep '^HOLD' "$work/mixed.log" | tr '\n' ';')" \
    eval "! grep -q '^HOLD rank [^23] ' '$work/mixed.log'"
  clean mixed
}

# passes NAME: $step passes, and nothing is left
passes() {
  local status
  wait "$step"
  status=$?
  check "$1: the step" "$(why "$work/$1.log" $status)" eval "[ $status = 0 ] && grep -q '^PASS ' '$work/$1.log'"
  clean "$1"
}

tasks_left() { [ "$(pgrep -f "^$clients/hold" | wc -l)" = $(($1 + 8)) ]; } # with the step beside

# decider_of NAME: the node that decides the fence which ranks of a held step wait in
decider_of() {
  in_node --root "${server%/libexec/*}/bin/muster-status" --json "$(of_job "$1").0" 2>/dev/null |
    grep -o '"root": *"node[0-9]"' | grep -m 1 -o 'node[0-9]'
}
has_decider() { [ -n "$(decider_of "$1")" ]; }

# away_from NAME WHO: at the last fence nobody takes messages for the node that decides it, or for
# another one, for 6 s: longer than a server stays that has nothing to deliver
away_from() {
  local name=away-from-$1 bad=$bad token decider left=8
  list_all >"$work/before"
  sleep infinity &
  token=$!
  # two ranks wait in the fence, so that a server knows of it
  held "$name" --sleep 0 --late 6 --until $token || { kill $token; return; }
  check "$name: a fence waits" 'found none' until_true 10 has_decider "$name"
  decider=$(decider_of "$name")
  case $1:$decider in
    decider:*) bad=$decider ;;
    other:node2) bad=node3 left=2 ;;
    other:*) left=2 ;;
  esac
  stop_slurmd "$bad"
  kill $token
  wait $token 2>/dev/null
  until_true 20 tasks_left $left
  sleep 6
  check "$name: $left tasks wait" "$(pgrep -f "^$clients/hold" | wc -l) tasks" tasks_left $left
  start_slurmd "$bad"
  passes "$name"
}

part_away() {
  away_from decider
  away_from other
}

# sockets_of_bad: those on which servers of the bad node get messages
sockets_of_bad() { find "$spool/$bad" -maxdepth 1 -type s -name 'must[e~]r.*' | sort | tr '\n' ' '; }

# Crashes have left two sockets that nobody listens on: that of another run of a step, and one that had not got its
# name yet. The step comes late to the bad node, whose slurmd is slow: until then its peers must not take the other
# run's socket for its own. Its plugin removes both, and leaves those of steps that run.
part_stale() {
  local slurmd before
  slurmd=$(slurmd_of $bad)
  list_all >"$work/before"
  before=$(sockets_of_bad)
  check 'stale: the step beside it has a socket on the bad node' "$before" [ -n "$before" ]
  # shellcheck disable=SC2016  # for the job's shell
  timeout 60 salloc -Q -w node1,$bad -n4 bash -c '
    for name in muster.$SLURM_JOB_ID.0.1 must~r.$SLURM_JOB_ID.0.2; do
      perl -MSocket -e "socket(S, PF_UNIX, SOCK_STREAM, 0) && bind(S, pack_sockaddr_un(\$ARGV[0])) or die" "$0/$name"
      touch -d "2 minutes ago" "$0/$name" && echo "left $name"
    done
    kill -STOP $1
    srun --mpi=muster "$2" --rounds 2 &
    sleep 4
    kill -CONT $1
    wait $!' "$spool/$bad" "$slurmd" "$clients/exchange" >"$work/stale.log" 2>&1 </dev/null &
  step=$!
  passes stale
  kill -CONT "$slurmd" # also if that never came so far
  check 'stale: two sockets had been left' "$(head -n 3 "$work/stale.log")" [ "$(grep -c '^left ' "$work/stale.log")" = 2 ]
  check 'stale: sockets of steps that run stay' "was $before, is $(sockets_of_bad)" [ "$(sockets_of_bad)" = "$before" ]
}

# in_cgroup PATTERN PID...: all of them are in cgroups of version 2 whose paths match
in_cgroup() {
  local pattern=$1 pid
  shift
  for pid in "$@"; do grep -qE "^0::$pattern\$" "/proc/$pid/cgroup" || return; done
}

# slurmstepd awaits the end of all that is in the step's cgroup before the plugin's fini, and the
# server has to live until then.
part_cgroups() {
  local scope="/system\\.slice/${bad}_slurmstepd\\.scope" servers tasks token
  if [ -z "$by_cgroup" ] || [ ! -e /sys/fs/cgroup/cgroup.procs ]; then
    skip cgroups 'takes steps in cgroups of version 2: ci/slurm --cgroup2'
    return
  fi
  list_all >"$work/before"
  sleep infinity &
  token=$!
  held cgroups --until $token || { kill $token; return; }
  mapfile -t tasks < <(tasks_of cgroups)
  mapfile -t servers < <(server_of)
  check 'cgroups: tasks are in their step' "$(cat /proc/"${tasks[0]}"/cgroup)" \
    eval "[ ${#tasks[@]} = 2 ] && in_cgroup '$scope/[^/]+/step_0/user/.*' ${tasks[*]}"
  check 'cgroups: its server is in no step' "$(cat /proc/"${servers[0]}"/cgroup)" \
    eval "[ ${#servers[@]} = 1 ] && in_cgroup '$scope/(system|slurmd)' ${servers[*]}"
  kill $token
  wait $token 2>/dev/null
  passes cgroups
  check 'cgroups: the server did not die' "$(grep muster "$work/cgroups.log")" [ -z "$(grep muster "$work/cgroups.log")" ]
}

kill_task() { tasks_of "$1" | sed -n 1p | xargs kill -9; }
kill_tasks() { tasks_of "$1" | xargs kill -9; }
kill_server() { server_of | xargs kill -9; }
kill_stepd() { stepd_of "$1" | xargs kill -9; }

# The others wait for a rank there, so they ask.
kill_stepd_and_server() { { stepd_of "$1"; server_of; } | kill_together; }

kill_node() {
  anchor_node $bad
  { slurmd_of $bad; stepd_of "$1"; server_of; tasks_of "$1"; } | kill_together
  start_slurmd "$bad"
}

# Nobody removes the cgroups of a slurmstepd that was killed, but nobody may be left in them.
remove_cgroups() { new_of_all "$work/before" | sed -n 's/^cgroup //p' | sort -r | xargs -r rmdir; }

# swept NAME [directory]: what a killed slurmstepd and server left is removed by the next step on the node
swept() {
  local status
  [ -z "$by_cgroup" ] || check "$1: nobody is left in its cgroups" 'cannot remove them' until_true 5 remove_cgroups
  check "$1: a ${2:-socket} is left at first" 'expected one, found none' \
    grep -q "^${2:-socket} " <(new_of_all "$work/before")
  timeout 120 srun --mpi=muster -N4 --ntasks-per-node=2 "$clients/start" >"$work/next.log" 2>&1
  status=$?
  check "$1: the next step" "$(why "$work/next.log" $status)" [ $status = 0 ]
  clean "$1"
}

part_killed() {
  harmed task 'rank [0-9] on node2 was killed by signal 9' kill_task
  clean task
  # one rank is named when the word of the other comes later than its server waits for it
  harmed all-tasks '(all 2 tasks on node2 were|rank [23] on node2 was) killed by signal 9' kill_tasks
  clean all-tasks
  harmed server 'muster-server of step [0-9.]+ died on node node2' kill_server
  clean server
  harmed stepd 'on node node2 was killed' kill_stepd
  swept stepd
  harmed stepd-and-server 'server on node2 is lost' kill_stepd_and_server --victim 2 --delay 60000 --how exit --in fence
  swept stepd-and-server directory
  # Their servers are told to leave while they still wait for the word of one that knows the cause.
  harmed node 'server on node2 is lost' kill_node --victim 2 --delay 60000 --how exit --in fence --linger 300
  check 'node: another one has the step ended' "$(logged_since | grep muster | tr '\n' ';')" \
    grep -qE 'on node2 is lost.*; then rank [0-9] on node[134] ended .*; ending the step' <(logged_since)
  swept node directory
}

in_init() { [ "$(on_bad "^$clients/start" | wc -l)" = 2 ]; }
# They are in PMIx_Init when it dies: it is stopped before, and takes no connection.
kill_server_in_init() {
  local server
  server=$(server_of)
  kill -STOP "$server"
  rm "$shared/launching"
  until_true 20 in_init || not_ok server-in-init 'no task comes so far'
  kill -9 "$server"
}

part_launching() {
  local died='muster-server of step [0-9.]+ died on node node2'
  instead 'dd bs=65536 count=1 <&3 >/dev/null 2>&1' "printf '\\377\\377\\377\\377' >&3"   # BOOT_READY
  refused server-before-tasks "$died"
  under "$server"
  launched server-in-launch "$died" kill_server
  launched server-in-init "$died" kill_server_in_init
}

runs() { [ -n "$(squeue -h -t running -n "$1" -o %A)" ]; }
# cancel_one NAME: a step cancelled within half a second of its job's start
cancel_one() {
  timeout 40 srun --mpi=muster -J "$1" -N4 --ntasks-per-node=2 "$clients/hold" --sleep 60 >"$work/$1.log" 2>&1 </dev/null &
  until_true 10 runs "$1" || echo "$1: no job after 10 s"
  sleep 0.$((RANDOM % 5))$((RANDOM % 10))
  scancel -n "$1"
  wait $!
  [ $? != 124 ] || echo "$1: still there after 40 s"
}

part_cancelled() {
  local i lot pids
  list_all >"$work/before"
  for ((lot = 1; lot <= lots; lot++)); do
    pids=()
    for ((i = 0; i < 10; i++)); do
      cancel_one "cancel$lot.$i" >"$work/cancelled.$i" &
      pids+=($!)
    done
    wait "${pids[@]}"
    check "cancelled: 10 steps end ($lot)" "$(cat "$work"/cancelled.* | tr '\n' ';')" [ -z "$(cat "$work"/cancelled.*)" ]
    clean "cancelled ($lot)"
  done
}

part_many() {
  local i failures pids=()
  list_all >"$work/before"
  # shellcheck disable=SC2016
  failures=$(salloc -Q -N4 --ntasks-per-node=2 bash -c '
    for ((i = 0; i < $0; i++)); do timeout 120 srun --mpi=muster "$1" || echo "step $i: $?"; done' \
    $in_turn "$clients/start" 2>/dev/null)
  check "many: $in_turn steps in turn" "$(head -n 3 <<<"$failures" | tr '\n' ';')" [ -z "$failures" ]
  clean in-turn
  for ((i = 0; i < at_once; i++)); do
    { timeout 120 srun --mpi=muster -N4 --ntasks-per-node=2 "$clients/exchange" --seconds 100 || echo "step $i: $?"; } >"$work/many.$i" 2>&1 </dev/null &
    pids+=($!)
  done
  wait "${pids[@]}"
  failures=$(cat "$work"/many.* | grep -v '^PASS')
  check "many: $at_once steps at once" "$(head -n 3 <<<"$failures" | tr '\n' ';')" \
    [ "$failures:$(cat "$work"/many.* | grep -c '^PASS')" = ":$at_once" ]
  clean at-once
}

sleep infinity &
token=$!
held beside --until $token || { kill $token; summary; exit; }
beside=$step
for part in "${parts[@]}"; do
  begin=$SECONDS
  case $part in
    missing|full|used|mixed|away|stale|cgroups|killed|launching|cancelled|many) "part_$part" ;;
    *) usage >&2; exit 2 ;;
  esac
  echo "$part took $((SECONDS - begin)) s"
  [ -n "$(slurmd_of $bad)" ] || { not_ok "$part" "$bad is without slurmd"; break; }
done
kill $token
wait $token 2>/dev/null
wait "$beside"
check 'the step beside all this' "$(why "$work/beside.log" $?)" grep -q '^PASS hold' "$work/beside.log"
if [ -n "$by_cgroup" ]; then
  until_true 5 few_bare || true
  check 'one empty cgroup of a job stays, if any' "$bare" few_bare
  [ -z "$bare" ] || echo "# $bare stays, empty"
fi
summary
