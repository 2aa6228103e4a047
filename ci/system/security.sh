#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# ci/system/security.sh: what a step's servers may do and what they hold.
# shellcheck disable=SC2154,SC2034  # clients, work and spool are shared with lib.sh
set -uo pipefail
usage() {
  cat <<'TXT'
usage: ci/slurm [OPTION]... -- ci/system/security.sh BUILDDIR

Run as root. Starts a step of the user alice with a poisoned environment and looks at
its muster-servers through /proc: user, groups and capabilities are alice's and no
more; the environment, the directory and the descriptors are the server's own;
slurmstepd and srun have no libpmix loaded. Writes malformed messages to the servers'
sockets, as alice, bob and root: they are refused or dropped with a line in the log, and the
step goes on to its end. Has bob make 5,000 connections to a server of alice, silent, slow and half
closed ones, and root 20,000 half open ones: the server closes each, and her tasks get in. Calls the agent in her srun without its secret, with a
credential of bob, with a cut and a replayed one: none is taken. Poisons the home of alice: nothing of it is
loaded or read. Prints
"ok", "not ok" with the reason and "skip" lines; non-zero status when any failed.
TXT
}
case ${1:-} in -h|--help) usage; exit 0 ;; '') usage >&2; exit 2 ;; esac
# shellcheck source=ci/system/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
find_clients "$1"
spool=$(spool_dir)
if [ "$(id -u)" != 0 ]; then skip security 'needs root'; summary; exit; fi

# field PID NAME: a line of /proc/PID/status without its name
field() { sed -n "s/^$2:[[:space:]]*//p" "/proc/$1/status"; }

# The inodes of a process's sockets and pipes: one that two processes have is shared.
shareable() { find "/proc/$1/fd" -mindepth 1 -printf '%l\n' 2>/dev/null | grep -E '^(socket|pipe):' | sort -u; }

check_identity() {
  local pid=$1 uid gid
  uid=$(id -u alice) gid=$(id -g alice)
  check "server $pid: user ids" "expected $uid four times, found $(field "$pid" Uid)" \
    [ "$(field "$pid" Uid)" = "$uid"$'\t'"$uid"$'\t'"$uid"$'\t'"$uid" ]
  check "server $pid: group ids" "expected $gid four times, found $(field "$pid" Gid)" \
    [ "$(field "$pid" Gid)" = "$gid"$'\t'"$gid"$'\t'"$gid"$'\t'"$gid" ]
  local expected found
  expected=$(id -G alice | tr ' ' '\n' | sort -nu | tr '\n' ' ')
  found=$( { field "$pid" Groups | tr ' ' '\n' | grep .; echo "$gid"; } | sort -nu | tr '\n' ' ')
  check "server $pid: groups" "expected $expected, found $found" [ "$expected" = "$found" ]
  local set
  for set in CapInh CapPrm CapEff CapAmb; do
    check "server $pid: $set" "expected none, found $(field "$pid" $set)" \
      [ "$(field "$pid" $set)" = 0000000000000000 ]
  done
}

check_environment() {
  local pid=$1 foreign
  foreign=$(tr '\0' '\n' <"/proc/$pid/environ" |
    grep -vE '^(PATH|LC_ALL|LANG|HOME|SLURM_CONF|TMPDIR|PMIX_MCA_psec|HWLOC_PLUGINS_BLACKLIST|MUSTER_[A-Z_]*)=' | tr '\n' ' ')
  check "server $pid: environment" "found $foreign" [ -z "$foreign" ]
  check "server $pid: its home is nobody's" "found $(tr '\0' '\n' <"/proc/$pid/environ" | grep ^HOME=)" \
    grep -qzx HOME=/nonexistent "/proc/$pid/environ"
  check "server $pid: nothing of the user's environment" 'found the poison' \
    bash -c "! grep -qa poison /proc/$pid/environ"
  check "server $pid: directory" "expected $(readlink "/proc/$pid/root"), found $(readlink "/proc/$pid/cwd")" \
    [ "$(readlink "/proc/$pid/cwd")" = "$(readlink "/proc/$pid/root")" ]
}

