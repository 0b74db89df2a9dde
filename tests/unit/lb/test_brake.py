from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from edgekeeper.lb.brake import Cut, Manner, Since, Swept, sweep
from edgekeeper.lb.decide import Condition, Seen

UP, DOWN, MAINT, OUT = Condition.UP, Condition.DOWN, Condition.MAINT, Condition.OUT
OLD, NEW = 11, 12
MANNER = Manner({"api-open": "api", "api-patient": "api"})


def seen(backend: str, server: str, state: Condition, old: int = 0, new: int = 0) -> Seen:
    return Seen(backend, server, state, ((OLD, old), (NEW, new)))


def test_old_workers_are_swept_at_once_and_the_current_one_is_left_to_haproxy() -> None:
    servers = (seen("api", "cp1", DOWN, old=3, new=2), seen("api", "cp2", UP, old=4, new=5))
    (cut,) = sweep(Since(), servers, NEW, MANNER, 10.0).cuts
    assert (cut.backend, cut.server, cut.workers) == ("api", "cp1", (OLD,))
    assert cut.why == "api/cp1 is DOWN, and workers from before a reload run no checks: their sessions end"


def test_a_haproxy_that_does_not_cut_is_helped() -> None:
    servers = (seen("api", "cp1", MAINT, old=3, new=2),)
    cuts = sweep(Since(), servers, NEW, Manner(cuts_itself=False), 10.0).cuts
    assert [c.workers for c in cuts] == [(OLD,), (NEW,)]


def test_twins_wait_until_another_server_has_settled() -> None:
    servers = (seen("api", "cp1", DOWN), seen("api", "cp2", UP), seen("api-open", "cp1", UP, old=1, new=2), seen("api-open", "cp2", UP, new=7))
    first = sweep(Since(), servers, NEW, MANNER, 10.0)
    assert not first.cuts
    assert first.held == ("api/cp1 is DOWN, but no other server of api has been up for 2 s: 3 sessions in api-open/cp1 stay",)
    assert not sweep(first.since, servers, NEW, MANNER, 11.9).cuts
    (cut,) = sweep(first.since, servers, NEW, MANNER, 12.0).cuts
    assert cut == Cut("api-open", "cp1", (OLD, NEW), "api/cp1 is DOWN and cp2 has been up for 2 s: its sessions in api-open/cp1 end")


def test_an_interruption_begins_the_settling_anew() -> None:
    def at(now: float, second: Condition, since: Since) -> Swept:
        servers = (seen("api", "cp1", DOWN), seen("api", "cp2", second), seen("api-patient", "cp1", UP, new=2))
        return sweep(since, servers, NEW, MANNER, now)

    found = at(10.0, UP, Since())
    found = at(11.5, DOWN, found.since)
    found = at(12.0, UP, found.since)
    found = at(13.5, UP, found.since)
    assert not found.cuts
    assert at(14.0, UP, found.since).cuts


def test_servers_that_fall_one_after_the_other_cut_nobody_twice() -> None:
    """The next one to fall has been up for hours; that is no sign that the first is dead rather than slow."""
    twins = tuple(seen("api-patient", f"cp{n}", UP, new=3) for n in (1, 2, 3))

    def at(now: float, *states: Condition, since: Since) -> Swept:
        return sweep(since, (*(seen("api", f"cp{n}", state) for n, state in enumerate(states, 1)), *twins), NEW, MANNER, now)

    found = at(100.0, UP, UP, UP, since=Since())
    found = at(200.0, DOWN, UP, UP, since=found.since)
    assert not found.cuts
    assert "cp1 is DOWN" in found.held[0]
    found = at(200.5, DOWN, DOWN, UP, since=found.since)
    assert not found.cuts
    found = at(201.0, DOWN, DOWN, DOWN, since=found.since)
    assert not found.cuts
    found = at(230.0, UP, DOWN, DOWN, since=found.since)
    assert not found.cuts
    found = at(231.0, UP, UP, UP, since=found.since)
    assert not found.cuts
    found = at(300.0, DOWN, UP, UP, since=found.since)
    assert [c.server for c in at(302.0, DOWN, UP, UP, since=found.since).cuts] == ["cp1"]


def test_when_all_are_down_nobody_is_cut_from_a_twin() -> None:
    servers = tuple(seen(backend, f"cp{n}", DOWN if backend == "api" else UP, new=5) for backend in ("api", "api-open") for n in (1, 2, 3))
    assert not sweep(Since({("api", "cp1"): 0.0}), servers, NEW, MANNER, 10.0).cuts


@given(st.lists(st.tuples(st.sampled_from(["api", "api-open", "other"]), st.sampled_from(["cp1", "cp2", "cp3"]), st.sampled_from(list(Condition)),
                          st.integers(0, 3), st.integers(0, 3)), max_size=9), st.booleans())  # fmt: skip
def test_sessions_of_a_healthy_server_are_never_touched(rows: list[tuple[str, str, Condition, int, int]], cuts_itself: bool) -> None:
    servers = {(b, s): seen(b, s, state, old, new) for b, s, state, old, new in rows}
    manner = Manner({"api-open": "api"}, 0.0, cuts_itself)
    for cut in sweep(Since(), tuple(servers.values()), NEW, manner, 10.0).cuts:
        judge = servers[manner.twins.get(cut.backend, cut.backend), cut.server]
        assert judge.condition in (DOWN, MAINT)
        assert cut.why
        assert all(dict(servers[cut.backend, cut.server].sessions)[pid] for pid in cut.workers)


def test_who_sits_on_a_server_that_is_configured_no_more_is_sent_away_once_it_has_been_gone_and_another_up_for_a_while() -> None:
    servers = (seen("api", "cp2", UP, new=5), seen("api", "cp3", UP))
    left = (Seen("api", "cp1", OUT, ((OLD, 3),)), Seen("api-open", "cp1", OUT, ((OLD, 1),)), Seen("web", "w1", OUT, ((OLD, 1),)))
    first = sweep(Since(), servers, NEW, MANNER, 10.0, left)
    assert not first.cuts
    second = sweep(first.since, servers, NEW, MANNER, 12.0, left)
    assert [(c.backend, c.server, c.workers, c.left) for c in second.cuts] == [("api", "cp1", (OLD,), True), ("api-open", "cp1", (OLD,), True)]
    assert second.cuts[0].why == "the configuration has no api/cp1 any more, nobody checks it, and cp2 is up: its sessions in old workers end"
    assert second.held == ("the configuration has no web/w1 any more, but no server of web has been up for 2 s: 1 sessions stay",)
    again = sweep(Since(second.since.up), servers, NEW, MANNER, 13.0, left[:1])
    assert not again.cuts, "it was there in between"
