"""What `edgekeeper audit` calls a mistake, beside what the real `keepalived -t` says of the same file, version by version."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from edgekeeper.doctor.collect import configurations
from edgekeeper.doctor.collect_vips import collect_vips
from edgekeeper.doctor.examine import examine_vips
from edgekeeper.model.finding import Severity

from .keepaliveds import _UNSHARE, _WITHIN, SUITES

pytestmark = [pytest.mark.engine, pytest.mark.root]
GOLDEN = Path(__file__).resolve().parents[1] / "golden" / "keepalived-audit"

HEAD = "global_defs {\n enable_script_security\n script_user root\n vrrp_version 3\n}\n"
SCRIPT = "vrrp_script s {\n script /usr/bin/env\n interval 1\n timeout 1\n fall 2\n}\n"
OWN = "virtual_router_id 5\n interface eth0\n priority 100\n virtual_ipaddress {\n  192.0.2.5/24\n }\n track_script {\n  s\n }\n"
GOOD = f"{HEAD}{SCRIPT}vrrp_instance A {{\n state BACKUP\n {OWN}}}\n"

CASES: dict[str, tuple[str, str | None, str | None]] = {
    "good": (GOOD, None, None),
    "vrid-twice": (GOOD + f"vrrp_instance B {{\n {OWN.replace('.5/', '.6/')}}}\n", "VRP002", "VRID"),
    "nopreempt-as-master": (GOOD.replace("state BACKUP", "state MASTER\n nopreempt"), "VRP004", "nopreempt will not work"),
    "preempt-delay-as-master": (GOOD.replace("state BACKUP", "state MASTER\n preempt_delay 5"), "VRP004", "preempt delay will not work"),
    "preempt-delay-and-nopreempt": (GOOD.replace("state BACKUP", "nopreempt\n preempt_delay 5"), "VRP004", "incompatible"),
    "password-in-version-3": (
        GOOD.replace("state BACKUP", "authentication {\n  auth_type PASS\n  auth_pass abc\n }"),
        "VRP010",
        "does not support authentication",
    ),
    "long-password": (
        GOOD.replace("vrrp_version 3", "vrrp_version 2").replace("state BACKUP", "authentication {\n  auth_type PASS\n  auth_pass abcdefghijk\n }"),
        "VRP010",
        "runcating auth_pass",
    ),
    "fraction-in-version-2": (GOOD.replace("vrrp_version 3", "vrrp_version 2").replace("state BACKUP", "advert_int 0.4"), "VRP011", "must be an integer"),
    "no-peers": (GOOD.replace("state BACKUP", "unicast_src_ip 192.0.2.11"), "VRP015", "without any unicast peers"),
    "two-families": (GOOD.replace("  192.0.2.5/24", "  192.0.2.5/24\n  2001:db8::5/64"), "VRP016", "address family must match"),
    "brace-too-few": (GOOD.replace("fall 2\n}", "fall 2\n"), "VRP020", "missing '}'"),
    "brace-too-many": (GOOD + "}\n", "VRP020", "'}'"),
    "not-tracked": (GOOD.replace("  s\n", "  t\n"), "VRP007", "track script t not found"),
    "include-of-nothing": ("include nowhere.conf\n" + GOOD, "VRP020", "Config files missing"),
    # what only we see
    "itself-as-peer": (GOOD.replace("state BACKUP", "unicast_src_ip 192.0.2.11\n unicast_peer {\n  192.0.2.11\n }"), "VRP006", None),
    "owner": (GOOD.replace("priority 100", "priority 255"), "VRP003", None),
    "owner-by-state": (GOOD.replace("priority 100", "state MASTER").replace("state BACKUP", ""), "VRP003", None),
    "through-the-vip": (GOOD.replace("/usr/bin/env", '"/usr/bin/env curl -sf -m 0.5 http://192.0.2.5/"'), "VRP018", None),
    "blind": (GOOD.replace("/usr/bin/env", '"/usr/bin/env pidof x"'), "VRP012", None),
    "nothing-watched": (GOOD.replace("track_script {\n  s\n }", "").replace(SCRIPT, ""), "VRP007", None),
}
"""A file; which check tells of it, and what keepalived says itself (None: nothing)."""


class Checker:
    """``keepalived -t`` of one version, in a namespace with the interfaces."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def says(self, file: Path, *more: str) -> tuple[int, str]:
        argv = [*_UNSHARE, "sh", "-c", _WITHIN, "sh", "eth0 eth1", str(self.path), "-t", "-f", str(file), *more]
        done = subprocess.run(argv, capture_output=True, text=True, timeout=20, check=False, cwd=file.parent)
        assert done.returncode != 99, done.stderr
        return done.returncode, done.stdout + done.stderr


@pytest.fixture(params=SUITES)
def keepalived(request: pytest.FixtureRequest, real_engine: Callable[..., Path]) -> Checker:
    return Checker(real_engine(SUITES[request.param], "keepalived"))


def told(*files: Path) -> set[str]:
    return {f.id for f in examine_vips(collect_vips(configurations(files).keepalived)).findings if f.severity not in {Severity.INFO, Severity.UNKNOWN}}


@pytest.mark.parametrize("name", CASES)
def test_a_mistake_is_one_for_both_or_only_for_us(keepalived: Checker, name: str, tmp_path: Path) -> None:
    text, ours, theirs = CASES[name]
    file = tmp_path / "keepalived.conf"
    file.write_text(text)
    assert told(file) == ({ours} if ours else set())
    code, said = keepalived.says(file)
    if theirs is None:
        assert (code, said) == (0, "")
    else:
        assert theirs in said
        assert code != 0 or name in {"no-peers", "include-of-nothing"}


def test_a_file_for_two_hosts_is_read_as_keepalived_reads_it(keepalived: Checker, tmp_path: Path) -> None:
    """Conditions, definitions of one line and of several, braces: what we read without a finding it reads without a word, as either of them."""
    file = tmp_path / "keepalived.conf"
    file.write_text((GOLDEN / "09-two-in-one" / "keepalived.conf").read_text().replace("script_user keepalived_script", "script_user root"))
    assert told(file) == set()
    for name in "ab":
        assert keepalived.says(file, "-i", name) == (0, "")
