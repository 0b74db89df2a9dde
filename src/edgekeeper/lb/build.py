"""Which HAProxy is installed, and the pair of engine and hands that speaks to it."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from edgekeeper.config.lb import Lb
from edgekeeper.engines.haproxy.engine import HaproxyEngine
from edgekeeper.engines.haproxy.features import Features, parse
from edgekeeper.engines.haproxy.hands import HaproxyHands
from edgekeeper.errors import MissingError
from edgekeeper.host.files import write_text
from edgekeeper.host.process import run

DEADLINE_S = 10.0
CHECK_DEADLINE_S = 20.0


@dataclass(frozen=True, slots=True)
class Build:
    """A HAProxy: what it can do, what it knows, and how it is touched."""

    features: Features
    engine: HaproxyEngine
    hands: HaproxyHands


async def detect(lb: Lb, run_dir: Path) -> Build:
    """Ask the program for its version; MissingError when it is not there or not HAProxy. Its sockets will lie in ``run_dir``."""
    found = shutil.which(lb.engine.binary)
    if found is None:
        msg = f"{lb.engine.binary} is not installed here; install HAProxy (apt-get install haproxy), or name it in lb.engine.binary"
        raise MissingError(msg)
    done = await run([found, "-vv"], DEADLINE_S)
    features = parse(done.output)
    return Build(features, HaproxyEngine(features, found), HaproxyHands(features, str(run_dir)))


async def ask(build: Build, files: Mapping[str, str]) -> str | None:
    """Why HAProxy's own validator refuses these files, or None; the folder that they lie in is removed again."""
    with tempfile.TemporaryDirectory(prefix="edgekeeper-check-") as folder:
        for name, text in files.items():
            write_text(Path(folder) / name, text, sync=False)
        done = await run(build.engine.check_argv(folder), CHECK_DEADLINE_S)
    return build.engine.judge(done.code, done.output)
