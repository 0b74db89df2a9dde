from __future__ import annotations

import itertools
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from edgekeeper.lb.decide import (
    Act,
    Condition,
    Decision,
    FreeSessions,
    Key,
    Mark,
    MarkServer,
    Note,
    Picture,
    ReleaseServer,
    Rules,
    Seen,
    State,
    condition,
    decide,
    done,
    undone,
    unsure,
)
from edgekeeper.model.budget import Budget, Window
from edgekeeper.model.reach import Reach

RULES = Rules()
NEW, OLD = 12, 11
UP, DOWN, MAINT, OUT = Condition.UP, Condition.DOWN, Condition.MAINT, Condition.OUT
OK, HOLE, UNREADY, FILTERED, UNKNOWN = Reach.OK, Reach.BLACK_HOLE, Reach.UNREADY, Reach.FILTERED, Reach.UNKNOWN


class Play:
    """A HAProxy of the mind: servers of the backend cp, and a guard that looks every half second. Acts are carried out."""

    def __init__(self, *states: Condition, limit: int = 6, sessions: int = 2) -> None:
        self.servers = {f"cp{i}": Seen("cp", f"cp{i}", state, ((NEW, sessions),), 100, True) for i, state in enumerate(states, 1)}
        self.state = State(Budget((Window(limit, 600.0),)))
        self.now, self.wall, self.worker = 1000.0, 1_700_000_000.0, NEW
        self.started = self.wall - 100
        self.acts: list[Act] = []
        self.notes: list[Note] = []

    def set(self, name: str, **changes: object) -> None:
        self.servers[name] = replace(self.servers[name], **changes)

    def look(self, *reaches: Reach, step: float = 0.5, blind: str = "") -> Decision:
        self.now, self.wall = self.now + step, self.wall + step
        verdicts: dict[Key, Reach] | None = {("cp", f"cp{i}"): reach for i, reach in enumerate(reaches, 1)} if reaches else None
        picture = Picture(() if blind else tuple(self.servers.values()), self.worker, blind, verdicts, self.started)
        decision = decide(self.state, picture, RULES, self.now, self.wall)
        self.state = decision.state
        for act in decision.acts:
            self.carry_out(act)
        self.acts += decision.acts
        self.notes += decision.notes
        return decision

    def rounds(self, number: int, *reaches: Reach) -> None:
        for _ in range(number):
            self.look(*reaches, step=1.0)

    def carry_out(self, act: Act) -> None:
        match act:
            case MarkServer(server=name):
                self.set(name, condition=MAINT, sessions=(), since_s=0)
            case ReleaseServer(server=name):
                self.set(name, condition=UP)
            case FreeSessions(server=name):
                self.set(name, sessions=())
        self.state = done(self.state, act, self.worker, self.wall)

    def kinds(self) -> list[str]:
        return [note.kind for note in self.notes]


@pytest.mark.parametrize(
    ("status", "meant"),
    [
        ("UP", UP), ("UP 1/3", UP), ("no check", UP), ("DOWN", DOWN), ("DOWN 1/2", DOWN), ("DOWN (agent)", DOWN), ("MAINT", MAINT),
        ("MAINT (via a/b)", MAINT), ("MAINT (resolution)", OUT), ("DRAIN", OUT), ("DRAIN (agent)", OUT), ("NOLB", OUT), ("NOLB 1/2", OUT),
    ],
)  # fmt: skip
def test_what_a_status_means(status: str, meant: Condition) -> None:
    assert condition(status) is meant


@pytest.mark.parametrize("bad", [DOWN, MAINT])
def test_sessions_of_a_server_that_stays_down_are_freed_after_the_hold(bad: Condition) -> None:
    play = Play(UP, UP)
    play.look()
    play.set("cp1", condition=bad, sessions=((OLD, 1), (NEW, 2)))
    for _ in range(4):
        assert not play.look().acts
    (act,) = play.look().acts
    assert act == FreeSessions("cp", "cp1", (OLD, NEW), f"cp/cp1 is {bad.upper()} for 2.0 s and has 3 sessions")
    assert not play.look(step=5).acts, "there are none left"


