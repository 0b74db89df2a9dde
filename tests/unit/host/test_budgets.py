from __future__ import annotations

import fcntl
import json
import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from edgekeeper.errors import EdgekeeperError, LockHeldError, MissingError
from edgekeeper.host import budgets
from edgekeeper.host.budgets import ages, look, note, spend
from edgekeeper.model.budget import Bucket, Budget, Window
from edgekeeper.model.budget import spend as decide
from edgekeeper.model.moment import Moment

TWO = Budget((Window(2, 60.0),))
ONE = Budget((Window(1, 60.0),))


def at(seconds: float, *, wall: float | None = None, boot_id: str = "a", booted: float = 0.0) -> Moment:
    """A moment so many true seconds into a test; the clocks are right unless told otherwise."""
    return Moment(100_000.0 + seconds if wall is None else wall, seconds - booted, boot_id, seconds - booted)


def test_a_budget_is_kept_over_calls_and_keys_do_not_share(tmp_path) -> None:
    store = tmp_path / "budgets.json"
    assert spend(store, "restart", TWO, at(1000)).allowed
    assert spend(store, "restart", TWO, at(1001)).allowed
    refused = spend(store, "restart", TWO, at(1002))
    assert not refused.allowed
    assert "again in 58 s" in refused.why
    assert refused.again_s == pytest.approx(58)
    assert spend(store, "flush", TWO, at(1002)).allowed
    assert spend(store, "restart", TWO, at(1061)).allowed


def test_a_spending_is_on_the_disk_before_it_is_allowed(tmp_path, monkeypatch: pytest.MonkeyPatch) -> None:
    store, order = tmp_path / "budgets.json", []
    real_sync, real_replace = os.fsync, Path.replace
    monkeypatch.setattr("edgekeeper.host.files.os.fsync", lambda fd: (order.append(("sync", os.path.realpath(f"/proc/self/fd/{fd}"))), real_sync(fd))[1])
    monkeypatch.setattr(Path, "replace", lambda self, target: (order.append(("rename", str(target))), real_replace(self, target))[1])
    assert spend(store, "restart", TWO, at(1000)).allowed
    (first, wrote), second, third = order
    assert first == "sync"
    assert Path(wrote).name.startswith(".budgets.json.")
    assert (second, third) == (("rename", str(store)), ("sync", str(tmp_path)))
    assert json.loads(store.read_text())["keys"]["restart"]["spent"] == [1000.0]
    assert store.stat().st_mode & 0o077 == 0


def test_what_a_killed_writer_has_left_is_removed(tmp_path) -> None:
    (tmp_path / ".budgets.json.x1").write_text("{")
    spend(tmp_path / "budgets.json", "restart", TWO, at(1000))
    assert sorted(p.name for p in tmp_path.iterdir()) == ["budgets.json", "budgets.json.lock"]


