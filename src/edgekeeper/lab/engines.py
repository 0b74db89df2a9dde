"""Which dnsdist a drill runs on: the host's own, or one of the prefixes that ``script/engines`` unpacks."""

from __future__ import annotations

import asyncio
import os
import re
import shutil
from dataclasses import dataclass
from pathlib import Path

from edgekeeper.errors import MissingError, UsageError

SUITES = ("debian12", "debian13", "testing")
HOST = "host"


@dataclass(frozen=True, slots=True)
class EngineAt:
    """One dnsdist: where it comes from, its path, its version as text and as numbers."""

    suite: str
    binary: str
    version: str
    numbers: tuple[int, ...]


def prefix() -> Path:
    """The folder of the prefixes: ``EDGEKEEPER_ENGINES``, else ``~/.cache/edgekeeper/engines``."""
    said = os.environ.get("EDGEKEEPER_ENGINES")
    return Path(said) if said else Path.home() / ".cache" / "edgekeeper" / "engines"


async def find(suite: str) -> EngineAt:
    """The engine of a suite, ``host`` being the one on PATH; MissingError names what installs it."""
    if suite == HOST:
        found = shutil.which("dnsdist")
        if found is None:
            msg = "dnsdist is not installed; run script/engines and choose one with --engines testing, or apt-get install dnsdist"
            raise MissingError(msg)
    elif suite in SUITES:
        path = prefix() / suite / "bin" / "dnsdist"
        if not path.exists():
            msg = f"there is no dnsdist of {suite} in {prefix()}; run script/engines {suite}"
            raise MissingError(msg)
        found = str(path)
    else:
        msg = f"{suite!r} is not an engine; choose {', '.join(SUITES)} or {HOST}"
        raise UsageError(msg)
    text = await _version(found)
    match = re.search(r"dnsdist (\d+(?:\.\d+)+)", text)
    if match is None:
        msg = f"{found} does not say its version; choose another with --engines"
        raise MissingError(msg)
    return EngineAt(suite, found, match[1], tuple(int(n) for n in match[1].split(".")))


async def default() -> str:
    """The engine when none is chosen: the newest prefix there is, else the host's."""
    for suite in reversed(SUITES):
        if (prefix() / suite / "bin" / "dnsdist").exists():
            return suite
    return HOST


async def _version(binary: str) -> str:
    process = await asyncio.create_subprocess_exec(
        binary, "--version", stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT
    )
    out, _ = await asyncio.wait_for(process.communicate(), 10.0)
    return out.decode(errors="replace")
