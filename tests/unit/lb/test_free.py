from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.fakes.haproxy_cli import FakeAdmin, FakeHaproxy, Held

from edgekeeper.engines.haproxy.look import look
from edgekeeper.engines.haproxy.pinned import Judge
from edgekeeper.errors import RefusedError
from edgekeeper.lb.free import Freed, cut_in, free, free_one


class Clock:
    """A second later at each look."""

    def __init__(self) -> None:
        self.now = 0.0

    def monotonic(self) -> float:
        self.now += 0.1
        return self.now

    def wall(self) -> float:
        return self.now


def run(haproxy: FakeHaproxy, backend: str = "api", server: str = "cp1", **more: Any) -> Freed:
    return asyncio.run(free_one(FakeAdmin(haproxy), backend, server, Clock(), **{"proof_s": 0, **more}))  # type: ignore[arg-type]


def world(**statuses: str) -> FakeHaproxy:
    """Two sessions on each server in the current worker (10) and in two old ones (11, 12)."""
    sessions = {
        pid: [Held(f"0x{pid}{i}{k}", f"192.0.2.{i}:{pid}{k}", name) for i, name in enumerate(("cp1", "cp2", "cp3"), 1) for k in (0, 1)] for pid in (10, 11, 12)
    }
    return FakeHaproxy({"cp1": "DOWN", "cp2": "UP", "cp3": "UP", **statuses}, sessions)


def test_what_is_pinned_goes_in_every_worker_and_nothing_else() -> None:
    haproxy = world()
    done = run(haproxy)
    assert (dict(done.cut), done.left, done.ok, done.total) == ({10: 2, 11: 2, 12: 2}, 0, True, 6)
    assert {s.server for s in haproxy.ended} == {"cp1"}
    assert sum(len(found) for found in haproxy.workers.values()) == 12
    assert (10, "shutdown sessions server api/cp1") in haproxy.said
    assert not [command for pid, command in haproxy.said if pid == 10 and command.startswith("shutdown session ")]
    assert "api/cp1 is DOWN: 6 sessions ended in 3 workers" in done.why


@pytest.mark.parametrize("status", ["UP", "UP 1/3", "DRAIN", "NOLB", "no check", "MAINT (resolution)"])
def test_a_server_that_is_not_dead_is_not_touched(status: str) -> None:
    haproxy = world(cp1=status)
    done = run(haproxy)
    assert (haproxy.said, done.ok, done.total) == ([], True, 0)
    assert status in done.why


@pytest.mark.parametrize("where", [10, 11])
def test_a_server_that_comes_back_while_its_sessions_are_read_keeps_them(where: int) -> None:
    """In the current worker (10) and in an old one: to list many sessions takes a second, and what was DOWN before may be up after."""
    haproxy = world()
    haproxy.workers = {pid: found if pid == where else [] for pid, found in haproxy.workers.items()}
    haproxy.before = lambda command: haproxy.statuses.update(cp1="UP") if command.startswith("show sess") else None
    done = run(haproxy)
    assert (haproxy.ended, done.total, done.left, done.ok) == ([], 0, 0, True)
    assert "api/cp1 is UP by now" in done.why


def test_a_server_that_the_running_configuration_lacks_is_not_touched() -> None:
    haproxy = world()
    haproxy.workers[11].append(Held("0x99", "192.0.2.9:1", "cp9"))
    done = run(haproxy, server="cp9")
    assert haproxy.said == []
    assert "not in the running configuration" in done.why


def test_an_id_that_was_used_again_is_not_ended() -> None:
    haproxy = world()

    def reuse(command: str) -> None:
        if command.startswith("shutdown sessions server"):  # between the first look and the second
            haproxy.workers[11][0] = Held("0x1110", "192.0.2.77:5", "cp2")
            haproxy.workers[11][1] = Held("0x1111", "192.0.2.78:5", "cp1")

    haproxy.before = reuse
    done = run(haproxy)
    assert done.cut == {10: 2, 11: 0, 12: 2}
    assert not {"192.0.2.77:5", "192.0.2.78:5"} & {s.source for s in haproxy.ended}
    assert done.ok


def test_a_session_of_an_old_worker_at_another_address_is_another_machines() -> None:
    haproxy = world()
    for held in haproxy.workers[12]:
        held.address = "127.0.0.9:6443"
    assert run(haproxy).cut == {10: 2, 11: 2}


def test_where_a_session_is_connected_is_read_right_before_it_is_ended() -> None:
    haproxy = world()
    haproxy.workers[12][0].address = "127.0.0.9:6443"

    async def work() -> int:
        admin: Any = FakeAdmin(haproxy)
        picture = await look(admin, sessions=True)  # the short form, without addresses
        seen = [s for s in picture.sessions[12] if s.server == "cp1"]
        return await cut_in(picture, Judge(picture.stats), 12, "api", "cp1", seen)

    assert asyncio.run(work()) == 1
    assert [s.address for s in haproxy.ended] == ["127.0.0.1:6443"]


