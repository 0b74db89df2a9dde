"""Long names of routes are written without what all of them have, once said; programs get them whole."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.fakes.reports import demo

from edgekeeper.report.document import Report
from edgekeeper.report.pages.html import render as html
from edgekeeper.report.pages.json import document
from edgekeeper.report.pages.markdown import render as markdown
from edgekeeper.report.pages.short import ends, left_out, with_short_routes
from edgekeeper.report.pages.text import render as text

LONG = ("websecure-git-gitea-home-example@kubernetes", "websecure-media-immich-home-example@kubernetes", "websecure-web-docs-home-example@kubernetes")


@pytest.mark.parametrize(
    ("routes", "found"),
    [
        (LONG, ("websecure-", "-home-example@kubernetes")),
        (("git@kubernetes", "grafana@kubernetes"), ("", "@kubernetes")),
        (("ab-x", "ab-y"), ("", "")),  # too little
        (LONG[:1], ("", "")),
        ((), ("", "")),
        ((*LONG, "api@internal"), ("", "")),
        (("websecure-a@kubernetes", "websecure-a-b@kubernetes"), ("websecure-", "@kubernetes")),
        (("websecure-@kubernetes", "websecure-b@kubernetes"), ("", "")),  # nothing would be left of one
    ],
)
def test_what_all_have_is_left_out_up_to_a_mark_between_words(routes: tuple[str, ...], found: tuple[str, str]) -> None:
    assert ends(routes) == found


@given(st.lists(st.text("ab-@.", max_size=12), max_size=6, unique=True))
@settings(max_examples=60)
def test_short_names_are_of_something_and_different(names: list[str]) -> None:
    routes = tuple(f"websecure-{name}@kubernetes" for name in names)
    begin, end = ends(routes)
    short = {route[len(begin) : len(route) - len(end)] for route in routes}
    assert len(short) == len(routes)
    if begin or end:
        assert all(short)


def long_one() -> Report:
    made = demo()
    first, second = made.outages[:2]
    return replace(made, routes=LONG, outages=(replace(first, router=LONG[0]), replace(second, router=LONG[1])), verdict=f"{LONG[0]} was down")


def test_pages_for_people_have_short_names_and_say_so_and_programs_get_whole_ones() -> None:
    made = long_one()
    for page in (text(made), markdown(made), html(made)):
        assert "git-gitea was down" in page.replace("\\", "")
        assert LONG[0] not in page
    assert "all have websecure- before and -home-example@kubernetes behind" in text(made)
    whole = document(made)
    assert whole["verdict"].startswith(LONG[0])
    assert whole["outages"][0]["router"] == LONG[0]


def test_doing_it_twice_changes_nothing_and_other_reports_stay_as_they_are() -> None:
    once = with_short_routes(long_one())
    assert with_short_routes(once) == once
    plain = demo()
    assert left_out(plain) == ""
    assert with_short_routes(plain) is plain