check_descriptors() {
  local pid=$1 foreign shared daemon root
  root=$(readlink "/proc/$pid/root")
  foreign=$(find "/proc/$pid/fd" -mindepth 1 -printf '%l\n' | sed "s|^${root%/}/|/|" |
    grep -vE '^(socket:|pipe:|anon_inode:|/dev/null$|/dev/urandom$|/dev/shm/|/memfd:|/tmp/muster\.)' | tr '\n' ' ')
  check "server $pid: descriptors" "found $foreign" [ -z "$foreign" ]
  # But for the pipe that slurmstepd made for what this server says, and the socket that it listens on.
  shareable "$pid" | grep -vxF -e "$(readlink "/proc/$pid/fd/2")" -e "$(readlink "/proc/$pid/fd/4")" >"$work/server"
  for daemon in $daemons; do
    shared=$(shareable "$daemon" | comm -12 "$work/server" - | tr '\n' ' ')
    [ -z "$shared" ] || not_ok "server $pid: shares nothing" \
      "$shared with $(cat "/proc/$daemon/comm") $daemon"
  done
}

check_task() {
  local shared
  shared=$(shareable "$1" | comm -12 - <(for server in $servers; do shareable "$server"; done | sort -u) | tr '\n' ' ')
  [ -z "$shared" ] || not_ok "task $1: shares nothing" "$shared with a server"
}

# flood PORT: 1000 connections, of which some say nothing, some a byte, and some that nothing more comes. Prints
# "up" when all are under way, and how many the other side has closed within 90 s.
flood() {
  # shellcheck disable=SC2016  # perl's variables
  setpriv --reuid bob --regid "$(id -g bob)" --clear-groups --inh-caps=-all perl -MSocket -MFcntl -e '
    $| = 1;
    $SIG{PIPE} = "IGNORE";
    my @open;
    for my $i (1 .. 1000) {
      socket my $s, PF_INET, SOCK_STREAM, 0 or die "socket: $!\n";
      fcntl $s, F_SETFL, O_NONBLOCK;
      connect $s, sockaddr_in($ARGV[0], INADDR_LOOPBACK);
      syswrite $s, "x" if $i % 3 == 1;
      shutdown $s, 1 if $i % 3 == 2;
      push @open, $s;
    }
    print "up\n";
    my $end = time + 90;
    while (@open && time < $end) {
      my $wanted = "";
      vec($wanted, fileno $_, 1) = 1 for @open;
      select my $ready = $wanted, undef, undef, 1;
      @open = grep { !vec($ready, fileno $_, 1) || !defined sysread($_, my $byte, 1) && $!{EAGAIN} } @open;
      select undef, undef, undef, 0.5;
    }
    print 1000 - @open, " closed\n"' "$1"
}
all_flood() { [ "$(cat "$work"/flood.* | grep -c '^up')" = 5 ]; }

# quiet_net: addresses from which no answer comes, not even that nobody has asked, which would end a half open connection
quiet_net() {
  { ip link add quiet type dummy || ip tuntap add quiet mode tun; } && ip link set quiet up &&
    ip route add 127.9.9.0/24 dev quiet table local && echo 1 >/proc/sys/net/ipv4/conf/quiet/route_localnet
} >/dev/null 2>&1

# half_open PORT: 20,000 connections of which only the first packet comes
half_open() {
  # shellcheck disable=SC2016  # perl's variables
  perl -MSocket -e '
    my $to = inet_aton("127.0.0.1");
    socket my $s, PF_INET, SOCK_RAW, 6 or die "socket: $!\n";
    setsockopt $s, 0, 3, pack "i", 1;   # IP_HDRINCL
    for my $i (1 .. 20000) {
      my $from = pack "C4", 127, 9, 9, 1 + $i % 250;
      my $tcp = pack "nnNNCCnnn", 1024 + $i, $ARGV[0], $i, 0, 0x50, 2, 65535, 0, 0;
      my $sum = unpack "%32n*", pack("a4a4CCn", $from, $to, 0, 6, 20) . $tcp;
      $sum = ($sum & 0xffff) + ($sum >> 16) for 1, 2;
      substr $tcp, 16, 2, pack "n", ~$sum & 0xffff;
      send $s, pack("CCnnnCCna4a4", 0x45, 0, 40, 0, 0, 64, 6, 0, $from, $to) . $tcp, 0, sockaddr_in(0, $to)
        or die "send: $!\n";
    }' "$1"
}
are_half_open() { [ "$(ss -Htn state syn-recv "sport = :$1" | wc -l)" -ge 1000 ]; }

