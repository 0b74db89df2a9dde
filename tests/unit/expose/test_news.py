from __future__ import annotations

import json
from dataclasses import replace

from edgekeeper.expose.kinds import Origin, Remark
from edgekeeper.expose.news import AGAIN_S, FORGOTTEN_S, LONGEST_STATUS, Note, changed_statuses, event_name, heard, next_due, status_text

ORIGIN = Origin("Ingress", "shop", "web", "u", 1.0)
ONE, TWO = Remark(ORIGIN, "BadHost", "one"), Remark(ORIGIN, "BadHost", "two")


def wrote(book, name, now):
    return {**book, name: replace(book[name], wrote=now, written=book[name].count)}


def test_the_same_remark_is_written_once_and_counted_up_every_ten_minutes():
    book = heard({}, [ONE, TWO], 0.0)
    first = next_due(book, 0.0)
    book = wrote(book, first, 0.0)
    second = next_due(book, 1.0)
    book = wrote(book, second, 1.0)
    assert {first, second} == {event_name(ONE), event_name(TWO)}
    for now in range(60, int(AGAIN_S), 60):
        book = heard(book, [ONE], now)
        assert next_due(book, now) is None
    book = heard(book, [ONE], AGAIN_S)
    assert next_due(book, AGAIN_S) == event_name(ONE)
    assert book[event_name(ONE)].count == 11
    assert next_due(wrote(book, event_name(ONE), AGAIN_S), 10 * AGAIN_S) is None  # not heard again


def test_a_warning_does_not_wait_for_good_news():
    good = [Remark(ORIGIN, "Published", str(number), warning=False) for number in range(3)]
    assert next_due(heard(heard({}, good, 0.0), [ONE], 1.0), 1.0) == event_name(ONE)


def test_what_is_not_remarked_any_more_is_forgotten_and_would_be_new():
    book = wrote(heard({}, [ONE], 0.0), event_name(ONE), 0.0)
    assert heard(book, [], FORGOTTEN_S) == {}
    assert heard(heard({}, [replace(ONE, origin=Origin("File", "", "www.example"))], 0.0), [], 0.0) == {}


def test_a_status_is_the_same_text_for_the_same_hosts_and_never_too_long():
    assert status_text({"b.example": "active", "a.example": "held"}) == '{"a.example":"held","b.example":"active"}'
    assert status_text({}) == ""
    many = {f"host-{n:05d}.example": "domain-unknown" for n in range(5000)}
    text = status_text(many)
    assert len(text) <= LONGEST_STATUS
    found = json.loads(text)
    assert int(found.pop("...")) + len(found) == 5000


def test_a_status_is_written_when_it_is_another_and_taken_away_from_who_asks_no_more():
    other, file = Origin("Ingress", "shop", "api"), Origin("File", "", "www.example")
    wanted = {ORIGIN: "new", other: "same", file: "x"}
    seen = {ORIGIN: "old", other: "same"}
    assert changed_statuses(wanted, seen, {}, 0.0) == {ORIGIN: "new"}
    assert changed_statuses(wanted, seen, {ORIGIN: Note("new", 0.0)}, 1.0) == {}  # its own event is on its way
    assert changed_statuses(wanted, seen, {ORIGIN: Note("new", 0.0)}, 61.0) == {ORIGIN: "new"}  # somebody took it away
    assert changed_statuses({}, {}, {ORIGIN: Note("new", 0.0)}, 1.0) == {ORIGIN: ""}
