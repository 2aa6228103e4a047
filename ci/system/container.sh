#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# ci/system/container.sh: clients whose libpmix is of another release than the servers', as in a container.
# shellcheck disable=SC2154  # clients and work are shared with lib.sh
set -uo pipefail
usage() {
  cat <<'TXT'
usage: ci/slurm --container NAME [OPTION]... -- ci/system/container.sh BUILDDIR [NAME]...

Runs clients of BUILDDIR, which is that of the container's root, or those NAMEd, in that root: what docs/limits.md,
"Containers", says is right under each release of libpmix, and groups, which are not. Prints "ok" and "not ok" lines; non-zero status when any failed.
TXT
}
case ${1:-} in -h|--help) usage; exit 0 ;; '') usage >&2; exit 2 ;; esac
# shellcheck source=ci/system/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
find_clients "$1"
shift
# in_container NAME: the client NAME; sets $log
in_container() {
  log=$work/$1.log
  timeout 120 srun --mpi=muster -N2 -n4 chroot "$MUSTER_CI_DIR/container" "$clients/$1" --seconds 100 >"$log" 2>&1 </dev/null
}
# The page's table says how groups fail; where they do not, the page is to be changed.
groups_fail() {
  in_container groups
  check 'groups in a container fail as docs/limits.md says' "status $?; $(tail -n 3 "$log" | tr '\n' ';')" \
    grep -qE 'context id 1: expected once|construct of "groups.0": .* found PMIX_ERR_(BAD_PARAM|NOMEM)' "$log"
}
[ $# -gt 0 ] || set -- exchange modex barrier connect mpi_ring groups
for name in "$@"; do
  case $name in
    groups) groups_fail ;;
    *) in_container "$name"; judge "$name in a container" "$name" $? "$log" ;;
  esac
done
summary
