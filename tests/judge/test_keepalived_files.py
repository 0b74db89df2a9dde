"""Every golden file, and whatever else the config accepts, before the real keepalived of each version: its own check, in a namespace with the interfaces."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from tests.fakes.keepalived import CASES, PROGRAM, configs, load_case, of, root_of, topology

from edgekeeper.engines.keepalived.topology import Topology

from .keepaliveds import NEWEST, SUITES, Keepalived

pytestmark = [pytest.mark.engine, pytest.mark.root]
SLOW = settings(deadline=None, suppress_health_check=list(HealthCheck), phases=[Phase.explicit, Phase.generate])  # a smaller example is not worth the starts


@pytest.fixture(params=[*SUITES, *(["newest"] if NEWEST else [])])
def keepalived(request: pytest.FixtureRequest, tmp_path: Path, real_engine: Callable[..., Path]) -> Keepalived:
    """Every version of keepalived, one after the other."""
    path = Path(shutil.which(NEWEST) or NEWEST) if request.param == "newest" else real_engine(SUITES[request.param], "keepalived")
    return Keepalived(path, tmp_path)


def here(wanted: Topology, folder: Path) -> Topology:
    """The same with what this machine has: a user, a program, and keys that are not readable by others."""
    key = folder / "vrrp.key"
    key.touch(mode=0o600)
    key.write_text("0123456789abcdef" * 4)
    instances = tuple(
        replace(i, hmac_key_file=str(key) if i.hmac_key_file else None, probe=(*PROGRAM, *i.probe[1:]) if i.probe else None) for i in wanted.instances
    )
    return replace(wanted, program=PROGRAM, script_user="root", instances=instances)


@pytest.mark.parametrize("name", CASES)
def test_every_golden_file_is_accepted_without_a_word_of_complaint(keepalived: Keepalived, name: str) -> None:
    case = load_case(name)
    if "auth_hmac" in case.text and not keepalived.features.hmac:
        refusal, _ = keepalived.check(here(case.topology, keepalived.folder))
        assert refusal is not None
        assert "auth_hmac" in refusal
        return
    refusal, said = keepalived.check(here(case.topology, keepalived.folder))
    assert (refusal, said) == (None, "")


@pytest.mark.timeout(120)
def test_whatever_the_config_accepts_keepalived_accepts(keepalived: Keepalived) -> None:
    @settings(SLOW, max_examples=15)
    @given(configs(most_nodes=20, most_vips=40))
    def check(config):
        root = root_of(config)
        refusal, said = keepalived.check(of(root, root.node, keepalived.features, folder=str(keepalived.folder)))
        assert (refusal, said) == (None, "")

    check()


def test_what_keepalived_refuses_is_told_in_one_sentence(keepalived: Keepalived) -> None:
    wanted = topology({"interface": "nope0"}, {})
    refusal, _ = keepalived.check(wanted)
    assert refusal is not None
    assert "nope0" in refusal
    assert "\n" not in refusal
    refusal, _ = keepalived.check(replace(wanted, instances=(replace(wanted.instances[1], priority=300),)))
    assert refusal is not None
    assert "300" in refusal
    assert str(keepalived.folder) not in refusal


def test_a_file_that_is_missing_is_refused_though_the_check_exits_with_0(keepalived: Keepalived) -> None:
    refusal, said = keepalived.ask({})
    assert "missing" in said
    assert refusal is not None
