from zlib import crc32

from hypothesis import given, settings
from hypothesis import strategies as st

from edgekeeper.report import people
from edgekeeper.report.people import SILENCE_S, People, Person, Run, Track

ANNE = Person("log", "lan", "192.0.2.1")


def runs(*answers):
    found = People()
    for at, ok in answers:
        found.seen(ANNE, at, ok=ok)
    return found.clients()[0].runs


def test_runs_of_good_and_bad_answers():
    said = runs((0.0, True), (10.0, True), (20.5, False), (21.5, False), (30.0, True))
    assert said == (Run(0.0, 10.0, 0, True), Run(20.5, 21.5, 2, False), Run(30.0, 30.0, 0, True))


def test_silence_ends_a_run():
    assert len(runs((0.0, True), (SILENCE_S, True), (2 * SILENCE_S + 1, True))) == 2
    assert len(runs((0.0, False), (SILENCE_S + 1, False))) == 2


def test_a_flapping_client_is_bounded_and_hurt():
    said = runs(*((float(i), i % 2 == 0) for i in range(1000)))
    assert len(said) <= 70
    assert sum(run.answers for run in said) == 500


def test_hurt_clients_are_the_last_to_be_given_up(monkeypatch):
    monkeypatch.setattr(people, "PEOPLE", 8)
    found = People()
    for i in range(30):
        found.seen(Person("log", "", f"192.0.2.{i}"), float(i), ok=i not in {3, 5})
    kept = {client.who.address for client in found.clients()}
    assert {"192.0.2.3", "192.0.2.5"} <= kept
    assert len(kept) <= 8
    assert found.lost > 0


def test_of_too_many_clients_the_same_share_is_followed_everywhere_and_each_that_is_hurt(monkeypatch):
    monkeypatch.setattr(people, "PEOPLE", 64)
    everybody = [Person("log", "", f"198.51.100.{i}") for i in range(250)]
    hurt = {person.address for person in everybody[200::10]}
    parts = [People(), People()]
    for turn in range(3):
        for i, person in enumerate(everybody):
            parts[i % 2].seen(person, 100.0 * turn + i / 10, ok=not (turn == 1 and person.address in hurt))
    whole = parts[0]
    whole.merge(parts[1])
    kept = {client.who.address: client.runs for client in whole.clients()}
    assert hurt <= kept.keys()
    assert len(kept) <= 64
    assert all([run.ok for run in kept[address]][-2:] == [False, True] for address in hurt), "how it went on is told"
    others = kept.keys() - hurt
    assert others == {p.address for p in everybody if not crc32(p.address.encode()) & whole.mask} - hurt


@settings(max_examples=15)
@given(st.lists(st.tuples(st.integers(0, 20_000), st.booleans()), min_size=1, max_size=25, unique_by=lambda answer: answer[0]), st.integers(1, 24))
def test_two_parts_of_a_log_make_the_same_runs_as_the_whole(answers, cut):
    answers.sort()
    whole, first, second = People(), People(), People()
    for i, (at, ok) in enumerate(answers):
        whole.seen(ANNE, float(at), ok=ok)
        (first if i < cut else second).seen(ANNE, float(at), ok=ok)
    first.merge(second)
    assert first.clients()[0].runs == whole.clients()[0].runs


def test_a_track_of_its_runs_is_itself():
    track = Track(0.0, ok=True)
    for at, ok in ((5.0, True), (6.0, False), (9.0, False), (9000.0, False), (9001.0, True)):
        track.seen(at, ok=ok)
    assert Track.of(track.runs()).runs() == track.runs()
