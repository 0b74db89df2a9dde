"""What clients of a watched service saw, as figures."""

from __future__ import annotations

import json

import pytest

from edgekeeper.lab.visits import answered, both_dark_s, dark_s, lost, read, worst
from edgekeeper.model.sample import Sample


def samples(*said: tuple[float, float, bool]) -> tuple[Sample, ...]:
    """Questions as (sent, done, answered)."""
    return tuple(Sample(0.0, "http://192.0.2.11/", "fresh", sent, done, ok) for sent, done, ok in said)


WEDGED = samples((1.0, 1.01, True), (1.5, 1.51, True), (2.0, 3.0, False), (2.5, 3.5, False), (3.0, 3.01, True), (3.5, 3.51, True))


def test_the_dark_time_ends_with_the_first_answer_to_a_question_of_after_the_wedge() -> None:
    assert answered(WEDGED, 1.2) == 3.01, "the good answer at 1.51 came before anything failed"
    assert dark_s(WEDGED, 1.2) == pytest.approx(1.81)
    assert lost(WEDGED) == 2
    found = worst(WEDGED)
    assert found is not None
    assert found.bad == 2


def test_without_an_answer_it_lasts_to_the_last_record() -> None:
    assert answered(WEDGED[:4], 1.2) is None
    assert dark_s(WEDGED[:4], 1.2) == pytest.approx(2.3)


def test_where_the_clock_begins_later_than_the_wedge_the_failure_of_before_counts() -> None:
    assert answered(WEDGED, 2.9) is None, "nothing failed after that moment"
    assert dark_s(WEDGED, 2.9, wedged=1.2) == pytest.approx(0.11)


def test_two_are_dark_from_the_later_failure_to_the_earlier_answer() -> None:
    other = samples((1.0, 1.01, True), (2.2, 3.2, False), (4.0, 4.01, True))
    assert both_dark_s(WEDGED, other, 1.2) == pytest.approx(3.01 - 2.2)
    assert both_dark_s(WEDGED, samples((1.0, 1.01, True), (3.0, 3.01, True)), 1.2) == 0.0
    assert both_dark_s(WEDGED[:4], other[:2], 1.2) == pytest.approx(3.5 - 2.2), "until the last record, where none came back"


def test_records_are_read_by_target_and_in_order() -> None:
    def line(target: str, sent: float) -> str:
        return json.dumps({"schema": 1, "ts": 0.0, "target": target, "conn": "fresh", "sent": sent, "done": sent + 0.1, "ok": True})

    found = read([line("http://192.0.2.12/", 2.0), line("http://192.0.2.11/", 3.0), line("http://192.0.2.12/", 1.0)])
    assert [s.sent for s in found["http://192.0.2.12/"]] == [1.0, 2.0]
    assert list(found) == ["http://192.0.2.12/", "http://192.0.2.11/"]
    with pytest.raises(ValueError, match="schema 1"):
        read(['{"schema": 2}'])
    with pytest.raises(ValueError, match="not a record of a probe"):
        read(['{"schema": 1, "strange": true}'])
