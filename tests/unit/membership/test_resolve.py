from __future__ import annotations

import asyncio

import pytest

from edgekeeper.errors import MissingError
from edgekeeper.membership import dns as members_from_dns
from edgekeeper.membership import resolve as unit
from edgekeeper.model.backend import Member

NAMED = Member("ns-a", "a.example", 53)
FIXED = Member("ns-b", "192.0.2.9", 53)


class Names:
    """What DNS and the hosts file say; an exception is raised."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.dns: dict[str, list[str] | Exception] = {}
        self.hosts: dict[str, tuple[str, ...]] = {}
        monkeypatch.setattr(members_from_dns, "addresses", self._dns)
        monkeypatch.setattr(unit, "_from_hosts", self._hosts)

    async def _dns(self, name: str) -> list[str]:
        found = self.dns.get(name, [])
        if isinstance(found, Exception):
            raise found
        return found

    async def _hosts(self, name: str) -> tuple[str, ...]:
        if name not in self.hosts:
            msg = f"{name} cannot be resolved: unknown"
            raise MissingError(msg)
        return self.hosts[name]


@pytest.fixture
def names(monkeypatch: pytest.MonkeyPatch) -> Names:
    return Names(monkeypatch)


def resolved(*members: Member, known: dict[str, tuple[str, ...]] | None = None) -> tuple[tuple[Member, ...], tuple[str, ...]]:
    return asyncio.run(unit.resolved(members, known if known is not None else {}))


def test_addresses_are_taken_as_they_are_and_names_are_resolved(names: Names) -> None:
    names.dns["a.example"] = ["192.0.2.1"]
    assert resolved(NAMED, FIXED) == ((Member("ns-a", "192.0.2.1", 53), FIXED), ())


def test_a_name_with_several_addresses_is_several_members_without_the_nodes_name(names: Names) -> None:
    names.dns["a.example"] = ["192.0.2.1", "2001:db8::1"]
    assert [(m.name, m.host) for m in resolved(NAMED)[0]] == [("", "192.0.2.1"), ("", "2001:db8::1")]


@pytest.mark.parametrize("gone", [MissingError("timeout"), []], ids=["error", "empty"])
def test_a_name_that_stops_resolving_keeps_its_addresses_and_is_told(names: Names, gone: list[str] | Exception) -> None:
    known: dict[str, tuple[str, ...]] = {}
    names.dns["a.example"] = ["192.0.2.1"]
    first, _ = resolved(NAMED, known=known)
    names.dns["a.example"] = gone
    again, notes = resolved(NAMED, known=known)
    assert again == first
    assert len(notes) == 1
    assert notes[0].endswith("its last addresses stay")


def test_a_name_that_never_resolved_is_left_out_and_told(names: Names) -> None:
    members, notes = resolved(NAMED, FIXED)
    assert members == (FIXED,)
    assert notes[0].endswith("it is left out until it has some")


@pytest.mark.parametrize("dns", [MissingError("no name server"), []], ids=["error", "empty"])
def test_a_name_of_the_hosts_file_is_found_though_dns_does_not_know_it(names: Names, dns: list[str] | Exception) -> None:
    names.dns["a.example"] = dns
    names.hosts["a.example"] = ("192.0.2.7",)
    assert resolved(NAMED)[0] == (Member("ns-a", "192.0.2.7", 53),)


def test_two_members_at_one_address_are_one(names: Names) -> None:
    names.dns["a.example"] = ["192.0.2.1"]
    names.dns["b.example"] = ["192.0.2.1"]
    assert len(resolved(Member("", "a.example", 53), Member("", "b.example", 53))[0]) == 1


def test_a_bug_is_not_taken_for_a_name_that_does_not_resolve(names: Names) -> None:
    names.dns["a.example"] = RuntimeError("a bug")
    with pytest.raises(RuntimeError):
        resolved(NAMED)
