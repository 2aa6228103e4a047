# shellcheck shell=bash disable=SC2154,SC2034  # clients, work and spool are shared with the scripts
# SPDX-License-Identifier: BSD-3-Clause
# What days.sh and lacks.sh share: one node of four has a bad day, and a step beside lives through all of it. Sourced
# after lib.sh, as root.

spool=$(spool_dir)
shared=$MUSTER_CI_DIR/shared
bad=node2
by_cgroup=$(scontrol show config | grep '^ProctrackType .*cgroup')

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
  local pid slurmd
  slurmd=$(slurmd_of $bad)
  for pid in $(pgrep -f "$1"); do
    [ ! "/proc/$pid/ns/uts" -ef "/proc/$slurmd/ns/uts" ] || echo "$pid"
  done
}

# of_job NAME: the number of the job of that name
of_job() { squeue -h -n "$1" -o %A; }

tasks_of() { on_bad "^$clients/hold" | sed 's,.*,/proc/&/environ,' | xargs -r grep -lsz "^SLURM_JOB_ID=$(of_job "$1")\$" | cut -d/ -f3; }
stepd_of() { on_bad "^slurmstepd: \\[$(of_job "$1")\\."; }
server_of() { new_of_all "$work/before" | sed -n 's/^process muster-server //p' | grep -xFf <(on_bad muster-server); }

# ---- judging ----

# What list_leftovers lists, and tasks and slurmstepds.
list_all() {
  local line pid
  local -a names
  while IFS= read -r line; do
    # without Slurm's own sockets, and the numbers of slurmds that come and go
    [[ ! $line =~ ^socket\ .*_[0-9.]+$ ]] || continue
    [[ ! $line =~ ^(.*)/proc/[0-9]+/root(.*)$ ]] || line=${BASH_REMATCH[1]}${BASH_REMATCH[2]}
    echo "$line"
  done < <(list_leftovers)
  look_at_processes
  for pid in "${!names[@]}"; do
    if [ "${names[pid]}" = slurmstepd ]; then echo "process slurmstepd $pid"; continue; fi
    read -rd '' line <"/proc/$pid/cmdline" || continue
    [[ $line != "$clients"/* ]] || echo "process task $pid"
  done 2>/dev/null
  cgroups_left
}

# Those of jobs, of version 1 or 2, which are the cluster's own.
cgroups_left() {
  local dir
  [ -n "$by_cgroup" ] || return 0
  { find /sys/fs/cgroup/*/slurm_*/uid_*/job_* /sys/fs/cgroup/system.slice/*.scope/* \
    -name system -prune -o -name slurmd -prune -o -type d -print 2>/dev/null || true; } |
    while read -r dir; do is_bare "$dir" || echo "cgroup $dir"; done
}

# is_bare CGROUP: whether it is a job's of the freezer of version 1, with nothing in it. slurmstepd leaves
# that and removes it when it has joined a thread; if that is still ending, the kernel counts it as slurmstepd
# and Slurm lets the cgroup stay (docs/limits-admin.md). It looks as if the server had been there too long, which
# would not happen once: only one is borne.
is_bare() {
  local process
  case $1 in */freezer/slurm_*/uid_*/job_*/*) return 1 ;; */freezer/slurm_*/uid_*/job_*) ;; *) return 1 ;; esac
  ! read -r process <"$1/cgroup.procs" 2>/dev/null && ! compgen -G "$1/*/" >/dev/null
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

# refused NAME PATTERN [PROGRAM ARG...]: a step over all nodes ends by itself, and says why; sets $ran, its seconds
refused() {
  local status begin=$SECONDS program=("${@:3}")
  [ $# -gt 2 ] || program=("$clients/start")
  list_all >"$work/before"
  mark_logs
  # longer than a server may take to start
  timeout 120 srun --mpi=muster -J "$1" -N4 --ntasks-per-node=2 "${program[@]}" >"$work/$1.log" 2>&1 </dev/null
  status=$?
  ran=$((SECONDS - begin))
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
  until_true 60 launching || not_ok "$1: the launch" "$(why "$work/$1.log" unknown)"
  begin=$SECONDS
  "$3"
  step_ends "$1" $begin
  says "$1" "$2"
  clean "$1"
  check "$1: no prolog is left" "$(on_bad "$shared/prolog")" [ -z "$(on_bad "$shared/prolog")" ]
}

# instead LINE...: a shell script in the place of muster-server on the bad node
instead() {
  printf '%s\n' '#!/bin/sh' "$@" >"$shared/server.new"
  chmod 755 "$shared/server.new"
  mv "$shared/server.new" "$shared/server"
  over "$server" --bind "$shared/server"
}

# passes NAME: $step passes, and nothing is left
passes() {
  local status
  wait "$step"
  status=$?
  check "$1: the step" "$(why "$work/$1.log" $status)" eval "[ $status = 0 ] && grep -q '^PASS ' '$work/$1.log'"
  clean "$1"
}

# all_parts PART...: each of them, with a step beside them that has to pass
all_parts() {
  local part token beside begin
  sleep infinity &
  token=$!
  held beside --until $token || { kill $token; return; }
  beside=$step
  for part in "$@"; do
    begin=$SECONDS
    "part_$part"
    echo "# $part took $((SECONDS - begin)) s"
    [ -n "$(slurmd_of $bad)" ] || { not_ok "$part" "$bad is without slurmd"; break; }
  done
  kill $token
  wait $token 2>/dev/null
  wait "$beside"
  check 'the step beside all this' "$(why "$work/beside.log" $?)" grep -q '^PASS hold' "$work/beside.log"
  if [ -n "$by_cgroup" ]; then
    until_true 30 few_bare || true
    check 'one empty cgroup of a job stays, if any' "$bare" few_bare
    [ -z "$bare" ] || echo "# $bare stays, empty"
  fi
}
