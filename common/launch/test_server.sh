#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Plays muster-server for test_launch.c: what it does is in $HOW.
case $HOW in
  counts) wc -c <&3 >&2 ;;                       # all that it is told, to the end of file
  closes) exec 3>&-; exec sleep 1000 ;;          # and lives on
  home) echo "$HOME" >&2; cat <&3 >/dev/null ;;  # where it is told to be at home
  group) cut -d " " -f 1,5,6 /proc/$$/stat >&2; cat <&3 >/dev/null ;; # its process, group and session
  stuck) exec sleep 1000 ;;                      # whatever it is told
  leaves) cat <&3 >/dev/null; printf '\002' >&3 ;; # as it should
  shows) echo 'a line' >&2; printf '\004\004' >&3 # and takes the answer
    dd bs=12 count=1 <&3 2>/dev/null | od -An -tu1 -w12 >&2; cat <&3 >/dev/null; printf '\002' >&3 ;;
  stays) cat <&3 >/dev/null                      # longer than asked to, and says so
    for _ in 1 2 3 4 5 6 7 8; do printf '\001' >&3; sleep 1; done; echo left >&2 ;;
  *) echo "HOW is '$HOW'" >&2 ;;
esac
