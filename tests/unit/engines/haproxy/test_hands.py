"""What HAProxy's check cannot see, as far as it takes no HAProxy to tell."""

from __future__ import annotations

import asyncio
import socket
from dataclasses import replace
from pathlib import Path

import pytest
from tests.fakes.haproxy import FEATURES, topology

from edgekeeper.engines.haproxy.hands import HaproxyHands
from edgekeeper.engines.haproxy.seat import make
from edgekeeper.engines.haproxy.topology import Topology
from edgekeeper.model.backend import Member

A, B = Member("web-a", "192.0.2.1", 80), Member("web-b", "192.0.2.2", 80)


def refusal(wanted: Topology, folder: str) -> str | None:
    return asyncio.run(HaproxyHands(FEATURES, folder).preflight(wanted, make(folder, "5ea7ed"), None))


@pytest.mark.parametrize(
    ("wanted", "said"),
    [
        (replace(topology(), services=()), "there is no service"),
        (topology(members=()), "service web0 has no member"),
        (topology(members=(Member("", "192.0.2.1", 80), Member("192.0.2.1_80", "192.0.2.2", 80))), "two members of web0 would be called 192.0.2.1_80"),
        (topology(members=(replace(A, drain=True), replace(B, drain=True))), "every member of web0 is drained"),
        (topology(members=(A,), engine={"max_connections": 500_000}), "500000 connections need 1000100 descriptors"),
    ],
)
def test_what_makes_no_sense_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, wanted: Topology, said: str) -> None:
    monkeypatch.setattr("resource.getrlimit", lambda _: (1024, 4096))
    found = refusal(wanted, str(tmp_path))
    assert found is not None
    assert said in found


def test_a_folder_that_is_missing_or_too_deep_for_a_socket(tmp_path: Path) -> None:
    assert "cannot be used for HAProxy's sockets" in str(refusal(topology(members=(A,)), f"{tmp_path}/no"))
    (tmp_path / "file").touch()
    assert "is no folder" in str(refusal(topology(members=(A,)), f"{tmp_path}/file"))
    assert "choose a shorter run_dir" in str(refusal(topology(members=(A,)), f"/{'x' * 90}"))


def test_a_port_that_somebody_has_is_refused_with_who_it_is(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        found = refusal(topology({"listen": f"127.0.0.1:{port}"}, members=(A,)), str(tmp_path))
    assert found is not None
    assert f"127.0.0.1:{port} cannot be listened on: Address already in use by process" in found
    assert refusal(topology({"listen": f"127.0.0.1:{port}"}, members=(A,)), str(tmp_path)) is None


def test_each_process_gets_paths_of_its_own_and_what_dead_ones_left_is_cleared(tmp_path: Path) -> None:
    hands = HaproxyHands(FEATURES, str(tmp_path / "lb"))
    one, two = hands.new_seat(None), hands.new_seat(None)
    assert len({one.master, two.master, one.admin, two.admin, one.state, two.state}) == 6
    assert not Path(one.state).exists(), "nobody has its socket"
    assert Path(two.state).read_text().startswith("1\n")
    assert Path(two.state).stat().st_mode & 0o077 == 0
    Path(two.master).touch()
    hands.new_seat(None)
    assert Path(two.state).exists()
