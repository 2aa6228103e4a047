#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# ci/system/one_build.sh: one build of the plugin under this Slurm, and under its next micro release.
# shellcheck disable=SC2154  # clients and work are shared with lib.sh
set -uo pipefail
usage() {
  cat <<'TXT'
usage: ci/slurm --root NAME -N 2 --plugin-of native --own-slurm -- ci/system/one_build.sh BUILDDIR NATIVE-BUILDDIR

Run as root. mpi_muster.so and rm_slurm.so are to be the very files of the machine's own build, whatever
the root. A group program runs with them. While a step holds, each file of Slurm's but mpi_pmi2.so gets the version
of the next micro release, as by an upgrade, and the daemons are restarted. New steps are to start, that under pmi2 is
not, and the held one is to end well. BETWEEN=1 leaves the upgrade out. Prints "ok", "not ok" with the reason and "skip" lines; non-zero status
when any failed.
TXT
}
case ${1:-} in -h|--help) usage; exit 0 ;; '') usage >&2; exit 2 ;; esac
# shellcheck source=ci/system/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
# shellcheck source=ci/system/upgrade_lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/upgrade_lib.sh"
find_clients "$1"
[ "$(id -u)" = 0 ] || { skip one_build 'needs root'; summary; exit; }
native=${2:-$1}
plugins=$(scontrol show config | sed -n 's/^PluginDir *= \([^:]*\).*/\1/p')

# same FILE: the installed one is that of the machine's own build
same() {
  local here there
  here=$(sha256sum <"/opt/muster/$1") there=$(sha256sum <"$native/stage/opt/muster/$1")
  echo "sha256 ${here%% *} $1"
  check "$1 is that of the machine's own build" "its sha256 is ${there%% *} there" [ "$here" = "$there" ]
}

# ---- another micro release ----

# Slurm's version as its plugins have it: SLURM_VERSION_NUMBER
slurm_version() {
  local year month micro
  IFS=. read -r year month micro < <(srun --version | sed 's/^[^0-9]*//; s/[-~].*//')
  echo $((10#$year << 16 | 10#$month << 8 | 10#$micro))
}

# in_memory VERSION: its four bytes, as sed has them
in_memory() { printf '\\x%02x\\x%02x\\x%02x\\x00' $(($1 & 255)) $(($1 >> 8 & 255)) $(($1 >> 16 & 255)); }

# A file of Slurm's as its next micro release would have it, put in the old one's place by renaming.
upgrade_micro() {
  local file from to
  from=$(in_memory "$1") to=$(in_memory $(($1 + 1)))
  for file in "$plugins"/*.so; do
    case $file in */mpi_pmi2.so) continue ;; esac
    [ ! -L "$file" ] || continue
    LC_ALL=C sed "s/$from/$to/g" "$file" >"$file.new" || return
    mv "$file.new" "$file" || return
  done
}

# ---- the test ----

same lib/slurm/mpi_muster.so
same lib/muster/rm_slurm.so
group_step 'as installed'
[ -z "${BETWEEN:-}" ] || { summary; exit; }
check 'a step under pmi2' "$(cat "$work/under.log" 2>/dev/null)" step_under pmi2

begin_held
check 'Slurm gets another version' 'its files cannot be changed' upgrade_micro "$(slurm_version)"
restart_daemons
check 'after the upgrade of Slurm steps start' "$(tail -n 3 "$work/under.log")" until_true 60 step_under none
check 'Slurm refuses plugins of its former version' 'a step under pmi2 has started' eval '! step_under pmi2'
grep -i version "$work/under.log"
check 'muster is listed' "$(srun --mpi=list 2>&1)" is_listed
group_step 'after the upgrade of Slurm'
held_ends
summary
