"""All kinds of providers of VIPs keep the same promises to who uses them."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from edgekeeper.config.vip import Vips
from edgekeeper.errors import EdgekeeperError, MissingError, RefusedError, UsageError
from edgekeeper.log import Event
from edgekeeper.vip.owner import Owner
from edgekeeper.vip.provider import UNREAD, Changed, Context, Provider
from edgekeeper.vip.provider_keepalived import STATE, KeepalivedProvider
from edgekeeper.vip.provider_kube import KubeProvider
from edgekeeper.vip.weight import TrackFile, Weight

NODE, OTHER = "edge-a", "edge-b"
VIPS = Vips.model_validate(
    {"interface": "eth0", "vips": [{"name": n, "address": f"192.0.2.{v}/24", "vrid": v, "probe": "none"} for n, v in (("dns", 53), ("api", 60))]}
)


@dataclass
class Cluster:
    """What a cluster would say."""

    owners: dict[str, Owner] = field(default_factory=dict)
    error: EdgekeeperError | None = None

    async def read(self) -> Mapping[str, Owner]:
        """The owners by address."""
        if self.error is not None:
            raise self.error
        return dict(self.owners)


@dataclass
class World:
    """A provider, and how what it looks at is changed."""

    provider: KeepalivedProvider | KubeProvider
    owned: Callable[[str], object]
    let_go: Callable[[str], object]
    unreadable: Callable[[], object]
    written: Callable[[str], int]


def keepalived(folder: Path) -> World:
    states: dict[str, dict[str, object]] = {}
    file = folder / STATE
    file.parent.mkdir()

    def tell(vip: str, state: str) -> None:
        states[vip] = {"state": state, "priority": 254, "since": 1000.0 + len(states)}
        file.write_text(json.dumps({"schema": 1, "node": NODE, "updated": 1.0, "vips": states}))

    weights = TrackFile(folder, "weight")
    provider = KeepalivedProvider(NODE, folder, [vip.name for vip in VIPS.vips])
    return World(provider, lambda vip: tell(vip, "MASTER"), lambda vip: tell(vip, "BACKUP"), lambda: file.write_text("{"), weights.read)


def cluster(kind: str) -> World:
    said = Cluster()
    addresses = {"dns": "192.0.2.53", "api": "192.0.2.60"}

    def fail() -> None:
        said.error = MissingError("the API server does not answer")

    provider = KubeProvider(kind, VIPS.vips, said)
    return World(
        provider,
        lambda vip: said.owners.update({addresses[vip]: Owner(NODE, "it says so")}),
        lambda vip: said.owners.pop(addresses[vip], None),
        fail,
        lambda _: 0,
    )


@pytest.fixture(params=["keepalived", "kube-vip", "metallb"])
def world(request: pytest.FixtureRequest, tmp_path: Path) -> World:
    """Each kind."""
    return keepalived(tmp_path) if request.param == "keepalived" else cluster(request.param)


def unread(provider: KeepalivedProvider | KubeProvider, rounds: Callable[[], object], count: int) -> list[Changed]:
    """What a subscriber gets that reads only after so many rounds of change and look."""

    async def story() -> list[Changed]:
        with provider.events() as events:
            for _ in range(count):
                rounds()
                async with asyncio.timeout(1):
                    await provider.look()
        return [changed async for changed in events]

    return asyncio.run(story())


def test_an_owner_is_a_node_or_unknown_with_a_reason(world: World) -> None:
    provider: Provider = world.provider
    before = asyncio.run(provider.owner("dns"))
    assert before.node is None
    assert before.why
    world.owned("dns")
    assert asyncio.run(provider.owner("dns")).node == NODE
    assert asyncio.run(provider.owner("api")).node is None
    world.let_go("dns")
    assert asyncio.run(provider.owner("dns")).node is None
    world.owned("dns")
    world.unreadable()
    after = asyncio.run(provider.owner("dns"))
    assert after.node is None
    assert after.why


def test_a_vip_that_it_does_not_know_is_named(world: World) -> None:
    for vip in ("../weight-dns", "web"):
        with pytest.raises(UsageError, match="has no VIP"):
            asyncio.run(world.provider.owner(vip))
        with pytest.raises(UsageError, match="has no VIP"):
            asyncio.run(world.provider.weigh(vip, Weight.FAULT))


def test_a_weight_is_kept_or_refused_with_what_to_do_instead(world: World) -> None:
    async def weigh(weight: int, context: Context = Context()) -> None:  # noqa: B008 - frozen
        await world.provider.weigh("dns", weight, context)  # type: ignore[arg-type]

    with pytest.raises(UsageError, match="no weight"):
        asyncio.run(weigh(100))
    with pytest.raises(RefusedError):
        asyncio.run(weigh(Weight.FAULT, Context(lameduck=True)))
    assert world.written("dns") == 0
    for weight in (Weight.FAULT, Weight.PREFER_NOT, Weight.SERVING):
        try:
            asyncio.run(weigh(weight))
        except RefusedError as err:
            assert "drain the node instead" in str(err)  # noqa: PT017 - refused or done, both with a promise
        else:
            assert world.written("dns") == weight
            assert world.written("api") == 0
            asyncio.run(weigh(Weight.PREFER_NOT, Context(lameduck=True)))
            assert world.written("dns") == Weight.PREFER_NOT


def test_changes_are_told_once_in_their_order(world: World) -> None:
    steps = iter([lambda: world.owned("dns"), lambda: None, lambda: world.let_go("dns"), world.unreadable])

    def step() -> None:
        next(steps)()

    told = unread(world.provider, step, 4)
    assert [(c.vip, c.owner.node) for c in told] == [("dns", NODE), ("api", None), ("dns", None)]


def test_one_that_does_not_read_holds_up_nobody_and_loses_the_oldest(world: World, caplog: pytest.LogCaptureFixture) -> None:
    turns = iter(range(1000))
    told = unread(world.provider, lambda: (world.let_go, world.owned)[next(turns) % 2]("dns"), UNREAD + 8)
    assert len(told) == UNREAD
    assert told[-1] == Changed("dns", asyncio.run(world.provider.owner("dns")))
    assert [record.event for record in caplog.records if hasattr(record, "event")] == [Event.VIP_EVENT_DROPPED]


def test_a_reader_that_waits_is_woken_and_one_that_closed_is_told_nothing(world: World) -> None:
    async def story() -> None:
        closed = world.provider.events()
        closed.close()
        with world.provider.events() as events:
            waiting = asyncio.ensure_future(anext(events))
            await asyncio.sleep(0)
            world.owned("dns")
            await world.provider.look()
            async with asyncio.timeout(1):
                assert (await waiting).owner.node == NODE
        assert [changed async for changed in closed] == []

    asyncio.run(story())


def test_without_a_way_to_ask_the_cluster_the_owner_is_unknown_and_says_so() -> None:
    why = "only the cluster knows, and it is not asked; `kubectl get servicel2statuses -A` shows the node"
    assert asyncio.run(KubeProvider("metallb", VIPS.vips).owner("dns")) == Owner(None, why)


def test_a_state_file_of_another_node_is_not_believed(tmp_path: Path) -> None:
    world = keepalived(tmp_path)
    world.owned("dns")
    assert asyncio.run(KeepalivedProvider(OTHER, tmp_path, ["dns"]).owner("dns")).node is None
