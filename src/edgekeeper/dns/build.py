"""Which dnsdist is installed, and the pair of engine and hands that speaks to it."""

from __future__ import annotations

from dataclasses import dataclass

from edgekeeper.config.dns import Dns
from edgekeeper.engines.dnsdist.engine import DnsdistEngine
from edgekeeper.engines.dnsdist.features import Features, parse
from edgekeeper.engines.dnsdist.hands import DnsdistHands
from edgekeeper.host.process import installed, run

DEADLINE_S = 10.0


@dataclass(frozen=True, slots=True)
class Build:
    """A dnsdist: what it can do, what it knows, and how it is touched."""

    features: Features
    engine: DnsdistEngine
    hands: DnsdistHands


async def detect(dns: Dns) -> Build:
    """Ask the program for its version; MissingError when it is not there or not dnsdist."""
    found = installed(dns.engine.binary, "dnsdist", "dnsdist", "dns.engine.binary")
    done = await run([found, "--version"], DEADLINE_S)
    features = parse(done.output)
    return Build(features, DnsdistEngine(features, dns.engine.renderer, found), DnsdistHands(features))
