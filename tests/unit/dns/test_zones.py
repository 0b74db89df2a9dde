from __future__ import annotations

import asyncio
import json

import dns.zone
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from edgekeeper.config.dns import Catalog, ZonePoll, Zones
from edgekeeper.dns import zones as unit
from edgekeeper.dns.zones import ZoneReader, changed_serials, merge, parse_zones, read_catalog
from edgekeeper.errors import MissingError
from edgekeeper.model.backend import Member

A, B = Member("ns-a", "192.0.2.1", 53), Member("ns-b", "192.0.2.2", 53)
serials = st.one_of(st.none(), st.integers(0, 2**32 - 1))
names = st.sampled_from(["a.example.", "b.example.", "c.example."])


def answer(*zones: object) -> str:
    return json.dumps({"node": "ns-a", "zones": zones})


def test_zones_are_read_absolute_and_in_small_letters() -> None:
    text = answer({"name": "A.Example", "serial": 7, "type": "primary"}, {"name": "b.example.", "serial": None}, {"name": "c.example", "serial": "9"})
    assert parse_zones(text) == {"a.example.": 7, "b.example.": None, "c.example.": 9}


BAD = (
    "",
    "[]",
    "{}",
    "null",
    '{"zones": null}',
    '{"zones": ["a.example."]}',
    '{"zones": {"a.example.": 1}}',
    answer({"serial": 1}),
    answer({"name": None, "serial": 1}),
    answer({"name": 5}),
    answer({"name": 'x") os.exit() --'}),
    answer({"name": "a.example.", "serial": "x"}),
    answer({"name": "a.example.", "serial": True}),
    answer({"name": "a.example.", "serial": 1.5}),
    answer({"name": "a.example.", "serial": -1}),
    answer({"name": "a.example.", "serial": 2**32}),
    '{"zones": [{"name": "a.example.", "serial": Infinity}]}',
    '{"zones": [{"name": "a.example.", "serial": ' + "9" * 5000 + "}]}",
    '{"zones": ' + "[" * 100_000,
)


@pytest.mark.parametrize("text", BAD, ids=range(len(BAD)))
def test_an_answer_of_another_shape_is_refused_whole(text: str) -> None:
    with pytest.raises(ValueError) as caught:
        parse_zones(text)
    assert len(str(caught.value)) < 300


@settings(max_examples=60, deadline=None)
@given(st.dictionaries(names, serials))
def test_what_a_member_writes_is_what_is_read(zones: dict[str, int | None]) -> None:
    assert parse_zones(answer(*({"name": name, "serial": serial} for name, serial in zones.items()))) == zones


@settings(max_examples=60, deadline=None)
@given(st.sets(names), st.lists(st.dictionaries(names, serials), max_size=4))
def test_the_union_has_every_zone_once_with_the_highest_serial(static: set[str], told: list[dict[str, int | None]]) -> None:
    merged = merge(static, told)
    assert list(merged) == sorted(static.union(*told))
    for zone, serial in merged.items():
        assert serial == max((t[zone] for t in told if t.get(zone) is not None), default=None)  # type: ignore[type-var]


@settings(max_examples=60, deadline=None)
@given(st.dictionaries(names, serials), st.dictionaries(names, serials))
def test_only_a_known_serial_that_became_another_known_one_is_a_change(before: dict[str, int | None], after: dict[str, int | None]) -> None:
    changed = changed_serials(before, after)
    for zone in {*before, *after}:
        was, now = before.get(zone), after.get(zone)
        assert (zone in changed) == (was is not None and now is not None and was != now)
    assert changed_serials(after, after) == ()


CATALOG = """$ORIGIN catalog.example.
@ 60 IN SOA ns admin 5 60 60 3600 60
version 60 IN TXT "{version}"
id1.zones 60 IN PTR A.example.
id2.zones 60 IN PTR b.example.
group.id2.zones 60 IN TXT "x"
other 60 IN PTR c.example.
id3.zones 60 IN PTR d.example.
id3.zones 60 IN PTR e.example.
"""


def catalog(version: str) -> dns.zone.Zone:
    return dns.zone.from_text(CATALOG.format(version=version), "catalog.example.", relativize=True, check_origin=False)


