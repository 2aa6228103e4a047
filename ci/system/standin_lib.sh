# shellcheck shell=bash disable=SC2154,SC2034  # status, step and wanted are shared with the scripts
# SPDX-License-Identifier: BSD-3-Clause
# What the tests under musterrun share: the command line, runs, and what they leave. Sourced first of all, with the
# script's arguments; usage is the script's.

case ${1:-} in -h|--help) usage; exit 0 ;; '') usage >&2; exit 2 ;; esac
rm=slurm
case $1 in --rm=*) rm=${1#--rm=}; shift ;; esac
# shellcheck source=ci/system/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
find_clients "$1"
shift
wanted=" $* "
program=${MUSTERRUN:-/opt/muster/bin/musterrun}
# Processes are killed by name here: not on a machine of others, which has no program there.
[ -x "$program" ] || { echo "${0##*/}: no $program: run it by ci/test, which gives it a machine of its own" >&2; exit 125; }
prefix=${program%/bin/*}
musterrun=("$program" "--rm=$rm")
# A status of tasks that were ended: killed, or by the SIGTERM that comes first.
case $rm in
  slurm) killed=137 step_of='step [0-9.]+' leaf=1 ;;
  flux) killed='137|143' step_of='job f[0-9A-Za-z]+' leaf=2 ;; # node 3 is below node 1, and lost with it
  *) usage >&2; exit 2 ;;
esac
log=$work/log
export TMPDIR=$work/tmp
ulimit -c 0
mkdir "$TMPDIR"

# ---- what is left ----

list_left() (
  shopt -s nullglob dotglob
  look_at_processes
  for pid in "${!names[@]}"; do
    case ${names[pid]} in musterrun|muster-server|hold|late|exchange|sleep) echo "process ${names[pid]} $pid" ;; esac
  done
  for file in "$TMPDIR"/* /dev/shm/*; do [ ! -O "$file" ] || echo "$file"; done
)
nothing_left() { [ -z "$(list_left)" ]; }

# clean WHAT: nothing is left, within 5 s
clean() {
  if until_true 5 nothing_left; then ok "$1: nothing is left"; else
    not_ok "$1: what is left" "$(list_left | tr '\n' ';')"
  fi
}

# ---- runs ----

# Users of Flux have jobs, and read of no steps. Settings have names of their own.
of_steps() { sed 's/step_settings//g; s/end-step//g' "$log" | grep -wE 'steps?|srun|slurmd'; }
words_fit() { [ "$rm" != flux ] || ! of_steps >/dev/null || not_ok 'the words of Flux' "$(of_steps | head -n 3)"; }

# run SECONDS OPTION... PROGRAM...: one musterrun; sets $status, and its words are in $log
run() {
  local seconds=$1
  shift
  timeout -k 5 "$seconds" "${musterrun[@]}" "$@" >"$log" 2>&1 <"${input:-/dev/null}"
  status=$?
  words_fit
}

passed_once() { [ "$status" = 0 ] && has_lines 1 'PASS ' "$log"; }

# client WHAT OPTIONS NAME [ARG]...: a client that has to pass, with ci/test --cut also while direct connections are cut
client() {
  local what=$1 options=$2 name=$3
  shift 3
  [ -z "${CUT:-}" ] || [ "$rm" != slurm ] || options="--fault=cut $options"
  # shellcheck disable=SC2086  # options are several words
  run 120 $options "$clients/$name" "$@" --seconds 100
  if grep -q "^SKIP $name:" "$log"; then
    skip "$what" "$(sed -n "s/^SKIP $name: //p" "$log" | head -n 1)"
  else
    check "$what" "$(why "$log" $status)" passed_once
  fi
}

# says WHAT STATUS PATTERN: how the last run ended (a regular expression too), and that it said this
said() { [[ $status =~ ^($1)$ ]] && grep -qE -e "$2" "$log"; }
says() {
  if said "$2" "$3"; then ok "$1"; else
    not_ok "$1" "status $status, expected $2; said: $(grep -v '^HOLD' "$log" | head -n 8 | tr '\n' ';')"
  fi
}
none_failed() { ! grep -q '^FAIL' "$log"; }

# start: a held step of 8 ranks on 4 nodes in the background; sets $step
start() {
  : >"$log"
  env --default-signal=INT,QUIT "${musterrun[@]}" -N4 -n8 "$clients/hold" --sleep 300 --seconds 320 >"$log" 2>&1 </dev/null &
  step=$!
  until_true 60 all_hold "$log" || not_ok "start" "$(why "$log" 'unknown (not up after 60 s)')"
}

# await WHAT: the end of $step, long before its tasks end by themselves; sets $status
await() {
  until_true 60 ended "$step" || { not_ok "$1: the end" 'still there after 60 s'; kill -9 "$step"; }
  wait "$step"
  status=$?
  words_fit
} 2>/dev/null

two_up() { [ "$(grep -c up "$log")" = 2 ]; }
no_process_left() { ! list_left | grep -q '^process'; }

# parts NAME...: runs those that are wanted, and ends the script
parts() {
  local part
  for part; do
    case $wanted in '  '|*" $part "*) "part_$part" ;; esac
  done
  summary
}