def test_a_store_that_cannot_be_written_or_read_allows_nothing_and_says_why(tmp_path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "folder").mkdir()
    with pytest.raises(MissingError, match="Is a directory; without it no automatic act is allowed"):
        spend(tmp_path / "folder", "restart", TWO, at(1000))
    with pytest.raises(MissingError, match="without it no automatic act is allowed"):
        spend(tmp_path / "nowhere" / "budgets.json", "restart", TWO, at(1000))
    with pytest.raises(MissingError, match="without it no automatic act is allowed"):
        spend("/proc/self/budgets.json", "restart", TWO, at(1000))  # read-only, for root too
    store = tmp_path / "budgets.json"
    spend(store, "restart", TWO, at(1000))
    before = store.read_bytes()

    def full(*_args: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("edgekeeper.host.files.os.fsync", full)
    with pytest.raises(EdgekeeperError, match="No space left on device"):
        spend(store, "restart", TWO, at(1001))
    assert store.read_bytes() == before


AT = '"at": {"wall": 1, "boot": 1, "boot_id": "a"}'


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"{",
        b"\0\0\0\0",
        b'{"schema": 2, "\xff',
        b"[]",
        b'{"schema": 7, "damaged": 0, "spent": {}}',
        b'{"schema": 1, "damaged": 0, "spent": {"restart": 5}}',
        b'{"schema": 2, "damaged": null, "keys": {}}',
        f'{{"schema": 2, {AT}, "damaged": null, "keys": {{"restart": {{"spent": [NaN], "told": [], "poor": 0}}}}}}'.encode(),
        f'{{"schema": 2, {AT}, "damaged": null, "keys": {{"restart": {{"spent": ["x"], "told": [], "poor": 0}}}}}}'.encode(),
        f'{{"schema": 2, {AT}, "damaged": null, "keys": {{"restart": {{"spent": [1{"0" * 400}], "told": [], "poor": 0}}}}}}'.encode(),
    ],
)
def test_a_damaged_store_counts_as_spent_for_one_window_and_then_works_again(tmp_path, text: bytes) -> None:
    store = tmp_path / "budgets.json"
    store.write_bytes(text)
    looked = decide(look(store, "restart", TWO, at(1000)), 1000.0)
    assert (looked.allowed, "the store was damaged" in looked.why) == (False, True), looked.why
    assert ages(store, "restart", at(1000)) == ()
    note(store, "restart", False)
    assert not spend(store, "restart", TWO, at(1000)).allowed
    assert not spend(store, "restart", TWO, at(1059)).allowed
    assert spend(store, "restart", TWO, at(1060)).allowed
    assert spend(store, "restart", TWO, at(1061)).allowed
    refused = spend(store, "restart", TWO, at(1062))
    assert (refused.allowed, "damaged" in refused.why) == (False, False), "that is over"


def test_a_store_of_before_is_read_and_upgraded_on_the_first_occasion(tmp_path) -> None:
    store = tmp_path / "budgets.json"
    store.write_text(json.dumps({"schema": 1, "damaged": 0.0, "spent": {"restart": [100_990.0], "flush": [100_999.0]}}))
    assert ages(store, "restart", at(1000)) == (10.0,)
    assert not spend(store, "restart", ONE, at(1000)).allowed
    assert not spend(store, "restart", ONE, at(1001, wall=1e9)).allowed, "from now on no jump of the wall clock counts"
    assert ages(store, "flush", at(1002, wall=1e9)) == (3.0,)
    assert spend(store, "restart", ONE, at(1050)).allowed
    store.write_text(json.dumps({"schema": 1, "damaged": 100_990.0, "spent": {}}))
    assert not spend(store, "restart", ONE, at(1000)).allowed


@pytest.mark.parametrize("wall", [100.0, 1e9, -5.0])
@pytest.mark.parametrize("damaged", [True, False])
def test_a_wall_clock_that_jumped_frees_nothing_and_holds_nothing_longer(tmp_path, wall: float, damaged: bool) -> None:
    store = tmp_path / "budgets.json"
    if damaged:
        store.write_text("{")
    assert spend(store, "restart", ONE, at(1000)).allowed is not damaged
    assert not spend(store, "restart", ONE, at(1059, wall=wall)).allowed
    assert spend(store, "restart", ONE, at(1060, wall=wall)).allowed


def test_over_a_reboot_the_wall_clock_tells_the_age_and_never_less_than_the_time_since(tmp_path) -> None:
    store = tmp_path / "budgets.json"
    spend(store, "restart", ONE, at(1000))
    assert ages(store, "restart", at(1050, boot_id="b", booted=1040)) == (50.0,)
    assert ages(store, "restart", at(1050, wall=5.0, boot_id="b", booted=1040)) == (10.0,), "a clock that lost the time"
    assert not spend(store, "restart", ONE, at(1050, wall=5.0, boot_id="b", booted=1040)).allowed
    assert not spend(store, "restart", ONE, at(1099, wall=1e9, boot_id="b", booted=1040)).allowed, "what has been read frees nothing when it is set right"
    assert spend(store, "restart", ONE, at(1100, wall=1e9, boot_id="b", booted=1040)).allowed


