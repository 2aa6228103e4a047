#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# ci/system/package.sh: Debian packages from their installation to their end, on a Slurm as packaged.
# shellcheck disable=SC2154  # work is shared with lib.sh
set -uo pipefail
usage() {
  cat <<'TXT'
usage: ci/system/package.sh ROOT

Run as root, outside of ci/slurm. Builds this tree's packages by ci/package, also as version 0.1.9. In a layer over the
Debian root ROOT (native, trixie, forky), in which muster is not: installs 0.1.9, boots a private cluster, runs a group
program, upgrades to this version while a step holds, runs it again, removes and purges. The clients are those of
build/ROOT. Prints "ok", "not ok" with the reason and "skip" lines; non-zero status when any failed.
TXT
}
case ${1:-} in -h|--help) usage; exit 0 ;; '') usage >&2; exit 2 ;; esac
top=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd -P)
cd "$top" || exit 2

# ---- outside: the layer ----

if [ "$1" != inside ]; then
  [ "$(id -u)" = 0 ] || { echo 'skip package: needs root'; echo '0 passed, 0 failed, 1 skipped'; exit 0; }
  mkdir -p build
  ci/package --root "$1" --fast --before 0.1.9 >build/package.out 2>&1 || { tail -n 30 build/package.out; exit 1; }
  root=$(ci/root "$1")
  dir=$(mktemp -d /tmp/muster-package.XXXXXX)
  trap 'rm -rf "$dir"' EXIT
  # shellcheck disable=SC2016  # for the shell in the namespace
  unshare --mount --pid --fork --kill-child --mount-proc "$BASH" -ec '
    mount -n -t tmpfs muster "$1"
    mkdir "$1"/{upper,work,root}
    mount -n -t overlay -o "lowerdir=$2,upperdir=$1/upper,workdir=$1/work" muster "$1/root"
    [ -e "$1/root/usr/sbin/policy-rc.d" ] || printf "#!/bin/sh\nexit 101\n" >"$1/root/usr/sbin/policy-rc.d"
    chmod 755 "$1/root/usr/sbin/policy-rc.d"
    exec ci/slurm --no-build --root "$1/root" -N 2 -- ci/system/package.sh inside "$3"' layer "$dir" "$root" "$1"
  exit
fi

# ---- inside: a cluster whose Slurm has no muster yet ----

# shellcheck source=ci/system/lib.sh
. ci/system/lib.sh
# shellcheck source=ci/system/upgrade_lib.sh
. ci/system/upgrade_lib.sh
find_clients "build/$2"
debs=$top/build/package/$2
export DEBIAN_FRONTEND=noninteractive

# What the packages could leave; dpkg's own lists and logs change with every package, and /var/tmp is anybody's.
list_files() { find /usr /etc /opt /var -xdev ! -path '/var/lib/dpkg*' ! -path '/var/log/*' ! -path '/var/cache/*' ! -path '/var/tmp/*' | sort; }

# apply WHAT COMMAND...: dpkg does COMMAND; what it says is in $work/dpkg
apply() {
  local what=$1
  shift
  "$@" >"$work/dpkg" 2>&1 </dev/null
  local status=$?
  check "$what" "$(tail -n 3 "$work/dpkg" | tr '\n' ';')" [ $status = 0 ]
}

says() { check "dpkg says: $1" "$(tail -n 5 "$work/dpkg" | tr '\n' ';')" grep -qF -- "$1" "$work/dpkg"; }

list_files >"$work/before"
check 'muster is not there yet' "$(srun --mpi=list 2>&1)" eval '! is_listed'
apply 'install 0.1.9' dpkg -i "$debs"/before/muster{,-slurm}_*.deb
says 'restart slurmctld'
check 'Slurm alone has no file of Flux' "$(dpkg -L muster muster-slurm | grep -v /doc/ | grep -i flux)" \
  eval "! dpkg -L muster muster-slurm | grep -v /doc/ | grep -i flux | grep -qv standin"
for file in /usr/share/doc/muster/copyright /usr/share/doc/muster/docs/muster.json.example /usr/share/man/man7/muster.7.gz \
  /usr/share/doc/muster/docs/limits-admin.md.gz; do
  check "$file is there" 'it is not' [ -e "$file" -o -e "${file%.gz}" ]
done
restart_daemons
check 'steps start again' "$(tail -n 3 "$work/under.log" 2>/dev/null)" until_true 60 step_under none
check 'muster is listed' "$(srun --mpi=list 2>&1)" is_listed
group_step 'as installed'

begin_held
apply 'upgrade' dpkg -i "$debs"/muster{,-slurm}_*.deb
says 'steps that run are not disturbed'
new=$(sed -n "s/^ *version: '\(.*\)',/\1/p" meson.build)
check 'the new version is there' "$(muster-status --version)" [ "$(muster-status --version)" = "muster-status $new" ]
group_step 'after the upgrade'
held_ends
apply 'install muster-flux and muster-dev, too' dpkg -i "$debs"/muster-{flux,dev}_*.deb

mkdir -p /etc/muster /etc/slurm
echo '{}' >/etc/muster/muster.json
[ -e /etc/slurm/slurm.conf ] || { echo 'MpiDefault=muster' >/etc/slurm/slurm.conf; made=1; }
apply 'remove' dpkg --remove muster-flux muster-dev muster-slurm muster
[ -z "${made:-}" ] || says 'MpiDefault is muster'
[ -z "${made:-}" ] || rm /etc/slurm/slurm.conf
check 'the settings are there until the purge' 'they are not' [ -e /etc/muster/muster.json ]
check 'muster is not listed' "$(srun --mpi=list 2>&1)" eval '! is_listed'
check 'steps without muster start' "$(tail -n 3 "$work/under.log")" step_under none
apply 'purge' dpkg --purge muster-flux muster-dev muster-slurm muster
rmdir /etc/slurm 2>/dev/null
list_files | comm -13 "$work/before" - >"$work/left"
check 'nothing is left' "$(head -n 5 "$work/left" | tr '\n' ';')" [ ! -s "$work/left" ]
summary
