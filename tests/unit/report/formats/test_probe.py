from __future__ import annotations

import json
from dataclasses import asdict
from typing import Any

import pytest
from tests.fakes.eventlines import items

from edgekeeper.model.sample import SCHEMA, Sample
from edgekeeper.report.formats.journal import JOURNAL
from edgekeeper.report.formats.probe import PROBE_RECORD
from edgekeeper.report.kinds import MISSING_FIELD, NO_TIME, NOT_THIS_FORMAT, TRUNCATED, WRONG_TYPE, Kind, Mark, Skip

AT = 1788756761.25


def line(**more: Any) -> str:
    """A record as ``probe --record`` writes it: sent and done are seconds since the machine started."""
    sample = Sample(AT, "https://git.example/", "fresh", 77.5, 77.75, ok=True, connect_ms=1.5)
    return json.dumps({"schema": SCHEMA, **asdict(sample), **more})


def test_a_record_is_put_on_the_wall_clock() -> None:
    (sample,) = items(PROBE_RECORD, line())
    assert sample == Sample(AT, "https://git.example/", "fresh", AT, AT + 0.25, ok=True, connect_ms=1.5)
    assert PROBE_RECORD.likes(line().encode())
    assert not JOURNAL.likes(line().encode())


def test_a_failure_keeps_its_reason_on_one_line() -> None:
    (sample,) = items(PROBE_RECORD, line(ok=False, error="refused\x1b[2J"))
    assert isinstance(sample, Sample)
    assert (sample.ok, sample.error) == (False, "refused\\x1b[2J")


def test_an_id_is_a_moment_that_another_log_may_have() -> None:
    sample, shared = items(PROBE_RECORD, line(id="a-7"))
    assert isinstance(sample, Sample)
    assert isinstance(shared, Mark)
    assert (shared.kind, shared.object, shared.at, shared.data) == (Kind.CLOCK, "a-7", AT, {"side": "sent", "until": AT + 0.25})
    assert len(items(PROBE_RECORD, line(id="a-8", ok=False))) == 1


def test_fields_of_later_versions_do_no_harm() -> None:
    assert len(items(PROBE_RECORD, line(colour="blue"))) == 1


@pytest.mark.parametrize(
    ("record", "reason"),
    [
        (line(schema=2), NOT_THIS_FORMAT),
        (line(done=77.0), NO_TIME),
        (line(ts=-1.0), NO_TIME),
        (line(ok="yes"), WRONG_TYPE),
        (line()[:-9], TRUNCATED),
        ('{"schema": 1}', MISSING_FIELD),
    ],
)
def test_what_cannot_be_read_is_counted(record: str, reason: str) -> None:
    assert items(PROBE_RECORD, record) == [Skip(reason)]


@pytest.mark.parametrize(
    ("ts_s", "steady_s", "said"),
    [
        (1.0, 1.0, ""),
        (1.9, 1.0, ""),
        (-399.0, 1.0, "the clock was set back by 400.0 s"),
        (301.0, 1.0, "the clock was set forward by 300.0 s, or the machine slept for so long"),
        (40.0, -70.0, ""),  # the machine was started anew
        (1.0, 5000.0, ""),  # the record of another machine
    ],
)
def test_a_clock_that_was_set_is_noted(ts_s: float, steady_s: float, said: str) -> None:
    second = line(ts=AT + ts_s, sent=77.5 + steady_s, done=77.75 + steady_s)
    notes = [one for one in items(PROBE_RECORD, f"{line()}\n{second}") if isinstance(one, Mark)]
    assert [note.what for note in notes] == ([said] if said else [])