def test_the_members_of_a_catalog_are_its_zones_and_nothing_else() -> None:
    assert read_catalog(catalog("2")) == {"a.example.": None, "b.example.": None}


def test_a_catalog_of_another_version_is_not_guessed_at() -> None:
    with pytest.raises(MissingError, match="not 2"):
        read_catalog(catalog("3"))


# what is kept when a source cannot be read ------------------------------------------------


class World:
    """What members and catalogs answer; an exception is raised."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.polled: dict[str, object] = {}
        self.soa: dict[str, int | None] = {}
        self.transfers: dict[str, object] = {}
        monkeypatch.setattr(ZoneReader, "_ask_member", lambda _, member: self._say(self.polled.get(member.name, {})))
        monkeypatch.setattr(unit, "_transfer", lambda wanted: self._say(self.transfers[wanted.zone]))
        monkeypatch.setattr(unit, "serial", lambda _members, zone, **_: self._say(self.soa.get(zone)))

    @staticmethod
    async def _say(value: object) -> object:
        if isinstance(value, Exception):
            raise value
        return value


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> World:
    return World(monkeypatch)


def reader(**said: object) -> ZoneReader:
    return ZoneReader(Zones(**said), proxy=False)  # type: ignore[arg-type]


POLL = ZonePoll()  # type: ignore[call-arg]


def read(made: ZoneReader, *members: Member) -> tuple[dict[str, int | None], tuple[str, ...]]:
    found = asyncio.run(made.read(members))
    return dict(found.serials), found.notes


def test_a_member_that_cannot_be_read_keeps_its_zones(world: World) -> None:
    made = reader(poll=POLL, static=("s.example.",))
    world.polled = {"ns-a": {"a.example.": 1}, "ns-b": {"b.example.": 2}}
    assert read(made, A, B) == ({"a.example.": 1, "b.example.": 2, "s.example.": None}, ())
    for bad in (MissingError("it answered 500"), ValueError("no JSON"), {}):
        world.polled["ns-a"] = bad
        found, notes = read(made, A, B)
        assert found == {"a.example.": 1, "b.example.": 2, "s.example.": None}
        assert len(notes) == 1
        assert "its last 1 stay" in notes[0]


def test_a_member_that_is_gone_takes_its_zones_along_but_no_members_at_all_take_none(world: World) -> None:
    made = reader(poll=POLL)
    world.polled = {"ns-a": {"a.example.": 1}, "ns-b": {"b.example.": 2}}
    read(made, A, B)
    assert set(read(made, B)[0]) == {"b.example."}
    assert set(read(made)[0]) == {"b.example."}


def test_a_zone_that_is_still_served_elsewhere_stays(world: World) -> None:
    made = reader(poll=POLL)
    world.polled = {"ns-a": {"a.example.": 1}, "ns-b": {"a.example.": 2}}
    assert read(made, A, B)[0] == {"a.example.": 2}
    assert read(made, A)[0] == {"a.example.": 1}


def test_a_catalog_that_cannot_be_transferred_keeps_its_zones(world: World) -> None:
    made = reader(catalog=(Catalog(zone="catalog.example.", server="192.0.2.1:53"),))
    world.transfers["catalog.example."] = {"a.example.": None}
    assert read(made, A)[0] == {"a.example.": None}
    world.transfers["catalog.example."] = MissingError("refused")
    found, notes = read(made, A)
    assert found == {"a.example.": None}
    assert notes == ("zones of catalog catalog.example. cannot be read (refused); its last 1 stay",)


def test_a_serial_that_nobody_tells_for_a_while_is_still_compared_with_the_next(world: World) -> None:
    """Forgotten, the change across the gap would flush nothing."""
    made = reader(static=("s.example.",), soa=True)
    flushed = []
    before: dict[str, int | None] = {}
    for told in (1, None, 2, None, None, 2):
        world.soa["s.example."] = told
        after, _ = read(made, A)
        flushed += changed_serials(before, after)
        before = after
    assert flushed == ["s.example."]
    assert before == {"s.example.": 2}
