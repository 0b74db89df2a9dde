"""Which dnsdist is installed, and the pair of engine and hands that speaks to it."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from edgekeeper.config.dns import Dns
from edgekeeper.engines.dnsdist.engine import DnsdistEngine
from edgekeeper.engines.dnsdist.features import Features, parse
from edgekeeper.engines.dnsdist.hands import DnsdistHands
from edgekeeper.errors import MissingError
from edgekeeper.host.files import write_text
from edgekeeper.host.process import run

DEADLINE_S = 10.0
CHECK_DEADLINE_S = 20.0


@dataclass(frozen=True, slots=True)
class Build:
    """A dnsdist: what it can do, what it knows, and how it is touched."""

    features: Features
    engine: DnsdistEngine
    hands: DnsdistHands


async def detect(dns: Dns) -> Build:
    """Ask the program for its version; MissingError when it is not there or not dnsdist."""
    binary = dns.engine.binary
    found = shutil.which(binary)
    if found is None:
        msg = f"{binary} is not installed here; install dnsdist (apt-get install dnsdist), or name it in dns.engine.binary"
        raise MissingError(msg)
    done = await run([found, "--version"], DEADLINE_S)
    features = parse(done.output)
    return Build(features, DnsdistEngine(features, dns.engine.renderer, found), DnsdistHands(features))


async def ask(build: Build, files: Mapping[str, str]) -> str | None:
    """Why dnsdist's own validator refuses these files, or None; the folder that they lie in is removed again."""
    with tempfile.TemporaryDirectory(prefix="edgekeeper-check-") as folder:
        for name, text in files.items():
            write_text(Path(folder) / name, text, sync=False)
        done = await run(build.engine.check_argv(folder), CHECK_DEADLINE_S)
    return build.engine.judge(done.code, done.output)