def test_a_look_after_the_wall_clock_was_set_right_makes_a_reboot_tell_the_true_age(tmp_path) -> None:
    """A board without a battery: it acts before its clock is set, and is rebooted later."""
    store = tmp_path / "budgets.json"
    assert spend(store, "restart", ONE, at(10, wall=5.0)).allowed
    look(store, "restart", ONE, at(20))
    assert ages(store, "restart", at(50, boot_id="b", booted=40)) == (40.0,)


def test_the_time_that_was_waited_for_the_lock_is_part_of_the_moment(tmp_path, monkeypatch: pytest.MonkeyPatch) -> None:
    handle = os.open(tmp_path / "budgets.json.lock", os.O_RDWR | os.O_CREAT)
    fcntl.flock(handle, fcntl.LOCK_EX)
    clock = iter([10.0, 10.0, 11.5])
    monkeypatch.setattr(budgets.time, "monotonic", lambda: next(clock))
    monkeypatch.setattr(budgets.time, "sleep", lambda _: os.close(handle))
    spend(tmp_path / "budgets.json", "restart", ONE, at(1000))
    assert ages(tmp_path / "budgets.json", "restart", at(1002)) == (0.5,)


def test_who_was_overtaken_on_the_way_to_the_lock_makes_nothing_older(tmp_path) -> None:
    store = tmp_path / "budgets.json"
    assert spend(store, "restart", ONE, at(1000)).allowed
    assert not spend(store, "restart", ONE, at(999.5)).allowed
    assert spend(store, "flush", ONE, at(999.0)).allowed
    assert ages(store, "restart", at(1001)) == (1.0,)
    assert ages(store, "flush", at(1001)) == (1.0,)
    assert not spend(store, "restart", ONE, at(100)).allowed, "the machine went back to a snapshot"
    assert spend(store, "restart", ONE, at(160)).allowed, "that holds for one window"


