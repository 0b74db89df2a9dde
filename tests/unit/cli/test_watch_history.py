"""``edgekeeper watch history`` reads the journal, whether or not the role runs."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from edgekeeper.cli.main import run
from edgekeeper.host.clock import SystemClock
from edgekeeper.host.journal import FileJournal
from edgekeeper.model.entry import Entry


@pytest.fixture
def config(tmp_path: Path) -> str:
    path = tmp_path / "edge.yaml"
    path.write_text(f"node: edge-a\nstate_dir: {tmp_path}\n")
    return str(path)


def write(folder: Path, *entries: Entry) -> None:
    journal = FileJournal(folder, "edge-a", SystemClock())
    for entry in entries:
        journal.write(entry)
    journal.close()


def entry(event: str, why: str, decision: str = "hold", **data: object) -> Entry:
    return Entry("watch", f"watch.{event}", "mesh-proxy", decision, why, dict(data))


CURED = (
    entry("armed", "a line came"),
    entry("confirmed", "2 failed rounds"),
    entry("cured", "docker: down for 1.50 s", "act", step="docker"),
    entry("proved", "it is cured", recovered_s=[3.1, 3.4]),
)
HEALED = (
    entry("armed", "a line came"),
    entry("confirmed", "2 failed rounds"),
    entry("suppressed", "not now: budget", "suppress", held_by="budget"),
    entry("cancelled", "healed"),
)


def test_each_decision_and_what_they_come_to(config: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(tmp_path, *CURED, *HEALED, Entry("lb", "lb.held", "k8s", "hold", "not a watch's"))
    assert run(["watch", "history", "--config", config]) == 0
    out = capsys.readouterr().out
    assert "watch.proved" in out
    assert "3.10 s to 3.40 s" in out
    assert "budget 1" in out
    assert "mesh-proxy: 1 of 2 (9 % to 91 %) healed by themselves; at least so many" in out
    assert "not a watch's" not in out


def test_json_has_the_totals_and_every_entry(config: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(tmp_path, *CURED, *HEALED)
    assert run(["watch", "history", "mesh-proxy", "--since", "1h", "--config", config, "-o", "json"]) == 0
    document = json.loads(capsys.readouterr().out)
    (watch,) = document["watches"]
    assert (watch["cures"], watch["cured"], watch["healed_by_itself"], watch["suppressed"]) == (1, 1, 1, {"budget": 1})
    assert watch["recovered_s"] == {"median": [3.1, 3.4], "worst": [3.1, 3.4]}
    assert len(document["entries"]) == 8
    assert document["unreadable_lines"] == document["lost_entries"] == 0


def test_nothing_is_said_so_and_what_is_missing_is_told(config: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["watch", "history", "dns", "--config", config, "--since", "14d"]) == 0
    assert f"no watch dns has written anything into the journal in {tmp_path} since 14d" in capsys.readouterr().out
    write(tmp_path, entry("armed", "a line came", lost_before=4))
    with (tmp_path / "journal.jsonl").open("a") as journal:
        journal.write('{"schema": 1, "torn')
    assert run(["watch", "history", "--config", config]) == 0
    err = capsys.readouterr().err
    assert "1 line of the journal could not be read" in err
    assert "4 entries could not be written" in err


def test_a_journal_that_may_not_be_read_is_told(config: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "journal.jsonl").mkdir()
    assert run(["watch", "history", "--config", config]) == 6
    assert "cannot be read" in capsys.readouterr().err
