#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# ci/system/check.sh: what muster-check says of right nodes, and of each kind of wrong one.
# shellcheck disable=SC2154  # work is shared with lib.sh
set -uo pipefail
usage() {
  cat <<'TXT'
usage: ci/slurm -N 4 -- ci/system/check.sh

Run as root, without --user. Files of some nodes are hidden, or made wrong, in the nodes' own name spaces. Then the same by a
stand-in of flux exec. Prints "ok", "not ok" with the reason and "skip" lines; non-zero status when any failed.
TXT
}
case ${1:-} in -h|--help) usage; exit 0 ;; esac
# shellcheck source=ci/system/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
[ "$(id -u)" = 0 ] || { skip muster-check 'needs root'; summary; exit; }
prefix=/opt/muster tool=/opt/muster/bin/muster-check

# in_node NODE COMMAND...: where its steps will see it
in_node() {
  local node=$1
  shift
  nsenter --target "$(slurmd_of "$node")" --mount --root --wd "$@"
}

# cover NODE PATH [TEXT]: a file of the node is another one; again: as before
covered=()
cover() {
  printf '%s' "${3:-}" >"$MUSTER_CI_DIR/shared/covered.${#covered[@]}"
  in_node "$1" mount -n --bind "$MUSTER_CI_DIR/shared/covered.${#covered[@]}" "$2"
  covered+=("$1 $2")
}
uncover() {
  local each
  for each in "${covered[@]}"; do in_node "${each% *}" umount -n "${each#* }"; done
  covered=()
}

# expect WHAT STATUS COMMAND... -- PATTERN...: the status, and each pattern in a line of its output
expect() {
  local what=$1 want=$2 command=() pattern status missing=''
  shift 2
  while [ "$1" != -- ]; do command+=("$1"); shift; done
  shift
  timeout 150 "${command[@]}" >"$work/said" 2>&1 </dev/null
  status=$?
  for pattern in "$@"; do grep -qE -- "$pattern" "$work/said" || missing+="/$pattern/ "; done
  if [ $status = "$want" ] && [ -z "$missing" ]; then
    ok "$what"
  else
    not_ok "$what" "status $status, expected $want; not said: ${missing:-nothing}; said: $(head -n 12 "$work/said" | tr '\n' ';')"
  fi
}

