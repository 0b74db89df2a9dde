"""What the journal's lines about a watch come to."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from edgekeeper.model.time import Span
from edgekeeper.watch.history import Ending, WatchHistory, histories, items, lost, median, worst


def line(at: float, event: str, why: str = "why", watch: str = "mesh", **data: Any) -> tuple[float, dict[str, Any]]:
    return at, {"node": "edge-a", "role": "watch", "event": f"watch.{event}", "object": watch, "decision": "hold", "why": why, "data": data}


def told(*lines: tuple[float, dict[str, Any]]) -> WatchHistory:
    (one,) = histories(items(lines))
    return one


def cured(at: float, low: float = 1.0, high: float = 2.0) -> list[tuple[float, dict[str, Any]]]:
    return [line(at, "armed"), line(at + 1, "confirmed"), line(at + 1, "cured", step="docker"), line(at + 2, "proved", recovered_s=[low, high])]


def test_a_cure_that_is_proved_has_its_time_to_recover() -> None:
    one = told(*cured(100, 2.1, 2.4))
    assert [t.ending for t in one.troubles] == [Ending.CURED]
    assert one.recovered == (Span(2.1, 2.4),)
    assert one.troubles[0].by_line
    assert one.troubles[0].steps == 1


def test_without_its_figure_the_lines_themselves_bound_it() -> None:
    assert told(line(100, "armed"), line(101, "cured"), line(103.5, "proved")).recovered == (Span(0, 3.5),)
    assert told(line(100, "armed"), line(103.5, "proved", recovered_s=[5, "x"])).recovered == (Span(0, 3.5),), "strange data count as none"


def test_a_line_of_a_service_that_never_failed_is_a_false_alarm() -> None:
    one = told(line(100, "armed"), line(120, "disarmed", failed=0))
    assert one.count(Ending.FALSE) == 1
    assert one.healed == (0, 0)
    assert one.healed_text() == ""


def test_one_that_failed_and_answered_again_healed_by_itself() -> None:
    one = told(line(100, "armed"), line(120, "disarmed", failed=1), *cured(200), line(300, "armed"), line(301, "confirmed"), line(340, "cancelled", failed=40))
    assert one.healed == (2, 3)
    assert "2 of 3 (" in one.healed_text()
    assert "at least so many" in one.healed_text()


def test_what_was_cancelled_is_not_counted_again_when_it_is_disarmed() -> None:
    one = told(line(100, "armed"), line(101, "confirmed"), line(101, "suppressed", held_by="budget"), line(130, "cancelled"), line(141, "disarmed", failed=0))
    assert [t.ending for t in one.troubles] == [Ending.HEALED]
    assert told(line(100, "armed"), line(101, "confirmed"), line(141, "disarmed", failed=0)).count(Ending.HEALED) == 1, "it was confirmed, so it was real"
    assert one.held == {"budget": 1}


def test_one_that_somebody_else_restarted_did_not_heal_by_itself() -> None:
    one = told(line(100, "armed"), line(101, "confirmed"), line(101, "suppressed", held_by="budget"), line(300, "cancelled", failed=9, by="start"))
    assert one.count(Ending.RESTARTED) == 1
    assert one.healed == (0, 0)


def test_the_next_process_goes_on_with_what_the_last_one_left() -> None:
    one = told(line(100, "armed"), line(101, "confirmed"), line(130, "started"), line(130.2, "armed"), line(133, "cured"), line(135, "proved"))
    assert [t.ending for t in one.troubles] == [Ending.CURED]
    assert one.recovered == (Span(0, 35),)


def test_a_trouble_whose_end_is_not_in_the_journal_is_not_known() -> None:
    one = told(line(100, "armed"), *cured(5000), line(6000, "confirmed"))
    assert [t.ending for t in one.troubles] == [Ending.UNKNOWN, Ending.CURED, Ending.OPEN]
    assert not one.troubles[2].by_line, "a probe alone told of it"


def test_shadow_steps_in_vain_and_blindness_are_counted() -> None:
    one = told(
        line(100, "armed"), line(101, "confirmed"), line(101, "suppressed", held_by="shadow"), line(130, "cancelled"),
        line(200, "blind"), line(210, "sees"),
        line(300, "confirmed"), line(301, "cured"), line(320, "not_proved"), line(321, "suppressed", held_by="guard"), line(400, "cured"), line(402, "proved"),
    )  # fmt: skip
    assert [t.shadowed for t in one.troubles] == [True, False]
    assert one.blind == 1
    assert (one.troubles[1].steps, one.troubles[1].in_vain, one.troubles[1].held) == (2, 1, ["guard"])


def test_watches_are_told_apart_and_one_can_be_asked_for() -> None:
    lines = [*cured(100), line(150, "armed", watch="dns"), (160, {"role": "lb", "event": "lb.held", "object": "mesh"})]
    assert [(one.watch, len(one.troubles)) for one in histories(items(lines))] == [("dns", 1), ("mesh", 1)]
    assert [one.watch for one in histories(items(lines, "dns"))] == ["dns"]
    assert items(lines, "none") == ()


def test_the_median_and_the_worst_of_intervals_are_intervals() -> None:
    spans = [Span(1, 2), Span(3, 9), Span(4, 5)]
    assert median(spans) == Span(3, 5)
    assert worst(spans) == Span(4, 9)
    assert median([]) is worst([]) is None


def test_entries_that_could_not_be_written_are_counted() -> None:
    assert lost([line(1, "armed", lost_before=3), line(2, "armed"), (3, {"data": None}), line(4, "armed", lost_before=True)]) == 3


EVENTS = ["started", "armed", "disarmed", "confirmed", "suppressed", "cancelled", "cured", "not_proved", "proved", "blind", "sees", "later"]
strange = st.one_of(
    st.none(), st.integers(-3, 3), st.text(max_size=3), st.lists(st.floats(allow_nan=True), max_size=3), st.just({"held_by": 7, "failed": None})
)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(st.sampled_from(EVENTS), strange), max_size=25))
def test_whatever_the_journal_holds(events: list[tuple[str, Any]]) -> None:
    lines: list[tuple[float, dict[str, Any]]] = []
    for number, (event, data) in enumerate(events):
        at, fields = line(100.0 + number, event)
        lines.append((at, {**fields, "data": data}))
    for one in histories(items(lines)):
        hits, cases = one.healed
        assert 0 <= hits <= cases <= len(one.troubles)
        assert sum(one.count(ending) for ending in Ending) == len(one.troubles)
        assert all(span.min_s <= span.max_s for span in one.recovered)
        assert one.count(Ending.CURED) == len(one.recovered)
        assert one.count(Ending.OPEN) <= 1, "all but the last are over"
        share = one.healed_share()
        assert share is None or 0 <= share[0] <= share[1] <= 1
    lost(lines)


@pytest.mark.parametrize("said", [None, "", [1], [2, 1], [-1, 2], [True, 2], [float("nan"), 1], [1, 2, 3]])
def test_a_time_to_recover_that_cannot_be_true_is_none(said: Any) -> None:
    (item,) = items([line(100, "proved", recovered_s=said)])
    assert item.recovered is None
