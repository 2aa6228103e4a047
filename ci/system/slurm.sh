#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# ci/system/slurm.sh: all test clients through srun --mpi=muster, in several shapes of step.
# shellcheck disable=SC2154,SC2034  # clients, work and spool are shared with lib.sh
set -uo pipefail
usage() {
  cat <<'TXT'
usage: ci/slurm [OPTION]... -- ci/system/slurm.sh BUILDDIR [NAME]...

Runs the clients in BUILDDIR (or BUILDDIR/ci/clients), or only those NAMEd, by srun and
prints a line for each: "ok", "not ok" with the reason, or "skip". Ends with non-zero
status when any failed. MPI=NAME takes another plugin than muster. THIN=1 leaves out what
no release of Slurm or libpmix changes: further shapes, and what wears out our own engine;
BETWEEN=1 also what only Slurm decides. SHORT=1 runs each in one shape only, and nothing
long. Needs four nodes.
TXT
}
case ${1:-} in -h|--help) usage; exit 0 ;; '') usage >&2; exit 2 ;; esac
# shellcheck source=ci/system/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
find_clients "$1"
plugins=$clients/../../plugins/slurm
shift
wanted=" $* "

# Two nodes show what a release of Slurm or libpmix changes; three are the least with a server between others.
shapes=('-N4 -n8' '-N1 -n4' '-N3 -n7 --distribution=cyclic')
[ -z "${THIN:-}" ] || shapes=('-N2 -n4' '-N1 -n4')
[ -z "${SHORT:-}" ] || shapes=('-N3 -n6')
several=${shapes[0]}

# What Open MPI needs for several nodes on one machine, and more ranks than cores.
export OMPI_MCA_pml=ob1 OMPI_MCA_btl=self,tcp OMPI_MCA_btl_tcp_if_include=lo OMPI_MCA_mpi_yield_when_idle=1

# run SHAPE NAME [ARG]...: one client in one shape
run() {
  local shape=$1 name=$2 log="$work/$2.log" status seconds=100 tries=0
  [ $BASHPID = $$ ] || log=$work/$2.$BASHPID.log # several may run at once
  shift 2
  case $name in mpi_*) seconds=40 tries=3 ;; esac
  case $wanted in '  '|*" $name "*) ;; *) return 0 ;; esac
  local what="$name${*:+ $*} ($shape)"
  if [ ! -x "$clients/$name" ]; then skip "$what" 'not built'; return; fi
  # shellcheck disable=SC2086  # a shape is several words
  timeout 120 srun --mpi="$MPI" $shape "$clients/$name" "$@" --seconds "$seconds" >"$log" 2>&1 </dev/null
  status=$?
  # Open MPI's own, on a busy machine: docs/limits.md, "Open MPI". Said, and run again.
  while [ $status != 0 ] && [ $tries -gt 0 ] && grep -q '^rank.*watchdog: still in: MPI_' "$log"; do
    skip "$what: one try" "it hung in $(sed -n 's/^rank.*watchdog: still in: //p' "$log" | head -n 1); see docs/limits.md"
    tries=$((tries - 1))
    # shellcheck disable=SC2086
    timeout 120 srun --mpi="$MPI" $shape "$clients/$name" "$@" --seconds "$seconds" >"$log" 2>&1 </dev/null
    status=$?
  done
  grep -E '^(BENCH|NOTE)' "$log" | sed 's/^/# /'
  judge "$what" "$name" "$status" "$log"
}

# The lines that every rank of a step of N logs come out of srun.
check_logged() {
  local shape=$1 n=$2
  case $wanted in '  '|*' logq '*) ;; *) return 0 ;; esac
  local found
  found=$(grep -o 'logq: rank [0-9]* wrote this' "$work/logq.log" | sort -u | wc -l)
  check "logq's lines ($shape)" "expected $n, found $found" [ "$found" = "$n" ]
}

