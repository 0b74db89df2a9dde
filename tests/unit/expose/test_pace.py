from edgekeeper.expose.pace import begin


def passed(pace, at, **more):
    return pace.passed(at, at, **{"saw": True, "again_s": None, **more})


def test_the_first_pass_is_at_once_and_the_next_when_the_time_is_over():
    pace = begin(60.0, 0.5, 100.0)
    assert pace.wait_s(100.0) == 0.0
    pace = passed(pace, 101.0)
    assert pace.wait_s(101.0) == 60.0


def test_a_change_after_a_quiet_time_is_at_once_and_the_ones_after_it_are_gathered():
    pace = passed(begin(60.0, 0.5, 100.0), 100.0).noticed(110.0)
    assert pace.wait_s(110.0) == 0.0
    pace = passed(pace, 110.1).noticed(110.2)
    assert round(pace.wait_s(110.2), 6) == 0.4


def test_a_change_during_a_pass_waits_for_the_next_one_and_is_not_forgotten():
    pace = passed(begin(60.0, 0.5, 100.0), 100.0).noticed(110.0).passed(110.0, 110.1, saw=True, again_s=None)
    assert pace.wait_s(110.1) == 60.0
    pace = passed(begin(60.0, 0.5, 100.0), 100.0).noticed(112.0).passed(110.0, 113.0, saw=True, again_s=None)
    assert pace.wait_s(113.0) == 0.5


def test_a_mesh_that_is_away_is_asked_again_later_and_later_whatever_changes():
    pace, now, waits = passed(begin(60.0, 0.5, 0.0), 0.0), 1.0, []
    for _ in range(9):
        pace = passed(pace, now, saw=False).noticed(now + 0.1)
        waits.append(round(pace.wait_s(now), 6))
        now += waits[-1]
    assert waits == [5.0, 10.0, 20.0, 40.0, 80.0, 160.0, 300.0, 300.0, 300.0]
    pace = passed(pace, now)
    assert pace.noticed(now + 5).wait_s(now + 5) == 0.0


def test_a_mesh_that_takes_no_calls_for_a_while_is_left_alone_for_it():
    pace = passed(begin(60.0, 0.5, 0.0), 0.0, again_s=30.0).noticed(1.0)
    assert pace.wait_s(1.0) == 29.0


def test_while_nothing_is_known_it_looks_again_soon():
    assert begin(60.0, 0.5, 0.0).later(0.0, 1.0).wait_s(0.0) == 1.0
