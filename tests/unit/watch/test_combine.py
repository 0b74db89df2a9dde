"""Several answers to one verdict: any or all, and a sentence that names who failed and why."""

from __future__ import annotations

import itertools

import pytest

from edgekeeper.watch.combine import Need, Reply, combined, decided, known

GOOD = Reply("tls://192.0.2.11:443", None, 0.012)
BAD = Reply("tls://192.0.2.12:443", "refused", 0.001)


@pytest.mark.parametrize("need", ["any", "all"])
def test_a_round_that_is_decided_stays_so_whatever_the_others_say(need: Need) -> None:
    for replies in itertools.product([GOOD, BAD], repeat=3):
        well, why = combined(replies, 3, need)
        assert well == (any if need == "any" else all)(reply is GOOD for reply in replies)
        assert why
        for seen in range(1, 4):
            if decided(replies[:seen], need):
                assert combined(replies[:seen], 3, need)[0] == well


def test_the_sentence_names_the_failing_target_and_why() -> None:
    assert combined([BAD], 1, "any") == (False, "tls://192.0.2.12:443: refused")
    assert combined([GOOD, BAD], 2, "all") == (False, "tls://192.0.2.12:443: refused (not all of 2 answered well)")
    assert combined([BAD] * 5, 5, "any")[1].endswith("; and 2 more (none of 5 answered well)")
    assert combined([GOOD], 2, "any") == (True, "tls://192.0.2.11:443 answered within 12 ms")


def test_a_round_in_which_nobody_could_be_asked_says_nothing() -> None:
    unasked = Reply("https://git.example/", "no such name", 0.001, asked=False)
    assert not known([unasked, unasked])
    assert known([unasked, BAD])
    assert known([unasked, GOOD])
    assert not decided([unasked], "all"), "the others may say something"


def test_nobody_asked_is_nobody_well() -> None:
    assert combined([], 0, "all")[0] is combined([], 0, "any")[0] is False
