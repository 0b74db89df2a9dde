"""Which engine a drill runs on: the host's own, or one of the prefixes that ``script/engines`` unpacks; Kubernetes comes from ``script/kube-assets``."""

from __future__ import annotations

import asyncio
import os
import re
import shutil
from dataclasses import dataclass
from pathlib import Path

from edgekeeper.errors import MissingError, UsageError
from edgekeeper.lab.kube import assets

SUITES = ("debian12", "debian13", "testing")
HOST = "host"
KUBERNETES = "kube-apiserver"


@dataclass(frozen=True, slots=True)
class Program:
    """How an engine is asked for its version, and where the answer has it."""

    option: str
    says: re.Pattern[str]
    package: str = ""
    """Its Debian package, where that has another name."""


PROGRAMS = {
    "dnsdist": Program("--version", re.compile(r"dnsdist (\d+(?:\.\d+)+)")),
    "haproxy": Program("-v", re.compile(r"HAProxy version (\d+(?:\.\d+)+)")),
    "keepalived": Program("--version", re.compile(r"Keepalived v(\d+(?:\.\d+)+)")),
    "dockerd": Program("--version", re.compile(r"Docker version (\d+(?:\.\d+)+)"), "docker.io"),
    KUBERNETES: Program("--version", re.compile(r"Kubernetes v(\d+(?:\.\d+)+)")),
}
"""Engines by the name of their program."""
TITLES = {"dnsdist": "dnsdist", "haproxy": "HAProxy", "keepalived": "keepalived", "dockerd": "Docker", KUBERNETES: "Kubernetes"}
"""Engines as they write themselves."""


@dataclass(frozen=True, slots=True)
class EngineAt:
    """One engine: where it comes from, its path, its version as text and as numbers, and its name."""

    suite: str
    binary: str
    version: str
    numbers: tuple[int, ...]
    name: str = "dnsdist"

    @property
    def title(self) -> str:
        """Its name as it writes itself, with its version."""
        return f"{TITLES[self.name]} {self.version}"


def prefix() -> Path:
    """The folder of the prefixes: ``EDGEKEEPER_ENGINES``, else ``~/.cache/edgekeeper/engines``."""
    said = os.environ.get("EDGEKEEPER_ENGINES")
    return Path(said) if said else Path.home() / ".cache" / "edgekeeper" / "engines"


async def find(suite: str, name: str = "dnsdist") -> EngineAt:
    """The engine of a suite, ``host`` being the one on PATH; MissingError names what installs it. There is one Kubernetes, whatever the suite."""
    if name == KUBERNETES:
        suite, found = "kube", str(assets() / name)
    elif suite == HOST:
        found = shutil.which(name) or ""
        if not found:
            msg = f"{name} is not installed; run script/engines and choose one with --engines testing, or apt-get install {PROGRAMS[name].package or name}"
            raise MissingError(msg)
    elif suite in SUITES:
        path = prefix() / suite / "bin" / name
        if not path.exists():
            msg = f"there is no {name} of {suite} in {prefix()}; run script/engines {suite}"
            raise MissingError(msg)
        found = str(path)
    else:
        msg = f"{suite!r} is not an engine; choose {', '.join(SUITES)} or {HOST}"
        raise UsageError(msg)
    text = await _output(found, PROGRAMS[name].option)
    match = PROGRAMS[name].says.search(text)
    if match is None:
        msg = f"{found} does not say its version; choose another with --engines"
        raise MissingError(msg)
    return EngineAt(suite, found, match[1], tuple(int(n) for n in match[1].split(".")), name)


async def default(name: str = "dnsdist") -> str:
    """The engine when none is chosen: the newest prefix there is, else the host's."""
    for suite in reversed(SUITES):
        if (prefix() / suite / "bin" / name).exists():
            return suite
    return HOST


async def _output(binary: str, option: str) -> str:
    process = await asyncio.create_subprocess_exec(
        binary, option, stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT
    )
    out, _ = await asyncio.wait_for(process.communicate(), 10.0)
    return out.decode(errors="replace")