# What is refused says on the terminal which libpmix it takes.
check_refusals() {
  case $wanted in '  '|*' unsupported '*) ;; *) return 0 ;; esac
  [ "$MPI" = muster ] && [ "$(pmix_major)" -lt 7 ] || return 0
  for key in PMIX_GROUP_FT_COLLECTIVE PMIX_GROUP_NOTIFY_TERMINATION; do
    check "$key says what it takes ($1)" 'not a word of it' \
      grep -q "$key needs libpmix 7 or newer" "$work/unsupported.log"
  done
}

# A group that libpmix 4.2 has made without asking: one line says so.
check_unawaited() {
  case $wanted in '  '|*' groups_wildcard '*) ;; *) return 0 ;; esac
  [ "$MPI" = muster ] && [ "$(pmix_major)" -lt 5 ] || return 0
  check "a group that libpmix made by itself ($1)" "$(cat "$work/groups_wildcard.log")" [ 1 = \
    "$(grep -c 'group "everybody" was made without awaiting its members on other nodes' "$work/groups_wildcard.log")" ]
}

# A step beside another one of the same allocation.
keys_beside() {
  local job holder
  case $wanted in '  '|*' keys '*) ;; *) return 0 ;; esac
  job=$(salloc --no-shell -N4 -n16 2>&1 | sed -n 's/.*Granted job allocation //p')
  srun --jobid="$job" --mpi="$MPI" --overlap -N4 -n8 "$clients/hold" --sleep 600 >"$work/beside.log" 2>&1 </dev/null &
  holder=$!
  if until_true 60 all_hold "$work/beside.log"; then
    run "--jobid=$job --overlap -N3 -n7 -m cyclic" keys
    check 'the step beside it' "$(why "$work/beside.log" ended)" kill -0 $holder
  else
    not_ok 'start of a step to be beside' "$(why "$work/beside.log" 'unknown (not up after 60 s)')"
  fi
  scancel "$job"
  wait $holder
}

# Several programs of one step are one application: on each node the key has one that runs there.
keys_of_several() {
  local n log=$work/several.log status
  case $wanted in '  '|*' keys '*) ;; *) return 0 ;; esac
  for n in 1 2; do
    # Slurm knows no quotes there, and the tree's path may have blanks.
    printf '%s\n' '0-1 ./keys --seconds 100' '2-3 ./keys --seconds 101' >"$MUSTER_CI_DIR/shared/several.$n"
    timeout 120 srun --chdir="$clients" --mpi="$MPI" -N$n -n4 --ntasks-per-node=$((4 / n)) --multi-prog \
      "$MUSTER_CI_DIR/shared/several.$n" >"$log" 2>&1 </dev/null
    status=$?
    judge "keys, of several programs on $n nodes" keys $status "$log"
  done
}

# The command line of a task's program that is too long is no key, and no client waits for it.
keys_of_long() {
  local log=$work/long.log status
  case $wanted in '  '|*' keys '*) ;; *) return 0 ;; esac
  # shellcheck disable=SC2016  # for the task's shell
  KEYS_APP_ARGV='' timeout 120 srun --mpi="$MPI" -N2 -n4 bash -c '"$0" --seconds 100; exit $?' "$clients/keys" \
    "$(head -c 70000 /dev/zero | tr '\0' x)" >"$log" 2>&1 </dev/null
  status=$?
  judge 'keys, below a program with 70000 bytes of arguments' keys $status "$log"
}

# The keys in layouts that the other clients need not see.
if [ -z "${SHORT:-}${BETWEEN:-}" ]; then
  for shape in '-N4 -n10 -m plane=2' '-N3 -n7' '-N4 -n9 --ntasks-per-node=3 -m cyclic' '-N2 -n40 -O' '-N1 -n1'; do
    run "$shape" keys
  done
  printf 'node%s\n' 3 1 3 4 1 1 4 >"$work/hosts"
  SLURM_HOSTFILE=$work/hosts run '-n7 -m arbitrary' keys
  keys_of_several
fi
if [ -z "${SHORT:-}${THIN:-}" ]; then
  keys_beside
  keys_of_long
  case $wanted in '  '|*' keys '*) keys_below $'\xff\xfe' srun --mpi="$MPI" -N2 -n4 ;; esac
fi

