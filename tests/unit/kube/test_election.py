"""Candidates for one Lease on a line of time: slow, lost and late requests, stopped processes, clocks that were set, a Lease deleted by hand."""

from __future__ import annotations

import heapq
import itertools
import random
from collections.abc import Callable
from dataclasses import dataclass, field, replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from edgekeeper.kube import election
from edgekeeper.kube.election import ABSENT, Read, Record, Rest, Rules, State, Write, Yield

TIMEOUT_S = 5.0


class Server:
    """One Lease, with the rules of the API: a write names the version that it replaces, and one that changes nothing is not one."""

    def __init__(self) -> None:
        self.record, self.version, self.made = ABSENT, 0, 0.0

    def write(self, record: Record, now: float = 0.0) -> Record | None:
        if record.version != self.record.version:
            return None
        self.made = self.made if record.version else now
        if record != self.record:
            self.version += 1
            self.record = replace(record, version=str(self.version))
        return self.record


@dataclass
class World:
    """Real time, and what happens in it; ``chance`` draws delays and losses."""

    chance: random.Random
    lossy: bool = True
    now: float = 0.0
    server: Server = field(default_factory=Server)
    coming: list[tuple[float, int, Callable[[], None]]] = field(default_factory=list)
    count: int = 0

    def at(self, when: float, what: Callable[[], None]) -> None:
        self.count += 1
        heapq.heappush(self.coming, (max(when, self.now), self.count, what))

    def run(self, until: float) -> None:
        while self.coming and self.coming[0][0] <= until:
            self.now, _, what = heapq.heappop(self.coming)
            what()
        self.now = until

    def delay(self) -> float | None:
        """How long a message takes one way; None: it never arrives."""
        if not self.lossy:
            return 0.01
        draw = self.chance.random()
        return None if draw < 0.1 else self.chance.uniform(0, 12) if draw < 0.25 else self.chance.uniform(0, 0.5)


class Candidate:
    """A process with clocks of its own, that does what ``step`` says; ``terms`` are the times in which it may have acted."""

    def __init__(self, world: World, name: str, *, offset: float = 0.0, rate: float = 1.0, rules: Rules | None = None) -> None:
        self.world, self.offset, self.rate = world, offset, rate
        self.rules = rules or Rules(name)
        self.state, self.wall_off, self.dead, self.asleep = State(), 0.0, False, 0.0
        self.terms: list[tuple[float, float]] = []
        self.whys: list[str] = []
        world.at(world.now, self.turn)

    @property
    def clock(self) -> float:
        return self.offset + self.rate * self.world.now

    def real(self, clock: float) -> float:
        return (clock - self.offset) / self.rate

    def leads(self) -> bool:
        return not self.dead and self.clock < election.ends(self.rules, self.state)

    def later(self, what: Callable[[], None]) -> Callable[[], None]:
        """Done when the process runs: not while it is stopped, and never when it is dead."""

        def do() -> None:
            if self.world.now < self.asleep:
                self.world.at(self.asleep, do)
            elif not self.dead:
                what()

        return do

    def end(self, when: float) -> None:
        if self.terms and self.terms[-1][1] > when:
            self.terms[-1] = (self.terms[-1][0], when)

    def kill(self) -> None:
        self.dead = True
        self.end(self.world.now)

    def turn(self) -> None:
        self.whys.append(self.state.why)
        match election.step(self.rules, self.state, self.clock, self.world.now + self.wall_off):
            case Rest(until):
                self.world.at(self.real(until) + 1e-6, self.later(self.turn))
            case Yield(why):
                self.end(self.world.now)
                self.state = election.yielded(self.state, self.clock, why)
                self.world.at(self.world.now + self.world.chance.uniform(0, 3), self.later(self.turn))
            case Read():
                self.send(None)
            case Write(record):
                self.send(record)

    def send(self, record: Record | None) -> None:
        sent, over, there, back = self.clock, [False], self.world.delay(), self.world.delay()

        def arrive() -> None:
            answer = self.world.server.record if record is None else self.world.server.write(record, self.world.now)
            if back is not None:
                self.world.at(self.world.now + back, self.later(lambda: self.answered(record, answer, sent, over)))

        if there is not None:
            self.world.at(self.world.now + there, arrive)
        self.world.at(self.world.now + TIMEOUT_S, self.later(lambda: self.gave_up(sent, over)))

    def gave_up(self, sent: float, over: list[bool]) -> None:
        if not over[0]:
            over[0] = True
            self.state = election.failed(self.rules, self.state, "no answer", sent, self.clock)
            self.turn()

    def answered(self, record: Record | None, answer: Record | None, sent: float, over: list[bool]) -> None:
        if over[0]:
            return
        over[0] = True
        if record is None:
            assert answer is not None
            self.state = election.read(self.rules, self.state, answer, sent, self.clock)
        elif answer is None:
            self.state = election.refused(self.rules, self.state, self.clock)
        else:
            led = self.leads()
            self.state = election.wrote(self.rules, answer, sent, self.clock)
            until = self.real(election.ends(self.rules, self.state))
            if led:
                self.terms[-1] = (self.terms[-1][0], until)
            elif until > self.world.now:
                self.terms.append((self.world.now, until))
        self.turn()


