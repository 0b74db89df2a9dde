"""What ``edgekeeper init --pair`` writes works as it is: nodes that let each other in, and nobody else, and one table from either of them."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from edgekeeper.cli.main import run
from edgekeeper.config.load import load
from edgekeeper.errors import MissingError
from edgekeeper.host.http import Trust, get
from edgekeeper.ops.server import Voice, serve

from .edge import free_ports

NODES = {"edge-a": "127.0.0.2", "edge-b": "127.0.0.3"}
VIP = """
vip:
  interface: eth0
  peers: {file: /etc/edgekeeper/peers}   # VRRP is not spoken on loopback; nor here at all
  vips: [{name: dns, address: 192.0.2.53/24, vrid: 53, probe: none}]
"""


@pytest.fixture
def files(tmp_path: Path) -> dict[str, Path]:
    """The config of each node, where it will lie; only the port is another one."""
    (port,) = free_ports(1)
    made = tmp_path / "made"
    words = ["init", "--pair", ",".join(f"{name}={address}" for name, address in NODES.items()), "--role", "dns", "--dir", str(made)]
    assert run([*words, "--etc", str(made / "edge-a")]) == 0
    out = {}
    for name in NODES:
        out[name] = made / name / "edgekeeper.yaml"
        text = out[name].read_text().replace(":8084", f":{port}").replace(str(made / "edge-a"), str(made / name))
        out[name].write_text(text + VIP)
    return out


def vip(node: str, *, held: bool) -> dict[str, Any]:
    item = {"name": "dns", "state": "MASTER" if held else "BACKUP", "held": held, "priority": 254 if node == "edge-a" else 253, "health": "good", "since": 1000}
    return {"schema": 1, "node": node, "ts": 1000.0, "roles": {"vip": {"verdict": "ok", "why": "well", "vips": [item]}}}


def while_served(files: dict[str, Path], work: Callable[[], Any], held: str = "edge-a") -> Any:
    async def all_of_it() -> Any:
        tasks = []
        for name, file in files.items():
            root = load(file).root
            voice = Voice(lambda _, name=name: vip(name, held=name == held), lambda: (True, ""), lambda: b"")  # type: ignore[misc]
            tasks.append(asyncio.create_task(serve(root.ops, "", voice, None)))
        try:
            async with asyncio.timeout(10):
                for name, file in files.items():
                    host, _, port = (load(file).root.ops.listen or "").rpartition(":")
                    while True:
                        try:
                            (await asyncio.open_connection(host, int(port)))[1].close()
                            break
                        except OSError:
                            await asyncio.sleep(0.01)
                    del name
            return await asyncio.to_thread(work)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    return asyncio.run(all_of_it())


def test_either_node_shows_who_owns_it_and_how_all_are(files: dict[str, Path], capsys: pytest.CaptureFixture[str]) -> None:
    capsys.readouterr()
    shown = []

    def work() -> None:
        for file in files.values():
            assert run(["vip", "owner", "--config", str(file)]) == 0
            shown.append(capsys.readouterr().out)
        assert run(["status", "--config", str(files["edge-b"]), "-o", "json"]) == 0

    while_served(files, work)
    assert shown[0] == shown[1]
    assert shown[0].splitlines()[1].split()[:2] == ["dns", "edge-a"]
    assert [(n["node"], n["status"]["roles"]["vip"]["why"]) for n in json.loads(capsys.readouterr().out)["nodes"]] == [("edge-b", "well"), ("edge-a", "well")]


def test_nobody_else_is_let_in_or_believed(files: dict[str, Path]) -> None:
    ops = load(files["edge-a"]).root.ops
    page = f"https://{ops.listen}/status"

    def work() -> None:
        assert asyncio.run(get(page, deadline_s=3, trust=Trust(ops.peer_ca, ops.certificate, ops.key))).status == 200
        assert asyncio.run(get(page, deadline_s=3, trust=Trust(ops.peer_ca))).status == 401
        with pytest.raises(MissingError, match="CERTIFICATE_VERIFY_FAILED"):
            asyncio.run(get(page, deadline_s=3))

    while_served(files, work)


def test_the_rest_of_the_world_is_told_when_a_node_is_away(files: dict[str, Path], capsys: pytest.CaptureFixture[str]) -> None:
    capsys.readouterr()
    while_served({"edge-a": files["edge-a"]}, lambda: run(["vip", "owner", "--config", str(files["edge-a"])]))
    assert "edge-b is unheard and may own it too" in capsys.readouterr().out
    assert run(["vip", "owner", "--config", str(files["edge-a"])]) == 6
