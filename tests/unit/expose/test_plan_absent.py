"""What a pass decides for hosts that are not wanted any more, with the names of the accidents that it prevents."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgekeeper.expose.brake import Absence, Limits, Memory, dump, load
from edgekeeper.expose.kinds import Service, Wishes

from .planned import SETTING, asking, at, kinds, made, passes, run, wish, wishes

# what is not wanted any more ------------------------------------------------------------------


def test_s2_an_empty_list_deletes_nothing_ever():
    services = [made(f"{i}.example") for i in range(20)]
    done, there = passes(Wishes({}), services, count=100)
    assert done == []
    assert len(there) == 20
    assert (
        "nothing at all is wanted"
        in run(Wishes({}), services, run(Wishes({}), services).memory, now=99999, lists=99, setting=replace(SETTING, limits=Limits(1, 0, 0))).refused
    )


def test_s2b_sources_that_are_not_known_delete_nothing():
    services = [made(f"{i}.example") for i in range(20)]
    memory = Memory()
    for i in range(50):
        done = run(wishes("0.example"), services, memory, now=i * 60, lists=i, whole=False, why="503")
        memory = done.memory
        assert done.actions == ()
    assert memory.absent == {}


def test_a_stale_view_deletes_nothing():
    services = [made(f"{i}.example") for i in range(20)]
    first = run(wishes(*[f"{i}.example" for i in range(19)]), services, now=0)
    done = run(
        wishes(*[f"{i}.example" for i in range(19)]), services, first.memory, now=9999, lists=9, stale_s=61, setting=replace(SETTING, limits=Limits(1, 0, 0))
    )
    assert done.actions == ()


def test_s2c_a_label_lost_on_nineteen_of_twenty_is_refused_whole():
    services = [made(f"{i}.example") for i in range(20)]
    done, there = passes(wishes("0.example"), services, count=100)
    assert done == []
    assert all(service.raw["enabled"] for service in there.values())


def test_labels_that_come_back_one_after_the_other_never_cost_the_last_ones():
    services = [made(f"{i}.example") for i in range(20)]
    memory = Memory()
    for i in range(30):
        memory = run(wishes("0.example"), services, memory, now=i * 60, lists=i + 1, first=i == 0).memory
    for back in range(2, 21):  # far quicker than any grace
        done = run(wishes(*[f"{i}.example" for i in range(back)]), services, memory, now=1800 + back, lists=50 + back)
        memory = load(dump(done.memory))
        assert done.actions == (), back


def test_one_that_stays_away_after_a_refusal_leaves_after_another_grace():
    services = [made(f"{i}.example") for i in range(20)]
    memory = Memory()
    for i in range(30):
        memory = run(wishes("0.example"), services, memory, now=i * 60, lists=i + 1, first=i == 0).memory
    wanted = wishes(*[f"{i}.example" for i in range(19)])
    went = None
    for i in range(30):
        done = run(wanted, services, memory, now=1800 + i * 60, lists=100 + i)
        memory = done.memory
        if done.actions:
            went = i * 60
            break
    assert went is not None
    assert went >= 300
    assert kinds(done) == [("disable", "19.example")]


def test_one_host_that_goes_is_disabled_after_its_grace_and_deleted_later():
    services = [made(f"{i}.example") for i in range(20)]
    done, there = passes(wishes(*[f"{i}.example" for i in range(1, 20)]), services)
    assert [(kind, host) for _, kind, host in done] == [("disable", "0.example"), ("delete", "0.example")]
    (off, _, _), (gone, _, _) = done
    assert off * 60 >= 300
    assert (gone - off) * 60 >= 600
    assert "0.example" not in there


def test_three_may_go_at_once_however_few_there_are():
    done, _ = passes(wishes("3.example"), [made(f"{i}.example") for i in range(4)], count=7)
    assert sorted(host for _, kind, host in done) == ["0.example", "1.example", "2.example"]


def test_those_that_are_disabled_count_for_the_brake_too():
    services = [made(f"{i}.example", leaving=i < 3) for i in range(10)]
    wanted = wishes(*[f"{i}.example" for i in range(4, 10)])
    memory = run(wanted, services).memory
    for i in range(2, 9):
        done = run(wanted, services, memory, now=i * 60, lists=i)
        memory = done.memory
    assert "disable" not in {kind for kind, _ in kinds(done)}
    assert "4 of 10" in done.refused


def test_a_host_that_comes_back_is_switched_on_again_and_its_next_absence_begins_anew():
    services = [made(f"{i}.example", leaving=i == 0) for i in range(20)]
    done = run(wishes(*[f"{i}.example" for i in range(20)]), services, run(wishes("1.example"), services).memory)
    assert kinds(done) == [("return", "0.example")]
    assert done.actions[0].body["enabled"] is True
    assert "leaving" not in done.actions[0].body["name"]
    assert "0.example" not in done.memory.absent


def test_why_a_list_did_not_count_is_told_with_each_host_that_waits_for_it():
    services = [made(f"{i}.example") for i in range(20)]
    done = run(wishes(*[f"{i}.example" for i in range(1, 20)]), services, relisted="Ingress: 403")
    assert "the last list that was asked for did not count: Ingress: 403" in done.held[0].why


def test_the_same_list_twice_counts_once():
    services = [made(f"{i}.example") for i in range(20)]
    wanted, memory = wishes(*[f"{i}.example" for i in range(1, 20)]), Memory()
    for i in range(50):
        done = run(wanted, services, memory, now=i * 60, lists=7)
        memory = done.memory
        assert done.actions == ()
    assert "absent from 1 of 3" in done.held[0].why


def test_the_first_pass_after_a_start_takes_nothing_away():
    services = [made(f"{i}.example", leaving=i == 0) for i in range(20)]
    wanted = wishes(*[f"{i}.example" for i in range(2, 20)])
    memory = Memory()
    for i in range(60):
        memory = run(wanted, services, memory, now=i * 60, lists=i + 1, first=True).memory
    assert run(wanted, services, memory, now=9999, lists=99, first=True).actions == ()
    assert run(wanted, services, memory, now=9999, lists=99).actions != ()


@pytest.mark.parametrize("policy", ["upsert-only", "create-only"])
def test_policies_that_delete_nothing(policy):
    services = [made(f"{i}.example", leaving=i == 0) for i in range(20)]
    done, _ = passes(wishes(*[f"{i}.example" for i in range(2, 20)]), services, setting=replace(SETTING, policy=policy))
    assert done == []


def test_an_object_that_asked_to_keep_is_kept_when_it_is_gone():
    done, there = passes(wishes(*[f"{i}.example" for i in range(1, 20)]), [made("0.example", keep=True), *[made(f"{i}.example") for i in range(1, 20)]])
    assert done == []
    assert "0.example" in there


def test_objects_that_asked_for_it_are_not_counted_by_the_brake():
    done, _ = passes(wishes("0.example"), [made(f"{i}.example", force=i > 0) for i in range(10)], count=40)
    # their marks stay as they are in the services, wanted ones lose the word
    assert sorted(host for _, kind, host in done if kind == "delete") == [f"{i}.example" for i in range(1, 10)]


def test_an_object_whose_class_has_lost_its_target_in_the_config_is_not_gone():
    services = [made(f"{i}.example") for i in range(20)]
    wanted = Wishes({f"{i}.example": wish(f"{i}.example") for i in range(1, 20)}, asked=frozenset({"0.example"}))
    done, _ = passes(wanted, services)
    assert done == []
    assert [(held.host, held.state) for held in run(wanted, services).held] == [("0.example", "no-target")]


def test_a_kind_that_the_cluster_does_not_have_now_deletes_nothing():
    services = [made(f"{i}.example") for i in range(20)]
    wanted, memory = wishes(*[f"{i}.example" for i in range(1, 20)]), Memory()
    for i in range(60):
        done = run(wanted, services, memory, now=i * 60, lists=i, absent=("Ingress",))
        memory = done.memory
        assert done.actions == ()


def test_force_does_it_now_but_still_in_two_steps():
    services = [made(f"{i}.example") for i in range(20)]
    done = run(Wishes({}), services, setting=replace(SETTING, force=True), first=True)
    assert {kind for kind, _ in kinds(done)} == {"disable"}
    assert len(done.actions) == 20
    off = [made(f"{i}.example", leaving=True) for i in range(20)]
    assert {kind for kind, _ in kinds(run(Wishes({}), off, setting=replace(SETTING, force=True)))} == {"delete"}


HOSTS = [f"{i}.example" for i in range(6)]
VIEWS = st.lists(st.tuples(st.sets(st.sampled_from(HOSTS)), st.sampled_from([True, True, False]), st.floats(0, 400)), min_size=1, max_size=15)


@given(VIEWS)
def test_whatever_the_sources_say_nothing_goes_that_was_wanted_within_the_grace(seen):
    """And what is not ours stays byte for byte, a delete is always of a disabled one, and memory over a restart changes nothing."""
    memory, now = Memory(), 0.0
    there = {service.host: service for service in [*[made(host) for host in HOSTS], made("other.example", owner="else"), made("hand.example", name="x")]}
    others = {host: there[host] for host in ("other.example", "hand.example")}
    wanted_at = dict.fromkeys(HOSTS, 0.0)
    off_at: dict[str, float] = {}
    for i, (hosts, whole, later) in enumerate(seen):
        now += later
        wanted_at.update(dict.fromkeys(hosts, now))
        before = dict(there)
        done = run(wishes(*hosts), there.values(), memory, now=now, lists=i, whole=whole, first=i == 0)
        memory = load(dump(done.memory)) if i % 3 == 2 else done.memory
        going = [action for action in done.actions if action.kind == "disable"]
        leaving = {host for host, service in before.items() if service.name.endswith(":leaving")} - hosts
        assert not going or len(going) + len(leaving) <= max(3, 0.3 * sum(1 for host in before if host in HOSTS))
        for action in done.actions:
            if action.kind == "disable":
                assert whole
                assert now - wanted_at[action.host] >= 300 or (wanted_at[action.host] == 0.0 and now >= 300)
                off_at[action.host] = now
            if action.kind == "delete":
                assert before[action.host].raw["enabled"] is False
                assert now - off_at[action.host] >= 600
                assert hosts
                del there[action.host]
            else:
                there[action.host] = Service("id", action.host, action.body["name"], dict(action.body))
        assert {host: there[host] for host in others} == others


def test_a_service_that_was_switched_off_by_hand_is_not_written_again_when_its_object_goes():
    done = [kind for _, kind, _ in passes(wishes("b.example"), [made("a.example", enabled=False), made("b.example")])[0]]
    assert done == ["delete"]  # the mesh routes a service at each write that leaves it disabled


def test_many_that_were_switched_off_by_hand_are_held_back_like_others():
    services = [made(f"{i}.example", enabled=i > 8) for i in range(20)]
    assert passes(wishes(*(f"{i}.example" for i in range(9, 20))), services)[0] == []


def test_a_service_that_is_on_again_is_disabled_before_it_is_deleted():
    service = made("a.example", leaving=True, enabled=True)
    done = [kind for _, kind, _ in passes(wishes("b.example"), [service, made("b.example")], count=12)[0]]
    assert done == ["disable"]


def test_two_edgekeepers_do_not_adopt_from_one_another_by_annotation_for_ever():
    done = asking(wishes("a.example", adopt=True), [made("a.example", owner="other")])
    assert kinds(done) == []
    assert [held.state for held in done.held] == ["conflict"]
    by_a_person = run(wishes("a.example"), [made("a.example", owner="other")], setting=replace(SETTING, adopt=frozenset({"a.example"})))
    assert kinds(by_a_person) == [("adopt", "a.example")]


@pytest.mark.parametrize("turn", [1, -1])
def test_a_foreign_service_whose_host_differs_in_capitals_hides_none_of_ours(turn):
    other = replace(made("a.example", owner="other"), host="A.example", id="id-other")
    done = run(wishes("a.example"), [made("a.example"), other][::turn])
    assert (done.right, done.own, done.foreign) == (("a.example",), 1, 1)


@pytest.mark.parametrize("odd", [{"targets": 5}, {"targets": [None]}, {"targets": [{"options": [1]}]}, {"access_restrictions": [1]}])
def test_a_service_of_a_form_that_is_not_understood_is_left_alone_and_stops_no_other(odd):
    done = run(wishes("a.example", "b.example", allowed_cidrs=("192.0.2.0/24",)), [made("a.example", **odd)])
    assert kinds(done) == [("create", "b.example")]
    assert [(held.host, held.state) for held in done.held] == [("a.example", "held")]


def test_services_that_are_disabled_for_long_enough_go_however_many_they_are():
    services = [*(made(f"{i}.example", leaving=True) for i in range(6)), *(made(f"w{i}.example") for i in range(4))]
    absent = {f"{i}.example": Absence(at(0), 9, at(0)) for i in range(6)}
    done = run(wishes(*(f"w{i}.example" for i in range(4))), services, Memory(absent), now=601)
    assert (kinds(done), done.refused) == ([("delete", f"{i}.example") for i in range(6)], None)
    more = run(wishes(*(f"w{i}.example" for i in range(3))), services, Memory({**absent, "w3.example": Absence(at(0), 9)}), now=601)
    assert (more.actions, more.refused is not None) == ((), True)  # but one more that is disabled now is one too many


def test_a_service_that_is_leaving_waits_for_its_time_only():
    absent = {"a.example": Absence(at(601), 1, at(0))}  # its lists are counted anew, after a file that could not be read, say
    done = run(wishes("b.example"), [made("a.example", leaving=True), made("b.example")], Memory(absent, 1), now=601)
    assert kinds(done) == [("delete", "a.example")]
