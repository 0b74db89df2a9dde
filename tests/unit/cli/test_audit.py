"""`edgekeeper audit`: what it exits with, what it says of files that are none, and its three forms of output."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from edgekeeper.cli.main import run

BAD = "global\ndefaults\n mode tcp\n timeout client 50s\nbackend api\n server cp1 192.0.2.31:6443 check\n server cp2 192.0.2.32:6443 check\n"
GOOD = "global\n stats socket /run/x level admin mode 600\ndefaults\n mode http\nbackend web\n server a 192.0.2.1:80 check\n"


@pytest.fixture
def bad(tmp_path: Path) -> Path:
    path = tmp_path / "haproxy.cfg"
    path.write_text(BAD)
    return path


def test_findings_exit_1_with_the_line_to_add(bad: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(bad.parent)
    bad = Path(bad.name)
    assert run(["audit", str(bad)]) == 1
    out = capsys.readouterr().out
    lines = out.splitlines()
    assert lines[0] == f"{bad}:6: HIGH HAP001 backend api: clients stay pinned to a server that is DOWN: on-marked-down shutdown-sessions is not in force"
    assert f"    fix   {bad}:6: before this line, in backend api, add:" in lines
    assert "              default-server on-marked-down shutdown-sessions" in lines
    assert "never, while it accepts" in out
    assert "not judged: HAP002" in out
    assert lines[-1].startswith(f"{bad}: 2 HIGH, 1 INFO")
    assert max(map(len, (line for line in lines if line.startswith("    ")))) < 140


def test_a_good_file_exits_0_and_still_tells_the_sum(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "haproxy.cfg"
    path.write_text(GOOD)
    assert run(["audit", str(path)]) == 0
    out = capsys.readouterr().out
    assert "nothing found" in out
    assert "web" in out


@pytest.mark.parametrize(("level", "code"), [("CRIT", 0), ("HIGH", 1), ("INFO", 1)])
def test_fail_on_says_what_counts(bad: Path, level: str, code: int) -> None:
    assert run(["audit", str(bad), "--fail-on", level]) == code


def test_json(bad: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["audit", str(bad), "-o", "json"]) == 1
    found = json.loads(capsys.readouterr().out)
    assert found["schema"] == 1
    assert found["files"] == [str(bad)]
    first = found["findings"][0]
    assert list(first) == ["id", "severity", "object", "what", "evidence", "why", "fix", "refs", "place"]
    assert first["place"] == {"file": str(bad), "line": 6}
    (detection,) = found["detection"]
    assert (detection["backend"], detection["sees_a_hung_server"]) == ("api", False)
    assert {i for row in found["not_judged"] for i in row["ids"]} >= {"HAP002", "HAP009"}


def test_sarif_names_the_line(bad: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["audit", str(bad), "-o", "sarif"]) == 1
    found = json.loads(capsys.readouterr().out)
    (run_,) = found["runs"]
    assert run_["results"][0]["locations"][0]["physicalLocation"]["region"]["startLine"] == 6


@pytest.mark.parametrize(
    ("name", "raw", "code", "why"),
    [
        ("empty", b"", 2, "is empty"),
        ("binary", bytes(range(256)) * 40, 2, "is not text"),
        ("dnsdist.conf", b'newServer("192.0.2.1")\n', 2, "not in this version"),
        ("x.yaml", b"a: 1\n", 2, "YAML"),
        ("missing", None, 6, "cannot be read"),
    ],
)
def test_what_cannot_be_audited_is_one_sentence(tmp_path: Path, name: str, raw: bytes | None, code: int, why: str, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / name
    if raw is not None:
        path.write_bytes(raw)
    assert run(["audit", str(path)]) == code
    told = capsys.readouterr().err.splitlines()
    assert len(told) == 1
    assert why in told[0]


def test_a_huge_file_is_not_read(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "huge"
    with path.open("wb") as file:
        file.truncate(100 * 2**20)
    assert run(["audit", str(path)]) == 2
    assert "larger than" in capsys.readouterr().err


def test_a_comment_in_latin_1_is_no_reason_to_refuse(bad: Path) -> None:
    bad.write_bytes(b"# Gr\xfc\xdfe\n" + GOOD.encode())
    assert run(["audit", str(bad)]) == 0


def test_a_folder_is_read_as_haproxy_reads_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["audit", str(tmp_path)]) == 2
    (tmp_path / "20-api.cfg").write_text("backend api\n server a 192.0.2.1:6443 check\n server b 192.0.2.2:6443 check\n")
    (tmp_path / "10-base.cfg").write_text("defaults\n mode tcp\n option httpchk GET /readyz\n default-server check-ssl on-marked-down shutdown-sessions\n")
    (tmp_path / ".hidden.cfg").write_text("backend hidden\n server a 192.0.2.1:6443 check\n")
    (tmp_path / "other.txt").write_text("nothing")
    capsys.readouterr()
    assert run(["audit", str(tmp_path), "--fail-on", "HIGH"]) == 0
    assert "hidden" not in capsys.readouterr().out


def test_files_of_several_hosts_are_told_apart(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("a.cfg", "b.cfg"):
        (tmp_path / name).write_text(GOOD)
    assert run(["audit", str(tmp_path / "a.cfg"), str(tmp_path / "b.cfg")]) == 0
    assert "2 files in 2 configurations" in capsys.readouterr().out
    assert run(["audit", str(tmp_path / "a.cfg"), str(tmp_path / "b.cfg"), "--socket", "/nonexistent"]) == 2


@pytest.mark.parametrize(
    ("words", "code", "why"),
    [
        ([], 2, "no file is named"),
        ([""], 2, "a file without a name is given"),
        (["FILE", "--only", "HAP999"], 2, "there is no check 'HAP999'"),
        (["FILE", "--api-backend", "nobody"], 2, "there is no backend 'nobody'; there are api"),
        (["--explain", "X1"], 2, "there is no check 'X1'"),
        (["--socket", "/nonexistent/socket"], 6, "/nonexistent/socket"),
    ],
)
def test_wrong_words(bad: Path, words: list[str], code: int, why: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["audit", *(str(bad) if word == "FILE" else word for word in words)]) == code
    assert why in capsys.readouterr().err


def test_a_socket_that_cannot_be_read_is_unknown_beside_a_file(bad: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["audit", str(bad), "--only", "HAP002", "--socket", "/nonexistent/socket"]) == 0
    assert "UNKNOWN HAP002" in capsys.readouterr().out
    assert run(["audit", str(bad), "--only", "HAP002", "--socket", "/nonexistent/socket", "--fail-on", "UNKNOWN"]) == 1


VIPS = Path(__file__).resolve().parents[2] / "golden" / "keepalived-audit"


def test_keepalived_of_two_hosts_is_judged_together(capsys: pytest.CaptureFixture[str]) -> None:
    files = [str(VIPS / "01-kubeadm-guide" / name) for name in ("a.conf", "b.conf")]
    assert run(["audit", *files]) == 1
    out = capsys.readouterr().out
    assert f"{files[0]}:7: WARN VRP008 vrrp_instance VI_1: a dead service keeps its VIP for up to 35.6s: check_apiserver" in out
    assert "29.6 to 33.6 s" in out
    assert "2 files in 2 configurations" in out
    assert run(["audit", *files, "--only", "VRP008", "-o", "json"]) == 1
    found = json.loads(capsys.readouterr().out)
    assert [f["id"] for f in found["findings"]] == ["VRP008"]
    assert found["vips"][0]["when_it_hangs"]["max_s"] == pytest.approx(35.6, abs=0.1)
    assert run(["audit", *files, "--only", "VRP", "-o", "sarif"]) == 1
    assert {r["ruleId"] for r in json.loads(capsys.readouterr().out)["runs"][0]["results"]} >= {"VRP008", "VRP012"}


def test_haproxy_and_keepalived_may_be_named_at_once(bad: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["audit", str(bad), str(VIPS / "03-never"), "--only", "HAP001", "--only", "VRP009"]) == 1
    out = capsys.readouterr().out
    assert "HAP001 backend api" in out
    assert "VRP009 vrrp_instance VI_WEB" in out


def test_a_password_is_never_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "keepalived.conf"
    path.write_text("vrrp_instance A {\n virtual_router_id 5\n authentication {\n  auth_type PASS\n  auth_pass hunter2-hunter2\n }\n}\n")
    for form in ("text", "json", "sarif"):
        assert run(["audit", str(path), "-o", form]) == 1
        assert "hunter2" not in capsys.readouterr().out


def test_explain_prints_the_page(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["audit", "--explain", "hap001"]) == 0
    out = capsys.readouterr().out
    assert out.startswith("# HAP001: ")
    assert "Idle timeouts are no mitigation" in out


def test_names_from_the_file_cannot_move_the_cursor(bad: Path, capsys: pytest.CaptureFixture[str]) -> None:
    bad.write_text(BAD.replace("backend api", "backend \x1b[2Japi"))
    run(["audit", str(bad)])
    run(["audit", str(bad), "-o", "json"])
    run(["audit", str(bad), "-o", "sarif"])
    assert "\x1b" not in capsys.readouterr().out
