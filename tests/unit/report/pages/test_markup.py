from __future__ import annotations

from html.parser import HTMLParser

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.fakes.reports import HOSTILE

from edgekeeper.model.text import printable
from edgekeeper.report.pages.markup import Markup, el, number, style_of, whole


class Read(HTMLParser):
    """What a browser would make of it."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.said: list[object] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.said.append((tag, dict(attrs)))

    def handle_endtag(self, tag):
        self.said.append(f"/{tag}")

    def handle_data(self, data):
        self.said.append(data)

    def handle_comment(self, data):
        self.said.append(("comment", data))

    def handle_decl(self, decl):
        self.said.append(("declaration", decl))


@settings(max_examples=25)
@given(st.one_of(st.text(min_size=1), st.sampled_from([h for h in HOSTILE if h])))
def test_text_stays_text_and_an_attribute_stays_one(text: str) -> None:
    made = str(el("p", text, title=text))
    assert Read(made).said == [("p", {"title": printable(text)}), printable(text), "/p"]


def test_elements_nest_and_what_is_none_is_left_out() -> None:
    made = el("div", None, ["a", [el("br"), "b"]], class_="x", aria_label=None, tabindex="0", viewBox="0 0 1 1", y=2.5)
    assert str(made) == '<div class="x" tabindex="0" viewBox="0 0 1 1" y="2.5">a<br>b</div>'
    assert whole(el("html", lang="en")) == '<!doctype html>\n<html lang="en"></html>\n'


def test_a_string_cannot_be_taken_for_markup() -> None:
    with pytest.raises(TypeError):
        Markup("<b>")


@pytest.mark.parametrize("name", ["a b", "x>", "", "1a", "onload=1"])
def test_a_name_is_a_word(name: str) -> None:
    with pytest.raises(ValueError):
        el(name)
    with pytest.raises(ValueError):
        el("p", **{name: "1"})


def test_a_style_cannot_end_its_element() -> None:
    with pytest.raises(ValueError):
        style_of("a{}</style><script>")


@pytest.mark.parametrize(("value", "text"), [(0.0, "0"), (12.0, "12"), (1.25, "1.25"), (0.0004, "0"), (100, "100"), (-3.5, "-3.5")])
def test_coordinates_are_short(value: float, text: str) -> None:
    assert number(value) == text
