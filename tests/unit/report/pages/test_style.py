from __future__ import annotations

import re

import pytest

from edgekeeper.report.pages.style import DRAWN_PAIRS, PALETTES, TEXT_PAIRS, sheet


def luminance(colour: str) -> float:
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one: str, two: str) -> float:
    dark, light = sorted((luminance(one), luminance(two)))
    return (light + 0.05) / (dark + 0.05)


def test_the_measure_is_that_of_wcag() -> None:
    assert contrast("#000000", "#ffffff") == pytest.approx(21)
    assert contrast("#777777", "#ffffff") == pytest.approx(4.48, abs=0.01)


@pytest.mark.parametrize("scheme", PALETTES)
@pytest.mark.parametrize(("text", "ground"), TEXT_PAIRS)
def test_text_can_be_read(scheme: str, text: str, ground: str) -> None:
    assert contrast(PALETTES[scheme][text], PALETTES[scheme][ground]) >= 4.5


@pytest.mark.parametrize("scheme", PALETTES)
@pytest.mark.parametrize(("tone", "ground"), DRAWN_PAIRS)
def test_what_is_drawn_can_be_seen(scheme: str, tone: str, ground: str) -> None:
    assert contrast(PALETTES[scheme][tone], PALETTES[scheme][ground]) >= 3


def test_the_sheet_fetches_nothing_and_uses_only_its_own_colours() -> None:
    css = sheet()
    assert not re.search(r"@import|url\((?!#)|https?:|expression|//", css)
    assert set(re.findall(r"var\(--([a-z]+)\)", css)) <= set(PALETTES["light"])
    assert PALETTES["light"].keys() == PALETTES["dark"].keys()


def test_paper_is_white_whatever_the_screen_is() -> None:
    assert "@media screen and (prefers-color-scheme:dark)" in sheet()
