from __future__ import annotations

import math
import re
from dataclasses import replace
from html.parser import HTMLParser
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.fakes import reports

from edgekeeper.model.text import printable
from edgekeeper.report.document import Bar, Figure, Report, Row, Series, Table, Timeline
from edgekeeper.report.pages import html
from edgekeeper.report.pages.when import fixed

VOID = {"meta", "link", "br", "wbr"}
TAGS = (
    " html head meta title link style body div header main section article nav footer p h1 h2 h3 span b a ul li dl dt dd figure figcaption table caption "
    "thead tbody tr th td details summary svg desc defs pattern path line rect text circle use g wbr "
)
ATTRIBUTES = (
    " aria-hidden aria-label aria-labelledby charset class content cx cy d dx height href http-equiv id lang name patterntransform patternunits "
    "preserveaspectratio r rel role scope style tabindex text-anchor title viewbox width x x1 x2 y y1 y2 "
)


class Page(HTMLParser):
    """The elements of a page, and whether it is well-formed."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.words: list[tuple[str, str]] = []
        self.open: list[str] = []
        self.comments: list[str] = []
        self.feed(text)
        self.close()
        assert not self.open

    def handle_starttag(self, tag, attrs):
        assert len(dict(attrs)) == len(attrs)
        self.elements.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.words.append((self.open[-1] if self.open else "", data))

    def handle_comment(self, data):
        self.comments.append(data)

    def all(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.elements if name == tag]

    def texts(self, tag: str) -> list[str]:
        return [data for name, data in self.words if name == tag]


@pytest.fixture(scope="module")
def demo() -> str:
    return html.render(reports.demo())


@pytest.fixture(scope="module")
def page(demo: str) -> Page:
    return Page(demo)


def nothing_of_the_data_is_markup(page: Page) -> None:
    assert all(f" {tag} " in TAGS for tag, _ in page.elements)
    for tag, attributes in page.elements:
        assert all(f" {name} " in ATTRIBUTES for name in attributes), attributes
        assert not any(name.startswith("on") for name in attributes)
        assert re.fullmatch(r"#[a-z][a-z0-9-]*|data:,", attributes.get("href") or "#x"), attributes
        assert re.fullmatch(r"(height|top):-?[0-9.]+px", attributes.get("style") or "top:0px"), attributes
        assert all(re.fullmatch(r"[a-z][a-z -]*", attributes.get("class") or "a") for _ in (tag,)), attributes
        assert all("nan" not in (attributes.get(name) or "") for name in ("x", "y", "width", "height", "d")), attributes
    assert page.comments == []
    ids = [a["id"] for _, a in page.elements if "id" in a]
    assert len(ids) == len(set(ids))


def test_hostile_names_and_numbers_stay_text() -> None:
    page = Page(html.render(reports.hostile()))
    nothing_of_the_data_is_markup(page)
    said = "".join(data for _, data in page.words)
    assert printable(reports.HOSTILE[0]) in said
    assert said.isprintable() or all(c.isprintable() or c == "\n" for c in said)


@settings(max_examples=3)
@given(st.lists(st.text(alphabet=st.sampled_from("<>&'\"/=-![]\x00\x1b\u202e a;:#"), max_size=20), min_size=2, max_size=3))
def test_no_name_becomes_markup(names: list[str]) -> None:
    nothing_of_the_data_is_markup(Page(html.render(reports.hostile(tuple(names)))))


def test_the_demo_is_clean_small_and_whole(demo: str, page: Page) -> None:
    nothing_of_the_data_is_markup(page)
    assert len(demo) < 150_000
    assert page.all("html")[0]["lang"] == "en"
    policy = next(m["content"] for m in page.all("meta") if m.get("http-equiv") == "Content-Security-Policy")
    assert policy is not None
    assert policy.startswith("default-src 'none'; style-src 'unsafe-inline'; img-src data:")
    assert not page.all("script")
    assert not re.search(r"(src|href)=.(https?:)?//", demo)


def test_the_verdict_comes_first_and_headings_are_in_order(page: Page) -> None:
    levels = [int(tag[1]) for tag, _ in page.elements if re.fullmatch("h[1-6]", tag)]
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(b - a <= 1 for a, b in pairwise(levels))
    assert page.texts("h1") == [reports.demo().verdict]
    sections = [
        "Timeline", "Outages", "Clients by the minute", "Probes", "Figures", "What was not measured", "Clocks", "What was read",
    ]  # fmt: skip
    assert page.texts("h2") == sections
    assert page.texts("a") == sections


def test_each_picture_has_words_and_each_table_a_caption(page: Page) -> None:
    ids = {a["id"] for _, a in page.elements if "id" in a}
    pictures = [a for a in page.all("svg") if a.get("role") == "img"]
    assert len(pictures) == 1 + 4 + 2
    for picture in pictures:
        assert set((picture["aria-labelledby"] or "").split()) <= ids
    inner = [a for a in page.all("svg") if a.get("role") != "img"]
    assert all(a.get("aria-hidden") == "true" or a.get("preserveaspectratio") for a in inner)
    assert len(page.texts("desc")) == len(pictures)
    assert len(page.texts("caption")) == len(page.all("table"))
    assert all(a.get("scope") in {"col", "row"} for a in page.all("th"))
    assert all(a.get("tabindex") == "0" and a.get("role") == "region" and a.get("aria-label") for a in page.all("div") if "scroll" in (a.get("class") or ""))


def test_no_judgement_is_said_at_the_top() -> None:
    page = Page(html.render(replace(reports.demo(), can_judge=False)))
    assert "No judgement is made: see the first line." in [data for _, data in page.words[:8]] or any("No judgement" in d for _, d in page.words[:12])
    assert any(a.get("class") == "verdict unsure" for a in page.all("div"))


def test_an_empty_report_says_what_it_is() -> None:
    empty = Report("nothing was read", False, replace(reports.demo().window, begin=math.nan), None, (), (), (), {}, 0, ())
    page = Page(html.render(empty))
    assert page.texts("h2") == ["Outages", "What was not measured", "What was read"]
    assert "None was seen. What was not measured is listed below." in page.texts("p")


def test_what_is_too_long_for_a_page_is_cut_and_told() -> None:
    rows = tuple(Row("routes", f"r{i}", (Bar(reports.BEGIN + 1, reports.BEGIN + 2, "x"),)) for i in range(100))
    figures = (
        Figure("TIME", "t", "a", timeline=Timeline(reports.BEGIN, reports.END, rows)),
        Figure("F3", "m", "a", multiples=tuple(Series(f"c{i}", ((reports.BEGIN, 1, 0),)) for i in range(30))),
        Figure("F1", "n", "a", table=Table(("a", "b"), tuple((str(i), "1") for i in range(600)))),
    )
    text = html.render(replace(reports.demo(), figures=figures))
    assert "Drawn: the first 80 of 100 rows." in text
    assert "Drawn: 24 of 30; the JSON has all." in text
    assert "the first 500 of 600 rows; the JSON has all" in text


def test_drains_are_shaded_in_every_picture(page: Page) -> None:
    assert len([a for a in page.all("rect") if a.get("class") == "band"]) == 3 * (1 + 4 + 2)


def test_numbers_stand_to_the_right_and_words_to_the_left() -> None:
    shown = Table(("Route", "n", "share", "why"), (("1st", "12", "-3 %", "2 of them, and a long reason why so many"), ("b", "", "≥ 2 s", "none")))
    text = str(html.table("T", shown))
    assert '<th scope="row">1st</th><td class="r">12</td><td class="r">-3 %</td><td class="t">2 of' in text
    assert '<td class="r">≥ 2 s</td><td>none</td>' in text


def test_a_long_name_breaks_at_its_joints() -> None:
    text = str(html.table("T", Table(("route",), (("https://status.home.example/health?x=1",),))))
    assert "https://<wbr>status.<wbr>home.<wbr>example/<wbr>health?<wbr>x=<wbr>1" in text


def test_times_are_in_the_zone_that_was_asked_for() -> None:
    text = html.render(reports.demo(), fixed(7200))
    assert "2026-09-07 06:48:00 to 07:12:00 UTC+02:00" in text
