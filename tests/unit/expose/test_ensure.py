"""Networks, resources and routers: what is there and what is wanted, to steps that end."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from edgekeeper.expose.ensure import Known, Seen, Want, choose, decide, prefix
from edgekeeper.expose.netbird_say import Group, Network, Resource, Router

WANT = Want("home/default", "edgekeeper", "targets", "198.51.100.0/24", ("198.51.100.10", "192.0.2.9"), "routers")
OURS, THEIRS = "edgekeeper:home/default", "edgekeeper:home/other"


@pytest.mark.parametrize(
    ("one", "other"),
    [("198.51.100.4/24", "198.51.100.0/24"), ("192.0.2.9", "192.0.2.9/32"), ("2001:DB8::A", "2001:db8:0::a/128"), (" 192.0.2.0/24 ", "192.0.2.0/24")],
)
def test_addresses_are_compared_by_their_meaning(one: str, other: str) -> None:
    assert prefix(one) == prefix(other) is not None


def test_a_name_is_no_address() -> None:
    assert prefix("*.example.org") is None


def test_each_address_outside_the_network_of_services_needs_a_resource_of_its_own() -> None:
    assert {name: str(net) for name, net in WANT.needs().items()} == {"targets": "198.51.100.0/24", "targets-192.0.2.9": "192.0.2.9/32"}


def test_the_network_is_the_known_one_then_ours_then_the_oldest_and_never_anothers() -> None:
    a, b, c = Network("a", "edgekeeper"), Network("b", "edgekeeper", OURS), Network("c", "edgekeeper", THEIRS)
    assert choose((c, a, b), WANT, Known("a"))[0] == a
    assert choose((c, a, b), WANT, Known())[0] == b
    assert choose((c, a), WANT, Known())[0] == a
    network, why, _ = choose((c,), WANT, Known())
    assert network is None
    assert "belongs to edgekeeper home/other" in why
    assert choose((Network("d", "other"),), WANT, Known()) == (None, "", ())


def test_a_resource_that_is_right_is_not_written_also_when_it_is_switched_off() -> None:
    there = Resource("r", "targets", "198.51.100.0/24", "subnet", enabled=False, description=OURS)
    found = decide(Seen(Network("n", "edgekeeper", OURS), (there,), (Router("x", groups=("g",)),), Group("g", "routers", 1)), WANT, Known())
    assert [step.act for step in found.steps] == ["make resource"], "the other one"
    assert found.used == {"targets": there}
    assert found.remarks == ("resource targets is switched off in the mesh; hosts behind it do not answer until it is on",)


def test_a_resource_that_another_edgekeeper_made_is_left_alone_also_in_a_network_that_both_use() -> None:
    theirs = Resource("r", "targets", "198.51.100.0/24", "subnet", description=THEIRS)
    found = decide(Seen(Network("n", "edgekeeper"), (theirs,)), WANT, Known())
    assert "targets" not in found.used
    assert "belongs to edgekeeper home/other" in found.lacking["targets"]


@pytest.mark.parametrize(("mark", "acts"), [(OURS, ["change router"]), ("", []), (THEIRS, [])])
def test_a_router_is_set_right_only_in_a_network_of_ours(mark: str, acts: list[str]) -> None:
    router = Router("x", groups=("g",), metric=5, raw={"id": "x", "peer_groups": ["g"], "metric": 5, "masquerade": True, "enabled": True, "future": 1})
    found = decide(Seen(Network("n", "edgekeeper", mark), (), (router,), Group("g", "routers", 1)), WANT, Known())
    changes = [step for step in found.steps if "router" in step.act]
    assert [step.act for step in changes] == acts
    assert bool(found.remarks) == (not acts)
    if changes:
        assert changes[0].body == {"peer_groups": ["g"], "metric": 9999, "masquerade": True, "enabled": True, "future": 1}


def made(seen: Seen, act: str, body: Any, number: int, rid: str) -> Seen:
    """What the server has after a step."""
    match act:
        case "make network":
            return Seen(Network(f"n{number}", body["name"], body["description"]), seen.resources, seen.routers, seen.group)
        case "make resource" | "change resource":
            kind = "host" if body["address"].endswith(("/32", "/128")) else "subnet"
            new = Resource(rid or f"r{number}", body["name"], body["address"], kind, description=body.get("description", ""), raw=body)
            return Seen(seen.network, (*(one for one in seen.resources if one.id != rid), new), seen.routers, seen.group)
        case _:
            new_router = Router(rid or f"x{number}", groups=tuple(body["peer_groups"]), metric=body["metric"], masquerade=body["masquerade"], raw=body)
            return Seen(seen.network, seen.resources, (*(one for one in seen.routers if one.id != rid), new_router), seen.group)


RESOURCES = st.builds(
    lambda number, name, address, mark, on: Resource(
        f"r-{number}", name, address, "subnet", on, mark, raw={"name": name, "address": address, "description": mark, "enabled": on}
    ),
    st.integers(0, 9),
    st.sampled_from(["targets", "targets-192.0.2.9", "else"]),
    st.sampled_from(["198.51.100.0/24", "198.51.100.9/24", "203.0.113.0/24", "192.0.2.9/32", "a.example"]),
    st.sampled_from([OURS, "", "by hand"]),
    st.booleans(),
)


@settings(max_examples=25)
@given(
    st.lists(RESOURCES, max_size=4, unique_by=(lambda one: one.id, lambda one: one.name)),
    st.sampled_from([None, Group("g", "routers", 1)]),
    st.sampled_from([(), (Router("x", groups=("g",), metric=5, raw={"peer_groups": ["g"], "metric": 5, "masquerade": True}),), (Router("y", peer="p"),)]),
)
def test_steps_end_and_each_need_is_met_or_its_lack_explained(resources: list[Resource], group: Group | None, routers: tuple[Router, ...]) -> None:
    seen = Seen(Network("n", "edgekeeper", OURS), tuple(resources), routers, group)
    for number in range(5):
        found = decide(seen, WANT, Known())
        if not found.steps:
            break
        for step in found.steps:
            assert step.why
            seen = made(seen, step.act, step.body, number, step.id)
    else:
        pytest.fail(f"it never ends: {found.steps}")
    for name, net in WANT.needs().items():
        assert (name in found.used and prefix(found.used[name].address) == net) or found.lacking[name]
