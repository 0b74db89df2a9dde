"""Conversations with the supervisor's mind, and its invariants over random ones."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from edgekeeper.ports import Cost
from edgekeeper.supervise.decide import (
    RETRY_REFUSED_S,
    STEADY_S,
    Check,
    Checked,
    Command,
    Decision,
    Event,
    Exited,
    Failed,
    Live,
    Proved,
    Refused,
    Reload,
    Rendered,
    Replace,
    Rollback,
    Start,
    State,
    Swap,
    Tick,
    Unreadable,
    backoff,
    decide,
)


def play(*events: Event, state: State | None = None, step: float = 1.0, now: float = 0.0) -> tuple[list[Decision], State]:
    """Play events one second apart; the decisions and the last state."""
    state = state or State()
    out = []
    for event in events:
        decision = decide(state, event, now)
        out.append(decision)
        state, now = decision.state, now + step
    return out, state


RUNNING = State(live="a", good="a", running=True)


def test_the_first_configuration_is_checked_then_started_then_proven() -> None:
    said, state = play(Rendered("a", Cost.RESTART), Checked("a"), Proved("a"))
    assert [d.commands for d in said] == [(Check("a"),), (Swap("a"), Start("a")), ()]
    assert (state.live, state.good, state.running) == ("a", "a", True)


def test_a_refused_configuration_never_stops_a_running_engine() -> None:
    said, state = play(Rendered("b", Cost.RESTART), Checked("b", "line 3 is wrong"), state=RUNNING)
    assert said[1].commands == ()
    assert said[1].why == "b refused: line 3 is wrong; keeping a"
    assert state.running
    assert state.live == "a"


def test_a_refused_configuration_is_not_asked_about_at_every_render_but_after_a_while() -> None:
    said, state = play(Rendered("b", Cost.LIVE), Checked("b", "port is taken"), Rendered("b", Cost.LIVE), state=RUNNING)
    assert said[2].commands == ()
    assert "port is taken" in said[2].why
    assert decide(state, Tick(), RETRY_REFUSED_S - 1).commands == ()
    assert decide(state, Tick(), RETRY_REFUSED_S + 1).commands == (Check("b"),)


def test_what_is_refused_again_and_again_is_asked_about_ever_less_often() -> None:
    state, now, waits = RUNNING, 0.0, []
    state = decide(state, Rendered("b", Cost.RESTART), now).state
    for _ in range(7):
        state = decide(state, Checked("b", "port is taken"), now).state
        assert state.refused is not None
        waits.append(state.refused.retry_at - now)
        now = state.refused.retry_at
        decision = decide(state, Tick(), now)
        assert decision.commands == (Check("b"),)
        state = decision.state
    assert waits == [30, 60, 120, 240, 480, 600, 600]
    state = decide(state, Rendered("c", Cost.RESTART), now).state
    assert decide(state, Checked("c", "another"), now).state.refused == Refused(Rendered("c", Cost.RESTART), "another", now + 30)


def test_a_change_that_was_taken_back_is_forgotten() -> None:
    said, state = play(Rendered("b", Cost.LIVE), Checked("b", "no"), Rendered("a", Cost.NOTHING), state=RUNNING)
    assert said[2].commands == ()
    assert state.refused is None


def test_identical_files_do_nothing() -> None:
    said, _ = play(Rendered("a", Cost.NOTHING), state=RUNNING)
    assert said[0].commands == ()
    assert said[0].why == "rendered files are unchanged"


def test_each_cost_has_its_command() -> None:
    for cost, command in ((Cost.LIVE, Live("b")), (Cost.RELOAD, Reload("b")), (Cost.RESTART, Replace("b"))):
        said, state = play(Rendered("b", cost), Checked("b"), Proved("b"), state=RUNNING)
        assert said[1].commands == (Swap("b"), command)
        assert state.good == "b"
    said, _ = play(Rendered("b", Cost.NOTHING), Checked("b"), Proved("b"), state=RUNNING)
    assert said[1].commands == (Swap("b"),)


def test_a_live_change_that_fails_becomes_a_replacement() -> None:
    said, state = play(Rendered("b", Cost.LIVE), Checked("b"), Proved("b", "ns-c is not there"), Proved("b"), state=RUNNING)
    assert said[2].commands == (Replace("b"),)
    assert "ns-c is not there" in said[2].why
    assert state.good == "b"


def test_a_live_change_that_fails_becomes_a_reload_where_the_engine_can() -> None:
    wanted = Rendered("b", Cost.LIVE, otherwise=Cost.RELOAD)
    said, state = play(wanted, Checked("b"), Proved("b", "web-c is not there"), Proved("b"), state=RUNNING)
    assert said[1].commands == (Swap("b"), Live("b"))
    assert said[2].commands == (Reload("b"),)
    assert said[2].why == "the live change failed: web-c is not there; reloading instead"
    assert (state.live, state.good, state.running, state.refused) == ("b", "b", True, None)


def test_a_reload_that_is_not_proven_is_followed_by_one_of_the_last_proven_configuration() -> None:
    said, state = play(Rendered("b", Cost.RELOAD), Checked("b"), Proved("b", "a port is taken"), Proved("a"), state=RUNNING)
    assert said[2].commands == (Rollback("a"), Reload("a"))
    assert said[2].why == "b was not proven: a port is taken; reloading a"
    assert (state.live, state.good, state.running) == ("a", "a", True)
    assert state.refused is not None
    assert state.refused.rendered.digest == "b"
    assert decide(state, Rendered("b", Cost.RELOAD), 9).commands == (), "it is not asked about at each render"


def test_a_live_change_that_fails_and_a_reload_that_fails_too_end_with_the_last_proven_configuration() -> None:
    wanted = Rendered("b", Cost.LIVE, otherwise=Cost.RELOAD)
    said, state = play(wanted, Checked("b"), Proved("b", "no"), Proved("b", "no again"), Proved("a"), state=RUNNING)
    assert [d.commands for d in said[2:]] == [(Reload("b"),), (Rollback("a"), Reload("a")), ()]
    assert (state.live, state.good, state.running) == ("a", "a", True)


def test_when_not_even_the_last_proven_configuration_can_be_reloaded_the_running_engine_stays() -> None:
    said, state = play(Rendered("b", Cost.RELOAD), Checked("b"), Proved("b", "no"), Proved("a", "it does not answer"), state=RUNNING)
    assert said[3].commands == ()
    assert "the running engine stays" in said[3].why
    assert (state.live, state.good, state.running, state.changing) == ("a", "a", True, None)


def test_an_engine_that_dies_of_a_reload_is_started_on_the_last_proven_configuration() -> None:
    said, state = play(Rendered("b", Cost.RELOAD), Checked("b"), Proved("b", "it ended", running=False), Proved("a"), state=RUNNING)
    assert said[2].commands == (Rollback("a"), Start("a"))
    assert (state.live, state.running) == ("a", True)


def test_what_is_not_certain_is_brought_into_force_again_though_nothing_changed() -> None:
    said, state = play(Rendered("a", Cost.RELOAD, "a change was interrupted"), Checked("a"), Proved("a"), state=RUNNING)
    assert said[0].commands == (Check("a"),)
    assert said[1].commands == (Swap("a"), Reload("a"))
    assert (state.live, state.good) == ("a", "a")


def test_started_but_not_proven_goes_back_to_the_last_proven_one() -> None:
    said, state = play(Rendered("b", Cost.RESTART), Checked("b"), Proved("b", "no answer", running=False), Proved("a"), state=RUNNING)
    assert said[2].commands == (Rollback("a"), Start("a"))
    assert (state.live, state.good, state.running) == ("a", "a", True)


def test_a_replacement_that_is_not_proven_leaves_the_old_engine_serving() -> None:
    said, state = play(Rendered("b", Cost.RESTART), Checked("b"), Proved("b", "no API"), state=RUNNING)
    assert said[2].commands == (Rollback("a"),)
    assert state.running
    assert state.live == "a"


def test_a_first_start_that_fails_is_tried_again_ever_more_slowly() -> None:
    state, now, waits = State(), 0.0, []
    for event in (Rendered("a", Cost.RESTART), Checked("a")):
        state = decide(state, event, now).state
    for _ in range(8):
        state = decide(state, Proved("a", "died at once", running=False), now).state
        assert state.restart_at is not None
        waits.append(state.restart_at - now)
        now = state.restart_at
        decision = decide(state, Tick(), now)
        assert decision.commands == (Start("a"),)
        state = decision.state
    assert waits == [0.5, 1, 2, 4, 8, 16, 30, 30]


def test_an_engine_that_ran_for_long_starts_again_at_once() -> None:
    old = State(live="a", good="a", running=True, failures=6, since=0.0)
    state = decide(old, Exited(-9), STEADY_S).state
    assert state.restart_at == STEADY_S + backoff(0)
    assert decide(old, Exited(-9), STEADY_S - 1).state.restart_at == STEADY_S - 1 + backoff(6)


def test_an_exit_says_how() -> None:
    assert "signal 9" in decide(RUNNING, Exited(-9), 0).why
    assert "with 1" in decide(RUNNING, Exited(1), 0).why
    assert "ended;" in decide(RUNNING, Exited(None), 0).why


def test_without_a_source_the_last_accepted_configuration_runs() -> None:
    said, _ = play(Unreadable("the file is gone"), state=State(live="a", good="a"))
    assert said[0].commands == (Start("a"),)
    assert decide(RUNNING, Unreadable("gone"), 0).commands == ()
    assert decide(State(), Unreadable("gone"), 0).commands == ()


def test_a_bad_config_at_the_start_does_not_keep_the_last_good_one_from_running() -> None:
    said, _ = play(Rendered("b", Cost.RESTART), Checked("b", "no"), state=State(live="a", good="a"))
    assert said[1].commands == (Start("a"),)


def test_a_swap_that_fails_leaves_everything_as_it_was() -> None:
    said, state = play(Rendered("b", Cost.LIVE), Checked("b"), Failed("b", "the disk is full"), state=RUNNING)
    assert said[2].commands == ()
    assert (state.live, state.running) == ("a", True)
    assert state.refused is not None


def test_a_verdict_or_proof_about_something_older_is_ignored() -> None:
    assert decide(RUNNING, Checked("z"), 0).state == RUNNING
    assert decide(RUNNING, Proved("z"), 0).state == RUNNING
    assert decide(RUNNING, Failed("z", "late"), 0).state == RUNNING


digests = st.sampled_from("abc")
wishes = st.one_of(
    st.builds(Rendered, digests, st.sampled_from(Cost), otherwise=st.sampled_from([Cost.RELOAD, Cost.RESTART])),
    st.builds(Exited, st.integers(-15, 3)),
    st.builds(Unreadable, st.just("?")),
    st.just(Tick()),
)


@settings(max_examples=150, deadline=None)
@given(st.data(), st.lists(wishes, max_size=25))
def test_invariants(data: st.DataObject, wanted: list[Event]) -> None:
    """A world that carries the commands out, with refusals and failures anywhere."""
    state, accepted, now = State(), set[str](), 0.0
    current: str | None = None
    running, proven = False, set[str]()
    for wish in wanted:
        if isinstance(wish, Exited):
            if not running:
                continue
            running = False
        event: Event | None = wish
        now += data.draw(st.sampled_from((0.1, 1.0, 31.0, 100.0)))
        while event is not None:
            if isinstance(event, Checked) and event.refusal is None:
                accepted.add(event.digest)
            decision = decide(state, event, now)
            state, event = decision.state, None
            assert decision.why
            for command in decision.commands:
                event, running, current = _act(data, command, state, accepted, proven, running=running, current=current)
                if event is not None:
                    break
        assert state.running == running
        assert state.changing is None
        assert state.pending is None
        if running and state.good is not None:
            assert state.live == state.good == current, "the files that a restart would read are those that were seen to run last"


def _act(
    data: st.DataObject, command: Command, state: State, accepted: set[str], proven: set[str], *, running: bool, current: str | None
) -> tuple[Event | None, bool, str | None]:
    well = data.draw(st.booleans())
    match command:
        case Check(digest=digest):
            return Checked(digest, None if well else "refused"), running, current
        case Swap(digest=digest):
            assert digest in accepted
            if not well:
                return Failed(digest, "the disk is full"), running, current
            if state.changing is not None and state.changing.cost is Cost.NOTHING and running:
                proven.add(digest)
                return Proved(digest), running, digest
            return None, running, digest
        case Rollback(digest=digest):
            assert digest in proven
            return None, running, digest
        case Start(digest=digest):
            assert not running
            assert current == digest
            assert digest in accepted
            if well:
                proven.add(digest)
            return Proved(digest, None if well else "no", running=well), well, current
        case Live(digest=digest) | Reload(digest=digest) | Replace(digest=digest):
            assert running
            assert current == digest
            alive = well or data.draw(st.booleans())
            if well:
                proven.add(digest)
            return Proved(digest, None if well else "no", running=alive), alive, current
