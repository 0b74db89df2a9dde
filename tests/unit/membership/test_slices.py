from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from edgekeeper.membership.slices import Endpoint, Slice, Wanted, members, read
from edgekeeper.model.backend import Member

DNS = Wanted("dns")
PORTS = (("dns", 5353),)


def of(*endpoints: Endpoint, name: str = "s-1", kind: str = "IPv4", ports: tuple[tuple[str, int | None], ...] = PORTS) -> Slice:
    return Slice(name, kind, ports, endpoints)


def end(last: int, name: str = "", **how: bool) -> Endpoint:
    return Endpoint(f"192.0.2.{last}", name, **how)


def hosts(*slices: Slice, wanted: Wanted = DNS) -> list[str]:
    return [m.address for m in members(slices, wanted)[0]]


def wire(ready: bool | None = None, serving: bool | None = None, terminating: bool | None = None, **more: Any) -> SimpleNamespace:
    conditions = SimpleNamespace(ready=ready, serving=serving, terminating=terminating)
    said: dict[str, Any] = {"addresses": ["192.0.2.1", "192.0.2.99"], "conditions": conditions, "targetRef": None, "hostname": None}
    return SimpleNamespace(**{**said, **more})


def sent(endpoints: list[SimpleNamespace] | None, ports: list[SimpleNamespace] | None = None) -> SimpleNamespace:
    return SimpleNamespace(metadata=SimpleNamespace(name="s-1"), addressType="IPv4", ports=ports, endpoints=endpoints)


def test_only_ready_ones_and_the_serving_ones_while_none_is_ready() -> None:
    leaving = end(3, ready=False, terminating=True)
    found, notes = members([of(end(1), end(2, ready=False, serving=False), leaving)], DNS)
    assert (found, notes) == ((Member("", "192.0.2.1", 5353),), ())
    found, notes = members([of(end(2, ready=False, serving=False), leaving)], DNS)
    assert [m.host for m in found] == ["192.0.2.3"]
    assert notes == ("none of 2 endpoints is ready; the 1 that still serves is used",)


def test_who_terminates_and_does_not_serve_is_never_a_member() -> None:
    gone = end(1, ready=True, serving=False, terminating=True)  # publishNotReadyAddresses calls it ready
    assert hosts(of(gone)) == []
    assert members([of(gone)], DNS)[1] == ("the only endpoint is not ready, and none serves",)


@pytest.mark.parametrize(
    ("conditions", "means"),
    [
        ({}, (True, True, False)),
        ({"ready": False}, (False, False, False)),
        ({"ready": False, "serving": True, "terminating": True}, (False, True, True)),
        ({"terminating": True}, (False, False, True)),
        ({"ready": True, "serving": False}, (True, False, False)),
    ],
)
def test_conditions_that_are_not_said_count_as_the_api_has_it(conditions: dict[str, bool], means: tuple[bool, bool, bool]) -> None:
    (found,) = read(sent([wire(**conditions)])).endpoints
    assert (found.address, (found.ready, found.serving, found.terminating)) == ("192.0.2.1", means)
    (found,) = read(sent([wire()])).endpoints
    assert found == read(sent([wire(conditions=None)])).endpoints[0]


@pytest.mark.parametrize("endpoints", [None, [], [wire(addresses=None)], [wire(addresses=[])]], ids=["null", "none", "no addresses", "empty"])
def test_a_slice_without_endpoints_is_read_however_that_is_sent(endpoints: list[SimpleNamespace] | None) -> None:
    assert read(sent(endpoints)) == Slice("s-1", "IPv4")


@pytest.mark.parametrize(
    ("target", "hostname", "name"),
    [("resolver-7d9-abcde", "ns-a", "resolver-7d9-abcde"), (None, "ns-a", "ns-a"), (None, None, ""), ("", "", ""), ("x" * 64, None, ""), ('a"; os', None, "")],
)
def test_the_name_is_the_pods_else_the_hostname_and_none_where_it_could_not_be_a_nodes(target: str | None, hostname: str | None, name: str) -> None:
    reference = SimpleNamespace(name=target) if target is not None else None
    assert read(sent([wire(targetRef=reference, hostname=hostname)])).endpoints[0].name == name


