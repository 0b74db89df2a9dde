"""F9 and F10: what watchdogs did, what another cooldown would have done, and how good a fingerprint is."""

from __future__ import annotations

import pytest
from tests.fakes.studies import T0, mark, study

from edgekeeper.report.figures.triggers import Ending, Trigger, bursts, triggers
from edgekeeper.report.figures.watchdog import cooldowns, f9, f10, replay, restart_takes
from edgekeeper.report.kinds import Kind, Mark

PROXY = "netbird-proxy"


def seen(at: float, count: int = 1, host: str = "edge-1") -> list[Mark]:
    return [mark(at + i, Kind.FINGERPRINT, PROXY, "journal", host) for i in range(count)]


def restarted(at: float, took: float = 2.0, host: str = "edge-1") -> list[Mark]:
    return [*seen(at, 1, host), mark(at, Kind.WATCH_ACTING, PROXY, "journal", host), mark(at + took, Kind.WATCH_RESTARTED, PROXY, "journal", host)]


def suppressed(at: float, cooldown: float = 600.0, since: float | None = None, host: str = "edge-1") -> list[Mark]:
    return [*seen(at, 1, host), mark(at, Kind.WATCH_SUPPRESSED, PROXY, "journal", host, cooldown_s=cooldown, since_s=since)]


def answers(at: float, host: str = "edge-1") -> Mark:
    return mark(at, Kind.WATCH_PROBE, "https://git.example/", "journal", host, ok=True)


def failed(at: float, number: int, host: str = "edge-1") -> Mark:
    return mark(at, Kind.WATCH_PROBE, "https://git.example/", "journal", host, ok=False, round=float(number), rounds=3.0)


def slow_restart(at: float) -> list[Mark]:
    return [mark(at, Kind.WATCH_ACTING, PROXY, "journal", "edge-1"), mark(at + 2, Kind.WATCH_RESTARTED, PROXY, "journal", "edge-1")]


AFTERNOON = [
    *restarted(0),
    answers(3),
    *restarted(700),
    answers(703),
    *suppressed(1000),
    failed(1060, 1),
    failed(1120, 2),
    failed(1180, 3),
    *slow_restart(1207),
    answers(1210),
]
"""Three kills: the third within the cooldown, so that the slow watchdog of the URL has to act after three rounds of a minute."""


def test_a_restart_and_its_answer() -> None:
    found = triggers(study([*restarted(100), answers(104)]))
    (trigger,) = found["edge-1"]
    assert (trigger.at, trigger.restarted, trigger.answered, trigger.ending) == (T0 + 100, T0 + 102, T0 + 104, Ending.RESTART)
    assert trigger.dark_s == 4.0


def test_a_suppressed_one_that_recovered_by_itself() -> None:
    routes_back = mark(454, Kind.NOTE, "git.example", "proxy.log", "edge-1", service=PROXY, state="routed")
    made = study([*restarted(100), *suppressed(380, since=278.0), routes_back])
    first, second = triggers(made)["edge-1"]
    assert first.ending == Ending.RESTART
    assert (second.suppressed, second.since_s, second.left_s, second.dark_s, second.ending) == (True, 278.0, 322.0, 74.0, Ending.ITSELF)
    assert f9(made).answer == (
        "2 triggers on 1 host: 1 restart, 1 suppressed by a cooldown; restarted within 2.0 s of the trigger; "
        "the longest suppressed one lasted 74.0 s and was ended by the service itself"
    )


def test_a_suppressed_one_that_the_slow_watchdog_ended() -> None:
    made = study(AFTERNOON)
    several = triggers(made)["edge-1"]
    assert [(t.at - T0, t.suppressed, t.ending) for t in several] == [(0, False, Ending.RESTART), (700, False, Ending.RESTART), (1000, True, Ending.LATER)]
    assert several[2].dark_s == 210.0
    assert several[2].since_s == 298.0


