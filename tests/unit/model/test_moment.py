from __future__ import annotations

import pytest

from edgekeeper.model.moment import Moment, elapsed, strayed


@pytest.mark.parametrize(
    ("then", "now", "seconds"),
    [
        (Moment(1000, 50, "a", 50), Moment(4660, 110, "a", 90), 60),  # set ahead by an hour, asleep for 20 s
        (Moment(1000, 50, "a", 50), Moment(5, 110, "a", 110), 60),  # set back
        (Moment(1000, 50, "a", 50), Moment(1000, 40, "a", 40), 0),  # read by two processes, handed over in the other order
        (Moment(1000, 50, "a", 50), Moment(1300, 20, "b", 20), 300),  # rebooted
        (Moment(1000, 50, "a", 50), Moment(7, 20, "b", 20), 20),  # rebooted, and the clock lost the time
        (Moment(1000, 50, "", 50), Moment(1060, 110, "b", 110), 60),  # of a store that only knew the wall clock
        (Moment(1000, 50, "", 50), Moment(900, 110, "", 110), 0),  # of a kernel that does not tell its boot
    ],
)
def test_how_long_ago_a_moment_was(then: Moment, now: Moment, seconds: float) -> None:
    assert elapsed(then, now) == seconds


def test_what_was_done_to_the_wall_clock() -> None:
    then = Moment(1000, 50, "a", 50)
    assert strayed(then, then.later(60)) == 0
    assert strayed(then, Moment(1000 + 60 - 3600, 110, "a", 110)) == 3600
