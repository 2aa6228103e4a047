# shellcheck shell=bash disable=SC2154,SC2034  # clients and spool are shared with the scripts
# What the system tests share: counting, finding the clients, starting steps and looking at what
# they leave behind. Sourced by the scripts beside it, inside ci/slurm.

MPI=${MPI:-muster}
passed=0 failed=0 skipped=0
work=$(mktemp -d) || exit 125
chmod 755 "$work"
trap 'rm -rf "$work"' EXIT

ok() { echo "ok $1"; passed=$((passed + 1)); }
not_ok() { echo "not ok $1: $2"; failed=$((failed + 1)); }
skip() { echo "skip $1: $2"; skipped=$((skipped + 1)); }

# check WHAT WHY COMMAND...: ok WHAT if COMMAND succeeds
check() {
  local what=$1 why=$2
  shift 2
  if "$@"; then ok "$what"; else not_ok "$what" "$why"; fi
}

summary() {
  echo "$passed passed, $failed failed, $skipped skipped"
  [ "$failed" = 0 ]
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

# until_true SECONDS COMMAND...: whether COMMAND succeeds within SECONDS
until_true() {
  local end=$((SECONDS + $1))
  shift
  until "$@"; do
    [ $SECONDS -lt $end ] || return 1
    sleep 0.1
  done
}

# why LOG STATUS: the one line that tells most
why() {
  local line
  line=$(grep -m1 '^FAIL' "$1" || grep -m1 'watchdog' "$1" || grep -m1 -i 'muster' "$1" || tail -n 1 "$1")
  case $2 in 124) line="no end in time; $line" ;; esac
  echo "status $2: $line"
}

# ---- processes and what steps leave ----

# pids_of NAME: the processes with that name, zombies (which wait for pid 1) left out
pids_of() {
  local stat pid rest
  for stat in /proc/[0-9]*/stat; do
    { read -r pid rest <"$stat"; } 2>/dev/null || continue
    case $rest in "($1) Z"*) ;; "($1) "*) echo "$pid" ;; esac
  done
}

# The directory that holds all nodes' spool directories.
spool_dir() {
  local template
  template=$(scontrol show config | sed -n 's/^SlurmdSpoolDir *= //p')
  echo "${template%%%[nh]*}"
}

# Servers, sockets, directories and shared memory, one a line.
list_leftovers() {
  local pid
  for pid in $(pids_of muster-server); do echo "process muster-server $pid"; done
  find "$spool" -type s 2>/dev/null | sed 's/^/socket /'
  # Each node has a /tmp and a /dev/shm of its own, seen through its slurmd.
  for pid in $(pids_of slurmd); do
    find "/proc/$pid/root/tmp" -maxdepth 1 -name 'muster.*' 2>/dev/null | sed 's/^/directory /'
    find "/proc/$pid/root/dev/shm" -mindepth 1 2>/dev/null | sed 's/^/shared memory /'
  done
}

# new_leftovers BEFORE: what is there now and was not in the file BEFORE
new_leftovers() { list_leftovers | sort | comm -13 <(sort "$1") -; }

nothing_new() { [ -z "$(new_leftovers "$1")" ]; }
