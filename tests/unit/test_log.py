from __future__ import annotations

import io
import json
import logging

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgekeeper import log
from edgekeeper.log import Event, emit


def fail(error: Exception) -> None:
    raise error


@pytest.fixture
def lines(monkeypatch: pytest.MonkeyPatch):
    """Set up logging into a text, and give the lines that it holds."""
    monkeypatch.setattr(log, "_secrets", set())
    root = logging.getLogger()
    before = root.handlers[:]
    stream = io.StringIO()

    def read(log_format: str = "json", *, debug: bool = False, node: str = "edge-a"):
        log.setup(log_format, node=node, debug=debug, stream=stream)
        return lambda: stream.getvalue().splitlines()

    yield read
    root.handlers[:] = before


def test_a_json_line_has_the_event_the_reason_and_the_data(lines) -> None:
    read = lines()
    emit(Event.MEMBERS_CHANGED, "ns-c joined", added=["ns-c"], count=3)
    record = json.loads(read()[0])
    assert record["event"] == "members.changed"
    assert record["why"] == "ns-c joined"
    assert record["data"] == {"added": ["ns-c"], "count": 3}
    assert record["node"] == "edge-a"
    assert record["level"] == "info"
    assert record["ts"].endswith("Z")


def test_text_from_outside_cannot_start_a_new_line_or_move_the_cursor(lines) -> None:
    read = lines("text")
    emit(Event.ENGINE_LOG, "said \x1b[2J\nengine.started forged", line="a\nb\x1b[31m", **{"na\nme": 1})
    assert len(read()) == 1
    assert "\x1b" not in read()[0]
    assert "\\x1b[2J\\nengine.started forged" in read()[0]


@pytest.mark.parametrize("name", ["token", "api_key", "console_key", "X-Api-Key", "password", "proxy_secret", "Authorization", "bearer-token", "key"])
def test_a_field_that_is_named_like_a_secret_is_withheld_at_any_depth(lines, name: str) -> None:
    for log_format in ("json", "text"):
        read = lines(log_format)
        emit(Event.CONFIG_ACCEPTED, "x", **{name: "hunter2"}, nested={"list": [{name: "hunter2"}]})
        assert "hunter2" not in "".join(read())


@pytest.mark.parametrize("name", ["secret_file", "token_file", "secret_env", "monkey", "keyword", "keys_changed"])
def test_where_a_secret_is_may_be_told(lines, name: str) -> None:
    read = lines()
    emit(Event.CONFIG_ACCEPTED, "x", **{name: "/etc/edgekeeper/token"})
    assert "/etc/edgekeeper/token" in read()[0]


def test_a_withheld_value_never_appears_wherever_it_turns_up(lines) -> None:
    secret = "correct-horse-battery"
    log.withhold(secret)
    for log_format in ("json", "text"):
        read = lines(log_format, debug=True)
        emit(Event.ENGINE_LOG, f"engine said {secret}", line=f"x {secret} y", **{secret: 1})
        try:
            fail(ValueError(secret))
        except ValueError:
            logging.getLogger("library").exception("failed with %s", secret)
        assert secret not in "\n".join(read())
        assert log.WITHHELD in "\n".join(read())


def test_a_short_text_is_not_withheld_everywhere(lines) -> None:
    log.withhold("act")
    read = lines()
    emit(Event.ENGINE_LOG, "exactly")
    assert "exactly" in read()[0]


def test_an_exception_is_one_line_and_its_traceback_only_for_debug(lines) -> None:
    for debug in (False, True):
        read = lines("text", debug=debug)
        try:
            fail(ValueError("bad\nthing"))
        except ValueError:
            logging.getLogger("some.library").exception("request failed")
        text = "\n".join(read())
        assert "request failed: ValueError: bad\\nthing" in text
        assert ("Traceback" in text) is debug


def test_lines_of_libraries_come_from_warning_on_and_name_them(lines) -> None:
    read = lines()
    logging.getLogger("httpx2").info("chatter")
    logging.getLogger("httpx2").warning("slow")
    assert [json.loads(line)["logger"] for line in read()] == ["httpx2"]


def test_numbers_that_json_lacks_and_strange_values_do_not_break_a_line(lines) -> None:
    read = lines()
    loop: list[object] = []
    loop.append(loop)
    emit(Event.ENGINE_LOG, "x", nan=float("nan"), loop=loop, odd={1: object}, items={"b"}, text="\ud800")
    assert json.loads(read()[0])["data"]["nan"] is None


def test_a_broken_stream_does_not_stop_the_program(lines) -> None:
    class Full(io.StringIO):
        def write(self, _text: str) -> int:
            raise OSError(28, "No space left on device")

    log.setup("json", stream=Full())
    emit(Event.ENGINE_LOG, "x")


def test_debug_lines_are_for_debug(lines) -> None:
    read = lines()
    emit(Event.ENGINE_LOG, "detail", level=log.DEBUG)
    assert read() == []


def test_every_event_has_a_sentence_and_a_name_of_two_words() -> None:
    for event in Event:
        assert event.meaning.endswith("."), event
        assert event == "library" or str(event).count(".") == 1, event
    assert len(set(Event)) == len(Event.__members__), "two events share a word"


@given(st.text(st.characters()), st.dictionaries(st.text(max_size=10), st.text(st.characters(), max_size=20) | st.floats() | st.none()))
def test_any_line_is_json_on_one_line(why: str, data: dict[str, object]) -> None:
    record = logging.LogRecord("edgekeeper", logging.INFO, "", 0, "%s", (why,), None)
    record.event = Event.ENGINE_LOG
    record.data = data
    line = log.JsonFormatter("n").format(record)
    assert line.isascii()
    assert line.isprintable()
    assert json.loads(line)["event"] == "engine.log"
    assert log.TextFormatter("n").format(record).isprintable()
