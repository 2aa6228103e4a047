#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# ci/system/meeting.sh: two jobs of a user that meet, while the server where they do so comes and goes.
# shellcheck disable=SC2154  # clients and work are shared with lib.sh
set -uo pipefail
usage() {
  cat <<'TXT'
usage: ci/slurm -N 4 -- ci/system/meeting.sh [OPTION]... BUILDDIR

Run as root. Two sruns of alice, two jobs, publish and look up on two nodes each; on libpmix 6.1 and newer
they form groups, too. Then something happens to the holder of what is published, a server of an older job, while
pairs of jobs publish, look up and make groups all the time, or leaders wait: none may miss what another has
published, no context id comes twice, and nobody hangs. A job of bob finds nothing of alice's.

  --rounds N   how often each of it happens (1)
  --pairs N    pairs of jobs that meet meanwhile (2)
  --harm LIST  what happens, and nothing else is tested: some of
               order    the holder ends in order
               home     a home of leaders that wait ends in order
               member   a home ends in order that has all leaders, and awaits a member
               lost     such a home is killed
               killed   it is killed
               stopped  it stops for a second
               cut      its node is cut off until the others have given it up, and comes back
               two      the oldest step comes late, so that two servers become the holder
               away     it is killed while slurmctld does not answer
  --mpi N      MPI_Comm_accept and MPI_Comm_connect N times, and nothing else is tested
  --keep DIR   of a round that fails, the jobs' output is copied there

With THIN=1 only away happens, as Slurm has to do with that: what comes of the others is our own engine's. BETWEEN=1: that
they connect, publish and look up, and MPI, which is what libpmix has to do with.

Prints "ok", "not ok" with the reason and "skip" lines; non-zero status when any failed.
TXT
}
rounds=1 pairs=2 keep='' mpi='' every=(order home member lost killed stopped cut two away) harms=()
while :; do
  case ${1:-} in
    --rounds) rounds=$2 ;;
    --pairs) pairs=$2 ;;
    --harm) read -ra harms <<<"$2" ;;
    --keep) keep=$2 ;;
    --mpi) mpi=$2 ;;
    *) break ;;
  esac
  shift 2
done
case ${1:-} in -h|--help) usage; exit 0 ;; '') usage >&2; exit 2 ;; esac
# shellcheck source=ci/system/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
# shellcheck source=ci/system/meet_lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/meet_lib.sh"
find_clients "$1"
if [ "$(id -u)" != 0 ]; then skip meeting 'needs root'; summary; exit; fi
[ -z "${THIN:-}" ] || every=(away)
cd "$MUSTER_CI_DIR/shared" || exit 125
launch=(srun "--mpi=$MPI")

# ---- the holder ----

spool=$(spool_dir)
last_node=node$(sinfo -h -o %D)
aside="-x $last_node"

# Alone on the last node.
begin_holder() {
  as alice srun --mpi="$MPI" -J holder -w "$last_node" -N1 -n1 "$clients/hold" "$@" >"$work/holder" 2>&1 </dev/null &
  holder=$!
}
end_holder() {
  as alice scancel -u alice 2>/dev/null
  wait "$holder"
}

# Not every root has it.
sooner() { [ -z "$(command -v renice)" ] || renice -n "$1" -p $$ >/dev/null; }

# The oldest job's server is not there yet when the others begin, so that a server of theirs becomes the holder.
two_at_once() {
  local what=$1 k late='' begun=() nice end=$((SECONDS + 20))
  nice=$(nice)
  until_true 60 no_server
  begin_pair 0 "-w $last_node -N1 -n2" "$aside -N2 -n3"
  sooner -10 # on a machine that is busy the server would be there first
  until [ -n "${late:=$(pids_of slurmstepd)}" ] || [ $SECONDS -ge $end ]; do :; done # before it has started the server
  [ -n "$(find "$spool" -type s -name 'muster.*')" ] ||
    { xargs kill -STOP <<<"$late" 2>/dev/null && made_two=$((made_two + 1)); }
  sooner "$nice"
  for ((k = 1; k < pairs; k++)); do begin_pair $k "$aside -N2 -n2" "$aside -N2 -n3"; done
  sleep 4
  xargs kill -CONT <<<"$late" 2>/dev/null
  pairs_pass "$what"
}

