# shellcheck shell=bash disable=SC2154  # clients and work are shared with the scripts
# SPDX-License-Identifier: BSD-3-Clause
# What one_build.sh and package.sh share: Slurm or muster is upgraded while a step of two nodes holds. Sourced after lib.sh.

restart_daemons() {
  local pid node
  pid=$(pgrep -x slurmctld | head -n 1)
  kill "$pid"
  until_true 60 ended "$pid" || not_ok slurmctld 'it does not end'
  slurmctld -D >"$work/slurmctld.out" 2>&1 &
  for node in node1 node2; do
    stop_slurmd $node
    start_slurmd $node
  done
}

step_under() { timeout 60 srun --mpi="$1" -N2 -n2 true >"$work/under.log" 2>&1 </dev/null; }
is_listed() { srun --mpi=list 2>&1 | grep -qw muster; }

# group_step WHEN: a group program passes
group_step() {
  local log="$work/$1.log"
  timeout 120 srun --mpi=muster -N2 -n4 "$clients/groups" >"$log" 2>&1 </dev/null
  judge "groups, $1" groups $? "$log"
}

two_hold() { [ "$(grep -c '^HOLD rank' "$work/held.log")" = 2 ]; }

# The step that is to live through it.
begin_held() {
  sleep 600 &
  marker=$!
  srun --mpi=muster -N2 -n2 "$clients/hold" --until $marker --seconds 300 >"$work/held.log" 2>&1 </dev/null &
  held=$!
  check 'a step holds' "$(tail -n 3 "$work/held.log")" until_true 60 two_hold
}
held_ends() {
  kill "$marker"
  until_true 60 ended "$held" || kill "$held"
  wait "$held"
  check 'the step from before the upgrade ends well' "$(tail -n 3 "$work/held.log")" [ $? = 0 ]
}
