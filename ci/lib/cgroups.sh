# shellcheck shell=bash disable=SC2154  # cgroup is that of who sources it
# SPDX-License-Identifier: BSD-3-Clause
# ci/lib/cgroups.sh: cgroups of a cluster's own, in the hierarchies of version $cgroup that this
# machine has mounted. To be sourced.
#
# The cluster is in a cgroup NAME of each hierarchy and in a cgroup namespace whose root that is. So
# what it mounts shows no other cgroups, and nodes of the same name of two clusters do not meet.
#
# Slurm's plugin for version 2 looks whether its processes are in any hierarchy of version 1, which
# no namespace can hide: ci/lib/unified.c does. Controllers are of one version only, so it has those
# that no hierarchy of version 1 has taken.

# cgroups_list: of each hierarchy its controllers, and the directory of the cgroup we are in
cgroups_list() {
  local controllers path where
  while IFS=: read -r _ controllers path; do
    if [ "$cgroup" = 2 ]; then
      [ -z "$controllers" ] || continue
      where=$(awk '$3 == "cgroup2" { print $2; exit }' /proc/mounts)
    else
      case $controllers in ''|name=*) continue ;; esac
      where=$(awk -v c="$controllers" \
        '$3 == "cgroup" && index("," $4 ",", "," c ",") { print $2; exit }' /proc/mounts)
    fi
    [ -z "$where" ] || echo "${controllers:-2} $where${path%/}"
  done </proc/self/cgroup
}

# cgroups_missing: says why there cannot be any, and nothing when there can
cgroups_missing() {
  local controller list
  list=$(cgroups_list)
  if [ "$(id -u)" != 0 ]; then echo 'cgroups need root'; return; fi
  if [ "$cgroup" = 2 ]; then
    [ -n "$list" ] || echo 'this machine has mounted no cgroup hierarchy of version 2'
    return
  fi
  for controller in freezer cpuset memory; do
    grep -qE "^([^ ]*,)?${controller}[ ,]" <<<"$list" ||
      { echo "this machine has mounted no cgroup hierarchy of $controller of version 1"; return; }
  done
}

# cgroups_enter NAME: this shell and what it starts from now on are in new cgroups
cgroups_enter() {
  local path file
  while read -r _ path; do
    mkdir -p "$path/$1" || return
    # A new cpuset has no processors, and then takes no process.
    for file in cpuset.cpus cpuset.mems; do
      [ "$cgroup" = 2 ] || [ ! -e "$path/$file" ] || cat "$path/$file" >"$path/$1/$file" || return
    done
    echo "$BASHPID" >"$path/$1/cgroup.procs" || return
  done < <(cgroups_list)
}

# cgroups_mount DIR: at DIR all hierarchies, as the cgroup namespace that we are in has them. Of
# version 2 we are in a leaf from now on: what is not may have no processes.
cgroups_mount() {
  local controllers list
  if [ "$cgroup" = 2 ]; then
    mount -n -t cgroup2 muster "$1"
    mkdir "$1/system"
    echo "$BASHPID" >"$1/system/cgroup.procs"
    return
  fi
  list=$(cgroups_list)
  mount -n -t tmpfs -o mode=755 muster "$1"
  while read -r controllers _; do
    mkdir "$1/$controllers"
    mount -n -t cgroup -o "$controllers" muster "$1/$controllers"
  done <<<"$list"
}

# cgroups_remove NAME: what cgroups_enter made, once its processes have ended
cgroups_remove() {
  local path
  while read -r _ path; do
    [ ! -d "$path/$1" ] || find "$path/$1" -depth -type d -exec rmdir {} +
  done < <(cgroups_list)
}
