"""Descriptors are there before they are needed, and where they cannot be it is said."""

from __future__ import annotations

import resource

import pytest

from edgekeeper.meter.meter import Pace
from edgekeeper.meter.room import make_room


def limited(monkeypatch: pytest.MonkeyPatch, soft: int, hard: int) -> list[tuple[int, int]]:
    wanted: list[tuple[int, int]] = []
    monkeypatch.setattr(resource, "getrlimit", lambda _: (soft, hard))
    monkeypatch.setattr(resource, "setrlimit", lambda _, limits: wanted.append(limits))
    return wanted


def test_the_limit_is_raised_as_far_as_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    wanted = limited(monkeypatch, 1024, 524288)
    assert make_room(1000, Pace(0.25, 1.0)) is None
    assert wanted == [(5064, 524288)]
    assert make_room(100, Pace(1.0, 1.0)) is None
    assert len(wanted) == 1, "what is enough is left alone"


def test_where_it_cannot_be_it_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    wanted = limited(monkeypatch, 64, 256)
    said = make_room(1000, Pace(0.25, 1.0))
    assert said is not None
    assert "5064 descriptors are needed and this process may have 256" in said
    assert wanted == [(256, 256)]
