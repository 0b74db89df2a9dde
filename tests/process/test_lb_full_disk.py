"""A disk that is full under ``edgekeeper lb run``: HAProxy goes on, it is said, and it comes right again."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from .fleet import Fleet, fleet, until
from .test_full_disk import Small, pytestmark  # noqa: F401 - root, and a root that is a mount


@pytest.fixture
def made(tmp_path: Path) -> Iterator[Fleet]:
    with fleet(tmp_path) as found:
        yield found


def test_while_staging_haproxy_and_its_files_stay_and_later_it_comes_right(made: Fleet) -> None:
    small = Small(made, "state")
    before = made.wait_up()["engine"]
    link = (small.folder / "lb/current").readlink()
    with made.load() as load:
        small.fill()
        made.write_members(["web-a", "web-b"])
        refused = until(lambda: made.status()["refused"], "it is refused")
        assert "No space left on device" in refused
        assert made.status()["engine"]["generation"] == before["generation"]
        assert (small.folder / "lb/current").readlink() == link
        small.empty()
        made.write_members(["web-a"])
        until(lambda: made.held() == {"web-a"}, "it is in force once there is room")
        until(lambda: made.status()["refused"] is None, "nothing is refused any more")
    assert load.failed == []
    assert made.masters() == [before["pid"]]


def test_a_haproxy_that_ends_while_the_disk_is_full_comes_back(made: Fleet) -> None:
    small = Small(made, "state")
    pid = made.wait_up()["engine"]["pid"]
    small.fill()
    os.kill(pid, signal.SIGKILL)
    until(lambda: made.masters() not in ([], [pid]) and made.answers(), "it answers again")
    until(lambda: made.status()["engine"]["pid"] not in (None, pid) and made.status()["engine"]["running"], "and is proven")


def test_a_full_run_folder_stops_nobody_from_serving(made: Fleet) -> None:
    """There is no room for the record, nor for what the next worker is told of the servers."""
    small = Small(made, "run")
    pid = made.wait_up()["engine"]["pid"]
    with made.load() as load:
        small.fill()
        made.listen = [made.port, made.spare]
        made.write_config()
        small.run.send_signal(signal.SIGHUP)
        until(lambda: made.status()["refused"] or made.answers(made.spare), "it is refused, or done all the same")
        assert made.answers()
        small.empty()
        made.write_members(["web-a", "web-b"])
        until(lambda: made.answers(made.spare) and made.held() == {"web-a", "web-b"}, f"it comes right\n{made.said()[-3000:]}")
    assert load.failed == []
    assert made.masters() == [pid]
