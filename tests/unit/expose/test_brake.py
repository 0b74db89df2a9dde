"""What is counted of an absence, and what the counts hold back."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from edgekeeper.expose.brake import (
    AWAY_S,
    NEVER,
    Absence,
    Limits,
    Memory,
    begun_anew,
    dump,
    load,
    may_go,
    may_leave,
    noted,
    refused,
    resumed,
    too_many,
    wanted_again,
)
from edgekeeper.model.moment import Moment

LIMITS = Limits(absent_lists=3, grace_s=300, disabled_s=600, share=30, few=3)


def at(seconds: float, boot_id: str = "boot") -> Moment:
    return Moment(1_000_000 + seconds, seconds, boot_id, seconds)


TIMES = st.floats(allow_nan=False, allow_infinity=False, min_value=-1e9, max_value=1e12)
MOMENTS = st.builds(Moment, TIMES, TIMES, st.text(max_size=5), TIMES)
ABSENCES = st.builds(Absence, MOMENTS, st.integers(0, 10_000), st.none() | MOMENTS, st.booleans())
MEMORIES = st.builds(Memory, st.dictionaries(st.text(max_size=8), ABSENCES, max_size=4), st.just(NEVER), st.integers(0, 10**9), st.none() | MOMENTS)


@settings(max_examples=20)
@given(MEMORIES)
def test_what_is_left_for_the_next_process_is_read_back_as_it_was(memory):
    assert load(json.loads(json.dumps(dump(memory)))) == memory


def test_lists_are_numbered_anew_by_each_process():
    memory = noted(Memory(), ["a"], [], 7, at(0))
    again = load(dump(memory))
    assert (memory.counted, again.counted) == (7, NEVER)
    assert noted(again, ["a"], [], 7, at(1)).absent["a"].lists == 2  # list 7 of this process is another one than that of the last


def test_numbers_that_make_no_sense_count_as_nothing_seen():
    found = {"absent": {"a": {"since": [1, 2, "b", 3], "lists": -5}}, "passes": -1}
    assert load(found) == Memory({"a": Absence(Moment(1, 2, "b", 3), 0)}, NEVER, 0)


BAD = [{}, {"absent": {}}, {"passes": 1}, {"absent": 5, "passes": 1}, {"absent": {"a": {}}, "passes": 1}, {"absent": {"a": {"since": [1], "lists": 1}}, "passes": 1}]  # fmt: skip


@pytest.mark.parametrize("found", BAD)
def test_what_is_no_memory_is_told_from_one(found):
    with pytest.raises((KeyError, TypeError, ValueError)):
        load(found)


def test_an_absence_is_counted_once_for_each_list_and_begins_anew_when_the_host_was_wanted_between():
    memory = noted(Memory(), ["a"], [], 1, at(0))
    for later in (10, 20):
        memory = noted(memory, ["a"], [], 1, at(later))
    assert memory.absent == {"a": Absence(at(0), 1)}
    assert memory.passes == 3
    memory = noted(memory, ["a", "b"], [], 2, at(30))
    assert memory.absent == {"a": Absence(at(0), 2), "b": Absence(at(30), 1)}
    memory = noted(memory, ["b"], [], 3, at(40))
    assert memory.absent == {"b": Absence(at(30), 2)}
    assert noted(memory, ["a", "b"], [], 4, at(50)).absent["a"] == Absence(at(50), 1)


def test_how_long_a_service_is_disabled_is_counted_from_when_that_was_first_seen():
    memory = noted(Memory(), ["a"], [], 1, at(0))
    memory = noted(memory, ["a"], ["a"], 2, at(60))
    memory = noted(memory, ["a"], ["a"], 3, at(120))
    assert memory.absent["a"].left == at(60)
    assert noted(memory, ["a"], [], 4, at(180)).absent["a"].left is None  # somebody has switched it on


def test_what_was_refused_among_too_many_has_to_be_absent_anew():
    memory = Memory({"a": Absence(at(0), 5, at(10)), "b": Absence(at(0), 5)}, 7, 9)
    marked = refused(memory, ["a"])
    assert marked == Memory({"a": Absence(at(0), 5, at(10), refused=True), "b": Absence(at(0), 5)}, 7, 9)
    assert noted(marked, ["a", "b"], ["a"], 8, at(20)).absent["a"] == Absence(at(0), 6, at(10), refused=True)
    assert load(dump(marked)).absent == marked.absent
    assert begun_anew(marked, ["a"], at(30)).absent == {"a": Absence(at(30), 0, at(10)), "b": Absence(at(0), 5)}


def test_who_has_not_looked_for_a_while_begins_anew_for_another_may_have_been_the_writer():
    memory = noted(Memory(), ["a", "off"], ["off"], 1, at(0))
    assert resumed(memory, at(AWAY_S)) == memory
    assert resumed(memory, at(AWAY_S + 1)).absent == {}
    assert resumed(Memory({"a": Absence(at(0), 3)}, NEVER, 3), at(1)).absent == {}, "one that does not say when it looked"


def test_who_was_away_for_a_while_counts_every_absence_anew():
    memory = noted(Memory(), ["a"], ["a"], 1, at(0))
    assert resumed(memory, at(AWAY_S)) == memory
    assert resumed(memory, at(AWAY_S + 1)).absent == {}
    assert resumed(memory, at(AWAY_S + 1)).passes == 1
    assert resumed(Memory({"a": Absence(at(0), 1)}), at(0)).absent == {}  # left by one that did not say when


def test_a_view_that_is_not_full_proves_no_absence_and_counts_no_pass():
    memory = noted(Memory(), ["a", "b"], [], 1, at(0))
    after = wanted_again(memory, {"b": None, "c": None})
    assert after == Memory({"a": Absence(at(0), 1)}, 1, 1, at(0))


@pytest.mark.parametrize(
    ("lists", "seconds", "why"),
    [
        (2, 1e6, "absent from 2 of 3 full lists"),
        (3, 299, "absent for 299 of 300 s"),
        (3, 300, None),
        (100, 0, "absent for 0 of 300 s"),
    ],
)
def test_a_host_must_be_absent_from_lists_and_for_a_while(lists, seconds, why):
    assert may_leave(Absence(at(0), lists), at(seconds), LIMITS) == why


def test_the_wall_clock_brings_nothing_nearer():
    tomorrow = Moment(at(10).wall + 86_400, 10, "boot", 10)
    assert may_leave(Absence(at(0), 9), tomorrow, LIMITS) == "absent for 10 of 300 s"
    assert may_go(Absence(at(0), 9, at(0)), tomorrow, LIMITS) == "disabled for 10 of 600 s"


@pytest.mark.parametrize(("left", "seconds", "why"), [(None, 1e6, "disabled for 0 of 600 s"), (at(0), 599, "disabled for 599 of 600 s"), (at(0), 600, None)])
def test_a_service_stays_disabled_for_a_while(left, seconds, why):
    assert may_go(Absence(at(-1e6), 99, left), at(seconds), LIMITS) == why


@pytest.mark.parametrize(
    ("leaving", "own", "held"),
    [(0, 0, False), (3, 3, False), (4, 13, True), (4, 14, False), (30, 100, False), (31, 100, True), (10, 10, True)],
)
def test_many_at_once_are_refused_and_few_never(leaving, own, held):
    assert (too_many(leaving, own, LIMITS) is not None) == held


def test_the_refusal_names_the_numbers():
    assert too_many(5, 10, LIMITS) == "5 of 10 services would go, more than 30 %"
    assert too_many(1, 10, Limits(few=0, share=5)) == "1 of 10 services would go, more than 5 %"
    assert too_many(10, 10, Limits(share=100, few=0)) is None
