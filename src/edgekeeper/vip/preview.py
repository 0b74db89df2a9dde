"""What would be run: rendered from the config as it is now, and judged by the real engine."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from edgekeeper.config.root import Root
from edgekeeper.engines.keepalived.seat import Seat
from edgekeeper.vip.build import ask as ask_engine
from edgekeeper.vip.build import detect
from edgekeeper.vip.check import topology_of
from edgekeeper.vip.desired import advice


@dataclass(frozen=True, slots=True)
class Preview:
    """The files, the version that they are for, notes for a person, and why the validator refused."""

    files: Mapping[str, str]
    version: str
    notes: tuple[str, ...]
    refusal: str | None


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
            refusal = await ask_engine(found, found.engine.files(topology, Seat(temporary)))
    told = advice(
        topology, found.features, legacy=vips.legacy, hmac_asked=vips.hmac_key_file is not None, user=topology.script_user, budget_s=vips.budget
    )  # fmt: skip
    return Preview(files, found.features.text, told, refusal)
