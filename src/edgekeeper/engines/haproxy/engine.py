"""``ports.Engine`` for HAProxy: its file, its validator and what that says, what a change costs. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from edgekeeper.engines.haproxy import live, render
from edgekeeper.engines.haproxy.features import Features
from edgekeeper.engines.haproxy.seat import Seat
from edgekeeper.engines.haproxy.topology import Topology
from edgekeeper.model.kept import Keeper, Kept
from edgekeeper.model.text import printable
from edgekeeper.ports import Change, Cost

_SIGNALS = {6: "SIGABRT", 9: "SIGKILL", 11: "SIGSEGV", 15: "SIGTERM"}
_ALERT = re.compile(r"^\[(?:ALERT|EMERG)\]\s*(?:\(\d+\)\s*:\s*)?(.*)$", re.MULTILINE)
_SUMMARY = re.compile(r"config : (?:Error\(s\) found|Fatal errors found)|Error\(s\) found in configuration file|Fatal errors found")


_KEPT = Keeper[Topology, Seat](Kept[Topology, Seat])


class HaproxyEngine:
    """HAProxy of one build, in master-worker mode: a reload starts a worker beside the old one and hands it the sockets."""

    name = "HAProxy"
    uncertain = Cost.RELOAD

    def __init__(self, features: Features, binary: str = "haproxy") -> None:
        self.features = features
        self.binary = binary

    def files(self, intent: Any, seat: Any) -> Mapping[str, str]:
        """``haproxy.cfg``."""
        return {render.FILE: render.text(intent, seat, self.features)}

    def change(self, old: Any, new: Any) -> Change:
        """What getting from ``old`` to ``new`` costs."""
        return live.change(old, new)

    def check_argv(self, folder: str) -> Sequence[str]:
        """HAProxy's own check; it opens no listener, and loads certificates and CAs. ``-V`` makes 3.x say that the file is valid."""
        return (self.binary, "-c", "-V", "-f", f"{folder}/{render.FILE}")

    def run_argv(self, folder: str, seat: Any) -> Sequence[str]:
        """HAProxy in the foreground, a master with one worker; the master reads the file again through the link at each reload."""
        socket = ("-S", f"{seat.master},mode,600") if seat is not None else ()
        return (self.binary, "-W", *socket, "-f", f"{folder}/{render.FILE}")

    def judge(self, code: int, output: str) -> str | None:
        """Why the check refused. It exits 0 with warnings, which are no refusal; silence is one."""
        if code < 0:
            return f"HAProxy's check died by {_SIGNALS.get(-code, f'signal {-code}')}; the running engine keeps its files"
        if code == 0:
            if "valid" in output:
                return None
            return "HAProxy's check exited 0 without saying that the configuration is valid; the running engine keeps its files"
        alerts = [line for line in _ALERT.findall(output) if not _SUMMARY.search(line)]
        said = alerts[0] if alerts else next(iter(output.strip().splitlines()[-1:]), "nothing")
        return f"HAProxy's check refused: {printable(said.removeprefix('config : '), 300)}"

    def dump(self, intent: Any, seat: Any) -> str:
        """Intent and seat as JSON."""
        return _KEPT.dump(intent, seat)

    def load(self, text: str) -> tuple[Topology, Seat | None]:
        """The inverse of ``dump``; pydantic's ValidationError is a ValueError."""
        return _KEPT.load(text)

    def steerable(self, intent: Any) -> Sequence[str]:  # noqa: ARG002 - the port's shape
        """None: HAProxy speaks TCP, and shares its listeners with a process beside it by itself."""
        return ()
