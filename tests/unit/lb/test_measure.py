from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from tests.fakes.haproxy import MEMBERS, lb

from edgekeeper.lb import measure
from edgekeeper.lb.measure import Patiences


class Members:
    """Answers a check after so many seconds, by the path that it asks; None: not at all."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, **taken: float | None) -> None:
        self.asked: list[str] = []
        self.taken = taken
        monkeypatch.setattr(measure, "_times", self._times)

    async def _times(self, check: Any, members: Any) -> list[float]:
        name = check.path.strip("/")
        self.asked.append(name)
        taken = self.taken.get(name)
        return [] if taken is None else [taken] * len(members)


SERVICES = lb(
    {"name": "a", "health": {"path": "/a"}}, {"name": "b", "health": {"path": "/b"}}, {"name": "c", "health": {"path": "/c", "timeout": "2s"}}
).services
KNOWN = {service.name: MEMBERS for service in SERVICES}


def test_what_was_measured_once_is_remembered_and_who_was_silent_is_asked_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    members = Members(monkeypatch, a=0.2)
    first = Patiences(tmp_path)
    asyncio.run(first.learn(SERVICES, KNOWN))
    assert members.asked == ["a", "b"], "c says its own"
    assert dict(first.timeouts) == {"a": 1.0}
    members.taken = {"a": 3.0, "b": 0.3}
    members.asked.clear()
    second = Patiences(tmp_path)
    assert dict(second.timeouts) == {"a": 1.0}
    asyncio.run(second.learn(SERVICES, KNOWN))
    assert members.asked == ["b"]
    assert dict(Patiences(tmp_path).timeouts) == {"a": 1.0, "b": 1.5}
    assert (tmp_path / measure.NAME).stat().st_mode & 0o077 == 0


@pytest.mark.parametrize("text", ["", "{", "[]", "5", '{"services": []}', '{"services": {"a": 5}}', '{"services": {"a": {"timeout_s": "x", "why": ""}}}'])
def test_a_damaged_memory_is_none(tmp_path: Path, text: str) -> None:
    (tmp_path / measure.NAME).write_text(text)
    assert Patiences(tmp_path).known == {}


def test_a_memory_that_cannot_be_written_is_no_reason_not_to_start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    Members(monkeypatch, a=0.2)
    made = Patiences(tmp_path / "missing")
    asyncio.run(made.learn(SERVICES, KNOWN))
    assert dict(made.timeouts) == {"a": 1.0}


def test_members_that_never_answer_do_not_hold_up_the_start(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(measure, "DEADLINE_S", 0.05)

    async def never(*_: object) -> float:
        await asyncio.Event().wait()
        return 1.0

    monkeypatch.setattr(measure, "_once", never)
    assert asyncio.run(measure._times(SERVICES[0], MEMBERS)) == []  # type: ignore[arg-type]