def overlaps(candidates: list[Candidate]) -> list[tuple[tuple[float, float], tuple[float, float]]]:
    spans = sorted((span, n) for n, one in enumerate(candidates) for span in one.terms)
    return [(a, b) for (a, n), (b, m) in itertools.pairwise(spans) if n != m and b[0] < a[1] - 1e-9]


@settings(max_examples=25)
@given(st.integers(0, 2**32), st.integers(2, 3))
def test_whatever_happens_no_two_terms_are_at_the_same_time_and_somebody_leads_again(seed: int, number: int) -> None:
    chance = random.Random(seed)
    world = World(chance)
    candidates = [Candidate(world, f"c{n}", offset=chance.uniform(-1e4, 1e4), rate=chance.uniform(0.96, 1.04)) for n in range(number)]

    def fault() -> None:
        one = chance.choice(candidates)
        match chance.randrange(5):
            case 0:
                one.asleep = world.now + chance.uniform(0, 40)
            case 1:
                one.wall_off += chance.choice([-3600.0, -2.0, -1e-6, 3600.0])
            case 2 if len(candidates) < 6:
                one.kill()
                candidates.append(Candidate(world, f"c{len(candidates)}", offset=chance.uniform(0, 100)))
            case 3 if world.server.record.version:  # an annotation, say
                world.server.version += 1
                world.server.record = replace(world.server.record, version=str(world.server.version))
            case _:
                pass

    for _ in range(12):
        world.at(chance.uniform(0, 300), fault)

    def delete() -> None:
        if world.now - world.server.made < 10:  # nobody deletes a Lease twice in so short a time, or one that is just made
            world.at(world.now + 10, delete)
        else:
            world.server.record = ABSENT

    for when in (chance.uniform(0, 150), chance.uniform(170, 290)):
        world.at(when, delete)
    world.run(300)
    assert not overlaps(candidates)
    world.lossy = False
    world.run(400)
    assert not overlaps(candidates)
    assert sum(one.leads() for one in candidates) == 1


def calm(*names: str) -> tuple[World, list[Candidate]]:
    """Candidates without faults, the first of which leads."""
    world = World(random.Random(1), lossy=False)
    world.server.write(Record(duration_s=1, renewed=1))
    candidates = [Candidate(world, names[0])]
    world.run(1)
    candidates += [Candidate(world, name) for name in names[1:]]
    world.run(20)
    assert [one.leads() for one in candidates] == [True] + [False] * (len(names) - 1)
    return world, candidates


def test_an_empty_lease_is_taken_at_once_and_kept() -> None:
    world, (first, second) = calm("a", "b")
    assert first.terms[0][0] < 0.1
    assert second.state.why == "the Lease is held by a"
    world.run(3600)
    assert (len(first.terms), second.terms, world.server.record.transitions) == (1, [], 1)


def test_one_that_is_not_there_is_waited_for_like_one_that_is_held() -> None:
    world = World(random.Random(1), lossy=False)
    one = Candidate(world, "a")
    world.run(14.9)
    assert (one.leads(), one.state.why) == (False, "the Lease is not there; in case somebody deleted it under its holder, it is made in 15 s")
    world.run(15.2)
    assert one.leads()


def test_a_holder_that_dies_is_followed_after_its_duration_and_one_that_releases_at_once() -> None:
    world, (first, second) = calm("a", "b")
    last = world.server.record.renewed / election.US
    first.kill()
    world.run(last + 14.9)
    assert not second.leads()
    world.run(last + 17.5)
    assert second.leads()
    second.kill()  # its work has ended
    last_words = election.release(second.rules, second.state, 0.0)
    assert isinstance(last_words, Write)
    world.server.write(last_words.record)
    third = Candidate(world, "c")
    world.run(world.now + 0.1)
    assert third.leads()


def test_a_foreign_duration_counts_also_when_it_differs() -> None:
    world = World(random.Random(1), lossy=False)
    world.server.write(Record("long", 60, 1, 1))
    one = Candidate(world, "a")
    world.run(59)
    assert not one.leads()
    world.run(61)
    assert one.leads()


def test_a_lease_deleted_under_its_holder_is_made_again_by_it() -> None:
    world, (first, second) = calm("a", "b")
    world.server.record = ABSENT
    world.run(100)
    assert (first.leads(), len(first.terms), second.terms) == (True, 1, [])