def test_one_that_comes_back_within_the_hold_keeps_its_sessions() -> None:
    play = Play(DOWN, UP)
    for state in (DOWN, DOWN, DOWN, UP, DOWN, DOWN, DOWN, DOWN):
        play.set("cp1", condition=state)
        assert not play.look().acts


@pytest.mark.parametrize("other", [DOWN, MAINT, OUT])
def test_sessions_are_not_cut_when_there_is_nowhere_to_go(other: Condition) -> None:
    play = Play(DOWN, other, sessions=1)
    play.set("cp2", sessions=())
    for _ in range(20):
        assert not play.look().acts
    assert play.kinds() == ["nowhere to go"], "said once, not each time"


def test_what_does_not_go_is_tried_again_ever_less_often() -> None:
    play = Play(DOWN, UP, limit=100)
    times = []
    for _ in range(300):
        decision = play.look()
        if decision.acts:
            times.append(play.now)
            play.set("cp1", sessions=((NEW, 2),))
    pauses = [round(b - a, 1) for a, b in itertools.pairwise(times)]
    assert pauses == [4.0, 8.0, 16.0, 32.0, 60.0]


def test_a_black_hole_behind_a_shallow_check_is_marked_and_given_back() -> None:
    play = Play(UP, UP, UP)
    play.rounds(2, HOLE, OK, OK)
    assert not play.acts
    play.rounds(1, HOLE, OK, OK)
    (act,) = play.acts
    assert isinstance(act, MarkServer)
    assert act.server == "cp1"
    assert act.why == "cp/cp1 passes its check and gave the probe no byte 3 times in a row; 2 other of cp answer"
    play.rounds(2, OK, OK, OK)
    play.rounds(1, HOLE, OK, OK)
    play.rounds(2, OK, OK, OK)
    assert len(play.acts) == 1
    play.rounds(1, OK, OK, OK)
    assert play.acts[1:] == [ReleaseServer("cp", "cp1", "answers the probe again, 3 times in a row")]
    assert not play.state.marks


@pytest.mark.parametrize("reach", [UNREADY, FILTERED, UNKNOWN, Reach.REFUSED, Reach.TLS_FAIL])
def test_only_a_black_hole_is_marked(reach: Reach) -> None:
    play = Play(UP, UP, UP)
    play.rounds(10, reach, OK, OK)
    assert not play.acts


@pytest.mark.parametrize(("second", "reach"), [(UP, HOLE), (UP, UNREADY), (UP, UNKNOWN), (DOWN, OK), (MAINT, OK), (OUT, OK)])
def test_the_last_usable_server_is_never_marked(second: Condition, reach: Reach) -> None:
    play = Play(UP, second, sessions=0)
    play.rounds(10, HOLE, reach)
    assert not play.acts
    assert set(play.kinds()) & {"last usable", "blind"}
    assert len(play.notes) == 1


@pytest.mark.parametrize(("servers", "most"), [(2, 1), (3, 1), (5, 1), (6, 2), (9, 3)])
def test_never_more_than_one_of_three(servers: int, most: int) -> None:
    play = Play(*[UP] * servers, limit=100)
    play.rounds(10, *[HOLE] * (servers - 1), OK)
    assert len(play.acts) == most
    assert len(play.state.marks) == most
    assert servers == 2 or "one of three" in play.kinds()


@pytest.mark.parametrize("reach", [HOLE, FILTERED, Reach.REFUSED, Reach.TLS_FAIL, UNKNOWN])
def test_a_probe_whose_own_way_is_broken_marks_nothing_and_says_blind(reach: Reach) -> None:
    play = Play(UP, UP, UP)
    play.rounds(10, *[reach] * 3)
    assert not play.acts
    (note,) = play.notes
    assert (note.object, note.kind) == ("cp", "blind")
    assert f"3 {reach}" in note.why
    play.rounds(2, HOLE, OK, OK)
    assert not play.acts, "what was counted on the broken way is no evidence"


