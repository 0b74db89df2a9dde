"""Covers on the loopback interface, over a kernel in memory."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from edgekeeper.errors import MissingError, StepFailedError
from edgekeeper.host import addresses, sysctl
from edgekeeper.vip.cover import Covers

FOUR, OTHER, SIX = "192.0.2.53", "192.0.2.54", "2001:db8::53"


class Kernel:
    """The addresses of ``lo`` and everybody's ``arp_ignore``; ``refuses`` names calls that fail."""

    def __init__(self) -> None:
        self.lo: set[tuple[str, int]] = set()
        self.arp = {"all": 0, "eth0": 0, "eth1": 2}
        self.refuses: set[str] = set()
        self.seen: list[str] = []

    def add(self, interface: str, address: str, prefix: int, *, host_scope: bool = False) -> bool:
        assert (interface, host_scope) == ("lo", True)
        self._say(f"add {address}")
        new = (address, prefix) not in self.lo
        self.lo.add((address, prefix))
        return new

    def remove(self, interface: str, address: str, prefix: int) -> bool:
        assert interface == "lo"
        self._say(f"remove {address}")
        there = (address, prefix) in self.lo
        self.lo.discard((address, prefix))
        return there

    def arp_ignore(self, interface: str) -> int:
        return self.arp[interface]

    def set_arp_ignore(self, interface: str, value: int) -> None:
        self._say(f"arp {interface} {value}")
        self.arp[interface] = value

    def _say(self, what: str) -> None:
        if what.split(maxsplit=1)[0] in self.refuses:
            msg = f"{what}: the right to is missing"
            raise MissingError(msg)
        self.seen.append(what)


@pytest.fixture
def kernel(monkeypatch: pytest.MonkeyPatch) -> Kernel:
    made = Kernel()
    for module, name in ((addresses, "add"), (addresses, "remove"), (sysctl, "arp_ignore"), (sysctl, "set_arp_ignore")):
        monkeypatch.setattr(module, name, getattr(made, name))
    return made


def test_a_cover_is_a_host_address_and_arp_is_silent_before_it_is_there_and_as_before_after_the_last(kernel: Kernel, tmp_path: Path) -> None:
    covers = Covers(tmp_path)
    assert covers.put(FOUR, "eth0") is None
    assert kernel.seen == ["arp eth0 1", f"add {FOUR}"], "the address without silence would be answered for on the wire"
    assert covers.put(OTHER, "eth0") is None
    assert covers.put(SIX, "eth0") is None
    assert kernel.lo == {(FOUR, 32), (OTHER, 32), (SIX, 128)}
    assert FOUR in covers
    covers.take(FOUR)
    assert (FOUR in covers, kernel.arp["eth0"]) == (False, 1), "another one still needs the silence"
    covers.take(OTHER)
    assert kernel.arp["eth0"] == 0, "an IPv6 cover does not"
    covers.take(SIX)
    assert kernel.lo == set()
    assert kernel.seen[-3:] == [f"remove {OTHER}", "arp eth0 0", f"remove {SIX}"]


def test_what_is_silent_already_is_left_alone(kernel: Kernel, tmp_path: Path) -> None:
    covers = Covers(tmp_path)
    covers.put(FOUR, "eth1")
    covers.take(FOUR)
    kernel.arp["all"] = 1
    covers.put(FOUR, "eth0")
    covers.take(FOUR)
    assert not any(said.startswith("arp") for said in kernel.seen)


@pytest.mark.parametrize("refuses", ["add", "arp"])
def test_what_cannot_be_covered_is_told_each_time_and_leaves_nothing_behind(kernel: Kernel, tmp_path: Path, refuses: str) -> None:
    covers = Covers(tmp_path)
    kernel.refuses = {refuses}
    for _ in range(2):
        assert str(covers.put(FOUR, "eth0")).startswith(f"{FOUR} cannot be covered: ")
        assert (FOUR in covers, kernel.lo, kernel.arp["eth0"]) == (False, set(), 0)
    kernel.refuses = set()
    assert covers.put(FOUR, "eth0") is None
    assert kernel.arp["eth0"] == 1
    covers.take(FOUR)
    assert kernel.arp["eth0"] == 0


