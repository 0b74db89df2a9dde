from __future__ import annotations

from pathlib import Path

import pytest

from edgekeeper.doctor.checks import CHECKS
from edgekeeper.doctor.collect import configurations
from edgekeeper.doctor.collect_vips import collect_vips
from edgekeeper.doctor.examine import Examined, examine_vips
from edgekeeper.doctor.facts import KeepalivedFacts, ScriptFile
from edgekeeper.engines.keepalived.cfg import hosts
from edgekeeper.engines.keepalived.cfg_values import Source
from edgekeeper.model.finding import Severity

GOLDEN = Path(__file__).resolve().parents[2] / "golden"
CASES = sorted(path.parent for path in (GOLDEN / "keepalived-audit").glob("*/expect"))
OURS = sorted(path for path in (GOLDEN / "keepalived").glob("*/*.conf") if "check" not in path.name)


def examined(*files: Path) -> Examined:
    return examine_vips(collect_vips(configurations(files).keepalived))


def facts(*texts: str, scripts: dict[str, str] | None = None) -> KeepalivedFacts:
    found = tuple(host for name, text in zip("abc", texts, strict=False) for host in hosts(Source(name, text)))
    return KeepalivedFacts(found, {(name, path): ScriptFile(text) for name in "abc" for path, text in (scripts or {}).items()})


@pytest.mark.parametrize("case", CASES, ids=lambda path: path.name)
def test_configurations_as_people_run_them(case: Path) -> None:
    """All hosts of a case together, judged by hand: id, severity, file and line."""
    found = [f"{f.id} {f.severity} {Path(f.place.file).name}:{f.place.line}" for f in examined(*sorted(case.glob("*.conf"))).findings if f.place]
    assert sorted(found) == (case / "expect").read_text().splitlines()


def test_every_check_has_a_case_that_it_finds_and_one_that_it_does_not() -> None:
    told = [{line.split()[0] for line in (case / "expect").read_text().splitlines()} for case in CASES]
    for check in CHECKS:
        if check.engine == "keepalived":
            assert any(check.id in ids for ids in told), check.id
            assert any(check.id not in ids for ids in told) or check.severity is Severity.INFO, check.id


def test_what_we_render_ourselves_has_nothing_above_info() -> None:
    assert len(OURS) >= 5
    for file in OURS:
        assert [f for f in examined(file).findings if f.severity is not Severity.INFO] == [], file


def test_the_settings_of_the_kubeadm_guide_are_told_with_their_sum() -> None:
    """Measured with real engines: 31.3 s when the check fails at once, 34.3 s when it hangs for its two seconds."""
    found = examined(*sorted((GOLDEN / "keepalived-audit" / "01-kubeadm-guide").glob("*.conf")))
    late = next(f for f in found.findings if f.id == "VRP008")
    assert late.what == "a dead service keeps its VIP for up to 35.6s: check_apiserver"
    assert "29.6 to 33.6 s (3 s x 10 + 3 x 1 s adverts + 0.61 s skew)" in late.evidence
    assert "31.6 to 35.6 s (3 s x 10 + 2 s for the last look + 3 x 1 s adverts + 0.61 s skew)" in late.evidence
    (fault,) = found.faults
    assert fault.fails.least_s < 31.3 < fault.fails.most_s
    assert fault.hangs is not None
    assert fault.hangs.least_s < 34.3 < fault.hangs.most_s


PAIR = """\
global_defs {{
 enable_script_security
 script_user root
}}
vrrp_script s {{
 script "/usr/bin/curl -sf -m 0.5 http://127.0.0.1/"
 interval 1
 timeout 1
 fall 2
 weight {weight}
}}
vrrp_instance V {{
 state {state}
 {more}
 virtual_router_id 5
 interface eth0
 version 3
 advert_int 0.5
 priority {priority}
 virtual_ipaddress {{
  192.0.2.5/24
 }}
 track_script {{
  s
 }}
}}
"""


def pair(weight: int, high: int, low: int, *, state: str = "BACKUP", first: str = "", second: str = "") -> set[str]:
    texts = (PAIR.format(weight=weight, priority=high, state=state, more=first), PAIR.format(weight=weight, priority=low, state="BACKUP", more=second))
    return {f.id for f in examine_vips(facts(*texts)).findings if f.severity is not Severity.INFO}


@pytest.mark.parametrize(
    ("weight", "high", "low", "more", "wanted"),
    [
        (0, 110, 100, {}, set()),
        (-20, 110, 100, {}, set()),
        (20, 110, 100, {}, set()),  # both have it while they are well; the one that fails loses it
        (-10, 110, 100, {}, {"VRP009"}),  # as much as the other is not less
        (-2, 110, 100, {}, {"VRP009"}),
        (-20, 110, 100, {"second": "nopreempt"}, {"VRP009"}),
        (-20, 110, 100, {"first": "nopreempt"}, {"VRP009"}),  # once the second owns it
        (-20, 110, 100, {"first": "nopreempt", "second": "nopreempt", "state": "MASTER"}, {"VRP004", "VRP009"}),
        (0, 110, 100, {"first": "nopreempt", "second": "nopreempt"}, set()),
        (-20, 110, 100, {"second": "preempt_delay 60"}, {"VRP008"}),
        (-2, 255, 100, {}, {"VRP003", "VRP009"}),
        (0, 100, 100, {}, {"VRP005"}),
    ],
)
def test_weights_priorities_and_preemption(weight: int, high: int, low: int, more: dict[str, str], wanted: set[str]) -> None:
    assert pair(weight, high, low, **more) == wanted


def test_with_one_host_only_it_says_what_it_cannot_tell() -> None:
    text = PAIR.format(weight=-20, priority=110, state="BACKUP", more="")
    found = examine_vips(facts(text))
    assert [f.id for f in found.findings if f.severity is Severity.UNKNOWN] == ["VRP009"]
    assert found.not_judged[0][0] == ("VRP001", "VRP005", "VRP006", "VRP011")
    assert examine_vips(facts(text, text.replace("110", "100"))).not_judged == ()


def test_a_hang_until_the_timeout_takes_every_second_look() -> None:
    text = PAIR.format(weight=0, priority=110, state="BACKUP", more="").replace(' -sf -m 0.5 http://127.0.0.1/"', ' -sf http://127.0.0.1/"')
    (fault,) = examine_vips(facts(text)).faults
    assert fault.hangs is not None
    assert (round(fault.fails.most_s, 1), round(fault.hangs.most_s, 1)) == (2.5, 4.5)


def test_hosts_of_other_segments_are_left_alone() -> None:
    one = PAIR.format(weight=0, priority=110, state="BACKUP", more="")
    assert "VRP001" not in {f.id for f in examine_vips(facts(one, one.replace("192.0.2.5/24", "198.51.100.5/24"))).findings}
    assert "VRP001" in {f.id for f in examine_vips(facts(one, one.replace("192.0.2.5/24", "192.0.2.6/24"))).findings}