@pytest.mark.parametrize(("slept", "leads"), [(7.0, True), (60.0, False)])
def test_a_holder_that_was_stopped_knows_by_its_clock_at_once(slept: float, leads: bool) -> None:
    world, (first,) = calm("a")
    first.asleep = world.now + slept
    world.now += slept
    assert first.leads() is leads


def test_a_holder_that_sees_another_name_stops_though_its_time_is_not_over() -> None:
    rules = Rules("a")
    state = election.wrote(rules, Record("a", 15, 1, 1, 0, "1"), 100.0, 100.1)
    state = election.read(rules, election.refused(rules, state, 101.0), Record("\x1b[2Jb", 15, 1, 1, 0, "2"), 101.0, 101.1)
    assert election.step(rules, state, 101.2, 0.0) == Yield(r"the Lease is held by \x1b[2Jb now")


def test_no_write_is_without_a_change_or_without_six_digits() -> None:
    record = Record("a", 15, 1, 5_000_001, 0, "1")
    for wall in (5.0, 5.000001, 0.0):
        state = election.wrote(Rules("a"), record, 100.0, 100.1)
        step = election.step(Rules("a"), state, 102.1, wall)
        assert isinstance(step, Write)
        assert step.record.renewed % election.US
        assert step.record.renewed != record.renewed


def test_an_acknowledgement_that_comes_after_its_term_gives_none() -> None:
    rules = Rules("a")
    state = election.wrote(rules, Record("a", 15, 1, 1, 0, "1"), 100.0, 111.0)
    assert election.step(rules, state, 111.0, 0.0) == Yield("the Lease was not renewed for 10 s")


def test_a_lease_with_as_many_transitions_as_its_field_can_hold_is_still_taken() -> None:
    most = Record("other", 15, 1, 1, 2**31 - 1, "7")
    state = election.read(Rules("me"), State(), most, 0.0, 0.0)
    wish = election.step(Rules("me"), election.read(Rules("me"), state, most, 20.0, 20.0), 20.0, 5.0)
    assert isinstance(wish, Write)
    assert (wish.record.holder, wish.record.transitions) == ("me", 2**31 - 1)


def test_times_that_cannot_be_kept_are_refused() -> None:
    with pytest.raises(ValueError, match=r"retry_s < renew_s < lease_s"):
        Rules("a", lease_s=10, renew_s=10)


def test_a_foreign_lease_is_counted_from_when_the_answer_came_and_anew_when_it_changed() -> None:
    rules, held = Rules("a"), Record("b", 15, 1, 1, 0, "1")
    state = election.read(rules, State(), held, 90.0, 100.0)
    assert election.free_at(rules, state) == 115.0
    state = election.read(rules, state, held, 102.0, 102.1)
    assert election.free_at(rules, state) == 115.0
    state = election.read(rules, state, replace(held, renewed=2, version="2"), 104.0, 104.1)
    assert election.free_at(rules, state) == 119.1


def test_an_absence_counts_only_while_it_is_looked_at_and_is_looked_at_once_more_before_a_lease_is_made() -> None:
    rules = Rules("a")
    state = election.read(rules, State(), ABSENT, 100.0, 100.1)
    looked = election.read(rules, state, ABSENT, 102.0, 102.1)
    assert election.free_at(rules, looked) == 115.1
    missed = election.read(rules, election.failed(rules, state, "no answer", 102.0, 107.0), ABSENT, 107.0, 107.1)
    assert election.free_at(rules, missed) == 122.1
    assert election.step(rules, looked, 120.0, 0.0) == Read()


def test_what_a_write_without_an_answer_has_got_is_taken_up_at_once() -> None:
    rules = Rules("a")
    state = election.failed(rules, State(), "no answer", 100.0, 105.0)
    state = election.read(rules, state, Record("a", 15, 1, 1, 3, "7"), 105.0, 105.1)
    step = election.step(rules, state, 105.1, 1.5)
    assert step == Write(Record("a", 15, 1, 1_500_000, 3, "7"))


def test_after_the_first_failure_it_is_asked_again_soon_and_after_more_in_the_usual_rhythm() -> None:
    rules = Rules("a")
    state = election.wrote(rules, Record("a", 15, 1, 1, 0, "1"), 100.0, 100.1)
    state = election.failed(rules, state, "the connection ended", 102.0, 102.4)
    assert election.step(rules, state, 102.5, 0.0) == Rest(pytest.approx(102.6))
    assert election.step(rules, state, 102.7, 0.0) == Read()
    state = election.failed(rules, state, "the connection ended", 102.7, 102.8)
    assert election.step(rules, state, 103.0, 0.0) == Rest(pytest.approx(104.7))
