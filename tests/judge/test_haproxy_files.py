"""Every golden file, and whatever else the config accepts, before the real HAProxy of each version: its check, and what the running one lists."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from tests.fakes.haproxy import CASES, configs, load_case, made

from edgekeeper.engines.haproxy import hands, stats
from edgekeeper.engines.haproxy.render import description
from edgekeeper.engines.haproxy.state import difference, wanted
from edgekeeper.engines.haproxy.topology import Topology
from edgekeeper.lab.certs import Authority
from edgekeeper.model.backend import Member

from .haproxies import Haproxy, free_port

pytestmark = pytest.mark.engine
SLOW = settings(
    deadline=None, suppress_health_check=list(HealthCheck), phases=[Phase.explicit, Phase.generate]
)  # a smaller example is not worth minutes of starting engines


@pytest.fixture
def pem(tmp_path: Path) -> Path:
    """A certificate with its key, in a file whose name is as odd as a name may be."""
    folder = tmp_path / "a \"b' $HOME #c; \\ \t%d"
    folder.mkdir()
    kept = Authority(tmp_path).issue()
    whole = folder / "both {}.pem"
    whole.write_text("".join(path.read_text() for path in sorted(kept.iterdir()) if path.suffix in (".crt", ".key", ".pem")))
    return whole


def with_files(topology: Topology, pem: Path) -> Topology:
    """The same with files that exist, and without accounts that may not."""
    services = (
        replace(service, certificate=str(pem) if service.certificate else None, verify_ca=str(pem) if service.verify_ca else None)
        for service in topology.services
    )
    return replace(topology, services=tuple(services), user=None, group=None)


@pytest.mark.parametrize("name", CASES)
def test_every_golden_file_is_accepted_without_a_word_of_warning(haproxy: Haproxy, name: str, pem: Path) -> None:
    refusal, said = haproxy.check(with_files(load_case(name).topology, pem))
    assert refusal is None, said
    assert "WARNING" not in said, said
    assert "ALERT" not in said, said


@pytest.mark.timeout(120)
def test_whatever_the_config_accepts_haproxy_accepts(haproxy: Haproxy, pem: Path) -> None:
    @settings(SLOW, max_examples=15)
    @given(configs())
    def check(config):
        refusal, said = haproxy.check(with_files(made(*config, [18001, 18002, 18003]), pem))
        assert refusal is None, said
        assert "WARNING" not in said, said

    check()


@pytest.mark.timeout(120)
def test_whatever_the_config_accepts_means_the_same_in_the_running_haproxy(haproxy: Haproxy, pem: Path) -> None:
    @settings(SLOW, max_examples=4)
    @given(configs())
    def check(config):
        topology = with_files(made(*config, [free_port() for _ in range(3)]), pem)
        try:
            seat, _ = haproxy.start(topology)
            listed = stats.parse_servers_state(haproxy.ask(seat, "show servers state"))
            assert difference(topology, listed) is None
            assert {(row.backend, row.server) for row in listed} == set(wanted(topology))
            info = stats.parse_info(haproxy.ask(seat, "show info"))
            assert info.description == description(haproxy.engine.files(topology, seat)["haproxy.cfg"])
        finally:
            haproxy.stop()

    check()


def test_what_haproxy_refuses_is_told_in_one_sentence(haproxy: Haproxy) -> None:
    topology = haproxy.topology({"kind": "http", "certificate": "/nowhere/both.pem"}, members=())
    refusal, _ = haproxy.check(topology)
    assert refusal is not None
    assert "/nowhere/both.pem" in refusal
    assert "\n" not in refusal
    refusal, _ = haproxy.check(replace(topology, services=(replace(topology.services[0], certificate=None, balance="nonsense"),)))
    assert refusal is not None
    assert "nonsense" in refusal or "balance" in refusal


def test_a_start_that_is_not_that_of_the_wanted_configuration_is_not_proven(haproxy: Haproxy, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hands, "PROVE_DEADLINE_S", 0.5)
    topology = haproxy.topology(members=(Member("a", "192.0.2.1", 80),))
    seat, pid = haproxy.start(topology)
    said = asyncio.run(haproxy.hands.prove(replace(topology, hard_stop_s=7.0), seat, pid))
    assert said is not None
    assert "runs another configuration (edgekeeper-" in said
