"""Rendered files in real keepalived of several nodes: each VIP has one owner, and the files through which it is moved do move it."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from tests.fakes.keepalived import configs, root_of

from edgekeeper.config.root import Root
from edgekeeper.engines.keepalived.dump import Dump, difference
from edgekeeper.engines.keepalived.hands import KeepalivedHands
from edgekeeper.lab.topology import NODE_ADDRESSES, NODE_ADDRESSES6

from .segment import one_each, segment

pytestmark = [pytest.mark.root, pytest.mark.engine, pytest.mark.timeout(90)]
FEW = settings(
    deadline=None, suppress_health_check=list(HealthCheck), phases=[Phase.explicit, Phase.generate], max_examples=2
)  # a smaller example is not worth the starts
SUITES = {"2.2.7": "1.7", "2.3.4": "2.1"}


@pytest.fixture(params=list(SUITES))
def binary(request: pytest.FixtureRequest, real_engine: Callable[..., Path]) -> Path:
    return real_engine(SUITES[request.param], "keepalived")


@pytest.fixture(autouse=True)
def _root() -> None:
    if os.geteuid() != 0:
        pytest.fail("these tests make network namespaces; run them as root")


def here(config: dict[str, Any]) -> Root:
    """A generated config on the lab's segment, with adverts so close that nobody waits long; names, VRIDs and priorities stay."""
    nodes = {name: {"address": NODE_ADDRESSES[n], "address6": NODE_ADDRESSES6[n]} for n, name in enumerate(config["nodes"])}
    every = [
        {**vip, "interface": "eth0", "address": f"2001:db8::{n + 100:x}/64" if ":" in vip["address"] else f"192.0.2.{n + 100}/24"}
        for n, vip in enumerate(config["vip"]["vips"])
    ]
    script = {"interval": 1, "fall": 3, "rise": 2}
    return root_of({**config, "nodes": nodes, "vip": {**config["vip"], "vips": every, "interface": "eth0", "advert": "100ms", "script": script}})


def test_every_vip_has_exactly_one_owner_once_all_nodes_have_started(binary: Path, tmp_path: Path) -> None:
    @FEW
    @given(configs(most_nodes=3, most_vips=4), st.randoms(use_true_random=False))
    def check(config, chance):
        root, folder = here(config), tmp_path / str(len(list(tmp_path.iterdir())))

        async def story() -> None:
            async with segment(root, binary, folder) as lan:
                order = list(root.nodes)
                chance.shuffle(order)
                for node in order:
                    lan.start(node)
                await lan.until(one_each, "one owner for each VIP")
                hands = KeepalivedHands(lan.seat(order[0]).folder)
                said = await hands.ask(lan.seat(order[0]), lan.running[order[0]].pid)
                assert isinstance(said, Dump), said
                assert difference(lan.topology(order[0]), said) is None
                lan.stop(order[0])
                await lan.until(lambda found: one_each(found, order[1:]), "one owner for each VIP among the rest")

        asyncio.run(story())

    check()


@pytest.mark.parametrize("file", ["weight", "health"])
def test_each_track_file_moves_its_vip_and_no_other_and_lets_it_come_back(binary: Path, tmp_path: Path, file: str) -> None:
    vips = [{"name": f"v{n}", "address": f"192.0.2.{100 + n}/24", "vrid": n + 1, "probe": "none"} for n in range(2)]
    nodes = {"a": {"address": NODE_ADDRESSES[0]}, "b": {"address": NODE_ADDRESSES[1]}}
    root = root_of({"node": "a", "nodes": nodes, "vip": {"interface": "eth0", "advert": "100ms", "preempt": True, "vips": vips}})

    async def story() -> None:
        async with segment(root, binary, tmp_path) as lan:
            for node in nodes:
                lan.start(node)
            rest = {"v0": {"a"}, "v1": {"b"}}
            await lan.until(lambda found: found == rest, "each VIP rests on its own node")
            lan.weigh("a", f"{file}-v0", 300)
            await lan.until(lambda found: found == {"v0": {"b"}, "v1": {"b"}}, "it has moved")
            lan.weigh("a", f"{file}-v0", 0)
            await lan.until(lambda found: found == rest, "it has come back")

    asyncio.run(story())