# bob connects to a server of alice, as anybody on the node can, and is shut out. However often he does it, the tasks
# of alice get in, the server holds nothing of his, and the log has a line of it now and then.
check_stranger() {
  local server port status floods=() node_log=$MUSTER_CI_DIR/log/node1.log lines closed=1000
  local mark=$MUSTER_CI_DIR/shared/stranger
  list_leftovers >"$work/before"
  # shellcheck disable=SC2016  # $0 is the inner shell's
  setpriv --reuid alice --regid "$(id -g alice)" --init-groups --inh-caps=-all env HOME=/tmp \
    timeout 300 srun --mpi="$MPI" -N1 -n8 -w node1 bash -c 'touch "$0.up"; until [ -e "$0.go" ]; do sleep 0.1; done; exec "$1"' \
    "$mark" "$clients/start" >"$work/stranger.log" 2>&1 </dev/null &
  step=$!
  if ! until_true 60 [ -e "$mark.up" ]; then
    not_ok 'stranger: start' "$(why "$work/stranger.log" 'not up')"
    return
  fi
  server=$(new_leftovers "$work/before" | sed -n 's/^process muster-server //p' | head -n 1)
  port=$(ss -Hltnp | sed -n "s/.*127\.0\.0\.1:\([0-9]*\) .*pid=$server,.*/\1/p" | head -n 1)
  # shellcheck disable=SC2016
  setpriv --reuid bob --regid "$(id -g bob)" --clear-groups --inh-caps=-all timeout 60 \
    bash -c 'exec 3<>"/dev/tcp/127.0.0.1/$0" && cat <&3' "$port" >"$work/bob" 2>&1
  status=$?
  check 'stranger: is shut out' "port $port of server $server: status $status: $(head -c 200 "$work/bob")" [ $status != 124 ]
  for k in 1 2 3 4 5; do
    flood "$port" >"$work/flood.$k" 2>&1 &
    floods+=($!)
  done
  check 'stranger: floods' "$(cat "$work"/flood.* | head -n 5)" until_true 60 all_flood
  if quiet_net; then
    check 'stranger: half open connections' 'there are none' eval "half_open $port && are_half_open $port"
  else
    skip 'stranger: half open connections' 'no network device can be made'
  fi
  touch "$mark.go"
  wait $step
  status=$?
  check 'stranger: the tasks go on' "$(why "$work/stranger.log" $status)" [ $status = 0 ]
  ip link del quiet 2>/dev/null
  wait "${floods[@]}"
  # On libpmix 7 those that say nothing never get to the server (accept.c): the kernel forgets them with its listener.
  [ "$(pmix_major)" -lt 7 ] || closed=667
  check 'stranger: all that reached the server was closed' "$(cat "$work"/flood.* | tr '\n' ';')" \
    [ "$(awk -v n="$closed" '$2 == "closed" && $1 >= n' "$work"/flood.* | wc -l)" = 5 ]
  check 'stranger: is named in the log' "$(tail -n 3 "$node_log" | tr '\n' ';')" \
    grep -q "not of the job's user was cut" "$node_log"
  check 'stranger: no line on the terminal' "$(grep 'was cut' "$work/stranger.log")" \
    eval "! grep -q 'was cut' '$work/stranger.log'"
  lines=$(grep -c 'a connection to libpmix' "$node_log")
  check 'stranger: does not fill the log' "$lines lines" [ "$lines" -lt 10 ]
}

