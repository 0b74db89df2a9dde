"""What is proven by nothing seen, against published values."""

from __future__ import annotations

import pytest

from edgekeeper.measure.binomial import never_seen, silent


@pytest.mark.parametrize(("cases", "share"), [(3, 0.63), (10, 0.26), (30, 0.095), (59, 0.05), (3400, 0.00088)])
def test_nothing_seen_is_not_nothing(cases: int, share: float) -> None:
    assert never_seen(cases) == pytest.approx(share, rel=0.01)
    assert never_seen(0) == 1


def test_silence_of_four_requests_a_minute_is_no_proof() -> None:
    assert silent(4) == pytest.approx(0.0183, abs=1e-4)
    assert silent(0) == 1
