"""Records of a load balancer's clients as figures."""

from __future__ import annotations

import json
import math

import pytest

from edgekeeper.lab import held


def warm(client: int, sent: float, done: float, *, ok: bool = True, by: str | None = "cp1", error: str | None = None) -> list[object]:
    return ["warm", client, 1, sent, done, ok, by if ok else None, None if ok else error or "timeout"]


def read(*lines: list[object]) -> held.Held:
    return held.read(json.dumps(line) for line in lines)


PINNED = read(
    warm(0, 0.0, 0.01),
    warm(0, 1.0, 5.0, ok=False),
    warm(0, 5.0, 9.0, ok=False),
    warm(1, 0.5, 0.51, by="cp2"),
    warm(1, 8.5, 8.51, by="cp2"),
)
CUT = read(
    warm(0, 0.0, 0.01),
    warm(0, 1.0, 3.25, ok=False, error="connection ended"),
    ["cut", 0, 1, 3.25, 3.25, True, None, "connection ended"],
    warm(0, 3.3, 3.31, by="cp3"),
    ["fresh", 0, 0, 1.0, 4.0, False, None, "timeout"],
    ["fresh", 1, 0, 4.0, 4.02, True, "cp2", None],
)


def test_a_pinned_client_is_without_an_answer_to_the_end() -> None:
    figures = held.tally(PINNED)
    assert (figures.asked, figures.unanswered, figures.hung, figures.lost_most, figures.cuts) == (5, 2, 2, 2, 0)
    assert figures.unserved == 1
    assert figures.longest_s == 8.0
    assert figures.victim == 0
    assert figures.outage is not None
    assert figures.outage.text() == "at least 8.00 s"
    assert held.last_served(PINNED) == {0: "cp1", 1: "cp2"}


def test_a_client_that_was_cut() -> None:
    figures = held.tally(CUT)
    assert figures.longest_s == 3.0, "a fresh request that was given up after 3 s waited longer than the client that was cut"
    assert (figures.lost_most, figures.cuts_most, figures.unserved) == (1, 1, 0)
    assert figures.again_s == pytest.approx(0.06)
    assert (figures.fresh_asked, figures.fresh_unanswered) == (2, 1)
    assert figures.by == {"cp1": 1, "cp2": 1, "cp3": 1}


def test_bounds_of_one_warm_client() -> None:
    (outage,) = held.outages_of([r for r in CUT.requests if r.kind == "warm"])
    assert (outage.min_s, outage.max_s) == (pytest.approx(2.25), pytest.approx(3.31))
    (open_end,) = held.outages_of([r for r in PINNED.requests if r.client == 0])
    assert math.isinf(open_end.max_s)


def test_from_a_moment_on() -> None:
    assert held.after(CUT, 3.0) == pytest.approx(0.31)
    assert held.after(CUT, 3.3) == 0.0, "nobody was waiting"
    assert held.after(PINNED, 4.0) == pytest.approx(5.0), "no answer came: to the last record"


def test_what_is_no_record_is_refused() -> None:
    with pytest.raises(ValueError, match="is not a record"):
        held.read(['["warm", 1]'])