def test_a_new_burst_later_is_a_new_trigger_and_not_the_end_of_the_old() -> None:
    several = triggers(study([*suppressed(100), *restarted(500), answers(503)]))["edge-1"]
    assert [(t.at - T0, t.ending, t.dark_s) for t in several] == [(100, Ending.UNKNOWN, None), (500, Ending.RESTART, 3.0)]


def test_a_flood_that_is_suppressed_line_by_line_is_one_trigger() -> None:
    assert len(triggers(study([m for i in range(20) for m in suppressed(100 + i)]))["edge-1"]) == 1


def test_hosts_are_told_apart_and_services_of_one_host_too() -> None:
    other = [mark(100, Kind.WATCH_ACTING, "haproxy", "journal", "edge-1"), mark(101, Kind.WATCH_RESTARTED, "haproxy", "journal", "edge-1")]
    found = triggers(study([*restarted(100), *restarted(100, host="edge-2"), *other]))
    assert sorted(found) == ["edge-1: haproxy", "edge-1: netbird-proxy", "edge-2"]


@pytest.mark.parametrize(("cooldown", "restarts", "held", "dark"), [(0, 3, 0, 3.0), (60, 3, 0, 3.0), (300, 3, 0, 3.0), (600, 3, 1, 210.0), (500, 3, 1, 203.0)])
def test_another_cooldown(cooldown: float, restarts: int, held: int, dark: float) -> None:
    told = [Trigger(0.0, "", ""), Trigger(700.0, "", ""), Trigger(1000.0, "", "", suppressed=True, restarted=1207.0, answered=1210.0, ending=Ending.LATER)]
    found = replay(told, cooldown, 3.0)
    assert (found.restarts, found.suppressed, found.dark_max_s) == (restarts, held, dark)


def test_a_cooldown_is_measured_from_a_restart_before_the_record() -> None:
    told = [Trigger(100.0, "", "", suppressed=True, cooldown_s=600.0, since_s=278.0, answered=174.0, ending=Ending.ITSELF)]
    assert replay(told, 600.0, 3.0).suppressed == 1
    assert replay(told, 600.0, 3.0).dark_max_s == 74.0
    assert replay(told, 60.0, 3.0).suppressed == 0


def test_what_a_restart_needs_is_not_invented() -> None:
    assert replay([Trigger(0.0, "", "")], 0.0, None).dark_max_s is None
    late = Trigger(0.0, "", "", suppressed=True, restarted=207.0, answered=210.0)
    assert restart_takes([late]) is None
    assert restart_takes([late, Trigger(0.0, "", "", restarted=2.0, answered=4.0), Trigger(0.0, "", "", restarted=2.0)]) == 4.0


def test_the_table_of_cooldowns() -> None:
    figure = cooldowns(study(AFTERNOON))
    assert figure.answer == "of those tried, 120 s is the longest that holds no trigger back"
    assert [(row["cooldown_s"], row["suppressed"]) for row in figure.data["cooldowns"]] == [(0, 0), (30, 0), (60, 0), (120, 0), (300, 1), (600, 1)]
    assert not cooldowns(study()).measured


def test_bursts_and_what_became_of_them() -> None:
    act = [mark(t, Kind.WATCH_RESTARTED, PROXY, "journal", "edge-1") for t in (40, 215)]
    made = study([*seen(0, 20), answers(30), *seen(200, 10), *act, answers(220), *seen(1000, 2)])
    found = bursts(made)
    assert [(b.count, b.itself) for b in found] == [(20, True), (10, False), (2, None)]
    assert found[0].per_minute == pytest.approx(20 * 60 / 19)
    figure = f10(made)
    assert figure.data["itself"] == 1
    assert figure.data["told"] == 2
    assert (round(figure.data["precision_low"], 3), round(figure.data["precision_high"], 3)) == (0.013, 0.987)
    assert "1 of fewer than three lines" in figure.answer


def test_nothing_is_measured_without_a_watchdog() -> None:
    assert not f9(study([answers(5)])).measured
    assert not f10(study()).measured
    assert "cannot be told" in f10(study(seen(0, 5))).answer