def test_all_slices_of_a_service_are_one_set() -> None:
    six = Slice("s-6", "IPv6", PORTS, (Endpoint("2001:db8:0::3", "c"),))
    found = members([of(end(2, "b"), end(1, "a")), of(end(2, "b"), name="s-2", ports=(("dns", 53),)), six, of(end(1, "a"), name="s-3")], DNS)[0]
    # b answers on two ports: neither address is "b" then.
    assert found == (Member("", "192.0.2.2", 53), Member("", "192.0.2.2", 5353), Member("a", "192.0.2.1", 5353), Member("c", "2001:db8::3", 5353))


def test_a_pod_with_two_families_is_two_members_of_which_none_has_its_name() -> None:
    found = members([of(end(1, "a")), Slice("s-6", "IPv6", PORTS, (Endpoint("2001:db8::1", "a"),))], DNS)[0]
    assert found == (Member("", "192.0.2.1", 5353), Member("", "2001:db8::1", 5353))


@pytest.mark.parametrize(
    ("ports", "wanted", "port"),
    [
        ((("dns", 5353), ("metrics", 9153)), DNS, 5353),
        ((("dns-tcp", 53), ("dns-udp", 53)), DNS, 53),
        ((("", 53),), Wanted(), 53),
        ((("dns", 53), ("metrics", 9153)), Wanted(), None),
        ((("metrics", 9153),), Wanted("dns", said=True), None),
        ((("metrics", 9153),), Wanted("dns", said=True, fallback=5300), 5300),
        ((), Wanted("dns", fallback=5300), 5300),
        ((("dns", None),), DNS, None),
        ((("dns", None),), Wanted("dns", fallback=5300), 5300),
        ((), DNS, None),
        ((("dns", 70000),), DNS, None),
        ((("dns", -1),), Wanted("dns", fallback=5300), None),
        ((("", 0),), Wanted(), None),
        ((("", 65535),), Wanted(), 65535),
    ],
)
def test_the_port_by_its_name_else_the_fallback_else_the_only_one(ports: tuple[tuple[str, int | None], ...], wanted: Wanted, port: int | None) -> None:
    found, notes = members([of(end(1), ports=ports)], wanted)
    assert [m.port for m in found] == ([port] if port is not None else [])
    assert bool(notes) is (port is None)


def test_what_is_left_out_is_told() -> None:
    odd = Slice("s-f", "FQDN", PORTS, (Endpoint("ns.example"),))
    assert members([odd, of(Endpoint("192.0.2.x"), end(1)), of(name="s-2", ports=())], DNS) == (
        (Member("", "192.0.2.1", 5353),),
        (
            "an endpoint of slice s-1 is left out: '192.0.2.x' is no address",
            "slice s-f is left out: its endpoints are host names, which no engine here is given",
        ),
    )
    told = members([of(end(1), ports=(("metrics", 9153), ("web", 80)))], DNS)[1]
    assert told == ("slice s-1 is left out: it has no port dns (it has: metrics, web); name one in port, or say fallback_port",)
    assert members([], DNS) == ((), ("it has no EndpointSlice",))


flags = st.booleans()
endpoints = st.builds(Endpoint, st.sampled_from(["192.0.2.1", "192.0.2.2", "2001:db8::1", "no address"]), st.sampled_from(["", "a", "b"]), flags, flags, flags)
slices = st.builds(
    Slice, st.sampled_from("abc"), st.sampled_from(["IPv4", "FQDN"]), st.sampled_from([PORTS, (), (("x", 1),)]), st.lists(endpoints, max_size=4).map(tuple)
)


@settings(max_examples=60, deadline=None)
@given(st.lists(slices, max_size=4))
def test_whatever_is_sent_members_are_there_once_and_ready_ones_come_first(found: list[Slice]) -> None:
    made, _ = members(found, DNS)
    assert len({m.address for m in made}) == len(made)
    names = [m.name for m in made if m.name]
    assert len(set(names)) == len(names)
    of_address = {m.host: [e for s in found for e in s.endpoints if e.address == m.host] for m in made}
    for known in of_address.values():
        assert any(e.ready or e.serving for e in known)
    if any(all(e.ready is False for e in known) for known in of_address.values()):
        usable = [e for s in found if s.kind != "FQDN" and s.ports for e in s.endpoints if e.address != "no address"]
        assert not any(e.ready and (e.serving or not e.terminating) for e in usable)
