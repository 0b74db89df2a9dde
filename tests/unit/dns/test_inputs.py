from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509

from edgekeeper.config.root import Root
from edgekeeper.dns import drained, inputs
from edgekeeper.dns.desired import Observation
from edgekeeper.dns.inputs import Inputs
from edgekeeper.lab.certs import Authority
from edgekeeper.model.backend import Member, Membership
from edgekeeper.model.entry import Entry
from edgekeeper.ops.alarms import Alarms

A, B = (Member(name, f"192.0.2.{number}", 5353) for number, name in enumerate(("ns-a", "ns-b"), 1))


class Clock:
    now = 1000.0

    def monotonic(self) -> float:
        return self.now

    def wall(self) -> float:
        return 1_800_000_000.0 + self.now


class Journal:
    def __init__(self) -> None:
        self.entries: list[Entry] = []

    def write(self, entry: Entry) -> None:
        self.entries.append(entry)

    def told(self) -> list[tuple[str, str]]:
        return [(str(e.event), e.decision) for e in self.entries if not str(e.event).startswith("alarm.")]


class Source:
    """Says what it is told to say."""

    def __init__(self, *answers: tuple[Member, ...]) -> None:
        self.answers = list(answers)

    async def read(self) -> Membership:
        return Membership(self.answers.pop(0), "the API", 5.0, by_person=False)

    async def changed(self) -> None:
        await asyncio.Event().wait()


class Made:
    def __init__(self, state: Path, **said: Any) -> None:
        dns = {"listen": ["127.0.0.1:53"], "members": {"static": ["ns-a=192.0.2.1"]}, "proxy_protocol": "off", **said}
        root = Root.model_validate({"dns": dns})
        assert root.dns is not None
        self.clock, self.journal, self.changes = Clock(), Journal(), 0
        self.alarms = Alarms("dns", self.journal)
        self.inputs = Inputs(root.dns, state, self.clock, self.journal, self.alarms, self._changed)

    def _changed(self) -> None:
        self.changes += 1

    def read(self, source: Source, times: int = 1) -> None:
        async def work() -> None:
            for _ in range(times):
                await self.inputs.follower.read(source)

        asyncio.run(work())


@pytest.fixture
def make(tmp_path: Path) -> Callable[..., Made]:
    return lambda **said: Made(tmp_path, **said)


@pytest.mark.parametrize("text", ["", "{", "[]", '{"members": [[1]], "names": {}}', '{"members": [], "names": []}', '{"members": 5}'])
def test_a_damaged_memory_is_forgotten(make: Callable[..., Made], tmp_path: Path, text: str) -> None:
    for name in ("membership.json", "zones.json", "resting.json"):
        (tmp_path / name).write_text(text)
    made = make(zones={"static": ["a.example"], "soa": True})
    made.inputs.remember()
    made.read(Source((A,)))
    assert made.inputs.members == (A,)
    assert dict(made.inputs.zones) == {"a.example.": None}


# what members say -------------------------------------------------------------------------


def look(made: Made, monkeypatch: pytest.MonkeyPatch, seen: dict[str, Observation], *, first: bool = False) -> None:
    async def observe(_members: object, *_: object, **__: object) -> dict[str, Observation]:
        return seen

    monkeypatch.setattr(inputs, "observe", observe)
    asyncio.run(made.inputs.look(first=first))


def test_a_member_that_says_twice_that_it_drains_is_journalled_once(make: Callable[..., Made], monkeypatch: pytest.MonkeyPatch) -> None:
    made = make()
    made.read(Source((A, B)))
    for _ in range(4):
        look(made, monkeypatch, {A.address: Observation("NOERROR", "ns-a draining"), B.address: Observation("NOERROR", "ns-b")})
    assert made.inputs.heard.resting == {A.address}
    assert made.journal.told() == [("member.drained", "act")]
    assert made.changes == 2


def test_who_drains_is_remembered_over_a_restart_of_the_supervisor(make: Callable[..., Made], monkeypatch: pytest.MonkeyPatch) -> None:
    """Forgotten, it would be put back into the running engine until it has said so twice again."""
    made = make()
    made.read(Source((A, B)))
    for _ in range(2):
        look(made, monkeypatch, {A.address: Observation("NOERROR", "ns-a draining"), B.address: Observation("NOERROR", "ns-b")})
    again = make()
    again.inputs.remember()
    again.read(Source((A, B)))
    assert again.inputs.heard.resting == {A.address}
    for count in (1, 2):
        look(again, monkeypatch, {A.address: Observation("NOERROR", "ns-a"), B.address: Observation("NOERROR", "ns-b")})
        assert again.inputs.heard.resting == ({A.address} if count == 1 else set())
    third = make()
    third.inputs.remember()
    assert third.inputs.heard.resting == frozenset()


def test_a_draining_member_that_leaves_is_not_said_to_be_back(make: Callable[..., Made], monkeypatch: pytest.MonkeyPatch) -> None:
    made = make()
    made.read(Source((A, B)))
    for _ in range(2):
        look(made, monkeypatch, {A.address: Observation("NOERROR", "ns-a draining"), B.address: Observation("NOERROR", "ns-b")})
    made.read(Source((B,)))
    look(made, monkeypatch, {B.address: Observation("NOERROR", "ns-b")})
    assert ("member.undrained", "act") not in made.journal.told()


def test_who_has_answered_its_name_is_remembered(make: Callable[..., Made], monkeypatch: pytest.MonkeyPatch) -> None:
    made = make()
    made.read(Source((A, B)))
    look(made, monkeypatch, {A.address: Observation("NOERROR", "ns-a"), B.address: Observation("NOERROR", "x")})
    assert made.inputs.unnamed() == ("ns-b",)
    made.inputs.remember_names()
    again = make()
    again.read(Source((A, B)))
    assert again.inputs.unnamed() == ("ns-b",)


