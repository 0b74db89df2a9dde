from __future__ import annotations

import pytest

from edgekeeper.engines.haproxy.detection import sentence, worst


@pytest.mark.parametrize(
    ("said", "wanted"),
    [
        ((2.0, None, None, 3), (10.0, 12.0)),  # measured with 2.6 and 3.2: 11.1 s
        ((1.0, None, None, 2), (3.0, 4.0)),  # measured: 3.15 s
        ((1.0, None, 2.0, 3), (8.0, 9.0)),  # measured: 8.1 to 8.8 s
        ((1.0, 0.5, 0.5, 2), (1.5, 2.5)),  # measured: 2.2 s (3.2), 2.7 s (2.6) from the client's side
        ((10.0, None, None, 2), (30.0, 40.0)),
        ((1.0, 0.5, 0.5, 1), (0.5, 1.5)),
    ],
)
def test_the_sum(said: tuple[float, float | None, float | None, int], wanted: tuple[float, float]) -> None:
    assert worst(*said) == wanted


def test_spread_checks_widens_it_on_both_sides() -> None:
    assert worst(2.0, None, None, 3, spread=50) == (8.0, 15.0)


def test_the_sentence_has_the_figures_that_it_is_made_of() -> None:
    text = sentence(2.0, 1.0, 0.5, 3)
    assert text.startswith("3.5s to 5.5s: up to 2s until the next check, 500ms + 2 x (1s + 500ms)")
    assert "timeout check" in text
    assert "inter, since no timeout check is set" in sentence(2.0)
