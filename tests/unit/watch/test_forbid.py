"""What forbids a cure: a document that says false, a pause; what is not known forbids nothing."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from edgekeeper.watch.forbid import Known, Pause, forbids, judge_health, pause_text, paused, read_pause

URL = "http://127.0.0.1:8080/healthz"
NEED = ("checks.management_connected", "checks.initial_sync_complete")


def said(**checks: object) -> str:
    return json.dumps({"status": "ok", "checks": checks})


def test_false_forbids_whatever_the_status_of_the_answer() -> None:
    for status in (200, 503):
        found = judge_health(URL, status, said(management_connected=False, initial_sync_complete=True), NEED)
        assert found.may is False
        assert found.why == f"checks.management_connected is false in {URL}: a service restarted now would serve nothing"


def test_true_allows() -> None:
    assert judge_health(URL, 503, said(management_connected=True, initial_sync_complete=True, other=False), NEED).may is True


@pytest.mark.parametrize(
    "text",
    [
        "",
        "<html>",
        "null",
        "[]",
        "[" * 100_000,
        said(),
        said(management_connected="false", initial_sync_complete=1),
        '{"checks": true}',
        '{"checks.management_connected": false}',
    ],
)
def test_what_is_neither_is_not_known(text: str) -> None:
    found = judge_health(URL, 200, text, NEED)
    assert found.may is None
    assert URL in found.why


def test_a_false_key_forbids_though_another_is_missing() -> None:
    assert judge_health(URL, 200, said(initial_sync_complete=False), NEED).may is False


@given(st.lists(st.sampled_from([True, False, None]), max_size=3))
@settings(max_examples=12)
def test_one_that_forbids_is_enough_and_ignorance_is_not(known: list[bool | None]) -> None:
    found = forbids([Known(may, f"reason {number}") for number, may in enumerate(known)])
    assert found.may is (False not in known)
    if False in known:
        assert f"reason {known.index(False)}" in found.why
    elif known and True not in known:
        assert found.why.startswith("what the service needs is unknown")


def test_a_pause_ends_by_itself() -> None:
    pause = read_pause(pause_text(Pause(1000.0, "the mesh is moved")))
    assert paused(pause, 940.0) == "cures are paused for another 60 s: the mesh is moved"
    assert paused(pause, 1000.0) is None
    assert paused(None, 0.0) is None


@pytest.mark.parametrize("text", ["", "\0", "[1]", "{", '{"until": "tomorrow"}', '{"until": true}', '{"until": null}', "[" * 100_000])
def test_whatever_else_the_file_holds_is_a_pause_without_an_end(text: str) -> None:
    assert paused(read_pause(text), 4e9) == "cures are paused until it is ended (edgekeeper watch resume)"


def test_no_pause_moves_a_cursor() -> None:
    assert "\x1b" not in str(paused(read_pause(json.dumps({"why": "\x1b[2J"})), 0.0))
