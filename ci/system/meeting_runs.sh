#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# ci/system/meeting_runs.sh: two musterruns of a user that meet, as two sruns do.
# shellcheck disable=SC2154,SC2034  # clients, work and job are shared with lib.sh and meet_lib.sh
set -uo pipefail
usage() {
  cat <<'TXT'
usage: ci/slurm -N 1 -- ci/system/meeting_runs.sh BUILDDIR

Run as root. What meeting.sh shows of two sruns, of two musterruns ($MUSTERRUN, by default
/opt/muster/bin/musterrun) of alice that play Slurm: they connect, publish and look up, and on libpmix 6.1 and newer
form groups; MPI programs accept and connect; the oldest run, whose server is the holder, ends in order or is killed
while others meet. Bob's run finds nothing of alice's, and directories that he puts beside hers are not believed.
Prints "ok", "not ok" with the reason and "skip" lines; non-zero status when any failed.
TXT
}
case ${1:-} in -h|--help) usage; exit 0 ;; '') usage >&2; exit 2 ;; esac
# shellcheck source=ci/system/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
# shellcheck source=ci/system/meet_lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/meet_lib.sh"
find_clients "$1"
if [ "$(id -u)" != 0 ]; then skip 'musterruns that meet' 'needs root'; summary; exit; fi
cd "$MUSTER_CI_DIR/shared" || exit 125
launch=("${MUSTERRUN:-/opt/muster/bin/musterrun}") pairs=2
export TMPDIR=$work/tmp
mkdir -m 1777 "$TMPDIR"
: >"$work/contexts"

# Not by a function, whose shell would be the one that is killed.
begin_holder() {
  setpriv --reuid alice --regid alice --init-groups "${launch[@]}" -n1 "$clients/hold" "$@" >"$work/holder" 2>&1 </dev/null &
  holder=$!
}
end_holder() { kill "$holder"; wait "$holder"; } 2>/dev/null

run_killed() { kill -9 "$holder"; }

# As a live run's would look: the owner alone is wrong. A socket in it would answer, and is not asked.
bobs_directory() {
  local dir=$TMPDIR/musterrun.bobbob
  as bob mkdir -p -m 700 "$dir/node0"
  # shellcheck disable=SC2016  # perl's own
  setpriv --reuid bob --regid bob --init-groups perl -MIO::Socket::UNIX -e '
    my $s = IO::Socket::UNIX->new(Local => shift, Listen => 9) or die $!;
    chmod 0777, $s->hostpath; chmod 0755, shift; $| = 1;
    print "up\n"; while ($s->accept) { print "asked\n" }' "$dir/node0/slurmd" "$dir" >"$work/asked" 2>&1 &
  bobs=$!
  until_true 60 grep -q up "$work/asked" || not_ok "bob's directory" "$(cat "$work/asked")"
}
nothing_left() { [ -z "$(find "$TMPDIR" -mindepth 1 -maxdepth 1 -user alice; pids_of muster-server)" ]; }

bobs_directory
connects
publish 'two runs publish and look up' --bound 1
groups 'two runs whose leaders meet' --meet 1
groups 'two runs of which all ranks lead'
sets_end
mpi_meets 1
while_away 'the oldest run ends in order' '' in_order
while_away "the oldest run's server is killed" '' killed
while_away "the oldest run's musterrun is killed" '' run_killed
while_away "the oldest run's server stops for a second" '' stopped
contexts_differ
meets_nobody
check "bob's directory is not asked" "$(cat "$work/asked")" [ "$(cat "$work/asked")" = up ]
kill "$bobs"
check 'nothing is left' "$(find "$TMPDIR" -mindepth 1 -maxdepth 1; pids_of muster-server)" until_true 60 nothing_left
summary
