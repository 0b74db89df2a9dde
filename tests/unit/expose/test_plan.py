"""The decisions of a pass, with the names of the accidents that they prevent."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgekeeper.expose import body
from edgekeeper.expose.brake import Limits, Memory, dump, load
from edgekeeper.expose.kinds import Anchor, Footing, Options, Origin, Place, Service, Snapshot, Wish, Wishes
from edgekeeper.expose.mark import Mark
from edgekeeper.expose.plan import Setting, plan
from edgekeeper.model.moment import Moment

SETTING = Setting("home", "a", limits=Limits(absent_lists=3, grace_s=300, disabled_s=600))
PLACES = {"default": Place("10.96.0.10", 443)}
FOOTING = Footing({"10.96.0.10": Anchor("res-1", "subnet")}, frozenset({"res-1"}))


def at(seconds: float) -> Moment:
    return Moment(1_000_000 + seconds, seconds, "boot", seconds)


def wish(host: str, name: str = "", **options) -> Wish:
    return Wish(host, Origin("Ingress", "shop", name or host), "default", Options(**options))


def wishes(*hosts: str, **options) -> Wishes:
    return Wishes({host: wish(host, **options) for host in hosts})


def made(host: str, owner: str = "home", cluster: str = "a", *, leaving: bool = False, **more) -> Service:
    mark = Mark.of(owner, cluster, Origin("Ingress", "shop", host), keep=more.pop("keep", False), force=more.pop("force", False))
    name = (mark.gone() if leaving else mark).text
    raw = body.fresh(host, name, Options(), PLACES["default"], FOOTING.by_address["10.96.0.10"], listen_port=443, proxy_protocol=True)
    raw |= {"id": f"id-{host}", "enabled": not leaving, **more}
    return Service(f"id-{host}", host, str(raw["name"]), raw)


def view(lists: int = 1, **more) -> Snapshot:
    return Snapshot((), PLACES, lists, **{"whole": True, **more})


FRESH = Memory()


def run(wanted: Wishes, services=(), memory=FRESH, *, now=0.0, first=False, lists=1, setting=SETTING, footing=FOOTING, places=PLACES, **seen):
    return plan(view(lists, **seen), wanted, places, footing, list(services), memory, setting, at(now), first=first)


def asking(wanted: Wishes, services):
    """With annotations that may adopt."""
    return run(wanted, services, setting=replace(SETTING, adopt_asked=True))


def kinds(done) -> list[tuple[str, str]]:
    return [(action.kind, action.host) for action in done.actions]


def passes(wanted: Wishes, services, *, each=60.0, count=60, setting=SETTING):
    """So many passes, each with a full list, the services as the plans leave them; all that was done, in order."""
    memory, out, there = Memory(), [], {service.host: service for service in services}
    for i in range(count):
        done = run(wanted, there.values(), memory, now=i * each, lists=i + 1, first=i == 0, setting=setting)
        memory = done.memory
        for action in done.actions:
            out.append((i, action.kind, action.host))
            if action.kind == "delete":
                del there[action.host]
            else:
                there[action.host] = Service(action.service.id, action.host, action.body["name"], dict(action.body))
    return out, there


# what is wanted -------------------------------------------------------------------------------


def test_s1_fresh_each_host_is_created_and_then_nothing_is_written():
    done = run(wishes("a.example", "b.example"), first=True)
    assert kinds(done) == [("create", "a.example"), ("create", "b.example")]
    there = [Service("x", action.host, action.body["name"], {**action.body, "id": "x", "meta": {}}) for action in done.actions]
    again = run(wishes("a.example", "b.example"), there)
    assert again.actions == ()
    assert again.right == ("a.example", "b.example")


def test_s4_an_allow_list_of_the_dashboard_survives_a_changed_target():
    limits = {"allowed_cidrs": ["192.0.2.0/24"]}
    service = made("a.example", access_restrictions=limits)
    places, footing = {"default": Place("10.96.0.99", 443)}, Footing({"10.96.0.99": Anchor("res-1", "subnet")}, frozenset({"res-1"}))
    done = run(wishes("a.example"), [service], places=places, footing=footing)
    assert kinds(done) == [("update", "a.example")]
    assert done.actions[0].body["access_restrictions"] == limits


def test_s6_two_clusters_leave_each_others_services_alone():
    theirs = [made("a.example", cluster="b"), made("b.example", cluster="b")]
    done = run(wishes("c.example"), theirs, Memory(passes=5), now=9999)
    assert kinds(done) == [("create", "c.example")]
    conflict = run(wishes("a.example"), theirs)
    assert conflict.actions == ()
    assert [(held.host, held.state) for held in conflict.held] == [("a.example", "conflict")]
    assert "home/b" in conflict.held[0].why
    assert [remark.reason for remark in conflict.remarks] == ["Conflict"]


def test_s7_a_service_made_by_hand_is_never_touched():
    by_hand = made("a.example", name="my own")
    for first in (True, False):
        assert run(Wishes({}), [by_hand], Memory(passes=99), now=99999, lists=99, first=first).actions == ()
    wanted = run(wishes("a.example"), [by_hand])
    assert wanted.actions == ()
    assert wanted.held[0].state == "conflict"


def test_s8_a_deleted_network_is_repaired_by_pointing_services_at_the_new_resource():
    footing = Footing({"10.96.0.10": Anchor("res-2", "subnet")}, frozenset({"res-2"}))
    done = run(wishes("a.example"), [made("a.example")], footing=footing)
    assert kinds(done) == [("repair", "a.example")]
    assert done.actions[0].body["targets"][0]["target_id"] == "res-2"
    assert "res-1" in done.actions[0].why


def test_s10_a_mode_is_not_changed_by_put():
    service = made("a.example", mode="http")
    done = run(wishes("a.example"), [service])
    assert done.actions == ()
    assert done.held[0].state == "conflict"
    asked = run(wishes("a.example"), [service], setting=replace(SETTING, adopt=frozenset({"a.example"})))
    assert kinds(asked) == [("migrate", "a.example")]


def test_an_annotation_adopts_what_is_in_tls_mode_only():
    run = asking
    assert kinds(run(wishes("a.example", adopt=True), [made("a.example", name="my own")])) == [("adopt", "a.example")]
    assert run(wishes("a.example", adopt=True), [made("a.example", name="my own", mode="http")]).actions == ()


def test_what_an_interrupted_migration_has_deleted_is_made_anew_with_what_was_set():
    raw = dict(made("a.example", name="old", mode="http", access_restrictions={"allowed_cidrs": ["192.0.2.0/24"]}, auth={"pin_auth": {"enabled": True}}).raw)
    done = plan(view(), wishes("a.example"), PLACES, FOOTING, [], FRESH, SETTING, at(0), first=True, moving={"a.example": raw})
    assert kinds(done) == [("create", "a.example")]
    found = done.actions[0].body
    assert (found["mode"], found["domain"], found["auth"]) == ("tls", "a.example", {})
    assert found["access_restrictions"] == {"allowed_cidrs": ["192.0.2.0/24"]}
    assert found["name"].startswith("edgekeeper:home/a:")


def test_an_annotation_adopts_only_where_the_config_lets_it_and_a_file_of_the_operator_may():
    assert run(wishes("a.example", adopt=True), [made("a.example", name="my own")]).held[0].state == "conflict"
    written = Wishes({"a.example": Wish("a.example", Origin("File", "", "hosts.yaml"), "default", Options(adopt=True))})
    assert kinds(run(written, [made("a.example", name="my own")])) == [("adopt", "a.example")]


def test_adopting_keeps_restrictions():
    run = asking
    limits = {"allowed_cidrs": ["192.0.2.0/24"]}
    done = run(wishes("a.example", adopt=True), [made("a.example", name="my own", access_restrictions=limits)])
    assert done.actions[0].body["access_restrictions"] == limits


def test_an_object_that_cannot_be_understood_changes_nothing():
    held = wishes("a.example", hold="its allow list cannot be read")
    for services in ([], [made("a.example", listen_port=1)]):
        done = run(held, services)
        assert done.actions == ()
        assert done.held[0].state == "held"


def test_a_host_switched_off_by_hand_is_told_and_not_fought():
    done = run(wishes("a.example"), [made("a.example", enabled=False)])
    assert done.actions == ()
    assert done.held[0].state == "disabled"


def test_a_disabled_service_is_not_written_at_all_since_the_mesh_would_route_it():
    for more in ({"listen_port": 1}, {"name": "my own"}):
        done = asking(wishes("a.example", adopt=True), [made("a.example", enabled=False, **more)])
        assert done.actions == ()
        assert done.held[0].state == "disabled"


def test_an_unknown_target_holds_its_hosts_and_no_others():
    other = Wish("b.example", Origin("Ingress", "shop", "b"), "traefik", Options())
    done = run(Wishes({"a.example": wish("a.example"), "b.example": other}))
    assert kinds(done) == [("create", "a.example")]
    assert [(held.host, held.state) for held in done.held] == [("b.example", "no-target")]


def test_a_place_without_a_resource_holds():
    done = run(wishes("a.example"), footing=Footing({}, frozenset(), "the group routers is missing"))
    assert done.held[0].state == "no-resource"
    assert "the group routers is missing" in done.held[0].why


def test_create_only_changes_nothing_that_is_there():
    setting = replace(SETTING, policy="create-only")
    done = run(wishes("a.example", "b.example"), [made("a.example", listen_port=1)], setting=setting)
    assert kinds(done) == [("create", "b.example")]
    assert done.held[0].state == "drift"


def test_a_terminated_service_is_left():
    assert run(wishes("a.example"), [made("a.example", terminated=True, listen_port=1)]).held[0].state == "terminated"


def test_the_host_of_a_service_is_compared_as_the_proxy_does():
    service = made("a.example")
    assert run(wishes("a.example"), [Service(service.id, "A.Example.", service.name, {**service.raw, "domain": "A.Example."})]).actions == ()


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
    done = run(wishes("a.example", adopt=True), [made("a.example", owner="other")])
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
