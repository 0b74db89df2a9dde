"""What the targets stand on: made once, never written while it is right, repaired when somebody has taken it away."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from edgekeeper.errors import MissingError
from edgekeeper.expose.infrastructure import FILE, GLANCE_S, LOOK_S, Infrastructure
from edgekeeper.expose.kinds import Footing
from edgekeeper.expose.netbird_say import ApiError

from .meshed import Mesh

CIDR = "198.51.100.0/24"
VIP, FAR = "198.51.100.10", "192.0.2.9"


@pytest.fixture
def mesh() -> Mesh:
    return Mesh()


def ensure(it: Infrastructure, *addresses: str, cidr: str | None = CIDR) -> Footing:
    return asyncio.run(it.ensure(addresses or (VIP,), cidr))


def writes(mesh: Mesh) -> int:
    return mesh.state.counters.writes


def test_all_of_it_is_made_once_and_later_passes_ask_nothing(mesh: Mesh) -> None:
    it = mesh.under(router_group="routers")
    footing = ensure(it, VIP, FAR, "2001:db8::9")
    assert footing.why == ""
    subnet, far, six = (footing.by_address[a] for a in (VIP, FAR, "2001:db8::9"))
    assert (subnet.target_type, far.target_type, six.target_type) == ("subnet", "host", "host")
    assert {one["address"]: one["id"] for one in mesh.resources()} == {CIDR: subnet.target_id, f"{FAR}/32": far.target_id, "2001:db8::9/128": six.target_id}
    assert footing.alive == {subnet.target_id, far.target_id, six.target_id}
    assert mesh.routers()[0]["metric"] == 9999
    assert mesh.hand("GET", "policies") == [], "the proxies need none, and it would open the cluster to every peer"
    before = (mesh.calls, writes(mesh))
    for _ in range(4):
        mesh.clock.now += 60
        assert ensure(it, VIP, FAR, "2001:db8::9") == footing
        assert ensure(it, "198.51.100.11").by_address["198.51.100.11"] == subnet, "another address of the subnet asks nothing either"
    assert (mesh.calls, writes(mesh)) == before


def test_hours_of_passes_ask_little_and_write_nothing(mesh: Mesh) -> None:
    it = mesh.under(router_group="routers")
    ensure(it)
    before = (mesh.calls, writes(mesh))

    async def hours() -> None:
        for _ in range(300):
            mesh.clock.now += 60
            await it.ensure((VIP,), CIDR)

    asyncio.run(hours())
    assert mesh.calls - before[0] <= 5 * 4 + 60, "four calls an hour, and one each five minutes"
    assert writes(mesh) == before[1]


def test_a_deleted_network_is_made_anew_within_five_minutes_and_its_resource_has_another_id(mesh: Mesh) -> None:
    it = mesh.under(router_group="routers")
    old = ensure(it).by_address[VIP]
    mesh.hand("DELETE", f"networks/{mesh.network()['id']}")
    mesh.clock.now += GLANCE_S
    footing = ensure(it)
    assert footing.by_address[VIP].target_id != old.target_id
    assert old.target_id not in footing.alive
    assert any("was deleted" in act for act in it.acts)


def test_a_deleted_resource_is_made_anew_within_five_minutes(mesh: Mesh) -> None:
    it = mesh.under(router_group="routers")
    old = ensure(it).by_address[VIP]
    mesh.hand("DELETE", f"networks/{mesh.network()['id']}/resources/{old.target_id}")
    mesh.clock.now += GLANCE_S
    assert ensure(it).by_address[VIP].target_id == mesh.resources()[0]["id"]


def test_a_doubt_is_looked_into_at_once_but_not_with_every_pass(mesh: Mesh) -> None:
    it = mesh.under(router_group="routers")
    old = ensure(it).by_address[VIP]
    mesh.hand("DELETE", f"networks/{mesh.network()['id']}")
    mesh.clock.now += 60
    it.doubt("a target was refused")
    assert ensure(it).by_address[VIP].target_id != old.target_id
    before = mesh.calls
    for _ in range(60):
        mesh.clock.now += 60
        it.doubt("a service leads elsewhere")
        ensure(it)
    assert mesh.calls - before < 60, "less than a call a minute for a doubt that nothing comes of"


@pytest.mark.parametrize(
    "address",
    ["198.51.100.0/24", "198.51.100.7/24"],
)
def test_what_a_person_has_made_is_used_as_it_is(mesh: Mesh, address: str) -> None:
    """Under another name, and not masked: texts differ, the meaning does not."""
    network = mesh.hand("POST", "networks", {"name": "edgekeeper"})
    made = mesh.hand("POST", f"networks/{network['id']}/resources", {"name": "cluster", "address": address, "enabled": True, "groups": []})
    assert ensure(mesh.under()).by_address[VIP].target_id == made["id"]
    assert writes(mesh) == 0


def test_capitals_and_bare_addresses_are_what_they_mean(mesh: Mesh) -> None:
    it = mesh.under()
    ensure(it, FAR, "2001:db8::a", cidr="2001:DB8:1::/48")
    before = writes(mesh)
    again = mesh.under()
    ensure(again, FAR, "2001:db8::a", cidr="2001:db8:1::/48")
    assert writes(mesh) == before


def test_another_edgekeepers_network_or_resource_is_left_alone(mesh: Mesh) -> None:
    """Two clusters with the same network of Services: the other one's routing peers lead to the other one."""
    ensure(mesh.under(cluster="a"))
    before = writes(mesh)
    second = mesh.under(cluster="b")
    footing = ensure(second)
    assert footing.by_address == {}
    assert "belongs to edgekeeper home/a; name another one in expose.netbird.network" in footing.why
    assert writes(mesh) == before
    other = mesh.under(cluster="b", network="second")
    assert ensure(other).by_address[VIP].target_id not in {one["id"] for one in mesh.resources()}
    assert mesh.state.counters.cut == 0