# keep_logs WHAT
keep_logs() {
  local to=$keep/${1//[ :\']/_}
  mkdir -p "$to" && cp "$work"/[ab][0-9]* "$MUSTER_CI_DIR"/log/*.log "$to"
}

# awaits PATTERN [JOB NODE]: whether muster-status on the node of a job, by default the holder's, says so, or the job in
# the log a is skipped
awaits() {
  nsenter -t "$(slurmd_of "${3:-$last_node}")" -m -u -r -w setpriv --reuid alice --regid "$(id -g alice)" --init-groups \
    /opt/muster/bin/muster-status --local "$(squeue -h -n "${2:-holder}" -o %A)" 2>&1 | grep -q "$1" || grep -q '^SKIP' "$work/a"
}

# Leaders of one job wait at a home that leaves, and those of another one come later.
home_leaves() {
  local a b
  start_holder
  part a '-N2 -n4' "$clients/groups_join" --total 7; a=$job
  until_true 60 awaits 'leaders missing' || not_ok "$1" "no leader is awaited: $(why "$work/a" 'not known')"
  in_order
  until_true 60 ended "$holder"
  part b '-N2 -n3' "$clients/groups_join" --total 7; b=$job
  both "$1" "$a" "$b" a b
  end_holder
}

# COMMAND ends a home that has all leaders of a group and still awaits a member; the member calls after that.
home_ends() {
  local what=$1 late status
  shift
  sleep 300 & late=$!
  start_holder
  part a "$aside -N2 -n3" "$clients/groups_join" --jobs 1 --total 3 --until "$late"
  until_true 60 awaits 'added members have not all called' || not_ok "$what" "no member is awaited: $(why "$work/a" 'not known')"
  "$@"
  until_true 60 ended "$server" || not_ok "$what" 'the home does not end'
  { kill "$late"; wait "$late"; } 2>/dev/null
  wait "$job"
  status=$?
  judge "$what" groups_join $status "$work/a"
  in_order
  end_holder
}

# What is sent to the node waits there, and of its own it says nothing; the others give it up after timeouts.peer.
cut_off() {
  local slurmd
  slurmd=$(slurmd_of "$last_node")
  kill -STOP "$slurmd" "$server"
  sleep 6
  kill -CONT "$slurmd" "$server"
}

without_slurmctld() {
  local pid
  pid=$(pgrep -x slurmctld | head -n 1)
  kill -STOP "$pid"
  kill -9 "$server"
  sleep 1
  kill -CONT "$pid"
}

# harm ROUND WHAT
harm() {
  case $2 in
    order) while_away "round $1: the holder ends in order" "$aside" in_order ;;
    home) home_leaves "round $1: the home of leaders that wait ends in order" ;;
    member) home_ends "round $1: a home ends in order before a member calls" in_order ;;
    lost) home_ends "round $1: a home is killed before a member calls" killed ;;
    killed) while_away "round $1: the holder is killed" "$aside" killed ;;
    stopped) while_away "round $1: the holder stops for a second" "$aside" stopped ;;
    cut) MUSTER_TIMEOUTS_PEER=3 while_away "round $1: the holder's node is cut off" "$aside" cut_off ;;
    two) LATE=15 two_at_once "round $1: the oldest step comes late, and two are the holder" ;;
    away) while_away "round $1: the holder is killed while slurmctld is away" "$aside" without_slurmctld ;;
    *) not_ok "--harm $2" 'there is no such' ;;
  esac
}

all_harms() {
  local i what
  : >"$work/contexts"
  made_two=0
  for ((i = 1; i <= rounds; i++)); do
    for what; do harm "$i" "$what"; done
  done
  case " $* " in
    *' two '*)
      echo "the oldest step came late in $made_two of $rounds rounds"
      [ $made_two -gt 0 ] || skip 'the oldest step comes late' 'its server was there sooner than we looked' ;;
  esac
  contexts_differ
}

for ((i = 0; i < ${mpi:-0}; i++)); do mpi_meets 1; mpi_meets 2; done
if [ ${#harms[@]} -gt 0 ]; then all_harms "${harms[@]}"; fi
if [ -n "$mpi" ] || [ ${#harms[@]} -gt 0 ]; then summary; exit; fi

connects
publish 'two jobs publish and look up' --bound 1
mpi_meets 2
[ -z "${BETWEEN:-}" ] || { summary; exit; }
groups 'two jobs whose leaders meet' --meet 1
groups 'two jobs of which all ranks lead'
[ -n "${THIN:-}" ] || sets_end
all_harms "${every[@]}"

[ -n "${THIN:-}" ] || meets_nobody
check 'nothing is left' "$(pids_of muster-server | tr '\n' ' ')" until_true 60 no_server
summary