# tell SOCKET USER PACK VALUE...: USER writes perl's pack(PACK, VALUE...) to SOCKET and shuts it
tell() {
  local socket=$1 user=$2
  shift 2
  # shellcheck disable=SC2016  # perl's variables
  setpriv --reuid "$user" --regid "$(id -g "$user")" --clear-groups --inh-caps=-all perl -MIO::Socket::UNIX -e '
    $SIG{PIPE} = "IGNORE";
    my $s = IO::Socket::UNIX->new(Peer => shift) or die "connect: $!\n";
    my $format = shift;
    syswrite $s, pack($format, @ARGV);
    shutdown $s, 1;
    sysread $s, my $end, 1' "$socket" "$@" 2>&1
}

# dropped WHAT LINE PACK VALUE...: alice's own server drops such a message, and says so in slurmd's log
dropped() {
  local what=$1 line=$2 seen
  shift 2
  seen=$(grep -cE "$line" "$node_log")
  tell "$socket" alice "$@" >/dev/null
  check "message: $what is dropped" "expected /$line/ in slurmd's log" \
    until_true 60 more_lines "$line" "$seen" "$node_log"
}
more_lines() { [ "$(grep -cE "$1" "$3")" -gt "$2" ]; }

# The server of alice's step on node1, at its socket.
check_messages() {
  local uid socket lines node_log=$MUSTER_CI_DIR/log/node1.log wrong='was dropped: slurmd writes another head'
  uid=$(id -u alice)
  socket=$(new_leftovers "$work/before" | sed -n 's/^socket //p' | grep '/node1/muster\.')
  check 'message: bob cannot connect' 'he can' grep -q '^connect: Permission denied' <(tell "$socket" bob N 1)
  # Of root's only the refusal is logged, at debug; the count says that it was not read.
  lines=$(grep -c "$wrong" "$node_log")
  tell "$socket" root n 1
  dropped 'half a header' "$wrong" n 1
  check 'message: root is refused' 'what it wrote was read' [ "$(grep -c "$wrong" "$node_log")" = $((lines + 1)) ]
  dropped 'a header without a length' "$wrong" N "$uid"
  dropped "another user's" "$wrong" NNa4 0 4 abcd
  dropped 'a cut one' "$wrong" NNa4 "$uid" 400 abcd
  dropped 'one with a tail' "$wrong" NNa40 "$uid" 4 abcd
  dropped 'one that says to be oversized' "$wrong" NNa4 "$uid" 4294967295 abcd
  dropped 'a frame that is garbage' 'a cut frame was dropped' NNa40 "$uid" 40 garbage
  dropped 'a frame that is longer than its message' 'a cut frame was dropped' NNNa21 "$uid" 25 4294967295 x
  dropped 'a frame of another step' 'another run of this step, or of another step' NNNNNNNNC "$uid" 25 21 1 2 1 0 1 1
}

# start_at_home WHAT: a step of alice passes, with her home as it is
start_at_home() {
  local status
  setpriv --reuid alice --regid "$(id -g alice)" --init-groups --inh-caps=-all env HOME=/tmp \
    timeout 120 srun --mpi="$MPI" -N4 -n4 "$clients/start" >"$work/home.log" 2>&1 </dev/null
  status=$?
  check "home: a step with $1" "$(why "$work/home.log" $status)" [ $status = 0 ]
}

# The server takes nothing from the user's home: no settings, and no code, which would be outside
# of the job's limits and could outlive the step.
check_home() {
  local home seen=$MUSTER_CI_DIR/shared/seen name
  home=$(getent passwd alice | cut -d: -f6)/.pmix
  if [ -e "$home" ]; then skip 'home' "$home is there already"; return; fi
  mkdir -p "$home/components"
  cat >"$work/home.c" <<'TXT'
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
__attribute__((constructor)) static void loaded(void)
{
    char name[17] = "";
    prctl(PR_GET_NAME, name);
    if (strncmp(name, "muster-server", 13) == 0)
        open(SEEN, O_WRONLY | O_CREAT, 0644);
}
TXT
  for name in pmix_mca_psec_evil mca_psec_evil; do
    cc -shared -fPIC -DSEEN="\"$seen\"" -o "$home/components/$name.so" "$work/home.c" ||
      not_ok "home: $name" 'is not built'
  done
  echo 'psec = nonexistent' >"$home/mca-params.conf"
  start_at_home 'a component and settings there'
  check 'home: the component is not loaded' 'it is' [ ! -e "$seen" ]
  rm "$home/mca-params.conf"
  mkfifo "$home/mca-params.conf"
  start_at_home 'a FIFO for settings there'
  rm -r "$home"
}

