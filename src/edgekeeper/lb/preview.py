"""What would be run: rendered from the config and the sources as they are now, and judged by the real engine."""

from __future__ import annotations

import contextlib
import tempfile
from pathlib import Path

from edgekeeper.config.root import Root
from edgekeeper.engines.haproxy import seat
from edgekeeper.engines.haproxy.topology import build
from edgekeeper.host.clock import SystemClock
from edgekeeper.lb.build import detect
from edgekeeper.lb.desired import advice
from edgekeeper.lb.measure import Patiences
from edgekeeper.membership.resolve import resolved
from edgekeeper.membership.sources import source_of
from edgekeeper.model.preview import Preview
from edgekeeper.supervise.ask import refusal_of


async def preview(root: Root, *, ask: bool) -> Preview:
    """Render; with ``ask``, have HAProxy judge the file in a folder that is removed again."""
    assert root.lb is not None  # noqa: S101 - the command has checked it
    lb, clock = root.lb, SystemClock()
    notes: tuple[str, ...] = ()
    members = {}
    for service in lb.services:
        source = source_of(service.members, clock, service.default_port, slice_port=service.slice_port, cluster=root.kubernetes)
        async with contextlib.aclosing(source):
            fresh = await source.read()
        members[service.name], more = await resolved(fresh.members, {})
        notes += (*fresh.notes, *more)
    topology = build(lb, members, Patiences(Path(root.state_dir) / "lb").timeouts)
    engine = await detect(lb, Path(root.run_dir) / "lb")
    files = engine.engine.files(topology, seat.make(str(Path(root.run_dir) / "lb"), "preview"))
    refusal = None
    if ask:
        with tempfile.TemporaryDirectory(prefix="edgekeeper-check-") as folder:
            refusal = await refusal_of(engine.engine, engine.engine.files(topology, seat.make(folder, "check")))
    return Preview(files, engine.features.text, (*advice(topology.services), *notes), refusal)
