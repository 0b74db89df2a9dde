"""Every golden file, and whatever else the config accepts, before the real validator of each version."""

from __future__ import annotations

import asyncio
import os
import subprocess
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from edgekeeper.config.kinds import check_domain, check_node
from edgekeeper.engines.dnsdist.view import differences
from edgekeeper.model.backend import Member

GOLDEN = Path(__file__).resolve().parents[1] / "golden" / "dnsdist"
CASES = sorted(path.parent for path in GOLDEN.glob("*/case.yaml"))
CHECKED = [pytest.param(case, form, id=f"{case.name}-{form.name}") for case in CASES for form in sorted(case.iterdir()) if form.is_dir()]
SLOW = settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))


@pytest.mark.engine
@pytest.mark.parametrize(("case", "form"), CHECKED)
def test_every_golden_file_is_accepted_by_the_real_validator(case, form, dnsdist_case, real_engine):
    from edgekeeper.engines.dnsdist.engine import DnsdistEngine  # noqa: PLC0415

    if "ebpf" in case.name and form.name != "2.1" and os.geteuid() != 0:
        pytest.skip("a check of eBPF in Lua makes the maps, which needs CAP_BPF")
    made = dnsdist_case(case, form.name)
    engine = DnsdistEngine(made.features, made.renderer, str(real_engine(form.name[:3])))
    done = subprocess.run(engine.check_argv(str(form)), capture_output=True, text=True, timeout=20, check=False)
    verdict = engine.judge(done.returncode, done.stdout + done.stderr)
    if "quic" in case.name:  # Debian's build has no QUIC; it exits 0 all the same
        assert done.returncode == 0
        assert verdict is not None
        assert "unknown protocol" in verdict
    else:
        assert verdict is None


nodes = st.from_regex(r"[A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?", fullmatch=True).map(check_node)
labels = st.text(st.characters(min_codepoint=0x21, max_codepoint=0x7E, exclude_characters=".\\\"'"), min_size=1, max_size=20)
zones = st.lists(labels, min_size=1, max_size=4).map(lambda parts: check_domain(".".join(parts)))
addresses = st.ip_addresses().filter(lambda address: not address.is_unspecified).map(str)
secrets = st.text(st.characters(min_codepoint=0x21, max_codepoint=0x7E, exclude_characters="\"'"), min_size=32, max_size=64)
members = st.lists(
    st.builds(Member, st.one_of(st.just(""), nodes), addresses, st.integers(1, 65535), st.sampled_from([(), ("resolver",), ("authoritative",)])),
    min_size=1,
    max_size=6,
    unique_by=lambda member: member.label,
)
wanted = st.fixed_dictionaries(
    {
        "members": members,
        "zones": st.lists(zones, max_size=5).map(tuple),
        "forward": st.dictionaries(zones, members.map(tuple), max_size=2),
        "secret": secrets,
        "health": st.one_of(st.just({}), zones.map(lambda name: {"name": name, "type": "TXT"})),
        "identity": st.sampled_from(["observe", "require"]),
        "retry": st.sampled_from(["normal", "fast", "off"]),
        "transfer_sources": st.lists(st.ip_addresses().map(lambda address: f"{address}/32" if address.version == 4 else f"{address}/128"), max_size=2),
    }
)


def made(engine, said, listen=None):
    """The topology of a generated config, without the zones that are both the members' and forwarded."""
    forward = {zone: others for zone, others in said["forward"].items() if zone not in said["zones"]}
    rest = {key: said[key] for key in ("health", "identity", "retry", "transfer_sources")}
    if listen:
        rest["listen"] = listen
    return engine.topology(tuple(said["members"]), said["zones"], secret=said["secret"], forward=forward, proxy_protocol={"secret_env": "X"}, **rest)


@pytest.mark.engine
@pytest.mark.timeout(120)
def test_whatever_the_config_accepts_the_engine_accepts(dnsdist):
    @SLOW
    @given(wanted)
    def check(said):
        assert dnsdist.check(made(dnsdist, said)) is None

    check()


@pytest.mark.engine
@pytest.mark.timeout(120)
def test_whatever_the_config_accepts_means_the_same_in_the_running_engine(dnsdist):
    @settings(SLOW, max_examples=4)
    @given(wanted)
    def check(said):
        topology = made(dnsdist, said)
        seat, pid = dnsdist.spawn(topology)
        try:
            assert asyncio.run(dnsdist.hands.prove(topology, seat, pid)) is None
            assert differences(topology, asyncio.run(dnsdist.hands.read(seat))) == ()
        finally:
            dnsdist.stop()

    check()