# ---- the agent in srun ----

# A point on the curve, which anybody may know: whoever has made it cannot be told from it.
point=046b17d1f2e12c4247f8bce6e563a440f277037d812deb33a0f4a13945d898c296
point+=4fe342e2fe1a7f9b8ee7eb4a7c0f9e162bce33576b315ececbb6406837bf51f5

# What a caller's credential has to hold.
# shellcheck disable=SC2016  # perl's variables
payload() { perl -e 'print pack("N/a*N/a*H*", "muster agent: caller", @ARGV)' "$label" "$point"; }

# credential USER: one that USER makes
credential() {
  payload | setpriv --reuid "$1" --regid "$(id -g "$1")" --clear-groups --inh-caps=-all munge
}

# proof SECRET: that its maker knows SECRET
proof() {
  payload | python3 -c 'import hmac, sys
print(hmac.new(bytes.fromhex(sys.argv[1]), sys.stdin.buffer.read(), "sha256").hexdigest())' "$1"
}

# calls USER SECRET CREDENTIAL [BYTES]: USER says HELLO to the agent, of which only BYTES are sent, and then sends what
# is no spawn. Prints "known" when the agent answers.
calls() {
  # shellcheck disable=SC2016
  timeout 60 setpriv --reuid "$1" --regid "$(id -g "$1")" --clear-groups --inh-caps=-all perl -MSocket -e '
    my ($port, $proof, $point, $credential, $protocol, $cut) = @ARGV;
    $SIG{PIPE} = "IGNORE";
    my $packed = pack("NN/a*", 101, "$credential\0");
    my $body = pack("H64H130NN/a*", $proof, $point, $protocol, $packed);
    my $bytes = pack("NNN/a*", 1, 3, $body);
    socket my $s, PF_INET, SOCK_STREAM, 0 or die;
    connect $s, sockaddr_in($port, INADDR_LOOPBACK) or die "connect: $!\n";
    $bytes = substr $bytes, 0, $cut if $cut;
    $bytes .= pack("NNN/a*", 5, 3, "garbage" x 8) if !$cut;
    syswrite $s, $bytes;
    shutdown $s, 1 if $cut;
    my $n = sysread $s, my $answer, 20;
    print $n ? "known" : "cut";' "$port" "$(proof "$2")" "$point" "$3" "$protocol" "${4:-0}" 2>&1
}

# is WHAT EXPECTED ARGS...: what comes of calls ARGS
is() {
  local what=$1 expected=$2 found
  shift 2
  found=$(calls "$@")
  check "agent: $what" "expected $expected, found $found (port $port of $label)" [ "$found" = "$expected" ]
}

