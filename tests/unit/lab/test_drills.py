"""The registry: names, promises and cases hang together."""

from __future__ import annotations

import pytest

from edgekeeper.errors import UsageError
from edgekeeper.lab.drills import DRILLS
from edgekeeper.lab.run import chosen

VERSIONS = {
    "dnsdist": ((1, 7, 3), (1, 9, 16), (2, 1, 3)),
    "haproxy": ((2, 6, 12), (3, 0, 11), (3, 2, 26)),
    "dockerd": ((20, 10, 24), (26, 1, 5), (28, 5, 2)),
    "kube-apiserver": ((1, 20, 2),),
    "keepalived": ((2, 2, 7), (2, 3, 3), (2, 3, 4)),
}


def test_every_drill_of_the_design_is_there() -> None:
    assert set(DRILLS) == {
        "dns-member-killed",
        "dns-member-frozen",
        "dns-member-changed",
        "dns-members-rolled",
        "dns-deployment-rolled",
        "dns-bad-config",
        "dns-supervisor-killed",
        "dns-supervisor-frozen",
        "dns-slow-member",
        "dns-upstream-dead",
        "dns-member-kinds",
        "dns-certificate-rotated",
        "dns-wrong-node",
        "dns-engine-restarted",
        "dns-member-killed-dot",
        "lb-blackhole",
        "lb-blackhole-after-reload",
        "lb-guard",
        "lb-all-slow",
        "lb-maint",
        "lb-kubelet",
        "lb-reloads",
        "lb-taken-port",
        "lb-reload-down",
        "lb-supervisor-killed",
        "vip-drained",
        "vip-drain-aborted",
        "vip-drained-tcp",
        "vip-stopped",
        "vip-killed",
        "vip-frozen",
        "vip-service-dead",
        "vip-service-blackhole",
        "vip-partition",
        "vip-two-owners",
        "vip-resumed",
        "vip-keepalived-killed",
        "vip-cold-start",
        "vip-all-members-dead",
        "vip-supervisor-killed",
        "vip-supervisor-frozen",
        "vip-reloaded",
        "vip-kubeadm",
        "dns-and-vip",
        "watch-wedge",
        "watch-wedge-in-cooldown",
        "watch-forged-lines",
        "watch-rotation",
        "watch-management-down",
        "watch-pair",
        "expose-empty-list",
        "expose-two-owners",
        "expose-restrictions",
        "expose-rate-limit",
    }


@pytest.mark.parametrize("drill", DRILLS.values(), ids=lambda d: d.name)
def test_every_case_promises_something_to_every_version_that_can_do_it(drill: object) -> None:
    names = [c.name for c in drill.cases]  # type: ignore[attr-defined]
    assert len(set(names)) == len(names)
    for case in drill.cases:  # type: ignore[attr-defined]
        assert case.unit == "queries" or any(p.figure == case.headline and p.unit == case.unit for p in case.promises)
        for version in VERSIONS[drill.engine]:  # type: ignore[attr-defined]
            assert version < case.since or any(p.applies(version) for p in case.promises)
        assert case.compare == any(p.figure == "more_than_plain" for p in case.promises)
        assert not (case.alone and (case.compare or case.plain))


def test_choosing() -> None:
    ((drill, cases),) = chosen(["dns-member-killed/retry-fast"])
    assert drill.name == "dns-member-killed"
    assert [c.name for c in cases] == ["retry-fast"]
    assert len(chosen([], everything=True)) == len(DRILLS)


@pytest.mark.parametrize(("names", "why"), [([], "no drill is named"), (["nope"], "there is no drill 'nope'"), (["dns-bad-config/x"], "it has defaults")])
def test_choosing_wrongly(names: list[str], why: str) -> None:
    with pytest.raises(UsageError, match=why):
        chosen(names)