# shellcheck disable=SC2317  # by aside
several_rounds() {
  run '-N1 -n4' rounds --late 300
  run "$several" rounds --late 300
}
# Programs that a rank starts, which connect as the same rank: none of them takes the rank out of an operation.
# Cyclic: the last rank's node has another rank, which is in a fence when those programs end.
# shellcheck disable=SC2317  # by aside
programs_beside() {
  local how children=(order dies killed outlives) before_loss=(order outlives)
  [ -z "${THIN:-}" ] || children=(order dies) before_loss=(order) # all of them: standin.sh, by the machine's libpmix
  [ "$(pmix_major)" != 4 ] || export PMIX_MCA_gds=hash # docs/limits.md
  for how in "${children[@]}"; do run '-N2 -n4 -m cyclic' beside --child "$how" --count 2; done
  [ -n "${THIN:-}" ] || run '-N2 -n4 -m cyclic' beside --child order --parents 4
  for how in "${before_loss[@]}"; do
    timeout 60 srun --mpi=muster -N2 -n4 -m cyclic "$clients/beside" --child "$how" --then kill --seconds 50 \
      >"$work/killed.log" 2>&1 </dev/null
    check "a rank is killed that had a program beside it ($how)" "status $?; $(tail -n 1 "$work/killed.log")" \
      grep -q 'rank 3 on .* was killed by signal 9' "$work/killed.log"
  done
}
in_turn() { local shape=$1 name; shift; for name in "$@"; do run "$shape" "$name"; done; }

# The server is outside of the job's limits, so it runs no program of the user's.
check_pull() {
  local own=$MUSTER_CI_DIR/shared/own.$BASHPID # all nodes see it
  mkdir -m 1777 "$own"
  printf '#!/bin/sh\ntouch "%s"\n' "$own/ran" >"$own/sattach"
  chmod 755 "$own/sattach"
  PATH=$own:$PATH run '-N2 -n4 -m cyclic' pull
  check "a sattach of the user's is not run" 'it ran' [ ! -e "$own/ran" ]
  rm -r "$own"
}

for shape in "${shapes[@]}"; do
  clients_of "$shape"
  # They wait for most of their time, and do so beside the others.
  waiting=(modex) others=()
  [[ $shape == *cyclic ]] || waiting+=(barrier)
  for name in "${of_shape[@]}"; do
    case $name in invite|events) waiting+=("$name") ;; *) others+=("$name") ;; esac
  done
  aside in_turn "$shape" "${waiting[@]}"
  in_turn "$shape" "${others[@]}"
  n=${shape#*-n}
  [ "$shape" = '-N1 -n4' ] || check_logged "$shape" "${n%% *}"
  if [ "$shape" = "$several" ]; then
    check_refusals "$shape"
    run "$shape" tools --as task
    check_unawaited "$shape"
    [ "$MPI" != muster ] || run '-N4 -n4' connect --mode rules
    [ "$MPI" != muster ] || check_pull
    run "$shape" groups --groups 200
  fi
  join_asides
done
if [ -z "${SHORT:-}" ]; then
  aside run "$several" modex --rounds 1 --unknown 3
  [ "$MPI" != muster ] || [ -n "${BETWEEN:-}" ] || aside run '-N2 -n4 --time=3' queries --limit 180
  # Up to libpmix 6 one rank that is late to end a session would be missing in the next one.
  aside several_rounds
  [ "$MPI" != muster ] || aside programs_beside
  [ "$MPI" != muster ] || run "$several" topology --shared 1
  run "$several" exchange --bytes 1000000 --rounds 3
  join_asides
fi
if [ -z "${SHORT:-}${THIN:-}" ]; then
  # Up to 5.0 libpmix itself leaks what it tracks of a group, some KB for each local member.
  # Later ones grow by 0 to 400 KiB, and once by 712, as malloc's pools do.
  case $(pmix_major) in 4 | 5) rss=65536 ;; *) rss=1024 ;; esac
  aside run '-N4 -n8' groups --groups 1000 --warmup 100 --leak 1 --rss $rss
  run '-N4 -n8' groups_many --groups 200 --rounds 3
  run '-N4 -n8' groups --groups 100 --same-id 1
  run '-N4 -n64' groups_bootstrap --rounds 1
  join_asides
