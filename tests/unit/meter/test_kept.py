"""What is told of a target: once when it stops answering, once when it answers again; and the live table of it."""

from __future__ import annotations

from collections import deque

import pytest

from edgekeeper.meter.kept import Kept, Told
from edgekeeper.meter.live import SHOWN, Recent, cost, rows, sentence, sparkline
from edgekeeper.meter.tell import MOST, Purse
from edgekeeper.model.sample import Sample

A, B = ("dns://192.0.2.53/a.example", "fresh"), ("https://edge.example/", "warm")


def sample(key: tuple[str, str], sent: float, *, ok: bool = True, took: float = 0.01, error: str | None = None, slow: bool = False) -> Sample:
    return Sample(sent, key[0], key[1], sent, sent + took, ok, slow=slow, error=error)


def fed(kept: Kept, *samples: Sample) -> list[Told]:
    return [told for one in samples for told in kept.take(one, one.done)]


def test_an_outage_is_told_when_it_begins_and_when_it_ends() -> None:
    kept = Kept((A, B))
    told = fed(kept, sample(A, 0), sample(A, 1, ok=False, error="refused"), sample(A, 2, ok=False), sample(B, 2), sample(A, 3))
    assert [(t.key, t.ended) for t in told] == [(A, False), (A, True)]
    assert (told[0].why, told[1].outage.bad, told[1].outage.max_s) == ("refused", 2, 3.01)
    assert sentence(told[0]) == "dns://192.0.2.53/a.example does not answer (refused)"
    assert sentence(told[1]) == "dns://192.0.2.53/a.example answers again: it was out for 0.99 s to 3.01 s, 2 questions unanswered"


def test_what_waits_behind_a_question_under_way_is_told_at_the_end() -> None:
    kept = Kept((A,))
    assert kept.take(sample(A, 1, ok=False), until=0.5) == []
    (told,) = kept.finish()
    assert (told.ended, told.outage.first_bad) == (False, 1)
    assert kept.finish() == []


def test_targets_that_are_out_stand_first_in_the_table() -> None:
    kept, recent = Kept((A, B)), Recent()
    for one in (sample(A, 0), sample(B, 0), sample(B, 1, ok=False, error="timed out"), sample(A, 1, took=1.5, slow=True)):
        recent.take(one)
        kept.take(one, one.done)
    out, slow = rows(kept, recent, now=6.0)
    assert out[:3] == ("https://edge.example/ (warm)", "OUT", "less than 5.00 s")
    assert out[-1] == "timed out"
    assert slow[:3] == (A[0], "slow", "1500.0 ms")


def test_a_sparkline_has_one_character_an_answer_and_marks_what_was_lost() -> None:
    line = sparkline(deque([0.0001, 0.0006, 0.05, 1.0, 100.0, None]))
    assert len(line) == 6
    assert line[-1] == "✗"
    assert list(line[:5]) == sorted(line[:5]), "longer answers have taller bars"
    assert (line[0], line[4]) == ("▁", "█")


def test_only_the_last_answers_are_kept_for_it() -> None:
    recent = Recent()
    for number in range(3 * SHOWN):
        recent.take(sample(A, number))
    assert len(recent.seen[A]) == SHOWN


def test_the_cost_is_in_shares_of_a_core() -> None:
    assert cost(200, 0.25, 0.25) == "200 connections asked every 250ms: 800 questions a second, about 20 % of a core"


@pytest.mark.parametrize("pause", [0.0, 1.0])
def test_a_flapping_target_fills_no_journal(pause: float) -> None:
    purse, written, now = Purse(), 0, 0.0
    for _ in range(3 * MOST):
        written += purse.may(A, now)
        now += pause
    assert MOST <= written <= MOST + 3 * MOST * pause / 60 + 1
    assert purse.left_out(A) > 0
    assert purse.may(B, now), "another target has its own"
    assert purse.may(A, now + 120.0)
    assert purse.left_out(A) == 0
