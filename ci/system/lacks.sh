#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# ci/system/lacks.sh: steps on a node where something is missing, full or used up.
# shellcheck disable=SC2154,SC2034  # clients, work and spool are shared with lib.sh
set -uo pipefail
usage() {
  cat <<'TXT'
usage: ci/slurm -N 4 [OPTION]... -- ci/system/lacks.sh BUILDDIR [PART]...

Run as root. On one node of four something is missing, hangs, is full or used up, or is of
another release. Each time the step ends in time and the user reads why in a line of
muster's, and within 5 s nothing of it is left, neither processes nor sockets, directories
and shared memory; a step that lives through all of it passes.

Where no server can be had, programs that never call PMIx run all the same.

PART is one of without, unready, missing, full, used, mixed; by default all. Prints "ok", "not ok" with the
reason and "skip" lines; non-zero status when any failed.
TXT
}
case ${1:-} in -h|--help) usage; exit 0 ;; '') usage >&2; exit 2 ;; esac
# shellcheck source=ci/system/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
find_clients "$1"
shift
parts=("$@")
[ $# -gt 0 ] || parts=(without unready missing full used mixed)
for part in "${parts[@]}"; do
  case $part in without|unready|missing|full|used|mixed) ;; *) usage >&2; exit 2 ;; esac
done
if [ "$(id -u)" != 0 ]; then skip lacks 'needs root'; summary; exit; fi
# shellcheck source=ci/system/bad_node.sh
. "$(dirname "${BASH_SOURCE[0]}")/bad_node.sh"

# runs NAME PATTERN [NODES]: a program without PMIx runs on all nodes in time, and the user reads why there is no PMIx: once, of
# how many nodes ever that is true. srun's agent takes a user's word alone, not root's
runs() {
  local status more begin=$SECONDS
  list_all >"$work/before"
  timeout 120 setpriv --reuid alice --regid alice --init-groups srun --mpi=muster -J "$1" -N4 --ntasks-per-node=2 hostname >"$work/$1.log" 2>&1 </dev/null
  status=$?
  check "$1: a program without PMIx runs" "$(why "$work/$1.log" $status)" \
    eval "[ $status = 0 ] && [ $((SECONDS - begin)) -lt 90 ] && [ $(grep -c '^node[1-4]$' "$work/$1.log") = 8 ]"
  check "$1: it is told once why there is no PMIx" "$(why "$work/$1.log" $status)" \
    eval "[ $(grep -E "muster.*($2)" "$work/$1.log" | grep -v 'more node' | grep -c 'run without PMIx') = 1 ]"
  more=$(sed -n 's/.*: \([0-9]*\) more nodes* says* the same as node[1-4]: node.*/\1/p' "$work/$1.log" |
    awk '{ n += $1 } END { print n + 1 }')
  check "$1: and on how many nodes" "$more; $(grep 'more node' "$work/$1.log")" [ "$more" = "${3:-1}" ]
  clean "$1"
}

# Each of them is no reason for a program without PMIx to fail, and for one of PMIx to say why.
no_server() {
  runs "$@"
  refused "$1-pmix" "$2"
  check "$1: it does not wait for a start" "$ran s" [ "$ran" -lt 30 ] # which takes that long: hangs-at-start
}

has_server() { [ -n "$(server_of)" ]; }

# The server of a node is killed before a task has used it.
killed_unused() {
  list_all >"$work/before"
  mark_logs
  timeout 200 srun --mpi=muster -J "$1" -N4 --ntasks-per-node=2 sh -c "until [ -e $shared/killed ]; do sleep 0.5; done; $2" >"$work/$1.log" 2>&1 </dev/null &
  step=$!
  until_true 60 has_server || not_ok "$1: the server" 'there was none'
  kill -9 "$(server_of)"
  until_true 60 eval "grep -q 'run on, since none has used PMIx' '$work/$1.log' <(logged_since)" || not_ok "$1: the death" 'not said'
  : >"$shared/killed"
  wait "$step"
  status=$?
  rm "$shared/killed"
}

# Its file is not there.
part_without() {
  over "${server%/*}" -t tmpfs muster
  no_server no-server "cannot start $server: exec: No such file or directory; install muster again there"
  if [ -x "$clients/mpi_hello" ]; then
    # Open MPI takes a PMIx_Init that fails for a world of one task. It tries out POSIX shared memory as it starts, and a
    # task that is killed at that moment leaves it.
    refused no-server-mpi "a task on node $bad asks for PMIx, and cannot have it: ending the step$" \
      env OMPI_MCA_shmem=mmap "$clients/mpi_hello"
    check 'no-server-mpi: no task is alone' "$(grep -i 'size\|of 1' "$work/no-server-mpi.log")" \
      eval "! grep -qE '^rank|of 1\b' '$work/no-server-mpi.log'"
  fi
  # tasks of other nodes that need one there are told at once
  refused no-server-peers 'node2.*no server could be started there' sh -c "[ \$(hostname) != $bad ] || exec sleep 100; exec '$clients/exchange'"
  check 'no-server-peers: it ends in time' "$ran s" [ "$ran" -lt 60 ]
  under "${server%/*}"
}

