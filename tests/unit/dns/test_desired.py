from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from edgekeeper.dns.desired import SOON_S, TWICE, Heard, Judgement, Observation, ending, identity_of, in_service, is_draining, judge, listen_to, may_drain
from edgekeeper.model.backend import Member

A, B, C = (Member(name, f"192.0.2.{number}", 53) for number, name in enumerate(("ns-a", "ns-b", "ns-c"), 1))
ALL = (A, B, C)
QUESTION = "a.root-servers.net. A"


def judged(*answers: str | None, first: bool = False, was: bool = False, identity: str = "observe", says: tuple[str | None, ...] = (None,) * 3) -> Judgement:
    seen = {m.address: Observation(rcode, word) for m, rcode, word in zip(ALL, answers, says, strict=False)}
    return judge(ALL, seen, was_forgiving=was, first=first, question=QUESTION, identity=identity)


def test_at_the_first_start_a_question_that_everybody_fails_is_forgiven_and_the_setting_is_named() -> None:
    verdict = judged("REFUSED", "REFUSED", "REFUSED", first=True)
    assert verdict.forgiving
    assert "access-control in unbound" in verdict.alarms["health question"]
    assert QUESTION in verdict.alarms["health question"]


def test_later_on_members_that_all_fail_are_down_and_not_forgiven() -> None:
    assert not judged("SERVFAIL", "SERVFAIL", "SERVFAIL").forgiving


@pytest.mark.parametrize("answers", [("REFUSED", None, "REFUSED"), ("REFUSED", "NOERROR", "REFUSED"), ("REFUSED", "REFUSED"), ()])
def test_only_a_failure_of_all_that_answer_is_a_wrong_question(answers: tuple[str | None, ...]) -> None:
    assert not judged(*answers, first=True).forgiving


@pytest.mark.parametrize("answers", [("REFUSED", None, "REFUSED"), (None, None, None), ("REFUSED", "REFUSED"), ()])
def test_a_lost_packet_or_a_new_member_does_not_end_what_was_forgiven(answers: tuple[str | None, ...]) -> None:
    """Otherwise one answer that comes too late takes every member down."""
    verdict = judged(*answers, was=True)
    assert verdict.forgiving
    assert "health question" in verdict.alarms


def test_the_first_that_passes_ends_it() -> None:
    assert not judged("REFUSED", "NOERROR", None, was=True).forgiving


@pytest.mark.parametrize(
    ("says", "word"), [("ns-a", "same"), ("ns-a draining", "same"), ("ns-ab", "other: ns-ab"), ("\x1b[2J", r"other: \x1b[2J"), (None, "silent")]
)
def test_identity_is_the_first_word(says: str | None, word: str) -> None:
    assert identity_of(A, Observation("NOERROR", says)) == word


def test_identity_of_those_who_have_none() -> None:
    assert identity_of(Member("", "192.0.2.9", 53), Observation("NOERROR", "x")) == "anonymous"
    assert identity_of(A, None) == "silent"


def test_a_wrong_name_is_an_alarm_and_all_wrong_names_are_not_enforced() -> None:
    ok = ("NOERROR",) * 3
    one = judged(*ok, says=("ns-a", "ns-x", "ns-c"), identity="require")
    assert one.enforce_identity
    assert one.alarms["identity"] == "192.0.2.2:53 should be ns-b and calls itself ns-x"
    every = judged(*ok, says=("x", "y", "z"), identity="require")
    assert not every.enforce_identity
    assert "all stay in service" in every.alarms["identity"]
    assert judged(*ok, says=("x", "y", None), identity="require").enforce_identity
    assert "identity" not in judged(*ok, says=("x", "y", "z"), identity="off").alarms


def test_a_members_own_word_counts_when_it_was_heard_twice_and_silence_changes_nothing() -> None:
    drains, well, silence = Observation("NOERROR", "ns-a draining"), Observation("NOERROR", "ns-a"), Observation(None, None)
    heard = Heard({})
    story = [(drains, False), (well, False), (drains, False), (drains, True), (silence, True), (well, True), (drains, True), (well, True), (well, False)]
    for number, (observation, resting) in enumerate(story):
        heard = listen_to(heard, ALL, {A.address: observation})
        assert (A.address in heard.resting) is resting, number
    assert TWICE == 2


