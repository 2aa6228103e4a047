#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# ci/system/container.sh: clients whose libpmix is of another release than the servers', as in a container.
# shellcheck disable=SC2154  # clients and work are shared with lib.sh
set -uo pipefail
usage() {
  cat <<'TXT'
usage: ci/slurm --container NAME [OPTION]... -- ci/system/container.sh BUILDDIR [NAME]...

Runs clients of BUILDDIR, which is that of the container's root, or those NAMEd, in that root: what docs/limits.md,
"Containers", says is right under each release of libpmix. Prints "ok" and "not ok" lines; non-zero status when any failed.
TXT
}
case ${1:-} in -h|--help) usage; exit 0 ;; '') usage >&2; exit 2 ;; esac
# shellcheck source=ci/system/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
find_clients "$1"
shift
[ $# -gt 0 ] || set -- exchange modex barrier connect mpi_ring
for name in "$@"; do
  timeout 120 srun --mpi=muster -N2 -n4 chroot "$MUSTER_CI_DIR/container" "$clients/$name" --seconds 100 \
    >"$work/$name.log" 2>&1 </dev/null
  judge "$name in a container" "$name" $? "$work/$name.log"
done
summary
