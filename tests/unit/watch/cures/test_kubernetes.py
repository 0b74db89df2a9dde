"""What a cluster that hangs in the middle of a cure may cost; what a real one answers is in tests/kube."""

from __future__ import annotations

import asyncio
import contextlib

import pytest

from edgekeeper.config.kubernetes import Kubernetes
from edgekeeper.watch.cures import kubernetes


def test_a_cluster_that_hangs_in_the_middle_does_not_stretch_the_deadline(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kubernetes, "connect", lambda _: contextlib.nullcontext())
    monkeypatch.setattr(kubernetes, "GRACE_S", 0.0)

    async def hangs(_: object) -> str | None:
        await asyncio.Event().wait()
        return None

    told = asyncio.run(kubernetes._told(Kubernetes(), hangs, 0.0))
    assert told == "the cluster did not answer within 0 s; what was asked of it may still happen"
