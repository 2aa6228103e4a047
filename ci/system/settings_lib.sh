# shellcheck shell=bash disable=SC2154  # clients, work and spool are shared with the scripts
# SPDX-License-Identifier: BSD-3-Clause
# Settings of the nodes, and steps that end at once because of settings or of other versions of muster. Sourced after lib.sh.

conf=/opt/muster/etc/muster/muster.json

# configure TEXT [MODE [OWNER]]: the settings of all nodes
configure() {
  mkdir -p "${conf%/*}"
  printf '%s\n' "$1" >$conf
  chmod "${2:-644}" $conf
  chown "${3:-root}" $conf
}

# refused WHAT SAYS [LOG]...: a step ends at once and says why, to the user or else in a LOG; then
# there are no settings any more
refused() {
  local what=$1 says=$2 status
  shift 2
  timeout 100 srun --mpi="$MPI" -N4 -n4 "$clients/hold" --sleep 1 >"$work/refused.log" 2>&1
  status=$?
  rm -f $conf
  check "$what: the step fails" "status $status" eval "[ $status != 0 ] && [ $status != 124 ]"
  check "$what: says why" "$(tail -n 3 "$work/refused.log" | tr '\n' ';')" \
    until_true 30 grep -qE "$says" "$work/refused.log" "$@"
}

# mistake TEXT SAYS [MODE [OWNER]]: a step under this muster.json ends at once and says why
mistake() {
  configure "$1" "${@:3}"
  refused "muster.json: $*" "$2"
}

# arities NODE OTHERS: a step under nodes of which one has other settings than those numbered OTHERS; each has a /tmp
# of its own
arities() {
  local k
  mkdir -p "${conf%/*}"
  ln -s /tmp/muster.json $conf
  for k in 1 2 3 4; do echo '{}' >"/proc/$(slurmd_of node$k)/root/tmp/muster.json"; done
  echo '{ "tree_arity": 2 }' >"/proc/$(slurmd_of "$1")/root/tmp/muster.json"
  refused "tree_arity differs on $1" "$(differs tree_arity 2 "$1" 16 "node[${2}]")set it to one value"
  for k in 1 2 3 4; do rm "/proc/$(slurmd_of node$k)/root/tmp/muster.json"; done
}

# The server and the plugin of node2 are of another muster than the others', as in an upgrade of nodes one after another.
versions() {
  local version other slurmd root file changed=$MUSTER_CI_DIR/shared/changed
  local files=(/opt/muster/libexec/muster/muster-server /opt/muster/lib/slurm/mpi_muster.so)
  version=$(/opt/muster/bin/muster-status --version | cut -d' ' -f2)
  other=${version//[0-9]/9}
  slurmd=$(slurmd_of node2)
  root=$(readlink "/proc/$slurmd/root")
  mkdir "$changed"
  for file in "${files[@]}"; do
    LC_ALL=C sed "s/${version//./[.]}/$other/g" "$file" >"$changed/${file##*/}"
    chmod --reference="$file" "$changed/${file##*/}"
    nsenter --target "$slurmd" --mount mount -n --bind "${root%/}$changed/${file##*/}" "${root%/}$file"
  done
  refused 'another muster on node2' \
    "$(differs muster "$other" node2 "$version" 'node[134]')install one version"
  for file in "${files[@]}"; do nsenter --target "$slurmd" --mount umount -n -l "${root%/}$file"; done
  rm -r "$changed"
}

# Where the servers' directories are, while they serve and afterwards.
tmpdir() {
  local dir=/run/slurm/tmpdir there token
  mkdir -m 1777 $dir
  configure "{ \"tmpdir\": \"$dir\" }"
  sleep infinity &
  token=$!
  if hold_step tmpdir '' --until $token; then
    there=$(find $dir -maxdepth 1 -name 'muster.*' -user "$(id -u)" -perm 700 | wc -l)
    check 'tmpdir: the servers are there' "found $there of 4 directories" [ "$there" = 4 ]
    kill $token
    wait "$step"
    check 'tmpdir: the step' "$(why "$work/tmpdir.log" $?)" grep -q '^PASS hold' "$work/tmpdir.log"
    check 'tmpdir: nothing is left' "after $clean_bound s: $(ls $dir)" until_true "$clean_bound" rmdir $dir 2>/dev/null
  fi
  kill $token 2>/dev/null
  mistake "{ \"tmpdir\": \"$dir\" }" "mpi/muster: [0-9]+[.]0 node[1-4]: cannot open the directory tmpdir=$dir: No such file"
  mkdir -m 755 $dir
  chown alice $dir
  mistake "{ \"tmpdir\": \"$dir\" }" "tmpdir=$dir belongs to uid 2001 and has mode 0755"
  chown root $dir
  chmod 777 $dir
  mistake "{ \"tmpdir\": \"$dir\" }" "tmpdir=$dir belongs to uid 0 and has mode 0777"
  rmdir $dir
}

# Whether so many nodes have got mpi.conf from slurmctld.
served() { [ "$(find "$spool"/node*/conf-cache -name mpi.conf | wc -l)" = "$1" ]; }

# serve_mpi_conf NODES: nodes without files of their own hear of it, or of its end, at a reconfiguration
serve_mpi_conf() {
  [ -d "$spool/node1/conf-cache" ] || return 0
  scontrol reconfigure
  until_true 60 served "$1" || not_ok 'a key in mpi.conf' "$1 of 4 nodes are to have the file; it is in: $(find "$spool"/node*/conf-cache -name mpi.conf | tr '\n' ' ')"
}

# What an admin may put into Slurm's own file.
mpi_conf() {
  local file=$MUSTER_CI_DIR/mpi.conf
  [ ! -e "$file" ] || { skip 'a key in mpi.conf' "there is an mpi.conf"; return; }
  printf '# MusterLogLevel=debug\nPMIxDebug=1 MusterTmpDir=/tmp\n' >"$file"
  serve_mpi_conf 4
  refused 'a key in mpi.conf' 'mpi.conf line 2: key "MusterTmpDir": muster takes no settings'
  rm "$file"
  serve_mpi_conf 0
}

mistakes() {
  mistake '{ "timeouts": { "peer": "soon" } }' 'muster.json line 1: .*peer'
  mistake '{ "timeouts": ' 'muster.json line [12] '
  mistake '{}' 'muster.json: group or others may write it .mode 0664.' 664
  mistake '{}' 'muster.json: belongs to uid 2001, must belong to root' 644 alice
  arities node1 2-4
  if [ "$(id -u)" = 0 ]; then versions; else skip 'another muster on node2' 'needs root'; fi
  tmpdir
  mpi_conf
}
