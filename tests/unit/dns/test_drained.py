from __future__ import annotations

import pytest

from edgekeeper.dns.drained import Drained, change, read, recall
from edgekeeper.errors import LockHeldError, UsageError
from edgekeeper.host.files import locked


def test_who_is_drained_is_remembered(tmp_path) -> None:
    assert read(tmp_path) == Drained()
    change(tmp_path, "ns-a", drain=True, force=False)
    change(tmp_path, "192.0.2.1:53", drain=True, force=False)
    assert read(tmp_path).names == {"ns-a", "192.0.2.1:53"}
    assert change(tmp_path, "ns-a", drain=False, force=False).names == {"192.0.2.1:53"}
    assert (tmp_path / "drained.json").stat().st_mode & 0o077 == 0


def test_force_lasts_as_long_as_somebody_is_drained(tmp_path) -> None:
    assert change(tmp_path, "ns-a", drain=True, force=True).forced
    assert change(tmp_path, "ns-b", drain=True, force=False).forced
    assert change(tmp_path, "ns-a", drain=False, force=False).forced
    assert not change(tmp_path, "ns-b", drain=False, force=False).forced
    assert not change(tmp_path, "ns-a", drain=True, force=False).forced


@pytest.mark.parametrize("text", ["", "{", "[]", "5", "{}", '{"names": 5}', '{"names": null}'])
def test_a_damaged_file_never_means_that_nobody_is_drained(tmp_path, text: str) -> None:
    (tmp_path / "drained.json").write_text(text)
    with pytest.raises(UsageError, match="whoever was drained stays so"):
        read(tmp_path)
    change(tmp_path, "ns-a", drain=True, force=False)
    assert read(tmp_path).names == {"ns-a"}


def test_who_was_drained_by_the_last_command_is_known_when_the_file_is_damaged(tmp_path) -> None:
    assert recall(tmp_path) == Drained()
    change(tmp_path, "ns-a", drain=True, force=True)
    (tmp_path / "drained.json").write_text("{torn")
    assert recall(tmp_path) == Drained(frozenset({"ns-a"}), forced=True)
    assert change(tmp_path, "ns-b", drain=True, force=False).names == {"ns-a", "ns-b"}


def test_two_commands_at_once_do_not_lose_a_name(tmp_path) -> None:
    with locked(tmp_path / "drained.lock", "another drain or undrain"), pytest.raises(LockHeldError):
        change(tmp_path, "ns-a", drain=True, force=False)