def test_an_unreadable_socket_means_nothing_is_done_and_every_hold_begins_anew() -> None:
    play = Play(DOWN, UP)
    for _ in range(3):
        play.look()
    for _ in range(20):
        assert not play.look(blind="no answer within 2 s").acts
    for _ in range(4):
        assert not play.look().acts
    assert play.look().acts
    assert play.kinds() == ["blind", "sighted"]


def test_the_budget_holds_back_and_says_so_once() -> None:
    play = Play(DOWN, UP, limit=1)
    for _ in range(40):
        play.look()
        play.set("cp1", sessions=((NEW, 2),))
    assert len(play.acts) == 1
    assert [(n.object, n.kind) for n in play.notes] == [("cp/cp1", "budget")]
    assert "the budget is spent: 1 of 1 in 600 s are spent" in play.notes[0].why
    play.wall += 3600
    for _ in range(4):
        play.look()
        play.set("cp1", sessions=((NEW, 2),))
    assert len(play.acts) == 1, "a wall clock that is set ahead frees nothing"


def test_maint_of_somebody_else_is_never_given_back() -> None:
    play = Play(MAINT, UP, UP, sessions=0)
    play.rounds(20, OK, OK, OK)
    assert not play.acts


def test_a_mark_that_a_person_undid_is_not_set_again_until_the_server_has_answered() -> None:
    play = Play(UP, UP, UP)
    play.rounds(3, HOLE, OK, OK)
    play.set("cp1", condition=UP)
    play.rounds(10, HOLE, OK, OK)
    assert len(play.acts) == 1
    assert play.kinds() == ["forgotten", "hands off"]
    play.rounds(1, OK, OK, OK)
    play.rounds(3, HOLE, OK, OK)
    assert len(play.acts) == 2


def test_a_mark_that_a_reload_undid_is_judged_anew() -> None:
    play = Play(UP, UP, UP)
    play.rounds(3, HOLE, OK, OK)
    play.set("cp1", condition=UP)
    play.worker = 13
    play.rounds(3, HOLE, OK, OK)
    assert [type(act) for act in play.acts] == [MarkServer, MarkServer]


def test_a_container_that_is_started_anew_has_the_same_pid_and_is_another_process() -> None:
    play = Play(UP, UP, UP)
    play.rounds(3, HOLE, OK, OK)
    play.set("cp1", condition=UP)
    play.started = play.wall + 1
    play.rounds(3, HOLE, OK, OK)
    assert [type(act) for act in play.acts] == [MarkServer, MarkServer]


@pytest.mark.parametrize(("since_s", "released"), [(8, True), (1, False)])
def test_a_server_that_the_new_configuration_disables_is_not_given_back(since_s: int, *, released: bool) -> None:
    """A reload that keeps the servers' state keeps how long a server has been in MAINT; one whose file says `disabled` begins anew."""
    play = Play(UP, UP, UP)
    play.rounds(3, HOLE, OK, OK)
    play.wall += 7
    play.worker = 13
    for more in range(3):
        play.set("cp1", since_s=since_s + more)
        play.look(OK, OK, OK, step=1.0)
    assert [type(act) for act in play.acts[1:]] == [ReleaseServer] * released
    assert play.kinds() == ([] if released else ["forgotten"])


@pytest.mark.parametrize(
    ("now", "since_s", "kind", "kept"),
    [
        (MAINT, 60, "adopted", True),  # killed after it had been set
        (UP, 5000, "forgotten", False),  # killed between the journal and the mark
        (MAINT, 5, "forgotten", False),  # somebody set it since
        (MAINT, 4000, "forgotten", False),  # it was in MAINT before
    ],
)
def test_what_a_guard_that_was_killed_had_begun(now: Condition, since_s: int, kind: str, kept: bool) -> None:
    play = Play(now, UP, UP, sessions=0)
    play.set("cp1", since_s=since_s)
    play.state = replace(play.state, marks={("cp", "cp1"): Mark(play.wall - 60, NEW, False, "as before")})
    play.look()
    assert play.kinds() == [kind]
    assert bool(play.state.marks) is kept
    play.rounds(3, OK, OK, OK)
    assert [type(a) for a in play.acts] == ([ReleaseServer] if kept else [])


