"""F6 and F7: pods that moved twice, and evictions that were refused or went around a budget."""

from __future__ import annotations

from tests.fakes.studies import ask, hurt, mark, roll, study

from edgekeeper.report.figures.blocked import f7
from edgekeeper.report.figures.drains import drains
from edgekeeper.report.figures.moves import f6, moved_again
from edgekeeper.report.kinds import Kind, Mark
from edgekeeper.report.study import Study

RS1, RS2 = "web/wordpress-7d4b9c5f6d-x2x8z", "web/wordpress-7d4b9c5f6d-l9wqk"


def rolled(*marks: Mark, **settings: object) -> Study:
    made = study(marks, **settings)
    made.drains = drains(made)
    return made


def test_the_same_name_in_two_drains_was_moved_twice_and_costs_the_later_outages() -> None:
    made = rolled(*roll("n1", 100, "git/gitea-0", "home/ha-pg-1"), *roll("n2", 500, "git/gitea-0"), *roll("n3", 900, "git/gitea-0", "home/ha-pg-1"))
    ask(made, "gitea@file", [0.0, 1400.0])
    made.outages = (hurt("gitea@file", 115, 150), hurt("gitea@file", 515, 545), hurt("gitea@file", 915, 955), hurt("other", 515, 800))
    database, forge = sorted(moved_again(made), key=lambda m: m.extra)
    assert (database.owner.same, database.places, database.cost) == ("home/ha-pg-1", (0, 2), None)
    assert forge.sure
    assert forge.places == (0, 1, 2)
    assert forge.cost is not None
    assert (forge.cost.min_s, forge.cost.max_s) == (70.0, 74.0)  # the first move was due
    figure = f6(made)
    assert figure.answer.startswith(
        "2 pods or workloads moved in more than one drain, 3 extra moves; the routes of 1 of them, which alone can be measured, were down for 1 min 10 s to 1 min 14 s"
    )
    assert figure.data["extra"] == 3
    assert "report.feeds" in figure.notes[0]


def test_the_config_tells_what_a_name_cannot() -> None:
    made = rolled(*roll("n1", 100, "home/ha-pg-1"), *roll("n2", 500, "home/ha-pg-1"), feeds={"home-assistant@docker": "home/ha-pg"})
    ask(made, "home-assistant@docker", [0.0])
    made.outages = (hurt("home-assistant@docker", 515, 545),)
    (found,) = moved_again(made)
    assert found.cost is not None
    assert found.cost.min_s == 30.0


def test_another_replica_is_no_second_move() -> None:
    many = rolled(*roll("n1", 100, "vault/openbao-0"), *roll("n2", 500, "vault/openbao-1"), *roll("n3", 900, "vault/openbao-2"))
    assert moved_again(many) == ()
    two_at_once = rolled(*roll("n1", 100, RS1, RS2), *roll("n2", 500, "web/wordpress-7d4b9c5f6d-8b4kd"))
    assert moved_again(two_at_once) == ()
    assert f6(many).answer == "nothing was moved in more than one drain, as far as names tell"


def test_a_new_name_is_only_perhaps_the_same_pod_until_events_tell() -> None:
    moves = [*roll("n1", 100, RS1), *roll("n2", 500, RS2)]
    (perhaps,) = moved_again(rolled(*moves))
    assert not perhaps.sure
    assert "0 to 1 extra moves" in f6(rolled(*moves)).answer
    (surely,) = moved_again(rolled(*moves, mark(130, Kind.POD, RS2, "events", reason="Scheduled")))
    assert surely.sure
    (replica,) = moved_again(rolled(*moves, mark(-400, Kind.POD, RS2, "events", reason="Scheduled")))
    assert not replica.sure


def test_names_of_two_namespaces_are_two_pods() -> None:
    made = rolled(*roll("n1", 100, "a/db-0"), *roll("n2", 500, "b/db-0"))
    assert moved_again(made) == ()


def test_one_drain_moves_nothing_twice() -> None:
    assert f6(rolled(*roll("n1", 100, "a/x-0"))).measured
    assert not f6(study()).measured


def test_refusals_tell_how_long_a_budget_held_a_drain_up() -> None:
    blocked = [mark(None, Kind.EVICTION_BLOCKED, "git/gitea-0", "d", again_s=5.0) for _ in range(3)]
    figure = f7(study([*blocked, mark(None, Kind.EVICTED, "git/gitea-0", "d"), mark(None, Kind.DELETED, "home/ha-pg-1", "d")]))
    assert figure.data["stalled"] == [{"pod": "git/gitea-0", "refused": 3, "by_count_s": 15.0, "measured_s": None}]
    assert figure.data["bypassed"] == ["home/ha-pg-1"]
    assert figure.answer == "1 pod refused 3 times, about 15.0 s of waiting: git/gitea-0; 1 pod deleted instead of evicted, past any budget"


def test_a_pod_that_was_refused_and_then_deleted_is_one_row() -> None:
    names = [f"mail/bridge-6d5f7c9b8d-{end}" for end in ("x2k4q", "9wz7l")]
    marks = [mark(t, kind, pod) for t, kind in ((1, Kind.EVICTION_BLOCKED), (9, Kind.DELETED)) for pod in names]
    figure = f7(study(marks))
    assert figure.table is not None
    assert [(row[0], row[3], row[5]) for row in figure.table.rows] == [(pod, "8.0 s", "deleted past its budget") for pod in sorted(names)]
    assert "2 pods of 1 workload deleted instead of evicted" in figure.answer


def test_the_clock_tells_it_where_lines_have_times() -> None:
    marks = [mark(10, Kind.EVICTION_BLOCKED, "a/x-0"), mark(15, Kind.EVICTION_BLOCKED, "a/x-0"), mark(21.5, Kind.EVICTED, "a/x-0")]
    assert f7(study(marks)).data["stalled"] == [{"pod": "a/x-0", "refused": 2, "by_count_s": 10.0, "measured_s": 11.5}]
    assert not f7(study()).measured
    assert "no eviction was refused" in f7(study([mark(1, Kind.EVICTED, "a/x-0")])).answer
