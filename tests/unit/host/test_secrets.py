from __future__ import annotations

import pytest

from edgekeeper import log
from edgekeeper.config.secret import SecretSource
from edgekeeper.errors import EdgekeeperError, MissingError, UsageError
from edgekeeper.host.secrets import read


@pytest.fixture(autouse=True)
def _nothing_withheld(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log, "_secrets", set())


def secret_file(tmp_path, text: str, mode: int = 0o600) -> str:
    path = tmp_path / "token"
    path.write_bytes(text.encode())
    path.chmod(mode)
    return str(path)


def test_a_file_is_read_without_its_line_end_and_withheld_from_logs(tmp_path) -> None:
    path = secret_file(tmp_path, "correct horse battery\r\n")
    assert read(path) == "correct horse battery"
    assert read(SecretSource(secret_file=path)) == "correct horse battery"
    assert log.redact("x correct horse battery") == f"x {log.WITHHELD}"


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o644, 0o620, 0o666])
def test_a_file_that_others_may_touch_is_refused_with_the_command_to_type(tmp_path, mode: int) -> None:
    path = secret_file(tmp_path, "correct-horse", mode)
    with pytest.raises(UsageError, match=f"chmod 600 {path}") as caught:
        read(path)
    assert "correct-horse" not in str(caught.value)


def test_the_environment_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EDGE_TOKEN", "correct-horse\n")
    assert read(SecretSource(secret_env="EDGE_TOKEN")) == "correct-horse"


def test_what_is_not_there_is_said(tmp_path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("EDGE_TOKEN", raising=False)
    with pytest.raises(MissingError, match="EDGE_TOKEN is not set"):
        read(SecretSource(secret_env="EDGE_TOKEN"))
    with pytest.raises(MissingError, match="No such file"):
        read(str(tmp_path / "nowhere"))


@pytest.mark.parametrize("text", ["", "\n", "first-line\nsecond-line\n", "tab\tinside", "esc\x1b[31m"])
def test_what_is_no_secret_is_refused_without_being_shown(tmp_path, text: str) -> None:
    with pytest.raises(EdgekeeperError) as caught:
        read(secret_file(tmp_path, text))
    assert not text.strip() or text.strip().split("\n", maxsplit=1)[0] not in str(caught.value)