def test_a_command_to_a_frozen_haproxy_that_is_carried_out_later_is_known_as_ours() -> None:
    play = Play(UP, UP, UP)
    play.rounds(2, HOLE, OK, OK)
    play.wall += 1
    decision = decide(play.state, Picture(tuple(play.servers.values()), NEW, "", {("cp", "cp1"): HOLE, ("cp", "cp2"): OK}), RULES, play.now + 1, play.wall)
    play.state = unsure(decision.state, decision.acts[0], NEW, play.wall)
    for _ in range(60):
        play.look(blind="no answer")
    play.look()
    assert play.state.marks, "it may still come"
    play.set("cp1", condition=MAINT, since_s=0, sessions=())
    play.look()
    assert "adopted" in play.kinds()


def test_an_act_that_failed_is_not_tried_at_once() -> None:
    play = Play(UP, UP, UP)
    play.rounds(2, HOLE, OK, OK)
    picture = Picture(tuple(play.servers.values()), NEW, "", {("cp", "cp1"): HOLE, ("cp", "cp2"): OK})
    decision = decide(play.state, picture, RULES, play.now, play.wall)
    play.state = undone(decision.state, decision.acts[0])
    play.rounds(2, HOLE, OK, OK)
    assert not play.acts
    play.rounds(1, HOLE, OK, OK)
    assert play.acts


STATES = st.sampled_from([UP, UP, UP, DOWN, MAINT, OUT])
REACHES = st.sampled_from([OK, OK, OK, HOLE, HOLE, UNREADY, FILTERED, UNKNOWN])


@settings(max_examples=60)
@given(st.data(), st.integers(1, 7), st.integers(0, 5))
def test_invariants(data: st.DataObject, servers: int, limit: int) -> None:
    """Random streams: whatever happens around it, guard keeps its promises."""
    play = Play(*[UP] * servers, limit=limit)
    started = play.wall
    holes = [OK] * servers
    for _ in range(data.draw(st.integers(5, 30))):
        what, who = data.draw(st.sampled_from(["reach", "reach", "reach", "state", "blind", "reload", "rest"])), data.draw(st.integers(1, servers))
        name = f"cp{who}"
        if what == "reach":
            holes[who - 1] = data.draw(REACHES)
        elif what == "state" and ("cp", name) not in play.state.marks:
            play.set(name, condition=data.draw(STATES), sessions=((OLD, data.draw(st.integers(0, 2))), (NEW, data.draw(st.integers(0, 2)))))
        elif what == "blind":
            assert not play.look(blind="frozen").acts
        elif what == "reload":
            play.worker += 1
        before = dict(play.servers)
        decision = play.look(*holes, step=1.0)
        for act in decision.acts:
            assert act.why
            server = before[act.server]
            up = [s for s in before.values() if s.server != act.server and s.condition is UP]
            match act:
                case FreeSessions():
                    assert server.condition in (DOWN, MAINT)
                    assert server.total
                    assert up, "cut with nowhere to go"
                case MarkServer():
                    assert server.condition is UP
                    assert any(holes[int(s.server[2:]) - 1] is OK and play.servers[s.server].condition is UP for s in up), "the last usable one"
                case ReleaseServer():
                    assert holes[who_of(act)] is OK
        assert len(play.state.marks) <= max(1, servers // 3)
    spent = [act for act in play.acts if not isinstance(act, ReleaseServer)]
    assert len(spent) <= limit
    assert play.wall - started < 600
    play.rounds(RULES.rise + 1, *[OK] * servers)
    assert not play.state.marks, "every mark is released once the probe is well"


def who_of(act: Act) -> int:
    return int(act.server[2:]) - 1
