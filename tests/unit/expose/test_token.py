"""The mesh's token from a file or the environment; OpenBao and Vault are asked over real HTTP elsewhere."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

import pytest
from tests.fakes.turned import Still

from edgekeeper.config.expose import NetBird
from edgekeeper.errors import EdgekeeperError, MissingError, UsageError
from edgekeeper.expose.token import reader


def read(**source: object) -> str:
    return asyncio.run(reader(NetBird.model_validate({"url": "https://mesh.example", **source}), Still())())


def test_a_file_is_read_anew_each_time(tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text("nbp_one\n")
    file.chmod(0o600)
    give = reader(NetBird.model_validate({"url": "https://mesh.example", "token_file": str(file)}), Still())
    assert asyncio.run(give()) == "nbp_one"
    file.write_text("nbp_two")
    assert asyncio.run(give()) == "nbp_two"


def test_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MESH_TOKEN", "nbp_x")
    assert read(token_env="MESH_TOKEN") == "nbp_x"


@pytest.mark.parametrize(("text", "mode"), [("nbp_x", 0o644), ("", 0o600), ("a b", 0o600), ("nbp_\u00e9", 0o600), ("one\ntwo", 0o600)])
def test_what_is_no_token_or_anybodys_is_refused_and_not_repeated(tmp_path: Path, text: str, mode: int) -> None:
    file = tmp_path / "token"
    file.write_text(text)
    file.chmod(mode)
    with pytest.raises(UsageError) as caught:
        read(token_file=str(file))
    assert str(file) in str(caught.value)
    assert not text or text not in str(caught.value)


def test_nothing_there_is_told() -> None:
    with pytest.raises(EdgekeeperError, match="NO_SUCH_VARIABLE"):
        read(token_env="NO_SUCH_VARIABLE")


def test_without_the_extra_it_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "hvac", None)
    with pytest.raises(MissingError, match=r"install edgekeeper\[vault\]"):
        read(token_vault={"url": "https://vault.example", "role": "r", "path": "p"})
