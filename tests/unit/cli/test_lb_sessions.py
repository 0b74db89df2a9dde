from __future__ import annotations

import json
from pathlib import Path

import pytest

from edgekeeper.cli import lb_find, lb_sessions
from edgekeeper.cli.output import say_json_rows
from edgekeeper.config.root import Root


def test_our_own_haproxy_is_looked_for_before_the_usual_places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    usual = tmp_path / "haproxy.sock"
    usual.touch()
    monkeypatch.setattr(lb_find, "PLACES", (str(tmp_path / "none"), str(usual)))
    own = tmp_path / "run" / "lb" / "master-1.sock"
    own.parent.mkdir(parents=True)
    own.touch()
    lb = {"services": [{"name": "k8s-api", "listen": "192.0.2.60:6443", "kind": "kube-apiserver", "members": {"static": ["cp1=192.0.2.31:6443"]}}]}
    root = Root.model_validate({"run_dir": str(tmp_path / "run"), "lb": lb})
    assert lb_find.places(None, root) == [str(own), str(usual)]
    assert lb_find.places(None, Root.model_validate({"run_dir": str(tmp_path / "run")})) == [str(usual)]
    assert lb_find.places("/x", root) == ["/x"]


def test_a_document_that_is_printed_row_by_row_is_one_json_document(capsys: pytest.CaptureFixture[str]) -> None:
    for rows in ([], [{"a": 1}], [{"a": "\x1b[2J"}, {"a": None}]):
        say_json_rows({"head": {"x": []}}, "rows", iter(rows))
        out = capsys.readouterr().out
        assert json.loads(out) == {"schema": 1, "head": {"x": []}, "rows": rows}
        assert "\x1b" not in out


def test_sizes_and_clients_fit_a_cell() -> None:
    assert [lb_sessions._size(n) for n in (None, 0, 999, 1000, 1_234_567, 5 * 10**9)] == ["-", "0 B", "999 B", "1.0 kB", "1.2 MB", "5.0 GB"]
    assert lb_sessions._few({"node-a": 3, "192.0.2.7": 1}) == "node-a (3), 192.0.2.7"
    assert lb_sessions._few({f"192.0.2.{i}": 1 for i in range(20)}).endswith(" and 12 more")
