# shellcheck shell=bash disable=SC2154,SC2034  # clients, work and wanted are shared with the scripts
# SPDX-License-Identifier: BSD-3-Clause
# What the system tests under Flux share: the head of each script, which parts are wanted, held jobs, settings, and what
# a job leaves behind. Sourced inside ci/flux by a script that has a function usage, before it looks at its own arguments:
# BUILDDIR [PART]...

case ${1:-} in -h|--help) usage; exit 0 ;; '') usage >&2; exit 2 ;; esac
# shellcheck source=ci/system/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
find_clients "$1"
shift
wanted=" $* "
clean_bound=5

is_wanted() { case $wanted in '  '|*" $1 "*) return 0 ;; *) return 1 ;; esac; }

# parts NAME...: runs part_NAME of each part that is wanted, one after another, and checks what it leaves behind
parts() {
  local name
  for name; do
    is_wanted "$name" || continue
    list_all >"$work/before"
    "part_$name"
    clean "$name"
  done
}

# only_parts NAME...: the same for a script that consists of parts alone; any other name is a usage error
only_parts() {
  local name
  for name in $wanted; do
    case " $* " in *" $name "*) ;; *) not_ok "part $name" "parts are: $*" ;; esac
  done
  parts "$@"
}

# The processes of a name on the host of broker RANK.
on_broker() {
  local pid uts
  uts=$(readlink "/proc/$(flux exec -r "$1" flux getattr broker.pid)/ns/uts")
  for pid in $(pids_of "$2"); do
    [ "$(readlink "/proc/$pid/ns/uts")" != "$uts" ] || echo "$pid"
  done
}

# tasks_ended PIDS: none of the processes runs; their parents may not have asked for them yet
tasks_ended() { [ -z "$(for t in $1; do grep -l '^State:[[:space:]]*[^Z[:space:]]' "/proc/$t/status" 2>/dev/null; done)" ]; }

# Servers, shells and tasks, and the servers' directories, one a line.
list_all() {
  local name pid
  for name in muster-server flux-shell hold spawner; do
    for pid in $(pids_of $name); do echo "process $name $pid"; done
  done
  find /tmp "$MUSTER_CI_DIR/run" -name 'muster.f*' 2>/dev/null | sed 's/^/directory /'
  find /dev/shm -mindepth 1 2>/dev/null | sed 's/^/shared memory /'
}

# says NAME PATTERN: a line of the job's output
says() {
  check "$1: says why" "expected /$2/, found: $(grep -v '^HOLD' "$work/$1.log" | head -n 5 | tr '\n' ';')" \
    grep -qE "$2" "$work/$1.log"
}

# start NAME HOLD-ARG...: a held job of 8 ranks on 4 nodes in the background; sets $job
start() {
  local name=$1
  shift
  : >"$work/$name.log"
  timeout 300 flux run -o pmi="$MPI" --job-name="$name" -N4 -n8 "$clients/hold" --seconds 290 "$@" >"$work/$name.log" 2>&1 </dev/null &
  job=$!
  all_up "$name" "$job"
}

# configure [LINE]...: the table [muster] of all brokers' settings
configure() {
  local conf=$MUSTER_CI_DIR/flux.toml rest
  rest=$(sed '/^\[muster\]/,$d' "$conf")
  { echo "$rest"; [ $# = 0 ] || printf '%s\n' '[muster]' "$@"; } >"$conf"
  flux config reload
}

# ---- jobs of other users than the instance's owner ----

let_users_in() {
  local uri
  for uri in $(flux exec -r all flux getattr local-uri) "/$(flux getattr rundir)/"; do uri=${uri#*/}; chmod o+rx "${uri%/*}"; done
}

# submit_as USER SHAPE CLIENT [ARG]...: a job of another user than the instance's owner; prints its id
submit_as() {
  local uid spec
  uid=$(id -u "$1") spec=$work/spec.$1
  # shellcheck disable=SC2086  # a shape is several words
  flux submit --dry-run --cwd=/tmp -o pmi="$MPI" $2 "$clients/$3" "${@:4}" >"$spec"
  { printf 'version\0i1\0userid\0i%s\0mechanism\0snone\0' "$uid" | base64 -w 0; echo -n .; base64 -w 0 "$spec"; echo .none; } >"$spec.signed"
  FLUX_HANDLE_USERID=$uid flux job submit --flags=signed "$spec.signed"
}

# attach ID USER: waits for a job; its output is in $work/USER.log
attach() { timeout 90 flux job attach "$1" >"$work/$2.log" 2>&1 </dev/null; }