def test_a_changed_network_of_services_changes_our_own_resource_and_keeps_its_groups(mesh: Mesh) -> None:
    it = mesh.under()
    ensure(it)
    group = mesh.hand("GET", "groups")[0]["id"]
    mine = mesh.resources()[0]
    mesh.hand("PUT", f"networks/{mesh.network()['id']}/resources/{mine['id']}", {**mine, "groups": [group]})
    footing = ensure(it, "203.0.113.1", cidr="203.0.113.0/24")
    assert footing.by_address["203.0.113.1"].target_id == mine["id"]
    assert mesh.resources()[0]["address"] == "203.0.113.0/24"
    assert [one["id"] for one in mesh.resources()[0]["groups"]] == [group]


def test_a_persons_resource_with_another_address_is_not_changed(mesh: Mesh) -> None:
    network = mesh.hand("POST", "networks", {"name": "edgekeeper"})
    mesh.hand("POST", f"networks/{network['id']}/resources", {"name": "edgekeeper-targets", "address": "203.0.113.0/24", "enabled": True, "groups": []})
    footing = ensure(mesh.under())
    assert "leads to 203.0.113.0/24 in place of 198.51.100.0/24" in footing.why
    assert mesh.resources()[0]["address"] == "203.0.113.0/24"


def test_a_name_that_is_taken_elsewhere_in_the_account_lacks_only_its_own_address(mesh: Mesh) -> None:
    network = mesh.hand("POST", "networks", {"name": "other"})
    mesh.hand("POST", f"networks/{network['id']}/resources", {"name": "edgekeeper-targets", "address": "203.0.113.0/24", "enabled": True, "groups": []})
    it = mesh.under()
    footing = ensure(it, VIP, FAR)
    assert set(footing.by_address) == {FAR}
    assert "resource with name edgekeeper-targets already exists" in footing.why
    before = mesh.calls
    ensure(it, VIP, FAR)
    assert mesh.calls == before, "not tried again at once"


def test_a_router_waits_for_its_group(mesh: Mesh) -> None:
    it = mesh.under(router_group="edge-routers")
    assert ensure(it).by_address
    assert it.remarks == ("the mesh has no group edge-routers; no router is made until it has",)
    mesh.hand("POST", "groups", {"name": "edge-routers"})
    mesh.clock.now += 60
    ensure(it)
    assert len(mesh.routers()) == 1
    assert it.remarks == ("group edge-routers has no peers, so no host answers until it has one",)


def test_our_router_is_set_right_and_a_switched_off_one_is_told_of(mesh: Mesh) -> None:
    ensure(mesh.under(router_group="routers"))
    ensure(mesh.under(router_group="routers", router_metric=100))
    assert [one["metric"] for one in mesh.routers()] == [100]
    router = mesh.routers()[0]
    mesh.hand("PUT", f"networks/{mesh.network()['id']}/routers/{router['id']}", {**router, "enabled": False})
    it = mesh.under(router_group="routers", router_metric=100)
    before = writes(mesh)
    ensure(it)
    assert it.remarks == ("the router of group routers is switched off in the mesh; no host answers until it is on",)
    assert writes(mesh) == before


def test_a_policy_is_made_only_when_it_is_asked_for_and_once(mesh: Mesh) -> None:
    asyncio.run(mesh.under(policy=True).ensure([VIP], CIDR, ports=(443, 8443, 443)))
    (policy,) = mesh.hand("GET", "policies")
    assert policy["rules"][0]["ports"] == ["443", "8443"]
    ensure(mesh.under(policy=True))
    assert len(mesh.hand("GET", "policies")) == 1


