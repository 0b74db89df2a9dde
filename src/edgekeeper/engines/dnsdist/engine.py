"""``ports.Engine`` for dnsdist: its files, its validator and what that says, what a change costs. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from edgekeeper.engines.dnsdist import live, logline, render
from edgekeeper.engines.dnsdist.features import Features
from edgekeeper.engines.dnsdist.seat import Seat
from edgekeeper.engines.dnsdist.topology import Topology
from edgekeeper.model.kept import Keeper, Kept
from edgekeeper.ports import Change, Cost

_SIGNALS = {6: "SIGABRT", 9: "SIGKILL", 11: "SIGSEGV", 15: "SIGTERM"}
_COMPLAINT = re.compile(r"error|fatal|unable|cannot|could not|failed|invalid|unknown|not supported|too many", re.IGNORECASE)
_ACCEPTED = re.compile(r"Configuration '.*' OK!|Configuration OK")


_KEPT = Keeper[Topology, Seat](Kept[Topology, Seat])


class DnsdistEngine:
    """dnsdist of one build, written by one renderer (yaml, lua, or auto by the build)."""

    name = "dnsdist"
    uncertain = Cost.RESTART

    def __init__(self, features: Features, renderer: str = "auto", binary: str = "dnsdist") -> None:
        self.features = features
        self.renderer = render.choose(renderer, features)
        self.binary = binary

    def files(self, intent: Any, seat: Any) -> Mapping[str, str]:
        """``dnsdist.yml`` with its ``dnsdist.lua``, or ``dnsdist.conf``."""
        return render.files(intent, seat, self.features, self.renderer)

    def change(self, old: Any, new: Any) -> Change:
        """What getting from ``old`` to ``new`` costs."""
        return live.change(old, new)

    def check_argv(self, folder: str) -> Sequence[str]:
        """dnsdist's own check; it opens no socket and needs no right (with eBPF in Lua it needs CAP_BPF)."""
        return (self.binary, "--check-config", "-C", self._main(folder))

    def run_argv(self, folder: str, seat: Any) -> Sequence[str]:  # noqa: ARG002 - its files say all
        """dnsdist in the foreground, logging to its standard output."""
        return (self.binary, "--supervised", "--disable-syslog", "-C", self._main(folder))

    def judge(self, code: int, output: str) -> str | None:
        """Why the check refused. It exits 0 over some errors that it logs itself (an unknown protocol, say), so those count."""
        if code < 0:
            return f"dnsdist's check died by {_SIGNALS.get(-code, f'signal {-code}')}; the running engine keeps its files"
        if not output.strip():
            return f"dnsdist's check said nothing and exited {code}; the running engine keeps its files"
        complaint = _complaint(output)
        if code == 0 and complaint is None:
            if _ACCEPTED.search(output):
                return None
            return "dnsdist's check exited 0 without saying that the configuration is OK; the running engine keeps its files"
        return f"dnsdist's check refused: {logline.tidy(complaint or output.strip().splitlines()[-1])}"

    def dump(self, intent: Any, seat: Any) -> str:
        """Intent and seat as JSON; it holds secrets, so it belongs beside the files with their mode."""
        return _KEPT.dump(intent, seat)

    def load(self, text: str) -> tuple[Topology, Seat | None]:
        """The inverse of ``dump``; pydantic's ValidationError is a ValueError."""
        return _KEPT.load(text)

    def steerable(self, intent: Any) -> Sequence[str]:
        """The plain DNS addresses; DoQ and DoH3 keep their state in the process and cannot be shared."""
        return tuple(listener.address for listener in intent.listeners if listener.protocol == "do53")

    def _main(self, folder: str) -> str:
        return f"{folder}/{render.main_file(self.features, self.renderer)}"


def _complaint(output: str) -> str | None:
    """The first line that is an error, or None."""
    for line in output.splitlines():
        fields = logline.parse_log(line)
        if "prio" in fields:
            if fields["prio"] in ("Error", "Critical", "Alert", "Emergency"):
                return ": ".join(fields[key] for key in ("msg", "error") if fields.get(key))
        elif _COMPLAINT.search(line) and not _ACCEPTED.search(line):
            return line
    return None
