from __future__ import annotations

from typing import NamedTuple

import pytest

from edgekeeper.watch.sources.rotation import next_after, rotated


@pytest.mark.parametrize(
    "name",
    [
        "app.log.1", "app.log.12", "app.log-20261130", "app.log-20261130-1796", "app.log.2026-11-30T10:00:00Z", "app-2026-11-30T10-00-00.000.log",
        "app.log.old", "app.log.bak", "app.log_1", "app.log~", "app.1.log",
    ],
)  # fmt: skip
def test_what_rotation_leaves_behind_is_a_former_log(name: str) -> None:
    assert rotated("app.log", name)


@pytest.mark.parametrize(
    "name", ["app.log", "app.log.1.gz", "app.log.errors", "app.log.d", "xapp.log.1", "app-errors.log", "other.log.1", "app.log.", "app.log.1x", "apx.log"]
)
def test_what_may_be_another_log_is_not_read(name: str) -> None:
    assert not rotated("app.log", name)


def test_a_log_without_an_ending_has_former_ones_too() -> None:
    assert rotated("syslog", "syslog.1")
    assert rotated(".log", ".log.1")
    assert not rotated(".log", "-1.log")


class File(NamedTuple):
    identity: tuple[int, int]
    written_ns: int


def test_the_former_logs_follow_each_other_by_their_last_write() -> None:
    older, first, second = File((1, 9), 10), File((1, 7), 30), File((1, 8), 40)
    files = [second, older, first]
    assert next_after(20, files, set()) == first
    assert next_after(30, files, set()) == second
    assert next_after(20, files, {first.identity}) == second
    assert next_after(40, files, set()) is None