def test_of_several_networks_of_the_name_the_chosen_one_stays(mesh: Mesh, tmp_path: Path) -> None:
    ids = sorted(mesh.hand("POST", "networks", {"name": "edgekeeper"})["id"] for _ in range(2))
    it = mesh.under(state_dir=str(tmp_path))
    ensure(it)
    assert it.remarks[0] == f"2 networks are called edgekeeper; the one with id {ids[0]} is used"
    mesh.hand("PUT", f"networks/{ids[0]}", {"name": "renamed"})
    mesh.clock.now += LOOK_S
    again = mesh.under(state_dir=str(tmp_path))
    ensure(again)
    assert again.remarks[0] == "network edgekeeper is called renamed now; it is used all the same"


def test_with_a_token_that_may_only_read_nothing_is_written_and_the_reason_is_told(mesh: Mesh) -> None:
    mesh.token = "nbp_main_reader"
    it = mesh.under()
    assert "needs the token of an admin" in ensure(it).why
    footing, steps = asyncio.run(it.look([VIP], CIDR))
    assert steps == ("make network edgekeeper: there is no network edgekeeper",)
    assert footing.by_address == {}


def test_a_mesh_that_does_not_answer_takes_nothing_away(mesh: Mesh) -> None:
    it = mesh.under()
    mesh.broken = MissingError("no route")
    with pytest.raises(ApiError, match="no route"):
        ensure(it)
    mesh.broken = None
    footing = ensure(it)
    mesh.broken = MissingError("no route")
    mesh.clock.now += LOOK_S
    kept = ensure(it)
    assert kept.by_address == footing.by_address
    assert "could not be looked at again" in kept.why


def test_a_new_process_asks_nothing_for_what_was_looked_at_a_moment_ago(mesh: Mesh, tmp_path: Path) -> None:
    footing = ensure(mesh.under(state_dir=str(tmp_path), router_group="routers"))
    before = mesh.calls
    assert ensure(mesh.under(state_dir=str(tmp_path), router_group="routers")) == footing
    assert mesh.calls == before
    for minute in range(65):
        mesh.clock.now += 60
        assert ensure(mesh.under(state_dir=str(tmp_path), router_group="routers")) == footing
        assert mesh.state.counters.calls["GET routers"] == (minute >= 59), "all of it is looked at each hour, whoever looks"
    assert mesh.calls - before < 20
    stranger = mesh.under(state_dir=str(tmp_path), router_group="routers", owner="other")
    assert ensure(stranger).by_address == {}, "what another owner has kept means nothing"


def test_a_new_process_looks_again_when_the_old_one_would_have(mesh: Mesh, tmp_path: Path) -> None:
    ensure(mesh.under(state_dir=str(tmp_path), router_group="routers"))
    before = dict(mesh.state.counters.calls)
    mesh.clock.now += GLANCE_S - 60
    it = mesh.under(state_dir=str(tmp_path), router_group="routers")
    ensure(it)
    assert mesh.state.counters.calls == before
    mesh.clock.now += 60
    ensure(it)
    assert mesh.state.counters.calls["GET networks"] == before["GET networks"] + 1
    mesh.clock.now = LOOK_S - 1
    ensure(it)
    assert mesh.state.counters.calls["GET resources"] == before.get("GET resources", 0)
    mesh.clock.now = LOOK_S
    ensure(it)
    assert mesh.state.counters.calls["GET resources"] == before.get("GET resources", 0) + 1


@pytest.mark.parametrize("text", ["", "[]", "{", json.dumps({"schema": 1}), json.dumps({"schema": 2})])
def test_a_file_that_cannot_be_read_counts_as_none(mesh: Mesh, tmp_path: Path, text: str) -> None:
    (tmp_path / FILE).write_text(text)
    assert ensure(mesh.under(state_dir=str(tmp_path))).by_address


def test_a_step_that_fails_half_way_is_finished_by_the_next_look(mesh: Mesh) -> None:
    it = mesh.under(router_group="routers")
    real: Any = mesh.request
    torn = 0

    async def request(method: str, url: str, **more: Any) -> Any:
        nonlocal torn
        answer = await real(method, url, **more)
        if method == "POST" and url.endswith("/resources") and not torn:
            torn = 1
            raise MissingError("reset")
        return answer

    mesh.client._client = type("Client", (), {"request": staticmethod(request)})()
    assert "reset" in ensure(it).why
    mesh.clock.now += 60
    assert ensure(it).by_address
    assert len(mesh.resources()) == 1, "the lost one was made, and is found"