def test_the_next_supervisor_takes_over_what_is_still_a_vip_and_removes_the_rest(kernel: Kernel, tmp_path: Path) -> None:
    first = Covers(tmp_path)
    first.put(FOUR, "eth0")
    first.put(OTHER, "eth0")
    second = Covers(tmp_path)
    assert second.found([FOUR, SIX]) == (FOUR,)
    assert kernel.lo == {(FOUR, 32)}
    assert kernel.arp["eth0"] == 1
    second.take(FOUR)
    assert (kernel.lo, kernel.arp["eth0"]) == (set(), 0)
    assert Covers(tmp_path).found([FOUR]) == ()


@pytest.mark.parametrize("before", ["arp eth0", "add"])
def test_killed_at_any_step_nothing_stays_for_ever(kernel: Kernel, tmp_path: Path, before: str) -> None:
    """The record is written before anything is done: what a kill leaves is put right by the next one."""

    def killed(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sysctl, "set_arp_ignore", killed) if before == "arp eth0" else patch.setattr(addresses, "add", killed)
        with pytest.raises(KeyboardInterrupt):
            Covers(tmp_path).put(FOUR, "eth0")
    if before == "arp eth0":
        kernel.arp["eth0"] = 1  # in the very moment
    Covers(tmp_path).found([])
    assert (kernel.lo, kernel.arp["eth0"]) == (set(), 0)


@pytest.mark.parametrize("record", ["", "[]", "{}", '{"up": 5, "arp_ignore": {}}', '{"up": {}, "arp_ignore": {"eth0": "x"}}', "\0"])
def test_a_damaged_record_is_none(kernel: Kernel, tmp_path: Path, record: str) -> None:
    (tmp_path / "covers.json").write_text(record)
    assert Covers(tmp_path).found([FOUR]) == ()
    assert kernel.seen == []


def test_a_full_disk_does_not_keep_a_cover_from_its_clients(kernel: Kernel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object, **__: object) -> None:
        raise StepFailedError("no space left")

    monkeypatch.setattr("edgekeeper.vip.cover.write_text", full)
    covers = Covers(tmp_path)
    assert covers.put(FOUR, "eth0") is None
    assert kernel.lo == {(FOUR, 32)}


def test_one_that_cannot_be_taken_away_is_told_with_the_command_that_does(kernel: Kernel, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    covers = Covers(tmp_path)
    covers.put(FOUR, "eth0")
    kernel.refuses = {"remove"}
    covers.take(FOUR)
    assert f"ip addr del {FOUR}/32 dev lo" in caplog.text


def test_the_record_says_what_is_up(kernel: Kernel, tmp_path: Path) -> None:
    Covers(tmp_path).put(FOUR, "eth0")
    assert json.loads((tmp_path / "covers.json").read_text()) == {"up": {FOUR: "eth0"}, "arp_ignore": {"eth0": 0}, "theirs": []}


def test_an_address_that_somebody_else_has_on_the_loopback_interface_is_left_to_him(kernel: Kernel, tmp_path: Path) -> None:
    kernel.lo.add((FOUR, 32))
    covers = Covers(tmp_path)
    for again in (covers, Covers(tmp_path)):
        again.found([])
        assert again.put(FOUR, "eth0") is None
        again.take(FOUR)
        assert kernel.lo == {(FOUR, 32)}
    covers.put(FOUR, "eth0")
    Covers(tmp_path).found([])  # the next supervisor, after a crash
    assert kernel.lo == {(FOUR, 32)}


def test_putting_a_cover_up_twice_does_not_make_it_somebody_elses(kernel: Kernel, tmp_path: Path) -> None:
    covers = Covers(tmp_path)
    covers.put(FOUR, "eth0")
    covers.put(FOUR, "eth0")
    covers.take(FOUR)
    assert kernel.lo == set()


def test_what_a_person_sets_while_a_cover_is_up_stays(kernel: Kernel, tmp_path: Path) -> None:
    covers = Covers(tmp_path)
    covers.put(FOUR, "eth0")
    kernel.arp["eth0"] = 2
    covers.take(FOUR)
    assert kernel.arp["eth0"] == 2
