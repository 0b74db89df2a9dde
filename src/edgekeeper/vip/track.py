"""``edgekeeper vip probe``: the track script. One look at the local service, one line that says why, exit 0 or 1; always within 900 ms.

keepalived does not count a script as failed that is still running at its timeout (1 s), so a hung service
would never be failed over: this one is over before, whatever hangs. The start of the interpreter is a part
of those 900 ms and is subtracted.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Sequence

from edgekeeper.host import lean
from edgekeeper.model.text import printable
from edgekeeper.vip import dialogue, question
from edgekeeper.vip.evidence import Sample, Says, heard, verdict
from edgekeeper.vip.look import Target, look

LIMIT_S = 0.86
"""From the process's start to the exit that nothing holds up; the kernel tells the start to a hundredth of a second, and whoever starts us needs a few more."""
LOOK_S = 0.81
"""From the process's start to the look's own end."""
ENOUGH_S = 0.3
"""A look that was left less than this, because the start took so long, cannot tell silence from a busy machine."""

_VALUED = ("--vip", "--dns", "--qname", "--qtype", "--dnsdist-api", "--dnsdist-api-key-file", "--require-backends", "--tcp", "--http", "--peers")
_USAGE = "edgekeeper vip probe --vip NAME (--dns HOST:PORT --qname NAME [--qtype T] | --tcp HOST:PORT | --http URL) [--peers FILE]"


class _UsageError(ValueError):
    """The command line is wrong."""


def main(argv: Sequence[str], age_s: float | None = None) -> int:
    """Judge once: 0 this node may hold the VIP, 1 it may not, 2 the command line is wrong. Ends the process by itself when it is late.

    ``age_s`` says how long ago the process was started, where it was not started for this alone.
    """
    age = lean.age_s() if age_s is None else age_s
    signal.signal(signal.SIGALRM, _late)
    signal.setitimer(signal.ITIMER_REAL, max(0.05, LIMIT_S - age))
    try:
        try:
            vip, target, peers_file = _read(argv)
        except ValueError as err:
            lean.tell(2, f"edgekeeper: {printable(str(err), 400)}; use {_USAGE}")
            return 2
        seconds = max(0.05, LOOK_S - age)
        sample = look(target, seconds)
        if sample.kind == "silent" and seconds < ENOUGH_S:
            sample = Sample("blind", f"this machine took {age:.2f} s to start the probe; {sample.why}")
        peers = _peers(peers_file, vip) if peers_file and sample.kind in ("members", "silent", "dead") else ()
        fails, why = verdict(sample, peers, target.require)
        lean.tell(1, printable(f"{vip}: {'FAIL' if fails else 'ok'} ({sample.kind}): {why}", 1000))
        return int(fails)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)


def _late(*_: object) -> None:
    lean.tell(1, f"FAIL (late): no verdict within {LIMIT_S * 1000:.0f} ms of the start")
    os._exit(1)


def _peers(path: str, vip: str) -> tuple[Says, ...]:
    """What the supervisor last heard of the peers; a file that cannot be read, is torn or hangs says nothing."""
    import json  # noqa: PLC0415 - 3 ms of a start, where something is wrong only

    try:
        return heard(json.loads(lean.within(f"read {path}", lambda: lean.read(path), 0.03)), vip, time.monotonic())
    except (OSError, ValueError, RecursionError):
        return ()


def _read(argv: Sequence[str]) -> tuple[str, Target, str]:
    """VIP, target and peers file of a command line; ValueError when it is wrong."""
    said: dict[str, str] = {}
    words = list(argv)
    while words:
        name, equals, value = words.pop(0).partition("=")
        if name not in _VALUED or name in said or not (equals or words):
            msg = f"{name} is unknown, given twice, or lacks its value"
            raise _UsageError(msg)
        said[name] = value if equals else words.pop(0)
    kinds = [kind for kind in ("dns", "tcp", "http") if f"--{kind}" in said]
    if len(kinds) != 1 or not said.get("--vip"):
        msg = "give --vip and exactly one of --dns, --tcp, --http"
        raise _UsageError(msg)
    return said["--vip"], _target(kinds[0], said), said.get("--peers", "")


def _target(kind: str, said: dict[str, str]) -> Target:
    asked = said[f"--{kind}"]
    if kind == "http":
        return Target(kind, dialogue.url(asked).address, url=asked)
    dialogue.split(asked)
    if kind == "tcp":
        return Target(kind, asked)
    name, qtype, require = said.get("--qname", ""), said.get("--qtype", "A"), said.get("--require-backends", "0")
    api, key = said.get("--dnsdist-api", ""), said.get("--dnsdist-api-key-file", "")
    if not name:
        msg = "--dns needs --qname"
        raise _UsageError(msg)
    question.section(name, qtype)
    if not (require.isascii() and require.isdigit() and len(require) < 6):
        msg = f"--require-backends is {require!r}, which is no number"
        raise _UsageError(msg)
    if bool(api) != bool(key) or (int(require) and not api):
        msg = "--dnsdist-api and --dnsdist-api-key-file go together, and --require-backends needs them"
        raise _UsageError(msg)
    if api:
        dialogue.url(api)
    return Target(kind, asked, name, qtype, api, key, int(require))