def test_a_frozen_holder_of_the_lock_is_not_waited_for_for_ever(tmp_path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(budgets, "_LOCK_WAIT_S", 0.0)
    handle = os.open(tmp_path / "budgets.json.lock", os.O_RDWR | os.O_CREAT)
    fcntl.flock(handle, fcntl.LOCK_EX)
    with pytest.raises(LockHeldError, match="no automatic act is allowed"):
        spend(tmp_path / "budgets.json", "restart", TWO, at(1000))
    os.close(handle)
    assert spend(tmp_path / "budgets.json", "restart", TWO, at(1000)).allowed


def test_looking_spends_nothing_and_sees_what_is_spent(tmp_path) -> None:
    store = tmp_path / "budgets.json"
    assert look(store, "mark", TWO, at(1000)).spent == ()
    spend(store, "mark", TWO, at(1000))
    before = store.read_bytes()
    asleep = Moment(101_010.0, 1010.0, "a", 955.0)  # 50 s asleep, which the axis of decisions does not know
    seen = look(store, "mark", TWO, asleep)
    assert seen.spent == (945.0,)
    assert (seen.rules, seen.pause_s) == (TWO.rules, TWO.pause_s)
    assert store.read_bytes() == before


@pytest.mark.parametrize("of", ["damage", "an earlier boot", "a snapshot", "schema 1"])
def test_who_only_looks_sees_the_moment_come_when_an_act_is_allowed(tmp_path, of: str) -> None:
    store = tmp_path / "budgets.json"
    spend(store, "mark", ONE, at(5000 if of == "a snapshot" else 999))
    if of == "damage":
        store.write_text("{")
    elif of == "schema 1":
        store.write_text(json.dumps({"schema": 1, "damaged": 0, "spent": {"mark": [100_999]}}))
    boot_id = "b" if of == "an earlier boot" else "a"
    seen = [decide(look(store, "mark", ONE, m), m.mono).allowed for m in (at(1000 + i, wall=1e6 * i, boot_id=boot_id, booted=1000) for i in range(0, 70, 10))]
    assert seen == [*[False] * 6, True], "whatever the wall clock does meanwhile"


def test_acts_of_siblings_count_are_kept_and_are_counted_once(tmp_path) -> None:
    store, three = tmp_path / "budgets.json", Budget((Window(3, 60.0),))
    assert not decide(look(store, "mesh", three, at(1000), [1.0, 2.0, 2.0]), 1000.0).allowed
    assert not spend(store, "mesh", three, at(1000), [1.0, 1.2, 2.0]).allowed
    assert not spend(store, "mesh", three, at(1010)).allowed, "also when nobody tells of them any more"
    assert not spend(store, "mesh", three, at(1057.9), [59.9, 60.0, 60.9]).allowed
    assert spend(store, "mesh", three, at(1058.1), [59.5, 59.6, 60.4]).allowed, "told a second earlier or later they are the same acts"
    assert ages(store, "mesh", at(1058.5)) == pytest.approx((0.4,)), "what siblings told is not told back to them"
    assert not spend(store, "mesh", TWO, at(1061), [0.5, float("nan"), -3.0]).allowed
    assert not spend(store, "one", ONE, at(1000), [1.0]).allowed
    assert not spend(store, "one", TWO, at(1001), [2.0, 2.5]).allowed, "two in the same second are two"


def test_acts_that_did_not_help_are_counted_until_one_does(tmp_path) -> None:
    store, paused = tmp_path / "budgets.json", Budget((Bucket(9, 1.0),), pause_s=30.0)
    note(store, "mesh", False)
    assert not store.exists(), "of nothing there is nothing to note"
    assert spend(store, "mesh", paused, at(1000)).allowed
    note(store, "mesh", False)
    assert "the last one did not help, the pause is 30 s; again in 20 s" in spend(store, "mesh", paused, at(1010)).why
    assert spend(store, "mesh", paused, at(1030)).allowed
    note(store, "mesh", False)
    assert look(store, "mesh", paused, at(1031)).poor == 2
    assert spend(store, "mesh", paused, at(1031)).again_s == pytest.approx(59)
    note(store, "mesh", True)
    assert spend(store, "mesh", paused, at(1032)).allowed


RULES = (Bucket(2, 20.0), Window(4, 120.0))
STEPS = st.lists(
    st.tuples(st.sampled_from(["pass", "pass", "set", "boot", "lost"]), st.floats(0, 40), st.floats(-90_000, 90_000), st.sampled_from([(), (3.0,)])),
    min_size=5,
    max_size=14,
)


@settings(max_examples=10, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(STEPS)
def test_whatever_is_done_to_the_clocks_no_rule_is_broken_in_true_time(tmp_path, steps: list[tuple[str, float, float, tuple[float, ...]]]) -> None:
    """The wall clock is set at will, the machine is rebooted, and its clock may have lost the time then: never more acts than each rule allows."""
    store = tmp_path / "budgets.json"
    store.unlink(missing_ok=True)
    true, off, booted, boots, allowed = 1000.0, 0.0, 0.0, 0, []
    for what, seconds, jump, told in steps:
        true += seconds
        if what == "set":
            off += jump
        elif what in ("boot", "lost"):
            booted, boots = true - seconds / 2, boots + 1
            off -= abs(jump) if what == "lost" else 0.0
        if spend(store, "mesh", Budget(RULES), at(true, wall=100_000.0 + true + off, boot_id=f"boot {boots}", booted=booted), told).allowed:
            allowed.append(true)
        for i, first in enumerate(allowed):
            assert sum(1 for t in allowed[i:] if t - first < 120.0 - 1e-3) <= 4
            assert len(allowed) - i <= 2 + (allowed[-1] - first + 1e-3) / 20.0