fi

# Registration in several parts, and what a client then finds of the last rank: a real server of a step whose other nodes
# are not there.
wide_step() {
  local log=$work/wide.log status missing
  case $wanted in '  '|*' wide '*) ;; *) return 0 ;; esac
  if [ "$MPI" != muster ] || ! [ -w /opt/muster/lib/muster ]; then return 0; fi
  cp "$clients/../wide/rm_alone.so" /opt/muster/lib/muster/ && timeout 60 "$clients/../wide/wide" 1100 4 >"$log" 2>&1
  status=$?
  check 'a server of a step of 1100 x 4 serves a client' "$(cat "$log")" test $status = 0
  missing=$(printf '%s\n' hname:node01099 nodeid:1099 lrank:3 nrank:3 appnum:0 apprank:4399 grank:4399 reinc:0 spawned:FALSE \
    lpeers:4396,4397,4398,4399 | while IFS=: read -r key value; do
    if [ "$key" = nodeid ] && [ "$(pmix_major)" = 4 ]; then continue; fi   # it finds none of a rank
    grep -iq "^client get pmix.$key of rank 4399: .*Value: $value$" "$log" || echo "$key"
  done)
  check 'the client finds the keys of its last rank' "no $missing: $(cat "$log")" test -z "$missing"
}
wide_step

# Process sets as the user names them, and what is said of names that make no sense.
sets_named() {
  local log=$work/psets.log status
  case $wanted in '  '|*' psets '*) ;; *) return 0 ;; esac
  [ "$MPI" = muster ] || return 0
  export PSETS_EXPECTED=$2
  MUSTER_PSETS=$1 run "$3" psets
  unset PSETS_EXPECTED
  [ -z "${THIN:-}" ] || return 0
  MUSTER_PSETS=a=0-8 timeout 120 srun --mpi=muster -N2 -n4 "$clients/psets" >"$log" 2>&1 </dev/null
  status=$?
  check 'a set with a rank that there is not ends the step, with a word' "$(why "$log" $status)" eval \
    "[ $status != 0 ] && grep -q 'process sets: \"a\" has rank 8, and the last rank of the step is 3' '$log'"
}
sets_named ocean=0-3:ice=4-7 ocean=0-3:ice=4-7 '-N4 -n8'

# The option --pset, where plugstack.conf has it.
pset_option() {
  local stack=$MUSTER_CI_DIR/plugstack.conf got
  case $wanted in '  '|*' psets '*) ;; *) return 0 ;; esac
  [ "$MPI" = muster ] || return 0
  if [ ! -w "$stack" ]; then skip '--pset' 'only root can write plugstack.conf'; return; fi
  echo 'required /opt/muster/lib/slurm/spank_muster.so' >"$stack"
  MUSTER_PSETS=old=0-0 PSETS_EXPECTED=ocean=0-1:ice=2-3 run '-N2 -n4 --pset=ocean=0-1:ice=2-3' psets
  # shellcheck disable=SC2016  # the tasks' own
  got=$(timeout 60 srun -N1 -n1 --pset=air : -N1 -n2 --pset=ice sh -c 'echo $MUSTER_PSETS' 2>"$work/pset.log" </dev/null | sort | uniq -c | xargs)
  check '--pset for each component' "$got $(cat "$work/pset.log")" [ "$got" = '3 air:ice' ]
  # shellcheck disable=SC2016
  got=$(timeout 60 salloc -N1 -n1 --pset=b=0-0 srun sh -c 'echo $MUSTER_PSETS' 2>"$work/pset.log" </dev/null)
  check 'salloc --pset' "$got $(cat "$work/pset.log")" [ "$got" = b=0-0 ]
  got=$(timeout 60 srun -N1 --pset= true 2>&1 </dev/null)
  check '--pset without a name is refused' "$got" eval "[ $? != 0 ] && [[ \$got == *'give for example --pset='* ]]"
  got=$(timeout 60 srun -N1 -n1 --pset=ocean true : -N1 -n1 --pset=ice=1 true 2>&1 </dev/null)
  check '--pset with a name here and ranks there is refused' "$got" eval "[ $? != 0 ] && [[ \$got == *'give all a name'* ]]"
  : >"$stack"
}
[ -n "${BETWEEN:-}" ] || pset_option

