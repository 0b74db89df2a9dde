from __future__ import annotations

import json

import pytest

from edgekeeper.cli import vip_owner
from edgekeeper.cli.main import run
from edgekeeper.errors import MissingError
from edgekeeper.host import neighbour
from edgekeeper.host.http import Response

CONFIG = """\
node: {node}
nodes:
  edge-a: {{address: 192.0.2.11, ops: "http://192.0.2.11:8084"}}
  edge-b: {{address: 192.0.2.12, ops: "http://192.0.2.12:8084"}}
vip:
  interface: eth0
  vips: [{{name: dns, address: 192.0.2.53/24, vrid: 53, probe: none}}]
"""


def said(node: str, *, held: bool, priority: int) -> Response:
    vip = {"name": "dns", "state": "MASTER" if held else "BACKUP", "held": held, "priority": priority, "configured_priority": priority, "since": 1000.0}
    return Response(200, json.dumps({"schema": 1, "node": node, "ts": 1000.0, "roles": {"vip": {"vips": [vip]}}}))


class Net:
    """What each URL answers, in its turn; the last answer stays."""

    def __init__(self) -> None:
        self.answers: dict[str, list[Response]] = {}

    def node(self, name: str, *answers: Response, on: str) -> None:
        hosts = ["127.0.0.1:8085"] if name == on else [f"192.0.2.{11 if name == 'edge-a' else 12}:8084"]
        self.answers |= {f"http://{host}/status?role=vip": list(answers) for host in hosts}

    async def get(self, url: str, **_options: object) -> Response:
        left = self.answers.get(url)
        if not left:
            msg = f"{url} did not answer: refused"
            raise MissingError(msg)
        return left.pop(0) if len(left) > 1 else left[0]


@pytest.fixture
def net(monkeypatch: pytest.MonkeyPatch) -> Net:
    made = Net()
    monkeypatch.setattr("edgekeeper.host.http.get", made.get)
    monkeypatch.setattr(vip_owner, "_AGAIN_S", 0.0)
    return made


def config(tmp_path, node: str) -> str:
    path = tmp_path / f"{node}.yaml"
    path.write_text(CONFIG.format(node=node))
    return str(path)


A, B, B_TOO = said("edge-a", held=True, priority=254), said("edge-b", held=False, priority=253), said("edge-b", held=True, priority=253)


def owner(tmp_path, node: str, *more: str) -> int:
    return run(["vip", "owner", "--config", config(tmp_path, node), *more])


def test_both_nodes_show_the_same_table(tmp_path, net: Net, capsys: pytest.CaptureFixture[str]) -> None:
    shown = []
    for here in ("edge-a", "edge-b"):
        net.answers.clear()
        net.node("edge-a", A, on=here)
        net.node("edge-b", B, on=here)
        assert owner(tmp_path, here) == 0
        shown.append(capsys.readouterr())
    assert shown[0] == shown[1]
    assert shown[0].out.splitlines()[1].split() == ["dns", "edge-a", "1970-01-01T00:16:40Z", "edge-a=254", "edge-b=253"]
    assert shown[0].err == ""


def test_two_owners_are_told_and_exit_1_but_not_a_moment_of_two(tmp_path, net: Net, capsys: pytest.CaptureFixture[str]) -> None:
    net.node("edge-a", A, on="edge-a")
    net.node("edge-b", B_TOO, on="edge-a")
    assert owner(tmp_path, "edge-a") == 1
    assert "edge-a and edge-b own it at the same time" in capsys.readouterr().out
    net.node("edge-b", B_TOO, B, on="edge-a")
    assert owner(tmp_path, "edge-a") == 0


def test_one_that_does_not_answer_may_own_it_too(tmp_path, net: Net, capsys: pytest.CaptureFixture[str]) -> None:
    net.node("edge-a", A, on="edge-a")
    assert owner(tmp_path, "edge-a") == 0
    told = capsys.readouterr()
    assert "edge-b is unheard and may own it too" in told.out
    assert "edge-a=254 edge-b=?" in told.out
    assert "edge-b did not say: http://192.0.2.12:8084/status?role=vip did not answer: refused" in told.err


def test_nobody_who_could_be_asked_is_6_and_nobody_who_owns_it_is_1(tmp_path, net: Net, capsys: pytest.CaptureFixture[str]) -> None:
    assert owner(tmp_path, "edge-a") == 6
    assert "no node could be asked who holds the VIPs: " in capsys.readouterr().err
    net.node("edge-b", B, on="edge-a")
    assert owner(tmp_path, "edge-a", "-o", "json") == 1
    document = json.loads(capsys.readouterr().out)
    assert document["vips"][0] == {
        "vip": "dns", "address": "192.0.2.53/24", "count": "none", "owners": [], "since": None, "priorities": {"edge-a": None, "edge-b": 253},
        "notes": ["nobody who answers owns it", "edge-a is unheard and may own it"], "macs": None,
    }  # fmt: skip
    assert [(n["node"], n["answered"]) for n in document["nodes"]] == [("edge-a", False), ("edge-b", True)]


def test_the_wire_tells_of_another_claim(tmp_path, net: Net, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    asked = []

    async def ask(interface: str, address: str, _deadline_s: float) -> tuple[str, ...]:
        asked.append((interface, address))
        return ("02:00:00:00:00:01",)

    monkeypatch.setattr(neighbour, "ask", ask)
    net.node("edge-a", A, on="edge-a")
    assert owner(tmp_path, "edge-a", "--wire") == 1
    assert asked == [("eth0", "192.0.2.53")]
    assert "on the wire 02:00:00:00:00:01 and this node claim it at the same time" in capsys.readouterr().out


def test_of_a_vip_that_a_cluster_moves_the_patch_is_printed_and_the_owner_is_unknown(tmp_path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "edgekeeper.yaml"
    file.write_text("node: edge-a\nvip:\n  provider: kube-vip\n  vips: [{name: dns, address: 192.0.2.53/24, vrid: 53, probe: none}]\n")
    assert run(["--config", str(file), "vip", "render"]) == 0
    assert '    kube-vip.io/loadbalancerIPs: "192.0.2.53"\n' in capsys.readouterr().out
    assert run(["--config", str(file), "vip", "owner"]) == 6
    assert "the owner of dns is unknown: this is no pod of a cluster, and no kubeconfig is named" in capsys.readouterr().err
