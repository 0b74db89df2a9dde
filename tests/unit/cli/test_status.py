from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgekeeper.cli import status as status_module
from edgekeeper.cli.ask import Told, parse_status, together
from edgekeeper.cli.main import run
from edgekeeper.cli.output import Cell, Tone
from edgekeeper.cli.status import rows, since_time
from edgekeeper.errors import MissingError, UsageError
from edgekeeper.host.http import Response
from edgekeeper.host.journal import FileJournal
from edgekeeper.model.entry import Entry

CONFIG = """\
node: edge-a
nodes:
  edge-a: {address: 192.0.2.11}
  edge-b: {address: 192.0.2.12, ops: "https://192.0.2.12:8084"}
  edge-c: {address: 192.0.2.13}
"""
ANSWER = {"schema": 1, "node": "edge-a", "ts": 1000.0, "version": "1", "roles": {"dns": {"verdict": "ok", "why": "2 of 2 backends up"}}}


@pytest.fixture
def config(tmp_path):
    path = tmp_path / "edge.yaml"
    path.write_text(CONFIG + f"state_dir: {tmp_path}\n")
    return str(path)


@pytest.fixture
def network(monkeypatch: pytest.MonkeyPatch):
    """What each URL answers; an exception is raised."""
    answers: dict[str, Response | Exception] = {}

    async def get(url: str, **_options: object) -> Response:
        answer = answers.get(url, MissingError(f"{url} did not answer: refused"))
        if isinstance(answer, Exception):
            raise answer
        return answer

    monkeypatch.setattr("edgekeeper.host.http.get", get)
    return answers


def test_one_table_over_all_nodes_and_unknown_is_never_well(config, network, capsys: pytest.CaptureFixture[str]) -> None:
    network["http://127.0.0.1:8084/status"] = Response(200, json.dumps(ANSWER))
    assert run(["status", "--config", config]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[1].split()[:3] == ["edge-a", "dns", "ok"]
    assert lines[2].split()[:3] == ["edge-b", "-", "unknown"]
    assert "did not answer" in lines[2]
    assert lines[3].split()[:3] == ["edge-c", "-", "unknown"]
    assert "no ops address" in lines[3]


def test_json_has_every_node(config, network, capsys: pytest.CaptureFixture[str]) -> None:
    network["http://127.0.0.1:8084/status"] = Response(200, json.dumps(ANSWER))
    network["https://192.0.2.12:8084/status"] = Response(401, "")
    assert run(["status", "--config", config, "-o", "json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["schema"] == 1
    assert [node["node"] for node in document["nodes"]] == ["edge-a", "edge-b", "edge-c"]
    assert document["nodes"][0]["status"]["roles"]["dns"]["verdict"] == "ok"
    assert "answered 401; check ops.token_file" in document["nodes"][1]["why"]


def test_roles_that_run_alone_are_one_node_and_one_that_is_silent_is_unknown(config, network, capsys: pytest.CaptureFixture[str]) -> None:
    with open(config, "a") as file:  # noqa: PTH123 - a path as text
        file.write('dns: {listen: ["127.0.0.1:53"], members: {static: ["127.0.0.1"]}}\n')
    beside = {**ANSWER, "roles": {"lb": {"verdict": "bad", "why": "haproxy is not running"}}}
    network["http://127.0.0.1:8084/status"] = Response(200, json.dumps(beside))
    assert run(["status", "--config", config]) == 0
    lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert [line[:3] for line in lines[1:3]] == [["edge-a", "lb", "bad"], ["edge-a", "dns", "unknown"]]
    told = together(
        [Told("edge-a", None, "refused"), parse_status("edge-a", json.dumps(ANSWER), 1007.0), parse_status("edge-a", json.dumps(beside), 1001.0)], ()
    )
    assert told.status is not None
    assert (sorted(told.status["roles"]), told.age_s) == (["dns", "lb"], 7.0)


def test_the_token_goes_along(config, network, tmp_path, monkeypatch: pytest.MonkeyPatch) -> None:
    token = tmp_path / "token"
    token.write_text("correct-horse\n")
    token.chmod(0o600)
    with open(config, "a") as file:  # noqa: PTH123 - a path as text
        file.write(f"ops: {{token_file: {token}}}\n")
    seen = []

    async def get(_url: str, *, headers: dict[str, str], **_options: object) -> Response:
        seen.append(headers)
        return Response(200, json.dumps(ANSWER))

    monkeypatch.setattr("edgekeeper.host.http.get", get)
    assert run(["status", "--config", config]) == 0
    assert seen[0] == {"Authorization": "Bearer correct-horse"}


def test_a_node_that_went_silent_is_unknown_with_the_age_of_its_last_words(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(status_module.time, "time", lambda: 1060.0)
    last = {"a": Told("a", ANSWER, "", 0.0)}
    told = status_module._with_last(Told("a", None, "no answer"), last)
    assert rows(told) == [("a", "dns", Cell("unknown", Tone.DOUBT), "60s", "no answer; then: ok, 2 of 2 backends up")]


@pytest.mark.parametrize("text", ["", "{", "[]", '{"schema": 2}', "[" * 3000, "null"])
def test_an_answer_that_is_no_status_is_unknown(text: str) -> None:
    told = parse_status("a", text, 0.0)
    assert told.status is None
    assert rows(told)[0][2] == Cell("unknown", Tone.DOUBT)


@given(
    st.recursive(
        st.none() | st.booleans() | st.text(max_size=5) | st.floats(), lambda b: st.lists(b, max_size=2) | st.dictionaries(st.text(max_size=5), b, max_size=2)
    )
)
def test_any_answer_makes_rows(value: object) -> None:
    for document in ({"schema": 1, "ts": value, "roles": value}, {"schema": 1, "roles": {"dns": value}}, value):
        assert rows(parse_status("a", json.dumps(document), 0.0))


def test_the_journal_is_told_by_role_and_time(config, tmp_path, capsys: pytest.CaptureFixture[str]) -> None:
    class Clock:
        def monotonic(self) -> float:
            return 1.0

        def wall(self) -> float:
            return 1_700_000_000.0

    journal = FileJournal(tmp_path, "edge-a", Clock())
    journal.write(Entry("dns", "members.changed", "ns-c\x1b[31m", "act", "ns-c joined"))
    journal.write(Entry("vip", "vip.moved", "dns", "hold", "later"))
    with (tmp_path / "journal.jsonl").open("a") as file:
        file.write('{"torn')
    assert run(["history", "--config", config, "--role", "dns"]) == 0
    told = capsys.readouterr()
    assert told.out.splitlines()[1].split() == ["2023-11-14T22:13:20.000Z", "dns", "members.changed", "ns-c\\x1b[31m", "act", "ns-c", "joined"]
    assert len(told.out.splitlines()) == 2
    assert told.err == "1 line of the journal could not be read (torn by a crash, or of another version)\n"
    assert run(["history", "--config", config, "-o", "json", "--since", "2023-11-14T00:00:00+00:00"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert (document["schema"], len(document["entries"]), document["unreadable_lines"]) == (1, 2, 1)
    assert run(["history", "--config", config, "--since", "1h"]) == 0
    assert "no entry" in capsys.readouterr().out


def test_since_takes_durations_and_times() -> None:
    assert since_time("", 1000.0) == 0.0
    assert since_time("1m30s", 1000.0) == 910.0
    assert since_time("1970-01-01T00:10:00+00:00", 1000.0) == 600.0
    with pytest.raises(UsageError, match="neither a duration"):
        since_time("yesterday\x1b", 1000.0)
