"""The HTML report in a real browser: what no parser can tell."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from tests.browser.chrome import Chrome

WIDTHS = (375, 1280)
SCHEMES = ("light", "dark")

CONTRAST = """(() => {
  const luminance = c => { const [r, g, b] = c.map(v => { v /= 255; return v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4 });
    return 0.2126 * r + 0.7152 * g + 0.0722 * b };
  const parse = s => (s.match(/[0-9.]+/g) || []).map(Number);
  const ground = e => { for (; e; e = e.parentElement) { const c = parse(getComputedStyle(e).backgroundColor); if (c.length === 3 || c[3] === 1) return c }
    return [255, 255, 255] };
  const low = [];
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  let seen = 0;
  for (let node = walker.nextNode(); node; node = walker.nextNode()) {
    const e = node.parentElement;
    if (!node.textContent.trim() || ['STYLE', 'title', 'desc'].includes(e.tagName) || !e.getClientRects().length) continue;
    const style = getComputedStyle(e);
    const ink = parse(e instanceof SVGElement ? style.fill : style.color).slice(0, 3);
    const [a, b] = [luminance(ink), luminance(ground(e).slice(0, 3))].sort();
    seen += 1;
    if ((b + 0.05) / (a + 0.05) < 4.5) low.push([node.textContent.slice(0, 40), ink, ground(e)]);
  }
  return {seen, low};
})()"""

CUT_OFF = """[...document.querySelectorAll('main *, header *')].filter(e => !e.closest('svg') && !e.closest('.scroll') && !e.closest('.names')
  && e.getClientRects().length && e.getBoundingClientRect().right > innerWidth + 1).map(e => e.tagName + ' ' + e.className + ' ' + e.textContent.slice(0, 40))"""

OUT_OF_PICTURE = """[...document.querySelectorAll('.chart')].flatMap(svg => { const box = svg.getBoundingClientRect();
  return [...svg.querySelectorAll('text')].filter(t => t.getClientRects().length).filter(t => { const r = t.getBoundingClientRect();
    return r.left < box.left - 8 || r.right > box.right + 14 || r.bottom > box.bottom + 4 }).map(t => t.textContent) })"""

ON_EACH_OTHER = """(() => { const out = [];
  for (const svg of document.querySelectorAll('.chart')) {
    const boxes = [...svg.querySelectorAll('text')].filter(t => t.getClientRects().length).map(t => [t.getBoundingClientRect(), t.textContent]);
    boxes.forEach(([a, x], i) => boxes.slice(i + 1).forEach(([b, y]) => {
      if (a.left + 1 < b.right && b.left + 1 < a.right && a.top + 2 < b.bottom && b.top + 2 < a.bottom) out.push(x + ' / ' + y) })) }
  return out })()"""

NARROWEST = (
    """Math.min(...[...document.querySelectorAll('.chart .b')].map(e => e.getBoundingClientRect().width + parseFloat(getComputedStyle(e).strokeWidth)))"""
)


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("width", WIDTHS)
def test_it_shows_without_a_word_of_complaint_and_asks_nobody(chrome: Chrome, demo: Path, hostile: Path, width: int, scheme: str) -> None:
    for page in (demo, hostile):
        chrome.open(page.as_uri(), width=width, scheme=scheme)
        assert chrome.told("Log.entryAdded", "Runtime.consoleAPICalled", "Runtime.exceptionThrown", "Page.javascriptDialogOpening") == []
        assert [e["request"]["url"] for e in chrome.told("Network.requestWillBeSent")] == [page.as_uri()]
        assert chrome.value("document.scripts.length") == 0
        assert chrome.value("document.scrollingElement.scrollWidth") <= width
        assert chrome.value(CUT_OFF) == []


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("width", WIDTHS)
def test_all_text_can_be_read(chrome: Chrome, demo: Path, width: int, scheme: str) -> None:
    chrome.open(demo.as_uri(), width=width, scheme=scheme)
    chrome.value("document.querySelectorAll('details').forEach(d => d.open = true)")
    found = chrome.value(CONTRAST)
    assert found["low"] == []
    assert found["seen"] > 500
    dark = chrome.value("getComputedStyle(document.body).backgroundColor") == "rgb(21, 24, 27)"
    assert dark == (scheme == "dark")


@pytest.mark.parametrize("width", WIDTHS)
def test_words_in_pictures_are_inside_and_apart(chrome: Chrome, demo: Path, width: int) -> None:
    chrome.open(demo.as_uri(), width=width)
    assert chrome.value(OUT_OF_PICTURE) == []
    assert chrome.value(ON_EACH_OTHER) == []
    assert chrome.value(NARROWEST) >= 3


def test_a_telephone_scrolls_wide_things_in_their_own_box_and_keeps_the_names(chrome: Chrome, demo: Path) -> None:
    chrome.open(demo.as_uri(), width=375)
    assert chrome.value("document.querySelector('.scroll').scrollWidth > document.querySelector('.scroll').clientWidth")
    before = chrome.value("document.querySelector('.names').getBoundingClientRect().left")
    chrome.value("document.querySelector('.scroll').scrollLeft = 200")
    assert chrome.value("document.querySelector('.names').getBoundingClientRect().left") == before
    assert chrome.value("document.scrollingElement.scrollWidth") == 375


def test_a_reader_aloud_hears_every_picture_and_the_order_of_headings(chrome: Chrome, demo: Path) -> None:
    chrome.open(demo.as_uri(), width=1280)
    nodes = [n for n in chrome.ask("Accessibility.getFullAXTree")["nodes"] if not n.get("ignored")]
    said = [(n["role"]["value"], n.get("name", {}).get("value", "")) for n in nodes]
    pictures = [name for role, name in said if role in {"image", "img", "graphics-document"}]
    assert len(pictures) == 7
    assert any(re.search(r"routes: 12 rows, 24 bars\.", name) for name in pictures)
    assert any(re.search(r"public .*no requests in 2 of 54 minutes", name) for name in pictures)
    roles = {role for role, _ in said}
    assert {"main", "navigation", "contentinfo", "heading", "table", "columnheader", "rowheader", "figure"} <= roles
    assert ("region", "Timeline") in said
    assert next(name for role, name in said if role == "heading").startswith("12 routes failed 24 times")


def test_the_keyboard_reaches_links_boxes_and_tables_and_one_sees_where_it_is(chrome: Chrome, demo: Path) -> None:
    chrome.open(demo.as_uri(), width=1280)
    reached = []
    for _ in range(14):
        for kind in ("keyDown", "keyUp"):
            chrome.ask("Input.dispatchKeyEvent", type=kind, key="Tab", code="Tab", windowsVirtualKeyCode=9)
        reached.append(chrome.value("document.activeElement.tagName"))
        assert chrome.value("getComputedStyle(document.activeElement).outlineStyle") == "solid"
    assert reached[:8] == ["A"] * 8
    assert {"DIV", "SUMMARY"} <= set(reached)


def test_on_paper_it_is_light_whole_and_a_few_sheets(chrome: Chrome, demo: Path) -> None:
    chrome.open(demo.as_uri(), width=703, scheme="dark")
    sheets = len(re.findall(rb"/Type\s*/Page\b", chrome.paper()))
    assert 2 <= sheets <= 9
    chrome.ask("Emulation.setEmulatedMedia", media="print", features=[{"name": "prefers-color-scheme", "value": "dark"}])
    assert chrome.value("getComputedStyle(document.body).color") == "rgb(25, 29, 33)"
    assert chrome.value("document.scrollingElement.scrollWidth") <= 703
    assert (
        chrome.value("[...document.querySelectorAll('.scroll')].filter(e => e.scrollWidth > e.clientWidth + 1 || e.scrollHeight > e.clientHeight + 1).length")
        == 0
    )
    assert chrome.value(ON_EACH_OTHER) == []
