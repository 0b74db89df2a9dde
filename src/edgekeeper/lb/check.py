"""The lb section of a config, rendered with stand-ins for what is not known here, and judged by the installed HAProxy.

Nothing outside a temporary folder is written and nothing is sent to the network.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

from edgekeeper.config.root import Root
from edgekeeper.engines.haproxy import seat as haproxy_seat
from edgekeeper.engines.haproxy.topology import build as build_topology
from edgekeeper.errors import MissingError
from edgekeeper.lb.build import detect
from edgekeeper.lb.desired import advice
from edgekeeper.membership.standin import addressed, members
from edgekeeper.model.verdict import EngineVerdict
from edgekeeper.supervise.ask import refusal_of


async def verdict(root: Root, node: str) -> EngineVerdict:  # noqa: ARG001 - every role is asked alike
    """Render the lb role and ask HAProxy. MissingError when it is not installed."""
    lb = root.lb
    assert lb is not None  # noqa: S101 - the command has checked it
    doubts: list[str] = []
    with tempfile.TemporaryDirectory(prefix="edgekeeper-check-") as folder:
        try:
            build = await detect(lb, Path(folder))
        except MissingError as err:
            msg = f"{err}; the config is valid, what HAProxy says of it is not known"
            raise MissingError(msg) from err
        found = {}
        for number, service in enumerate(lb.services):
            read = await members(service.members, f"lb.services[{number}].members", doubts, service.default_port)
            found[service.name] = addressed(read)
        topology = build_topology(lb, found, {})
        refusal = await refusal_of(build.engine, build.engine.files(topology, haproxy_seat.make(folder, "check")))
    return EngineVerdict(f"HAProxy {build.features.text}", refusal, advice(topology.services), tuple(doubts))
