"""What a look is worth beside what the peers say: the last one standing keeps the VIP."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgekeeper.vip.evidence import FRESH_S, KINDS, LATELY_S, NOTICE_S, Sample, Says, heard, verdict

GOOD = Says("edge-b", 0.2, "good", 3, can_take=True)
DEAD = Says("edge-c", 0.2, "dead", None, can_take=False)
ILL = Says("edge-c", 0.2, "members", 0, can_take=True)

counts = st.one_of(st.none(), st.integers(0, 3))
samples = st.builds(Sample, st.sampled_from(KINDS), st.just("why"), counts)
says = st.builds(
    Says,
    st.sampled_from(["edge-b", "edge-c"]),
    st.one_of(st.none(), st.floats(0, 10)),
    st.sampled_from([*KINDS, "unknown"]),
    counts,
    st.booleans(),
)
peers = st.lists(says, max_size=3)


def fails(kind, *others, usable=None, require=0, **said):
    return verdict(Sample(kind, "why", usable), others, require, **said)[0]


@pytest.mark.parametrize("kind", ["dead", "silent"])
@pytest.mark.parametrize(
    ("others", "expected"),
    [
        ((), True),
        ((GOOD,), True),
        ((DEAD,), False),
        ((DEAD, GOOD), True),
        ((GOOD._replace(can_take=False),), False),
        ((DEAD._replace(age_s=None),), True),
        ((DEAD._replace(age_s=FRESH_S + 0.1),), True),
        ((DEAD, DEAD._replace(age_s=None)), True),
    ],
)
def test_the_engines_own_death_counts_unless_nobody_is_better_off(kind, others, expected):
    assert fails(kind, *others) is expected


@pytest.mark.parametrize(
    ("others", "usable", "require", "expected"),
    [
        ((), None, 0, False),
        ((GOOD,), None, 0, True),
        ((GOOD._replace(can_take=False),), None, 0, False),
        ((GOOD._replace(age_s=None),), None, 0, False),
        ((GOOD._replace(age_s=LATELY_S + 0.1),), None, 0, False),
        ((ILL, DEAD), None, 0, False),
        ((GOOD,), 1, 2, True),
        ((GOOD._replace(usable=1),), 1, 2, False),
        ((GOOD._replace(usable=None),), 1, 2, True),
        ((GOOD._replace(usable=1),), 3, 2, True),  # its members are there and do not answer: the count is not the trouble
        ((ILL._replace(usable=1),), 0, 2, True),  # one is better than none
        ((ILL._replace(usable=2),), 1, 3, False),
        ((ILL,), 0, 2, False),
    ],
)
def test_trouble_behind_the_engine_counts_where_a_peer_is_better_off(others, usable, require, expected):
    assert fails("members", *others, usable=usable, require=require) is expected


def test_a_word_from_before_the_trouble_is_none():
    assert not fails("members", GOOD, since_s=NOTICE_S)
    assert fails("members", GOOD, since_s=NOTICE_S + 0.3)


@given(peers, st.integers(0, 3))
def test_a_service_that_drains_or_was_not_seen_never_fails(others, require):
    for kind in ("good", "draining", "blind"):
        assert not fails(kind, *others, require=require)


@given(samples, peers, st.integers(0, 3))
def test_members_never_fail_a_node_without_a_fresh_peer_that_could_take_it(sample, others, require):
    able = [peer for peer in others if peer.age_s is not None and peer.age_s <= FRESH_S and peer.can_take]
    failed, why = verdict(sample, others, require)
    assert not (failed and sample.kind == "members" and not able)
    assert why.startswith("why")


@given(peers, st.integers(0, 3), counts)
def test_a_worse_sample_never_saves_a_node(others, require, usable):
    if fails("members", *others, usable=usable, require=require):
        assert fails("dead", *others)
    assert not fails("good", *others, usable=usable, require=require)


@given(st.lists(st.builds(Sample, st.sampled_from(["good", "members", "silent", "dead"]), st.just("why"), counts), min_size=2, max_size=4), st.integers(0, 3))
def test_however_ill_all_nodes_are_one_of_them_keeps_the_vip(nodes, require):
    told = [Says(str(i), 0.1, s.kind, s.usable, can_take=s.kind not in ("dead", "silent")) for i, s in enumerate(nodes)]
    verdicts = [verdict(s, [*told[:i], *told[i + 1 :]], require)[0] for i, s in enumerate(nodes)]
    assert not all(verdicts)
    if len(set(nodes)) == 1:
        assert not any(verdicts), "a shared cause moves nothing"


def test_what_the_peers_file_says_is_read_with_its_age():
    tree = {
        "schema": 1,
        "mono": 100.0,
        "peers": {
            "edge-b": {"mono": 99.5, "vips": {"dns": {"health": "good", "usable": 3, "can_take": True}}},
            "edge-c": {"mono": None, "vips": {}},
            "edge-d": {"mono": 200.0, "vips": {"dns": {"health": 7, "usable": True, "can_take": "yes"}}},
            "edge-e": 3,
        },
    }
    b, c, d, e = heard(tree, "dns", 100.0)
    assert b == Says("edge-b", 0.5, "good", 3, can_take=True)
    assert c == Says("edge-c", None, "unknown", None, can_take=True)
    assert d == Says("edge-d", None, "unknown", None, can_take=False)
    assert e.age_s is None
    assert heard(tree, "other", 100.0)[0].age_s is None


@pytest.mark.parametrize("tree", [None, [], 3, {}, {"peers": []}, {"peers": None}])
def test_a_peers_file_that_is_none_says_nothing(tree):
    assert heard(tree, "dns", 1.0) == ()
