"""What a pass decides for hosts that are wanted, with the names of the accidents that it prevents."""

from dataclasses import replace

from edgekeeper.expose.brake import Absence, Memory
from edgekeeper.expose.kinds import Anchor, Footing, Options, Origin, Place, Remark, Service, Wish, Wishes
from edgekeeper.expose.plan import only, plan

from .planned import FOOTING, FRESH, PLACES, SETTING, asking, at, kinds, made, run, view, wish, wishes

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
    assert "mode: http to tls" in asked.actions[0].why


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
    assert "name: my own to edgekeeper:home/a:" in done.actions[0].why  # who is asked for a yes sees what would change
    assert "access_restrictions" not in done.actions[0].why


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


def test_the_part_of_a_plan_is_about_its_hosts_and_says_nothing_of_others():
    services = [made(f"{i}.example") for i in range(9)]
    wanted = Wishes({"a.example": wish("a.example"), "b.example": wish("b.example", hold="x")}, (Remark(wish("b.example").origin, "BadHost", "x"),))
    whole = run(wanted, services, Memory({f"{i}.example": Absence(at(0), 9) for i in range(9)}), now=9999)
    part = only(whole, {"a.example"})
    assert whole.refused is not None
    assert (kinds(part), part.held, part.remarks, part.refused) == ([("create", "a.example")], (), (), None)
    assert [held.host for held in only(whole, {"b.example"}).held] == ["b.example"]
    assert len(only(whole, {"b.example"}).remarks) == 1