# It does not come so far that it serves, or dies before a task has used it.
part_unready() {
  local status conf=/opt/muster/etc/muster/muster.json
  mkdir -p "${conf%/*}"
  echo '{ "tree_arity": "many" }' >$conf
  no_server wrong-setting 'muster.json.*tree_arity' 4
  echo '{ "tmpdir": "/nowhere" }' >$conf
  no_server no-tmpdir '/nowhere' 4
  rm $conf
  instead 'ulimit -v 20000' "exec '${clients%/ci/clients}/common/muster-server'"
  no_server no-memory 'did not start on node node2|ended before it was ready on node node2|cannot serve'
  under "$server"
  killed_unused killed-unused hostname
  check 'killed-unused: a program without PMIx runs' "$(why "$work/killed-unused.log" "$status")" [ "$status" = 0 ]
  clean killed-unused
  killed_unused killed-before-init "exec '$clients/start'"
  check 'killed-before-init: the step ends with an error' "$(why "$work/killed-before-init.log" "$status")" \
    eval "[ $status != 0 ] && [ $status != 124 ]"
  says killed-before-init 'asks for PMIx, and cannot have it: ending the step: muster-server of step [0-9.]+ died on node node2'
  clean killed-before-init
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
  refused no-libpmix 'on node node2: .*libpmix.*install that library again there'
  under "$library"
  over "$server" --bind /dev/null
  refused not-executable "cannot start $server: exec: Permission denied"
  under "$server"
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
  runs hangs-at-start 'was not ready within 30 s on node node2'
  under "$server"
}

# has_descriptors NAME AT-LEAST: a held step passes, and its server has so many descriptors
has_descriptors() {
  local limit token
  list_all >"$work/before"
  sleep infinity &
  token=$!
  held "$1" --until $token || { kill $token; return; }
  limit=$(prlimit --pid "$(server_of | head -n 1)" --nofile --output SOFT --noheadings --raw)
  check "$1: the server has all descriptors that it may have" "found $limit, expected at least $2" [ "$limit" -ge "$2" ]
  kill $token
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
  refused tmp-read-only 'cannot make a directory .*Read-only file system; mount it for writing, or set tmpdir'
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
write_to_few() { few_descriptors; kill "$token"; }

# What a server may have is used up.
part_used() {
  local conf=/opt/muster/etc/muster/muster.json token
  instead 'ulimit -n 65' "exec '${clients%/ci/clients}/common/muster-server'"
  refused descriptors-at-start 'node2 cannot serve: it may open 65 files, and needs 66 for 2 tasks'
  under "$server"
  launched descriptors-of-tasks 'node2: no descriptor is left for a connection, of the [0-9]+ that' connect_to_few
  # by slurmd's way, on which each message is a connection
  mkdir -p "${conf%/*}"
  echo '{ "direct": { "mode": "off" } }' >$conf
  sleep infinity &
  token=$!
  harmed descriptors-of-messages 'node2: no descriptor is left for a connection, of the [0-9]+ that' write_to_few --until $token
  clean descriptors-of-messages
  wait $token 2>/dev/null
  echo '{ "memory_max": 32 }' >$conf
  refused memory 'memory is used up: .* 32 MiB (of a server|is what they may have) \(memory_max in muster.json\)' "$clients/exchange" --bytes 8000000
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
[ "\$(hostname)" != $bad ] || exec '$other/hold' "\$@"
exec '$clients/hold' "\$@"
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
  # several may find it out before they hear of the end
  check 'mixed: no node says it twice' "$(grep 'libpmix is' "$work/mixed.log" | tr '\n' ';')" \
    [ -z "$(grep -o 'node[1-4]: the servers .* do not fit' "$work/mixed.log" | sort | uniq -d)" ]
  # libpmix 5.0 tells one participant of each node only; those of the other nodes are of another
  check 'mixed: no other node is told of success' "$(grep '^HOLD' "$work/mixed.log" | tr '\n' ';')" \
    eval "! grep -q '^HOLD rank [^23] ' '$work/mixed.log'"
  clean mixed
}

all_parts "${parts[@]}"
summary
