"""F11 and F12: named pairs of events, and databases that moved."""

from __future__ import annotations

from dataclasses import replace

from tests.fakes.studies import T0, ask, hurt, mark, roll, skewed, study

from edgekeeper.report.figures.drains import drains
from edgekeeper.report.figures.gaps import f11, find
from edgekeeper.report.figures.switchover import FAILED, RESTARTED, SWITCHED, f12, hand_overs
from edgekeeper.report.kinds import Kind
from edgekeeper.report.study import Gap

SEALED = Gap("sealed", r"openbao-(?P<n>\d) sealed", r"openbao-(?P<n>\d) unsealed", "n")


def note(at: float, what: str, source: str = "log", stamp_s: float = 0.0):
    return mark(at, Kind.NOTE, "vault", source, stamp_s=stamp_s, what=what)


def test_a_begin_is_paired_with_the_next_end_of_its_key() -> None:
    made = study([note(10, "openbao-0 sealed"), note(20, "openbao-1 sealed"), note(30, "openbao-1 unsealed"), note(2110, "openbao-0 unsealed")], gaps=(SEALED,))
    found, lonely = find(made, SEALED)
    assert [(f.key, f.span.min_s) for f in found] == [("0", 2100.0), ("1", 10.0)]
    assert lonely == 0
    assert f11(made).answer == "2 intervals; the longest is sealed (0), 35 min 0 s"


def test_stamps_and_clocks_widen_it() -> None:
    gap = Gap("back", "left", "came back")
    made = study([note(10, "left", "a", 1.0), note(83, "came back", "b", 1.0)], gaps=(gap,))
    skewed(made, "b", -0.5, 0.5, 0.0)
    (found,), _ = find(made, gap)
    assert (found.span.min_s, found.span.max_s) == (71.5, 74.5)


def test_one_that_did_not_end_is_open_and_a_pair_without_a_begin_is_said() -> None:
    made = study([note(10, "left")], gaps=(Gap("back", "left", "came back"), Gap("certificate", "order", "arrived")))
    figure = f11(made)
    assert figure.answer == "1 interval; the longest is back, at least 23 min 50 s"
    assert figure.notes == ("certificate: no begin was found",)
    assert figure.data["gaps"][0]["max_s"] is None


def test_a_pattern_that_is_none_is_said_and_the_others_are_computed() -> None:
    made = study([note(10, "left"), note(20, "came back")], gaps=(Gap("wrong", "(", "x"), Gap("back", "left", "came back")))
    figure = f11(made)
    assert figure.notes[0].startswith("the pair wrong: '(' is no RE2 expression (missing")
    assert "back, 10 s" in figure.answer
    assert not f11(study()).measured


def switch(at: float, kind: Kind = Kind.DB_SWITCHOVER, source: str = "events"):
    return mark(at, kind, "home/ha-pg", source, stamp_s=1.0, **{"from": "ha-pg-1", "to": "ha-pg-2"})


def test_a_switchover_beside_a_restart() -> None:
    marks = [switch(110), mark(112.5, Kind.DB_PROMOTED, "/ha-pg", "cnpg"), *roll("n1", 100, "home/ha-pg-1", "git/gitea-pg-1", "git/gitea-0")]
    made = study(marks, feeds={"ha@docker": "home/ha-pg"})
    made.drains = drains(made)
    ask(made, "ha@docker", [0.0])
    ask(made, "gitea@docker", [0.0])
    made.outages = (hurt("ha@docker", 111, 113, wide_s=0.5), hurt("gitea@docker", 115, 160))
    second, first = sorted(hand_overs(made), key=lambda h: h.way)
    assert (first.cluster, first.way, first.said) == ("home/ha-pg", SWITCHED, "ha-pg-1 to ha-pg-2")
    assert first.promoted is not None
    assert (first.promoted.min_s, first.promoted.max_s) == (1.5, 2.5)
    assert first.dark is not None
    assert first.dark.max_s == 2.5
    assert (second.cluster, second.way) == ("git/gitea-pg", RESTARTED)
    assert second.dark is not None
    assert second.dark.min_s == 45.0
    assert f12(made).answer == (
        "1 switchover, the longest with 2.00 s to 2.50 s of outage on its route; 1 restart elsewhere, the longest with 45 s to 47 s of outage on its route"
    )


def test_the_operator_and_the_event_tell_the_same_one() -> None:
    bare = replace(switch(111, source="cnpg"), object="/ha-pg", data={})
    assert [h.way for h in hand_overs(study([bare, switch(112), switch(600, Kind.DB_FAILOVER)]))] == [SWITCHED, FAILED]
    assert hand_overs(study([bare, switch(112)]))[0].at == T0 + 112


def test_without_a_known_route_nothing_is_claimed() -> None:
    figure = f12(study([switch(110)]))
    assert figure.answer == "1 switchover, of which no route is known"
    assert "home/ha-pg" in figure.notes[0]
    assert not f12(study()).measured
