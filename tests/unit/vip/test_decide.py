"""What is done about a VIP: rule by rule, and what holds whatever is seen."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from edgekeeper.vip.decide import (
    BOTH_S,
    JUST_S,
    SETTLE_S,
    TWO_OWNERS_S,
    Act,
    Peering,
    Sight,
    contest,
    decide,
    may_let_go,
    peer_owns,
    settled,
    settled_weight,
    two_owners,
    yields,
)

ago = st.one_of(st.none(), st.floats(0, 30), st.sampled_from([0.0, SETTLE_S, JUST_S, BOTH_S, 1.7]))
sights = st.builds(
    Sight, held=st.booleans(), covered=ago, left=ago, peer=ago, peer_new=ago, dead=st.booleans(), running=st.booleans(), busy=st.booleans(),
    deadline_s=st.floats(1, 120), advert_s=st.floats(0.05, 40.95),
)  # fmt: skip


@settings(max_examples=60, deadline=None)
@given(sights)
def test_whatever_is_seen(sight: Sight) -> None:
    found = decide(sight)
    assert found.why
    if found.act is Act.COVER:
        assert not sight.dead, "a dead service is never covered"
        assert not sight.held
        assert sight.covered is None
    if found.act is Act.REMOVE:
        assert not sight.running, "nothing is taken away from under a keepalived that runs"
        assert sight.held
        assert sight.dead or peer_owns(sight), "what still answers stays until a peer owns it"
        assert sight.covered is None
    if found.act is Act.UNCOVER:
        assert sight.covered is not None
    if sight.covered is not None and sight.dead:
        assert found.act is Act.UNCOVER, "a cover never hides a dead service"
    if sight.covered is not None and not sight.busy and sight.covered >= max(sight.deadline_s, BOTH_S):
        assert found.act is Act.UNCOVER, "a cover ends by its deadline"
    if sight.busy and not sight.dead and sight.covered is not None:
        assert found.act is Act.NOTHING, "who hands over looks after the cover"


HELD, GONE = Sight(held=True), Sight(held=False)


@pytest.mark.parametrize(
    ("sight", "act", "why"),
    [
        (HELD, Act.NOTHING, "nothing to do"),
        (GONE, Act.NOTHING, "nothing to do"),
        (replace(GONE, left=0.0), Act.COVER, "its clients are not elsewhere yet"),
        (replace(GONE, left=JUST_S), Act.NOTHING, "nothing to do"),
        (replace(GONE, left=0.0, dead=True), Act.NOTHING, "nothing to do"),
        (replace(GONE, left=0.0, running=False), Act.COVER, "its clients are not elsewhere yet"),
        # keepalived was killed and the address stays behind
        (replace(HELD, running=False), Act.NOTHING, "stays until a peer owns it"),
        (replace(HELD, running=False, peer=0.1), Act.REMOVE, "a peer has announced itself"),
        (replace(HELD, running=False, peer=1.8), Act.NOTHING, "stays until a peer owns it"),
        (replace(HELD, running=False, dead=True), Act.REMOVE, "so is the service"),
        (replace(HELD, peer=0.1), Act.NOTHING, "nothing to do"),
        # covered
        (replace(GONE, covered=0.0), Act.NOTHING, "waiting for an owner"),
        (replace(GONE, covered=1.0, dead=True), Act.UNCOVER, "service is dead"),
        (replace(GONE, covered=1.0, dead=True, busy=True), Act.UNCOVER, "service is dead"),
        (replace(GONE, covered=30.0, busy=True), Act.NOTHING, "looks after its cover"),
        (replace(GONE, covered=0.5, peer=0.0, peer_new=0.0), Act.NOTHING, "waiting for an owner"),
        (replace(GONE, covered=0.5, peer=0.0, peer_new=SETTLE_S), Act.UNCOVER, "has told the network"),
        (replace(GONE, covered=0.5, peer=5.0, peer_new=SETTLE_S), Act.NOTHING, "waiting for an owner"),
        (replace(GONE, covered=9.9), Act.NOTHING, "waiting for an owner"),
        (replace(GONE, covered=10.0), Act.UNCOVER, "nobody took the VIP within 10 s"),
        (replace(HELD, covered=0.0), Act.NOTHING, "held again"),
        (replace(HELD, covered=SETTLE_S), Act.UNCOVER, "holds the VIP again"),
        (replace(HELD, covered=0.5, running=False), Act.NOTHING, "waiting for an owner"),
        # both owned it, and this one yielded
        (replace(GONE, covered=0.2, left=0.2, peer=0.1, peer_new=3.0), Act.NOTHING, "both nodes owned"),
        (replace(GONE, covered=BOTH_S, left=BOTH_S, peer=0.1, peer_new=3.0), Act.UNCOVER, "has told the network"),
    ],
)
def test_rule_by_rule(sight: Sight, act: Act, why: str) -> None:
    found = decide(sight)
    assert (found.act, why in found.why) == (act, True), found


@pytest.mark.parametrize(("advert", "patience"), [(1.0, 1.7), (0.1, 0.35), (0.05, 0.275)])
def test_a_peer_owns_while_it_says_so(advert: float, patience: float) -> None:
    assert peer_owns(replace(GONE, peer=patience - 0.01, advert_s=advert))
    assert not peer_owns(replace(GONE, peer=patience + 0.01, advert_s=advert))
    assert not peer_owns(replace(GONE, advert_s=advert))


def test_a_whole_hand_over_is_one_cover_and_ends_a_tenth_of_a_second_after_the_peer() -> None:
    """The address leaves at 0, the peer announces itself at 40 ms and each 100 ms."""
    acts: list[tuple[Act, float]] = []
    covered: float | None = None
    left: float | None = 0.0
    for tick in range(100):
        now = tick / 100
        adverts = [0.04 + n / 10 for n in range(10) if 0.04 + n / 10 <= now]
        sight = Sight(
            held=False, covered=now - covered if covered is not None else None, left=now - left if left is not None else None,
            peer=now - adverts[-1] if adverts else None, peer_new=now - adverts[0] if adverts else None, advert_s=0.1,
        )  # fmt: skip
        act = decide(sight).act
        if act is Act.COVER:
            acts.append((act, now))
            covered = now
        elif act is Act.UNCOVER:
            acts.append((act, now))
            covered, left = None, None
    assert [act for act, _ in acts] == [Act.COVER, Act.UNCOVER]
    assert [now for _, now in acts] == pytest.approx([0.0, 0.14], abs=0.011)


def test_nobody_lets_go_while_no_peer_says_that_it_could_take_it() -> None:
    assert may_let_go("dns", Peering(able=("b",), unable=("c",), unknown=("d",)), force=False) is None
    assert may_let_go("dns", Peering(), force=True) is None
    assert may_let_go("dns", Peering(unable=("b",)), force=False) == "nobody could take dns: b cannot take it; --force does it all the same"
    assert may_let_go("dns", Peering(unable=("b",), unknown=("c",)), force=False) == (
        "nobody could take dns: b cannot take it; c cannot be heard; --force does it all the same"
    )
    assert may_let_go("dns", Peering(), force=False) == "nobody could take dns: there is no peer; --force does it all the same"
    assert may_let_go("dns", Peering(unknown=("b", "c")), force=False) == (
        "no peer says that it could take dns: b, c cannot be heard; give it an ops address, or say --force"
    )


def test_a_thawed_node_yields_only_what_a_peer_owns() -> None:
    frozen = {"gap_s": 5.0, "held": True, "heard_since": False, "peer_holds": False}
    assert yields(**{**frozen, "heard_since": True}) is not None  # type: ignore[arg-type]
    assert yields(**{**frozen, "peer_holds": True}) is not None  # type: ignore[arg-type]
    assert yields(**frozen) is None  # type: ignore[arg-type]
    assert yields(gap_s=5.0, held=False, heard_since=True, peer_holds=True) is None


@given(st.integers(2, 254), st.integers(1, 20), st.integers(1, 50))
@settings(max_examples=50)
def test_a_settled_owner_announces_less_than_any_other_node_and_never_so_little_that_it_is_a_fault(base: int, count: int, step: int) -> None:
    lowest = base - step * (count - 1)
    for index in range(count):
        priority = base - step * index
        low = settled_weight(priority, lowest, nopreempt=True)
        if lowest < 2:
            assert low == 0
        else:
            assert 1 <= priority - low < lowest
        assert settled_weight(priority, lowest, nopreempt=False) == 0


def test_an_owner_has_settled_once_every_peer_was_heard_and_nobody_contests_it() -> None:
    calm = {"held": True, "held_s": 0.1, "advert_s": 1.0, "contested": False, "heard_since": (True, True)}
    assert settled(**calm)  # type: ignore[arg-type]
    for less in ({"held": False}, {"contested": True}, {"heard_since": (True, False)}, {"heard_since": (True, None)}, {"heard_since": ()}):
        assert not settled(**{**calm, **less})  # type: ignore[arg-type]
    long = {**calm, "held_s": 3.1}
    assert settled(**{**long, "heard_since": (True, None)})  # type: ignore[arg-type]
    assert settled(**{**long, "heard_since": ()})  # type: ignore[arg-type]
    assert not settled(**{**long, "heard_since": (False, None)}), "a frozen owner cannot be heard"  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("held", "before", "unheard", "claimed", "after", "ended"),
    [
        (True, False, False, False, False, False),
        (True, False, True, False, True, False),
        (True, False, False, True, True, False),
        (True, True, False, False, False, True),
        (True, True, True, True, True, False),
        (False, True, False, False, False, False),
        (False, True, True, True, False, False),
    ],
)
def test_a_contest_ends_for_who_stays_the_owner(held: bool, before: bool, unheard: bool, claimed: bool, after: bool, ended: bool) -> None:
    assert contest(held=held, before=before, unheard=unheard, claimed=claimed) == (after, ended)


def test_who_steps_back_from_a_vip_of_two_owners_covers_it_for_longer() -> None:
    """The owner that stays tells the network only when it learns that it is alone."""
    both = Sight(held=False, covered=0.5, left=0.5, peer=0.1, peer_new=3.0)
    assert decide(both).act is Act.NOTHING
    assert decide(replace(both, covered=BOTH_S, left=BOTH_S, peer_new=BOTH_S + 3)).act is Act.UNCOVER
    assert decide(replace(both, peer_new=0.5)).act is Act.UNCOVER


def test_two_owners_are_an_alarm_within_two_seconds_and_a_hand_over_is_none() -> None:
    assert TWO_OWNERS_S < 2
    calm = {"held": True, "held_s": 5.0, "adverts": 0, "advert_span_s": 0.0, "claims": (), "claims_s": 0.0}

    def alarm(**said: object) -> str | None:
        return two_owners(**{**calm, **said})  # type: ignore[arg-type]

    assert alarm() is None
    assert alarm(claims=("b",), claims_s=1.0) == "b says that it holds the VIP too"
    assert alarm(claims=("b", "c"), claims_s=1.0) == "b, c say that it holds the VIP too"
    assert alarm(adverts=2, advert_span_s=1.0) == "adverts of another owner arrive while this node owns it"
    for none in (
        {"claims": ("b",), "claims_s": 0.1}, {"adverts": 1, "advert_span_s": 1.0}, {"adverts": 9, "advert_span_s": 0.3},
        {"claims": ("b",), "claims_s": 1.0, "held": False}, {"claims": ("b",), "claims_s": 1.0, "held_s": 0.1},
    ):  # fmt: skip
        assert alarm(**none) is None