def test_a_member_that_is_gone_is_forgotten() -> None:
    assert listen_to(Heard({A.address: 5}, frozenset({A.address})), (B,), {}).resting == frozenset()


@pytest.mark.parametrize(
    ("observation", "drains"),
    [
        (Observation("REFUSED"), True),
        (Observation("NOERROR", "ns-a draining"), True),
        (Observation("NOERROR", "ns-a draining since noon"), True),
        (Observation("NOERROR", "draining"), False),
        (Observation("NOERROR", "ns-a drainingly"), False),
        (Observation("SERVFAIL"), False),
        (Observation(None), False),
    ],
)
def test_how_a_member_says_that_it_drains(observation: Observation, drains: bool) -> None:
    assert is_draining(observation) is drains


addresses = st.sets(st.sampled_from([m.address for m in ALL]))
names = st.sets(st.sampled_from([*(m.name for m in ALL), *(m.address for m in ALL), "nobody"]))


@settings(max_examples=75, deadline=None)
@given(st.sets(st.sampled_from(ALL), min_size=1), names, addresses)
def test_the_edge_is_never_without_members_unless_a_person_forced_it(members: set[Member], drained: set[str], resting: set[str]) -> None:
    everyone = tuple(sorted(members))
    left, why = in_service(everyone, drained, resting, forced=False)
    assert left
    assert set(left) <= set(everyone)
    by_person = [m for m in left if m.label in drained or m.address in drained]
    assert not by_person or (left == everyone and "every member is drained" in why)
    forced, _ = in_service(everyone, drained, resting, forced=True)
    assert not [m for m in forced if m.label in drained or m.address in drained]
    assert forced or all(m.label in drained or m.address in drained for m in everyone)


observations = st.builds(Observation, st.sampled_from([None, "NOERROR", "REFUSED", "SERVFAIL"]), st.sampled_from([None, "ns-a", "ns-a draining"]))


@settings(max_examples=60, deadline=None)
@given(st.lists(observations, max_size=30))
def test_one_answer_never_moves_a_member_and_two_always_do(answers: list[Observation]) -> None:
    heard = Heard({})
    for number, observation in enumerate(answers):
        before = A.address in heard.resting
        heard = listen_to(heard, (A,), {A.address: observation})
        after = A.address in heard.resting
        last = [is_draining(o) for o in answers[max(0, number - 1) : number + 1]]
        silent = [o.rcode is None and o.says is None for o in answers[max(0, number - 1) : number + 1]]
        if before != after:
            assert last == [after, after]
            assert not any(silent)
        if len(last) == 2 and not any(silent) and last[0] == last[1]:
            assert after is last[0]


def test_the_last_usable_member_is_not_drained_without_force() -> None:
    up = {m.address: "up" for m in ALL}
    assert may_drain("ns-a", ALL, (), up) is None
    assert may_drain(A.address, ALL, (), up) is None
    refusal = may_drain("ns-a", ALL, ("ns-b", C.address), up)
    assert refusal is not None
    assert "--force" in refusal
    refusal = may_drain("ns-a", ALL, (), {B.address: "down", C.address: "DOWN"})
    assert refusal is not None
    assert "no other member is up (ns-b, ns-c)" in refusal


def test_who_is_no_member_is_not_drained_and_the_members_are_named() -> None:
    refusal = may_drain("nobody\x1b[2J", ALL, (), {})
    assert refusal == r"nobody\x1b[2J is not a member; the members are: ns-a, ns-b, ns-c"
    assert may_drain("x", (), (), {}) == "x is not a member; the members are: none"


def test_a_certificate_that_ends_soon_is_told_before_it_does() -> None:
    assert ending("CN=dns.example", SOON_S) is None
    assert ending("CN=dns.example", 3 * 86400) == "CN=dns.example ends in 3.0 days and has not been renewed"