# drained, zones, certificate --------------------------------------------------------------


def test_drained_members_are_followed_and_a_damaged_file_keeps_who_is_drained(make: Callable[..., Made], tmp_path: Path) -> None:
    made = make()
    drained.change(tmp_path, "ns-a", drain=True, force=False)
    made.inputs.read_drained()
    assert made.inputs.drained.names == {"ns-a"}
    (tmp_path / "drained.json").write_text("{")
    made.inputs.read_drained()
    assert made.inputs.drained.names == {"ns-a"}
    assert "drained" in made.alarms.raised
    drained.change(tmp_path, "ns-b", drain=True, force=False)
    made.inputs.read_drained()
    assert made.inputs.drained.names == {"ns-a", "ns-b"}
    assert "drained" not in made.alarms.raised
    assert sorted(e.object + " " + str(e.event) for e in made.journal.entries if e.decision == "act") == [
        "drained alarm.cleared", "ns-a member.drained", "ns-b member.drained",
    ]  # fmt: skip


@pytest.mark.parametrize("what", ["drained", "certificate"])
def test_what_changed_before_its_watcher_began_is_not_missed(make: Callable[..., Made], tmp_path: Path, what: str) -> None:
    made = make(tls={"dir": str(Authority(tmp_path).issue()), "dot": ["127.0.0.1:853"]})
    made.clock.wall = lambda: x509.load_pem_x509_certificate((tmp_path / "leaf-1/tls.crt").read_bytes()).not_valid_after_utc.timestamp() - 1  # type: ignore[method-assign]
    drained.change(tmp_path, "ns-a", drain=True, force=False)

    async def work() -> None:
        task = asyncio.create_task(made.inputs.watch_drained() if what == "drained" else made.inputs.watch_certificate())
        for _ in range(20):
            await asyncio.sleep(0)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    asyncio.run(work())
    assert made.inputs.drained.names == ({"ns-a"} if what == "drained" else set())
    assert (made.inputs.certificate is not None) is (what == "certificate")


def test_a_changed_serial_flushes_that_zone_and_a_changed_set_routes(make: Callable[..., Made]) -> None:
    made = make(zones={"static": ["a.example"], "soa": True})
    flushed: list[tuple[str, ...]] = []
    made.inputs.flush = flushed.append
    made.inputs.take_zones({"a.example.": 1})
    made.inputs.take_zones({"a.example.": 2})
    assert flushed == [("a.example.",)]
    assert made.changes == 0
    made.inputs.take_zones({"a.example.": 2, "b.example.": 1})
    assert made.changes == 1
    assert made.journal.told() == [("zones.changed", "act")]
    assert flushed == [("a.example.",)]


POLL = {"poll": {"url": "http://{member}:8082/zones"}, "static": ["s.example"]}


def test_zones_are_remembered_over_a_restart_of_the_supervisor(make: Callable[..., Made], tmp_path: Path) -> None:
    """Forgotten, their routes would be taken out of the running engine until the members are asked again."""
    made = make(zones=POLL)
    made.inputs._reader.known = {"member 192.0.2.1:5353": {"a.example.": 7}}
    made.inputs._reader.serials = {"a.example.": 7}
    made.inputs.take_zones({"a.example.": 7, "s.example.": None})
    again = make(zones=POLL)
    again.inputs.remember()
    assert dict(again.inputs.zones) == {"a.example.": 7, "s.example.": None}
    flushed: list[tuple[str, ...]] = []
    again.inputs.flush = flushed.append
    again.inputs.take_zones({"a.example.": 8, "s.example.": None})
    assert flushed == [("a.example.",)]
    assert json.loads((tmp_path / "zones.json").read_text())["schema"] == 1


def test_what_a_source_named_that_the_config_has_no_more_is_not_remembered(make: Callable[..., Made]) -> None:
    made = make(zones=POLL)
    made.inputs._reader.known = {"member 192.0.2.1:5353": {"a.example.": 7}, "catalog old.example.": {"b.example.": None}}
    made.inputs.take_zones({"a.example.": 7})
    again = make(zones={"static": ["t.example"], "catalog": [{"zone": "new.example", "server": "192.0.2.1:53"}]})
    again.inputs.remember()
    assert dict(again.inputs.zones) == {"t.example.": None}


def test_a_bad_certificate_is_told_once_and_the_good_one_stays(make: Callable[..., Made], tmp_path: Path) -> None:
    made = make(tls={"dir": str(tmp_path / "leaf-1"), "dot": ["127.0.0.1:853"]})
    folder = Authority(tmp_path).issue()
    leaf = x509.load_pem_x509_certificate((folder / "tls.crt").read_bytes())
    made.clock.wall = lambda: leaf.not_valid_after_utc.timestamp() - 3 * 86_400  # type: ignore[method-assign]
    made.inputs.read_certificate()
    good = made.inputs.certificate
    assert good is not None
    assert made.changes == 1
    assert "ends in 3.0 days" in made.alarms.raised["certificate"]
    (folder / "tls.crt").write_text("x")
    for _ in range(3):
        made.inputs.read_certificate()
    assert made.inputs.certificate == good
    assert made.alarms.raised["certificate"].endswith("the one before stays in use")
    assert made.journal.told() == [("certificate.refused", "refuse")]
    assert made.changes == 1


def test_without_any_good_certificate_the_alarm_says_that_nothing_starts(make: Callable[..., Made], tmp_path: Path) -> None:
    made = make(tls={"dir": str(tmp_path / "none"), "dot": ["127.0.0.1:853"]})
    made.inputs.read_certificate()
    assert made.inputs.certificate is None
    assert "the engine is not started" in made.alarms.raised["certificate"]
