"""What is asked before a cure, where there is nobody to be asked."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from edgekeeper.watch import pause
from edgekeeper.watch.guards import Guards


def test_whether_it_is_paused_that_cannot_be_told_forbids(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(_: Path) -> None:
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(pause, "read", broken)
    said = asyncio.run(Guards(pause=Path("/run/pause-mesh")).forbids())
    assert said == "whether cures are paused cannot be told: /run/pause-mesh: Input/output error"
