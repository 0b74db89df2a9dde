from __future__ import annotations

from edgekeeper.watch.seams import LATE_S, Answer


def test_a_failure_that_was_read_late_says_nothing_and_a_good_answer_is_good_however_late() -> None:
    failed, good = (Answer(well, "so", 100.0) for well in (False, True))
    assert not failed.stale(101.0 + LATE_S, 1.0)
    assert failed.stale(101.1 + LATE_S, 1.0)
    assert not good.stale(200.0, 1.0)
