# shellcheck shell=bash disable=SC2034  # spent is for who sources it
# SPDX-License-Identifier: BSD-3-Clause
# ci/lib/spend.sh: processor time. To be sourced.

# spend: what the children of this shell that have ended have had of a processor's time, in seconds: sets $spent.
spend() {
  local file children
  file=$(mktemp)
  times >"$file"   # in this shell: a subshell has had none
  { read -r _ && read -r children; } <"$file"
  rm "$file"
  spent=$(awk -F'[ms ]+' '{ printf "%d", $1 * 60 + $2 + $3 * 60 + $4 }' <<<"$children")
}
