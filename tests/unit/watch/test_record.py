"""What stands in the journal beside the sentence: what history is made of."""

from __future__ import annotations

import pytest

from edgekeeper.watch.record import act_data, entry_data
from edgekeeper.watch.state import Answered, Decision, Event, Phase, Started, State, Tick


@pytest.mark.parametrize(("event", "by"), [(Started(90.0), "start"), (Answered(True, "it answers", 99.0), "answer")])
def test_who_ended_a_trouble_is_kept_with_the_rounds_that_had_failed(event: Event, by: str) -> None:
    for kind in ("cancel", "disarm"):
        assert entry_data(Decision(State(Phase.ARMED, bad=3), kind, "so"), event, 100.0) == {"state": "armed", "failed": 3, "by": by}


def test_what_holds_back_is_kept_with_the_seconds_until_it_does_not() -> None:
    held = State(Phase.WANTED, held="budget", until=142.26)
    assert entry_data(Decision(held, "suppress", "so"), Tick(), 100.0) == {"state": "wanted", "held_by": "budget", "until_s": 42.3}
    assert entry_data(Decision(State(Phase.WANTED, held="guard"), "suppress", "so"), Tick(), 100.0)["until_s"] is None


def test_the_time_to_recover_stands_with_a_proof_only_and_the_line_is_fit_to_be_shown() -> None:
    state = State(Phase.QUIET, line="\x1b[2J" + "x" * 500, recovered=(0.51234, 2.5))
    told = entry_data(Decision(state, "prove", "so"), Tick(), 100.0)
    assert told["recovered_s"] == [0.512, 2.5]
    assert len(told["line"]) == 200
    assert told["line"].isprintable()
    assert "recovered_s" not in entry_data(Decision(state, "arm", "so"), Tick(), 100.0)


def test_an_act_says_what_the_guards_found() -> None:
    told = act_data(State(Phase.CURING, line="a line"), "docker restart web", ["", "the health document could not be read, which forbids nothing"])
    assert told == {
        "state": "curing",
        "step": "docker restart web",
        "line": "a line",
        "guards": ["the health document could not be read, which forbids nothing"],
    }
