"""The baseline of the watch drills: the shell scripts that a user writes around a container that wedges. Pure.

What field reports C and D ran: a follower that restarts on the first line with the fingerprint and then not again for a cooldown
(600 s; later 60 s), and beside it a URL watchdog that restarts after three failed rounds, a minute apart. The follower is written with
care: it follows from now on, and looks whether it was the line that ended the pipe.
"""

from __future__ import annotations

FLOOD = """#!/bin/sh
# Restart a container when its log says so. Arguments: NAME FINGERPRINT COOLDOWN STAMP
say() { echo "$(cut -d ' ' -f 1 /proc/uptime) $*"; }
while :; do
    if docker logs --follow --tail 0 "$1" 2>&1 | grep -q -m1 -F -e "$2"; then
        now=$(date +%s)
        last=$(cat "$4" 2>/dev/null || echo 0)
        if [ $((now - last)) -lt "$3" ]; then
            say "fingerprint seen, restart suppressed: the last was $((now - last)) s ago"
            continue
        fi
        say "fingerprint seen, restarting"
        echo "$now" > "$4"
        docker restart "$1" > /dev/null
    else
        sleep 0.2
    fi
done
"""

URL = """#!/bin/sh
# Restart a container when a URL does not answer for ROUNDS rounds. Arguments: NAME PYTHON URL ROUNDS PERIOD STAMP
say() { echo "$(cut -d ' ' -f 1 /proc/uptime) $*"; }
failed=0
while sleep "$5"; do
    if "$2" -c 'import sys, urllib.request; urllib.request.urlopen(sys.argv[1], timeout=10).read()' "$3" 2> /dev/null; then
        failed=0
        continue
    fi
    failed=$((failed + 1))
    say "round $failed of $4 failed"
    if [ "$failed" -ge "$4" ]; then
        say "restarting"
        date +%s > "$6"
        docker restart "$1" > /dev/null
        failed=0
    fi
done
"""

COOLDOWN_S = 600
LATER_S = 60
"""The cooldown of the field reports, and what they set it to in the end."""
ROUNDS = 3
PERIOD_S = 60
"""Of the URL watchdog."""
