"""``ports.Engine`` for keepalived: its file, its validator and what that says, what a change costs. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from edgekeeper.engines.keepalived import live, render
from edgekeeper.engines.keepalived.features import Features
from edgekeeper.engines.keepalived.seat import Seat
from edgekeeper.engines.keepalived.topology import Topology
from edgekeeper.model.kept import Keeper, Kept
from edgekeeper.model.text import printable
from edgekeeper.ports import Change, Cost

_SIGNALS = {6: "SIGABRT", 9: "SIGKILL", 11: "SIGSEGV", 15: "SIGTERM"}
_KEPT = Keeper[Topology, Seat](Kept[Topology, Seat])
_PLACE = re.compile(r"^\((?:[^()]*/)?[^()/]*: Line (\d+)\)\s*")
_HARMLESS = re.compile(r"^(NOTICE|Keepalived|Configuration is using|WARNING - default user)|^\s*$")


class KeepalivedEngine:
    """keepalived of one build, VRRP only."""

    name = "keepalived"
    uncertain = Cost.RELOAD

    def __init__(self, features: Features, binary: str = "keepalived") -> None:
        self.features = features
        self.binary = binary

    def files(self, intent: Any, seat: Any) -> Mapping[str, str]:
        """``keepalived.conf``; for 2.2.7 a twin that its check survives."""
        return render.files(intent, seat, self.features)

    def change(self, old: Any, new: Any) -> Change:
        """What getting from ``old`` to ``new`` costs."""
        return live.change(old, new)

    def check_argv(self, folder: str) -> Sequence[str]:
        """keepalived's own check; it looks at the real interfaces. 2.2.7 is given the twin of the file, see ``render.CHECKED``."""
        return (self.binary, "-t", "-f", f"{folder}/{render.CHECKED if self.features.test_kills_itself else render.FILE}")

    def judge(self, code: int, output: str) -> str | None:
        """Why the check refused: it exits 0 over a missing and over an empty file, so what it says counts too (2.2.7 to 2.4.3)."""
        if code < 0:
            return f"keepalived's check died by {_SIGNALS.get(-code, f'signal {-code}')}; the running engine keeps its files"
        said = [line.strip() for line in output.splitlines() if not _HARMLESS.search(line)]
        if code == 0 and not said:
            return None
        told = "; ".join(_tidy(line) for line in said[:3]) or f"it exited {code} and said nothing"
        return f"keepalived's check refused: {printable(told, 400)}"

    def run_argv(self, folder: str, seat: Any) -> Sequence[str]:
        """keepalived in the foreground, logging to its standard output, its dumps and pid files where nobody else has any."""
        argv = [self.binary, "--dont-fork", "--log-console", "--log-detail", f"--use-file={folder}/{render.FILE}"]
        if self.features.says_vrrp:
            argv.append("--vrrp")
        if not isinstance(seat, Seat):
            return argv
        argv += [f"--pid={seat.pid_file('parent')}", f"--vrrp_pid={seat.pid_file('vrrp')}"]
        argv += [f"--checkers_pid={seat.pid_file('checkers')}"] if self.features.lvs else []
        argv += [f"--bfd_pid={seat.pid_file('bfd')}"] if self.features.bfd else []
        return ["env", f"TMPDIR={seat.dumps}", *argv]

    def dump(self, intent: Any, seat: Any) -> str:
        """Intent and seat as JSON."""
        return _KEPT.dump(intent, seat)

    def load(self, text: str) -> tuple[Topology, Seat | None]:
        """The inverse of ``dump``; ValueError when it cannot be read."""
        return _KEPT.load(text)

    def steerable(self, intent: Any) -> Sequence[str]:  # noqa: ARG002 - the port's shape
        """None: two keepalived beside each other would both claim the VIPs."""
        return ()


def _tidy(line: str) -> str:
    """A complaint without the path of a temporary file: its line number stays."""
    place = _PLACE.match(line)
    return f"line {place[1]}: {line[place.end() :]}" if place else line
