# shellcheck shell=bash
# SPDX-License-Identifier: BSD-3-Clause
# ci/lib/private-root.sh: the file system that a cluster sees, made below $root by mounts in
# a mount namespace, with which they go. To be sourced, after the settings of ci/slurm.
# shellcheck disable=SC2154  # these
# mount -n throughout: mount(8) otherwise keeps a table below /run, which is covered.

die() { echo "ci/slurm: $*" >&2; exit 125; }

# What is seen at the same path as outside.
keep=("$top" "$dir")
[ "$cwd" = / ] || keep+=("$cwd")

# cover PATH MODE [KEPT]...: an empty tmpfs over PATH, in which those of the kept paths that lie
# below it are still there. A kept PATH is left as it is.
cover() {
  local at=$1 mode=$2 path
  shift 2
  for path in "$@"; do [ "$path" != "$at" ] || return 0; done
  mount -n -t tmpfs -o "mode=$mode" muster "$dir/mnt"
  for path in "$@"; do
    case $path in "$at"/*) ;; *) continue ;; esac
    mkdir -p "$dir/mnt${path#"$at"}"
    # The cluster's directory has the new tmpfs below it and nothing else: not recursive.
    if [ "$path" = "$dir" ]; then mount -n --bind "$path" "$dir/mnt${path#"$at"}"
    else mount -n --rbind "$path" "$dir/mnt${path#"$at"}"; fi
  done
  mount -n --move "$dir/mnt" "$root$at"
}

# let_pass PATH: ordinary users can come to the kept PATH, though it be in a home that is its owner's alone. They see
# nothing else there.
let_pass() {
  local path=$1 at i
  for ((i = 1; i < ${#path}; i++)); do
    at=${path:0:i}
    if [ "${path:i:1}" = / ] && [ -n "$(find "$root$at" -maxdepth 0 ! -perm -o=x 2>/dev/null)" ]; then
      cover "$at" 755 "${keep[@]}"
      return
    fi
  done
}

# A clone that was made with umask 077 is its owner's alone, too: the cluster sees a copy, which nobody can change, and
# of build/ what is in it.
let_read() {
  local path
  [ -n "$(find "$top" "$top/ci" "$top/ci/test" "$top/build" -maxdepth 0 ! -perm -o=rx)" ] || return 0
  mkdir "$dir/tree"
  mount -n --bind "$top" "$dir/tree"
  mount -n -t tmpfs -o mode=755 muster "$root$top"
  tar -C "$dir/tree" --exclude ./build --exclude ./.git --format posix -c . | tar -C "$root$top" -x
  chmod -R go+rX "$root$top"
  mkdir "$root$top/build"
  for path in "$dir/tree/build"/*; do
    if [ -d "$path" ]; then mkdir "$root$top/build/${path##*/}"; else : >"$root$top/build/${path##*/}"; fi
    mount -n --bind "$path" "$root$top/build/${path##*/}"
  done
  mount -n -o remount,bind,ro "$root$top"
}

# What each node has of its own.
cover_node() {
  cover /tmp 1777 "${keep[@]}"
  cover /dev/shm 1777 "${keep[@]}"
}

# accounts FILE LINE...: FILE with LINEs, which win over those of the same name or number.
accounts() {
  local file=$1
  shift
  printf '%s\n' "$@" | awk -F: 'NR == FNR { name[$1]; id[$3]; own[NR] = $0; n = NR; next }
    !($1 in name) && !($3 in id)
    END { for (i = 1; i <= n; i++) print own[i] }' - "$root/etc/$file" >"$dir/$file"
  mount -n --bind "$dir/$file" "$root/etc/$file"
}

make_accounts() {
  local id=2000 k
  [ "$uid" = 0 ] || id=$uid
  accounts passwd "muster:x:$id:$id::$dir/home/muster:/bin/bash" \
    "alice:x:2001:2001::$dir/home/alice:/bin/bash" "bob:x:2002:2002::$dir/home/bob:/bin/bash"
  accounts group "muster:x:$id:" alice:x:2001: bob:x:2002: ocean:x:3001:alice ice:x:3002:alice
  # Slurm stalls for 10 s at a time on a name that does not resolve.
  {
    echo "127.0.0.1 localhost login"
    for ((k = 1; k <= nodes; k++)); do echo "127.0.0.1 node$k"; done
  } >"$dir/hosts"
  [ -e "$root/etc/hosts" ] || : >"$root/etc/hosts"
  mount -n --bind "$dir/hosts" "$root/etc/hosts"
}

make_root() {
  local path system opt
  # There it would hide the root's own, or not be ours to cover.
  for path in "${keep[@]}"; do
    for system in /usr/bin /usr/lib /etc /var/lib /opt /run /dev /proc /sys; do
      case $system/ in "$path"/*) die "cannot run in $path: it holds what the system needs" ;; esac
    done
  done
  if [ -n "$root" ]; then
    for path in /dev /proc /sys; do mount -n --rbind "$path" "$root$path"; done
  fi
  [ -z "$cgroup" ] || cgroups_mount "$root/sys/fs/cgroup"
  if [ -n "$build" ]; then
    # A tmpfs, so as to have the mount point, over what the machine has.
    shopt -s nullglob
    opt=(/opt/*/)
    shopt -u nullglob
    [ -n "$root" ] || cover /opt 755 "${opt[@]}"
    mkdir -p "$dir/muster" "$root/opt/muster"
    mount -n --bind "$dir/muster" "$root/opt/muster"
  fi
  if [ -n "$build" ]; then
    mkdir -p "$top/build/$name" "$top/build/$name${kind:+-$kind}"
    for path in "$top/build/$name" "$top/build/$name${kind:+-$kind}"; do : >>"$path.lock"; done
  fi
  cover /run 755 "${keep[@]}"
  cover_node
  for path in "${keep[@]}"; do
    [ "$uid" != 0 ] || let_pass "$path"
    [ -n "$root" ] || continue
    mkdir -p "$root$path"   # an empty directory stays in the cached root
    mount -n --rbind "$path" "$root$path"
  done
  [ "$uid" != 0 ] || [ -z "$build" ] || let_read
  make_accounts
}