def test_what_ended_by_itself_is_not_counted_and_not_an_error() -> None:
    haproxy = world()
    gone: list[str] = []

    def leave(command: str) -> None:
        if command.startswith("shutdown session 0x11") and not gone:
            gone.append(command)
            haproxy.workers[11] = [s for s in haproxy.workers[11] if s.id not in command]

    haproxy.before = leave
    done = run(haproxy)
    assert (done.cut[11], done.ok, done.left) == (1, True, 0)


def test_an_old_worker_that_cannot_be_asked_is_told_and_the_others_are_freed() -> None:
    haproxy = world()
    haproxy.frozen.add(11)
    done = run(haproxy)
    assert done.cut == {10: 2, 12: 2}
    assert any("11" in note for note in done.notes)


def test_a_level_that_is_too_low_is_an_error_and_nothing_is_done() -> None:
    haproxy = world()
    haproxy.level = "operator"
    with pytest.raises(RefusedError):
        run(haproxy)
    assert haproxy.ended == []


def test_a_backend_without_checks_is_judged_by_the_one_that_has_them() -> None:
    haproxy = world()
    haproxy.backends = ("api",)
    haproxy.workers[10].append(Held("0x500", "192.0.2.5:1", "cp1", "api-open"))
    assert run(haproxy, "api-open", same={"api-open": "api"}).cut == {10: 1}
    assert run(haproxy, "api-open").total == 0


def test_a_client_counts_as_seen_only_by_a_new_session_on_a_live_server() -> None:
    haproxy = world()

    def again(command: str) -> None:
        if command.startswith("shutdown sessions server"):
            haproxy.workers[10].append(Held("0x900", "192.0.2.1:999", "cp3"))

    haproxy.before = again
    haproxy.workers[11].append(Held("0x901", "192.0.2.8:1", "cp1"))
    haproxy.workers[10].append(Held("0x902", "192.0.2.8:2", "cp2"))  # there before: proves nothing
    done = run(haproxy, proof_s=2)
    assert [(s.host, s.server) for s in done.seen] == [("192.0.2.1", "api/cp3"), ("192.0.2.8", "")]
    assert done.seen[0].after_ms is not None
    assert done.seen[1].after_ms is None


def test_one_server_after_the_other() -> None:
    haproxy = world(cp2="MAINT")
    first, second = asyncio.run(free(FakeAdmin(haproxy), [("api", "cp1"), ("api", "cp2")], Clock(), proof_s=0))  # type: ignore[arg-type]
    assert (first.total, second.total) == (6, 6)
    servers = [s.server for s in haproxy.ended]
    assert servers == sorted(servers)


@given(
    st.fixed_dictionaries({name: st.sampled_from(["UP", "DOWN", "MAINT", "DRAIN", "MAINT (resolution)", "no check"]) for name in ("cp1", "cp2", "cp3")}),
    st.lists(st.tuples(st.sampled_from([10, 11, 12]), st.sampled_from(["cp1", "cp2", "cp3", "cp9"]), st.integers(1, 5)), max_size=12),
)
@settings(max_examples=30)
def test_whatever_there_is_healthy_sessions_stay_and_no_pinned_one_does(statuses: dict[str, str], sessions: list[tuple[int, str, int]]) -> None:
    workers: dict[int, list[Held]] = {10: [], 11: [], 12: []}
    for i, (pid, server, client) in enumerate(sessions):
        workers[pid].append(Held(f"0x{i + 16:x}", f"192.0.2.{client}:{i}", server))
    haproxy = FakeHaproxy(statuses, workers)
    for server in statuses:
        assert run(haproxy, server=server).ok
    dead = {name for name, status in statuses.items() if status in ("DOWN", "MAINT")}
    assert {s.server for s in haproxy.ended} <= dead
    assert not [s for found in haproxy.workers.values() for s in found if s.server in dead]


def test_what_does_not_go_is_counted_and_is_no_success() -> None:
    class Stubborn(FakeHaproxy):
        """Says yes and ends nothing."""

        def _end(self, pid: int, chosen: Callable[[Held], bool]) -> int:
            return sum(1 for held in self.workers[pid] if chosen(held))

    haproxy = world()
    done = run(Stubborn(haproxy.statuses, haproxy.workers))
    assert (done.left, done.ok) == (6, False)


def test_a_younger_session_of_the_same_client_under_the_same_id_is_not_ended() -> None:
    haproxy = world()

    def again(command: str) -> None:
        if command.startswith("shutdown sessions server"):  # between the first look and the second
            old = haproxy.workers[11][0]
            haproxy.workers[11][0] = Held(old.id, old.source, old.server, age=0)

    haproxy.before = again
    assert run(haproxy).cut[11] == 1
