from __future__ import annotations

import json
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from edgekeeper.report.formats import documents
from edgekeeper.report.formats.documents import Collector

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=3), inner, max_size=2),
    max_leaves=6,
)
OBJECTS = st.lists(st.dictionaries(st.text(max_size=3), VALUES, min_size=1, max_size=3), min_size=1, max_size=3)


def collect(text: str, *, inner: bool = False) -> tuple[list[dict[str, Any]], int]:
    collector = Collector(inner=inner)
    return [one for line in text.split("\n") for one in collector.feed(line)], collector.lost


@given(objects=OBJECTS, indent=st.sampled_from((None, 0, 1, 4)))
@settings(max_examples=15)
def test_what_was_printed_comes_back(objects: list[dict[str, Any]], indent: int | None) -> None:
    assert collect(json.dumps(objects, indent=indent)) == (objects, 0)
    assert collect("\n".join(json.dumps(one, indent=indent) for one in objects)) == (objects, 0)
    assert collect(json.dumps({"kind": "List", "items": objects, "metadata": {"x": "]}"}}, indent=indent), inner=True) == (objects, 0)


def test_an_object_without_lists_of_objects_is_itself() -> None:
    assert collect('{"a": {"b": [{"c": 1}]}}', inner=True) == ([{"a": {"b": [{"c": 1}]}}], 0)


def test_after_what_is_no_json_it_begins_anew() -> None:
    assert collect('{"a": 1\n]\n{"b": "{"}\n{"c": "torn\n{"d": 4}') == ([{"b": "{"}, {"d": 4}], 2)
    assert collect("not } json ] at all\n" + '{"a": 1}') == ([{"a": 1}], 0)
    assert collect('{"a": 1,}\n{"b": 2}') == ([{"b": 2}], 1)


def test_depth_and_length_are_bounded(monkeypatch) -> None:
    assert collect("[" * 100_000 + '\n{"a": 1}') == ([{"a": 1}], 1)
    monkeypatch.setattr(documents, "OBJECT_MOST", 50)
    assert collect("[\n" + json.dumps({"a": "x" * 60}, indent=1) + ",\n" + '{"b": 2}\n]') == ([{"b": 2}], 1)
