"""What would be run: rendered from the config as it is now, and judged by the real engine."""

from __future__ import annotations

import tempfile
from pathlib import Path

from edgekeeper.config.root import Root
from edgekeeper.engines.keepalived.seat import Seat
from edgekeeper.model.preview import Preview
from edgekeeper.supervise.ask import refusal_of
from edgekeeper.vip.build import detect
from edgekeeper.vip.check import notes_of, topology_of


async def preview(root: Root, node: str, *, ask: bool) -> Preview:
    """Render; with ``ask``, have keepalived judge the file in a folder that is removed again."""
    vips = root.vip
    assert vips is not None  # noqa: S101 - the command has checked it
    folder = Path(root.run_dir) / "vip"
    found = await detect(vips, folder)
    topology = topology_of(root, node, found, str(folder))
    files = found.engine.files(topology, Seat(str(folder)))
    refusal = None
    if ask:
        with tempfile.TemporaryDirectory(prefix="edgekeeper-check-") as temporary:
            refusal = await refusal_of(found.engine, found.engine.files(topology, Seat(temporary)))
    return Preview(files, found.features.text, notes_of(vips, topology, found), refusal)
