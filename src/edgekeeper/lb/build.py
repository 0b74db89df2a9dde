"""Which HAProxy is installed, and the pair of engine and hands that speaks to it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from edgekeeper.config.lb import Lb
from edgekeeper.engines.haproxy.engine import HaproxyEngine
from edgekeeper.engines.haproxy.features import Features, parse
from edgekeeper.engines.haproxy.hands import HaproxyHands
from edgekeeper.host.process import installed, run

DEADLINE_S = 10.0


@dataclass(frozen=True, slots=True)
class Build:
    """A HAProxy: what it can do, what it knows, and how it is touched."""

    features: Features
    engine: HaproxyEngine
    hands: HaproxyHands


async def detect(lb: Lb, run_dir: Path) -> Build:
    """Ask the program for its version; MissingError when it is not there or not HAProxy. Its sockets will lie in ``run_dir``."""
    found = installed(lb.engine.binary, "HAProxy", "haproxy", "lb.engine.binary")
    done = await run([found, "-vv"], DEADLINE_S)
    features = parse(done.output)
    return Build(features, HaproxyEngine(features, found), HaproxyHands(features, str(run_dir)))