# A rank is killed and the step goes on: losses [ARG]...
survivors_told() {
  local log=$work/losses.log status
  case $wanted in '  '|*' losses '*) ;; *) return 0 ;; esac
  timeout 120 srun --mpi="$MPI" --kill-on-bad-exit=0 -N4 --ntasks-per-node=2 "$clients/losses" "$@" --seconds 100 >"$log" 2>&1 </dev/null
  status=$?
  if grep -q '^SKIP losses:' "$log"; then
    skip "losses $*" "$(sed -n 's/^SKIP losses: //p' "$log" | head -n 1)"
  elif [ $status = 138 ] && [ "$(grep -c '^PASS losses:' "$log")" = 1 ] && ! grep -qE '^FAIL|watchdog' "$log"; then
    ok "losses $*"
  else
    not_ok "losses $*" "$(why "$log" $status)"
  fi
}
if [ "$MPI" = muster ] && [ "$(id -u)" != 0 ]; then
  skip losses 'only root can write muster.json'
elif [ "$MPI" = muster ]; then
  conf=/opt/muster/etc/muster/muster.json
  [ ! -e "$conf" ] || mv "$conf" "$work/muster.json"
  mkdir -p "${conf%/*}"
  (umask 022; echo '{ "on_task_loss": "continue" }' >"$conf")
  lost=(member invitee leader group)
  [ "$(pmix_major)" -ge 7 ] || lost=(member) # the others take what it has from 7 on
  for who in "${lost[@]}"; do survivors_told --who "$who"; done
  rm "$conf"
  [ ! -e "$work/muster.json" ] || mv "$work/muster.json" "$conf"
fi

# Open MPI 6.0.0rc2 does not connect between nodes that are one machine.
mpi_shape=$several
case $(mpicc --showme:version 2>/dev/null) in *'Open MPI 6.'*) mpi_shape='-N1 -n4' ;; esac
n=${mpi_shape#*-n}
for name in mpi_hello mpi_ring mpi_sessions; do run "$mpi_shape" $name --ranks "${n%% *}"; done
[ "$mpi_shape" = '-N1 -n4' ] || [ -n "${SHORT:-}" ] || run '-N1 -n4' mpi_ring --ranks 4
# The line of docs/using.md and muster(7), with one loss and with two.
survive() {
  MUSTER_ON_TASK_LOSS=continue OMPI_MCA_mpi_ft_enable=1 OMPI_MCA_coll=^han OMPI_MCA_coll_ftagree_era_topology=2 OMPI_MCA_pml=ob1 \
    run "$mpi_shape --no-kill --kill-on-bad-exit=0" mpi_survive --ranks "${n%% *}" "$@"
}
survive --victim 1 --second $((${n%% *} - 2))
if [ -z "${THIN:-}" ]; then
  survive --victim 0
  survive --victim 1
fi

# A plugin that does not know this release says so, in one line with the remedy, before Slurm drops it.
other_release() {
  local this want
  this=$(srun --version | cut -d' ' -f2 | cut -d- -f1)
  want="is built for Slurm 23.02 and this is Slurm $this: install a muster that knows it"
  mkdir "$work/other"
  cp "$plugins/mpi_muster_other.so" "$work/other/mpi_muster.so"
  sed "s,:/opt/muster/lib/slurm,:$work/other," "$SLURM_CONF" >"$work/slurm.conf"
  ! SLURM_CONF=$work/slurm.conf srun --mpi=muster -N1 true >"$work/other.log" 2>&1 </dev/null &&
    [ "$(grep -cF "$want" "$work/other.log")" = 1 ]
}
case $wanted${BETWEEN:+between} in
  '  '|*' other_release '*)
    if other_release; then
      ok 'a plugin that does not know this Slurm release'
    else
      not_ok 'a plugin that does not know this Slurm release' "$(tail -n 3 "$work/other.log")"
    fi ;;
esac
summary