version=$("$tool" --version) version=${version#muster-check }
expect 'all is right' 0 "$tool" -N4 -- "^ +4 +$version +$version +$version +$version .* defaults +0755 +/tmp +node1,node2,node3,node4$" '^all is right$'
expect 'no node is named' 2 "$tool" -- 'which nodes.*-N500'
expect 'below srun' 2 srun --mpi=none -N2 -n2 "$tool" -- 'start it without srun'
expect 'in an allocation' 0 salloc -Q -N2 "$tool" -- '^ +2 +.*node[1-4],node[1-4]$'

cover node1 $prefix/lib/slurm/mpi_muster.so
cover node2 $prefix/lib/muster/rm_slurm.so "muster-version:0.0.9"
cover node3 $prefix/bin/muster-check
cover node4 $prefix/libexec/muster/muster-server
expect 'files that are wrong' 1 "$tool" -N4 -- "node1: plugin: $prefix/lib/slurm/mpi_muster.so: no file of muster; install muster again" \
  "node2: backend: $prefix/lib/muster/rm_slurm.so is of muster 0.0.9, and this tool of $version; install all of one version" \
  'node3: muster: .*/muster-check is not there; install muster on this node' \
  'node4: server: .*/muster-server does not start .* install muster again'
"$tool" --json -N4 >"$work/json" 2>/dev/null
check 'the JSON is as its schema has it' "$(ci/lib/check-schema docs/muster-check.schema.json <"$work/json" 2>&1)" \
  ci/lib/check-schema docs/muster-check.schema.json <"$work/json"
check 'JSON of it' "$("$tool" --json -N4)" python3 -c '
import json, sys, subprocess
said = subprocess.run([sys.argv[1], "--json", "-N4"], stdout=subprocess.PIPE, text=True)
found = json.loads(said.stdout)
assert said.returncode == 1 and found["version"] == 1, said
assert [n["node"] for n in found["nodes"]] == ["node1", "node2", "node3", "node4"], found
assert sorted(f["nodes"] for f in found["faults"]) == [["node1"], ["node2"], ["node3"], ["node4"]], found' "$tool"
uncover

# A node that has settings, where others have none; then two wrong keys; then a tmpdir that is not there.
settings=$prefix/etc/muster/muster.json
mkdir -p $prefix/etc/muster
echo '{}' >$settings
cover node2 $settings '{ "tree_arity": 5 }'
expect 'other settings' 1 "$tool" -N4 -- 'node2: settings: [0-9a-f]{8}, and [0-9a-f]{8} on most nodes; copy one muster.json'
uncover
cover node2 $settings '{ "tree_arty": 5, "log_level": 3 }'
cover node3 $settings '{ "tmpdir": "/nowhere" }'
expect 'wrong settings' 1 "$tool" -N4 -- 'node2: settings: .*"tree_arty": unknown; did you mean "tree_arity"' \
  'node2: settings: .*"log_level"' 'node3: settings: .*/nowhere: No such file or directory; make it'
uncover
rm -r $prefix/etc/muster

spool=$(spool_dir) spool=${spool%/}
chmod 700 "$spool/node4"
mkdir -p "$MUSTER_CI_DIR/shared/small" $prefix/etc/muster
echo '{}' >$settings
cover node3 $settings "{ \"tmpdir\": \"$MUSTER_CI_DIR/shared/small\" }"
in_node node3 mount -n -t tmpfs -o size=4m,mode=1777 small "$MUSTER_CI_DIR/shared/small"
expect 'spool and tmpdir' 1 "$tool" -N4 -- "node4: spool: SlurmdSpoolDir $spool/node4 has mode 0700, .*chmod 0755" \
  'node3: tmpdir: .*/small has [0-9] MiB free; .*set tmpdir'
chmod 755 "$spool/node4"
in_node node3 umount -n "$MUSTER_CI_DIR/shared/small"
uncover
rm -r $prefix/etc/muster

# The libraries of a node are others: a server that cannot be loaded says which.
lib=$(ldd $prefix/libexec/muster/muster-server | sed -n 's/.*libpmix[^ ]* => \([^ ]*\).*/\1/p')
cover node1 "$(readlink -f "$lib")"
expect 'libpmix is broken' 1 "$tool" -N4 -- 'node1: server: .*libpmix.* install muster again, or the library that is missing'
uncover
expect 'all is right again' 0 "$tool" -N4 -- '^all is right$'

# What files cannot tell: a slurmd that does not have the plugin, as it was not restarted.
# shellcheck disable=SC2016  # for the shell below
printf '#!/bin/sh\ncase "$*" in *mpi=muster*) echo "srun: error: node2: Socket timed out" >&2; exit 1 ;; esac\nexec %s "$@"\n' "$(type -P srun)" >"$work/srun"
chmod 755 "$work/srun"
expect 'a slurmd that was not restarted' 1 env PATH="$work:$PATH" "$tool" -N4 -- 'node2: Socket timed out' 'a step under muster ended with status 1: .*restart its slurmd'
expect 'without a step' 0 env PATH="$work:$PATH" "$tool" --no-step -N4 -- '^all is right$'

# A slurmd that hangs is named while srun waits for it. A job that had not ended there would keep the node from the step.
hung=$(slurmd_of node3)
until_true 60 nodes_rest
kill -STOP "$hung"
timeout 150 "$tool" -N4 >"$work/hung" 2>&1 </dev/null &
check 'a slurmd that hangs is named' "$(cat "$work/hung")" \
  until_true 60 grep -q '^muster-check: node3: no answer yet; .*systemctl restart slurmd' "$work/hung"
kill -CONT "$hung"
wait $!
status=$?
check 'a slurmd that hung and answers' "status $status: $(tail -n 3 "$work/hung" | tr '\n' ';')" \
  eval "[ $status = 0 ] && grep -q '^all is right$' '$work/hung'"

# Flux's two commands, on this one node.
# shellcheck disable=SC2016
printf '#!/bin/sh\ncase $1 in exec) shift 3; exec "$@" ;; run) exit 0 ;; esac\nexit 9\n' >"$work/flux"
chmod 755 "$work/flux"
expect 'by flux exec' 0 env PATH="$work:$PATH" "$tool" --flux -- "^ +1 +$version +$version +$version +$version .* - +/tmp +login" '^all is right$'
summary
