from __future__ import annotations

import fcntl
import json
import os

import pytest

from edgekeeper.errors import EdgekeeperError, LockHeldError
from edgekeeper.host import budgets
from edgekeeper.host.budgets import spend


def test_a_budget_is_kept_over_calls_and_keys_do_not_share(tmp_path) -> None:
    store = tmp_path / "budgets.json"
    assert spend(store, "restart", 2, 60, 1000.0).allowed
    assert spend(store, "restart", 2, 60, 1001.0).allowed
    refused = spend(store, "restart", 2, 60, 1002.0)
    assert not refused.allowed
    assert "again in 58 s" in refused.why
    assert spend(store, "flush", 2, 60, 1002.0).allowed
    assert spend(store, "restart", 2, 60, 1061.0).allowed


def test_a_spending_is_on_the_disk_before_it_is_allowed(tmp_path) -> None:
    store = tmp_path / "budgets.json"
    spend(store, "restart", 2, 60, 1000.0)
    assert json.loads(store.read_text())["spent"] == {"restart": [1000.0]}
    assert store.stat().st_mode & 0o077 == 0


def test_a_store_that_cannot_be_written_allows_nothing(tmp_path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_args: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("edgekeeper.host.files.os.fsync", full)
    with pytest.raises(EdgekeeperError):
        spend(tmp_path / "budgets.json", "restart", 2, 60, 1000.0)
    with pytest.raises(EdgekeeperError):
        spend(tmp_path / "nowhere" / "budgets.json", "restart", 2, 60, 1000.0)


@pytest.mark.parametrize("text", ["", "{", "[]", '{"schema": 7, "damaged": 0, "spent": {}}', '{"schema": 1, "damaged": 0, "spent": {"restart": 5}}'])
def test_a_damaged_store_counts_as_spent_for_one_window_and_then_works_again(tmp_path, text: str) -> None:
    store = tmp_path / "budgets.json"
    store.write_text(text)
    assert not spend(store, "restart", 2, 60, 1000.0).allowed
    assert not spend(store, "restart", 2, 60, 1059.0).allowed
    assert spend(store, "restart", 2, 60, 1060.0).allowed
    assert spend(store, "restart", 2, 60, 1061.0).allowed
    assert not spend(store, "restart", 2, 60, 1062.0).allowed


@pytest.mark.parametrize("text", [None, "{"])
def test_a_clock_that_jumped_back_a_day_holds_for_one_window_only(tmp_path, text: str | None) -> None:
    store = tmp_path / "budgets.json"
    if text is None:
        spend(store, "restart", 1, 60, 100_000.0)
    else:
        store.write_text(text)
        assert not spend(store, "restart", 1, 60, 100_000.0).allowed
    assert not spend(store, "restart", 1, 60, 10_000.0).allowed
    assert not spend(store, "restart", 1, 60, 10_059.0).allowed
    assert spend(store, "restart", 1, 60, 10_060.0).allowed


def test_a_frozen_holder_of_the_lock_is_not_waited_for_for_ever(tmp_path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(budgets, "_LOCK_WAIT_S", 0.0)
    handle = os.open(tmp_path / "budgets.json.lock", os.O_RDWR | os.O_CREAT)
    fcntl.flock(handle, fcntl.LOCK_EX)
    with pytest.raises(LockHeldError, match="no automatic act is allowed"):
        spend(tmp_path / "budgets.json", "restart", 2, 60, 1000.0)
    os.close(handle)
    assert spend(tmp_path / "budgets.json", "restart", 2, 60, 1000.0).allowed


def test_looking_spends_nothing_and_sees_what_is_spent(tmp_path) -> None:
    store = tmp_path / "budgets.json"
    assert budgets.look(store, "mark", 2, 60, 1000.0).spent == ()
    spend(store, "mark", 2, 60, 1000.0)
    before = store.read_bytes()
    assert budgets.look(store, "mark", 2, 60, 1001.0).spent == (1000.0,)
    assert store.read_bytes() == before
    store.write_text("{")
    assert len(budgets.look(store, "mark", 2, 60, 1001.0).spent) == 2, "a damaged store counts as spent"