# Whoever connects to the agent in the srun of alice. A credential of hers is good once.
check_agent() {
  local port label secret protocol release task own releases=(22.05 23.02 23.11 24.05 24.11 25.05 25.11 26.05) i
  task=$(pids_of hold | head -n 1)
  IFS=: read -r port label secret < <(tr '\0' '\n' <"/proc/$task/environ" | sed -n 's/^MUSTER_AGENT=//p')
  release=$(srun --version | sed 's/^[^ ]* \([0-9]*\.[0-9]*\).*/\1/')
  for i in "${!releases[@]}"; do [ "${releases[i]}" != "$release" ] || protocol=$(((38 + i) << 8)); done
  if ! command -v munge >/dev/null; then skip "the agent's callers" 'no munge'; return; fi
  is 'bob without the secret' cut bob "${secret//[0-9a-f]/0}" "$(credential bob)"
  check 'agent: that is logged' "$(grep -v HOLD "$work/hold.log" | tail -n 3)" grep -q "not of this step, and was cut off" "$work/hold.log"
  is 'bob with the secret and a credential of his own' cut bob "$secret" "$(credential bob)"
  is 'bob with the secret and what is no credential' cut bob "$secret" MUNGE:AAAA:
  own=$(credential alice)
  is 'a call that is cut' cut alice "$secret" "$own" 40
  is 'alice is known' known alice "$secret" "$own"
  is 'a call that is replayed' cut bob "$secret" "$own"
  check 'agent: nothing was started' "$(squeue -h -s -o %i | tr '\n' ' ')" [ "$(squeue -h -s -o %i | grep -c '\.[1-9]')" = 0 ]
}

# four_of START FILE: four lines, all of which begin so
four_of() { [ "$(wc -l <"$2") $(grep -c "^$1" "$2")" = '4 4' ]; }

check_stranger
check_home
check 'muster-server cannot be read by its users' 'it can' \
  eval "! setpriv --reuid alice --regid alice --init-groups head -c 1 /opt/muster/libexec/muster/muster-server >/dev/null 2>&1"
sleep infinity &
token=$!
list_leftovers >"$work/before"
touch "$work/hold.log"
setpriv --reuid alice --regid "$(id -g alice)" --init-groups --inh-caps=-all \
  env HOME=/tmp USER=alice LOGNAME=alice POISON=poison LD_LIBRARY_PATH=/poison \
  PMIX_MCA_poison=1 \
  srun --mpi="$MPI" -N4 -n8 "$clients/hold" --until $token --seconds 700 >"$work/hold.log" 2>&1 </dev/null &
step=$!
if ! until_true 60 all_hold "$work/hold.log"; then
  not_ok 'start of a step of alice' "$(why "$work/hold.log" 'unknown (not up after 60 s)')"
  kill $step $token
  wait $step
  summary
  exit
fi
servers=$(new_leftovers "$work/before" | sed -n 's/^process muster-server //p')
daemons=$(pids_of slurmd; pids_of slurmstepd; pids_of slurmctld; pids_of munged)
check 'a server on each node' "expected 4, found $(wc -w <<<"$servers")" [ "$(wc -w <<<"$servers")" = 4 ]
for server in $servers; do
  check_identity "$server"
  check_environment "$server"
  check_descriptors "$server"
done
check 'the tasks are there to be looked at' "expected 8, found $(pids_of hold | wc -l)" [ "$(pids_of hold | wc -l)" = 8 ]
for task in $(pids_of hold); do check_task "$task"; done
# slurmd and slurmctld load all mpi plugins, so Slurm's own mpi/pmix brings libpmix into those.
for daemon in slurmstepd srun; do
  for pid in $(pids_of $daemon); do
    check "$daemon $pid: no libpmix" 'it is loaded' bash -c "! grep -q libpmix /proc/$pid/maps"
  done
done
new_leftovers "$work/before" | sed -n 's/^directory //p' | while read -r dir; do stat -c '%U %a %n' "$dir"; done >"$work/dirs"
check 'directories are for alice alone' "found $(tr '\n' ' ' <"$work/dirs")" four_of 'alice 700 ' "$work/dirs"
new_leftovers "$work/before" | sed -n 's/^socket //p' | grep muster | while read -r s; do stat -c '%U %a %n' "$s"; done >"$work/sockets"
check 'sockets are for alice alone' "found $(tr '\n' ' ' <"$work/sockets")" four_of 'alice 600 ' "$work/sockets"
check_messages
check_agent
kill $token
wait $token 2>/dev/null
wait $step
check 'the step goes on to its end' "$(why "$work/hold.log" $?)" grep -q '^PASS hold' "$work/hold.log"
check 'nothing is left' "$(new_leftovers "$work/before" | tr '\n' ';')" until_true 60 nothing_new "$work/before"
summary
