from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from markdown_it.token import Token
from tests.fakes import reports

from edgekeeper.model.text import printable
from edgekeeper.report.document import Table
from edgekeeper.report.pages import markdown

READER = MarkdownIt("commonmark").enable(["table", "strikethrough"])
ACTIVE = {"html_inline", "html_block", "link_open", "image", "code_inline", "code_block", "fence", "s_open", "hr", "blockquote_open", "ordered_list_open"}


def tokens(text: str) -> list[Token]:
    return [inner for outer in READER.parse(text) for inner in (outer, *(outer.children or ()))]


def shown(text: str) -> str:
    return "".join(t.content for t in tokens(text) if t.type == "text").replace("\u2060", "")


@settings(max_examples=50)
@given(st.one_of(st.sampled_from(reports.HOSTILE), st.text(alphabet=st.sampled_from("<>&*_`[]()!|~\\#-+=1. \n@:/xw'\"{}$"), max_size=25)))
def test_what_a_log_says_is_shown_as_it_is_and_does_nothing(text: str) -> None:
    said = markdown.escape(text)
    assert not {t.type for t in tokens(said)} & (ACTIVE | {"em_open", "strong_open", "heading_open", "bullet_list_open"})
    assert shown(said) == re.sub("\u2060", "", printable(text).strip())
    made = markdown.table(Table(("a", "b"), ((text, "x"), ("y", text))))
    assert [t.type for t in tokens(made)].count("td_open") == 4
    assert not {t.type for t in tokens(made)} & ACTIVE


@pytest.mark.parametrize(
    "text", ["https://evil.example/x", "see www.evil.example", "mailto:a@evil.example", "someone@evil.example", "@team", "(@team)", "HTTP://EVIL.example"]
)
def test_nothing_becomes_a_link_by_itself_and_nobody_is_called(text: str) -> None:
    said = markdown.escape(text)
    assert not re.search(r"(?i)[a-z]://|www\.|mailto:|@[a-z]", said)
    assert said.isascii()


def test_a_name_of_a_route_keeps_its_provider() -> None:
    assert markdown.escape("apps-gitea-web@kubernetescrd") == "apps-gitea-web@kubernetescrd"
    assert markdown.escape("1.65 %") == "1.65 %"
    assert markdown.escape("+183.4 s") == "+183.4 s"


def test_a_ticket_has_the_verdict_the_outages_the_answers_and_what_is_missing() -> None:
    text = markdown.render(reports.demo())
    assert text.startswith("## Roll of 2026-09-07, 2026-09-07 04:48:00 to 05:12:00 UTC\n\n**12 routes failed 24 times")
    headings = re.findall("^### (.*)$", text, re.MULTILINE)
    assert headings == ["Outages", "What was found", "What was not measured", "Clocks", "What was read"]
    assert "\n- **F1 Failed requests by route:** 185 of 3,391 requests failed (5.46 %), on 12 of 14 routes\n" in text
    assert "| syncthing | lan | at least 41 s | 04:52:41 |" in text
    assert "  - public: 208 requests, 0 failed; no requests in 2 of 54 minutes" in text
    assert "**F10" not in text
    assert len(text) < 6000


def test_a_hostile_report_is_still_only_text() -> None:
    text = markdown.render(reports.hostile())
    assert not {t.type for t in tokens(text)} & (ACTIVE - {"blockquote_open"})
    assert text.count("\n> ") == 1  # our own word that nothing can be judged


def test_a_long_table_is_cut_and_told() -> None:
    assert markdown.table(Table(("a",), (("1",),) * 50)).endswith("\n\n(10 more rows; the JSON has all.)")
