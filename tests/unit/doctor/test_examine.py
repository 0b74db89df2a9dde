from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.fakes.operator import carry_out

from edgekeeper.doctor.checks import BY_ID, CHECKS
from edgekeeper.doctor.examine import examine, in_order, is_failure
from edgekeeper.doctor.facts import HaproxyFacts, Unknown
from edgekeeper.engines.haproxy.cfg import Source, readings
from edgekeeper.model.finding import Finding, Place, Severity

CASES = sorted((Path(__file__).resolve().parents[2] / "golden" / "haproxy" / "audit").glob("*.cfg"))


def facts(text: str, *api_backends: str) -> HaproxyFacts:
    return HaproxyFacts(readings=readings([Source("haproxy.cfg", text)]), api_backends=frozenset(api_backends))


def found(text: str, *api_backends: str) -> list[tuple[str, str, int]]:
    return sorted((f.id, str(f.severity), f.place.line if f.place else 0) for f in examine(facts(text, *api_backends)).findings)


@pytest.mark.parametrize("case", CASES, ids=lambda path: path.stem)
def test_a_configuration_as_people_run_them(case: Path) -> None:
    """Each was made after a public one, with names and addresses exchanged, and judged by hand: id, severity, line."""
    lines = [line.split() for line in case.with_suffix(".expect").read_text().splitlines()]
    assert found(case.read_text()) == sorted((name, severity, int(line)) for name, severity, line in lines)


@pytest.mark.parametrize("case", CASES, ids=lambda path: path.stem)
def test_a_fix_that_is_carried_out_word_by_word_makes_its_finding_go_away(case: Path) -> None:
    """And brings no other that is worse than it."""
    text = case.read_text()
    before = examine(facts(text)).findings
    there = {(f.id, f.object) for f in before}
    for finding in before:
        after = carry_out(text, finding.fix)
        if after is not None:
            left = examine(facts(after)).findings
            assert (finding.id, finding.object) not in {(f.id, f.object) for f in left}, finding.fix
            assert not [f for f in left if (f.id, f.object) not in there and f.severity in {Severity.CRIT, Severity.HIGH}], finding.fix


def test_there_are_enough_of_them() -> None:
    assert len(CASES) >= 25
    assert {line.split()[0] for case in CASES for line in case.with_suffix(".expect").read_text().splitlines()} >= {
        "HAP001", "HAP003", "HAP004", "HAP005", "HAP006", "HAP007", "HAP008", "HAP014",
    }  # fmt: skip


HEAD = "global\n stats socket /run/x level admin mode 600\ndefaults\n mode tcp\n timeout client 1h\n timeout server 1h\n timeout check 1s\n"


def test_a_backend_that_a_port_does_not_tell_can_be_named() -> None:
    text = f"{HEAD}backend api\n server a 192.0.2.1:443 check\n server b 192.0.2.2:443 check\n"
    assert found(text) == [("HAP001", "WARN", 9)]
    assert found(text, "api") == [("HAP001", "HIGH", 9), ("HAP003", "HIGH", 9)]


def test_a_front_that_serves_other_ports_too_tells_nothing_of_its_backends() -> None:
    text = f"{HEAD}frontend f\n bind :443\n bind :6443\n default_backend web\nbackend web\n server a 192.0.2.1:443 check\n server b 192.0.2.2:443 check\n"
    assert found(text) == [("HAP001", "WARN", 13)]


def test_a_server_whose_health_another_tells_is_pinned_as_well() -> None:
    text = f"{HEAD}backend b\n server a 192.0.2.1:5432 track c/a\n server b 192.0.2.2:5432 track c/a\nbackend c\n mode http\n server a 192.0.2.1:80 check\n"
    assert ("HAP001", "HIGH", 9) in found(text)


def test_a_disabled_section_and_disabled_servers_are_left_alone() -> None:
    assert found(f"{HEAD}backend b\n disabled\n server a 192.0.2.1:6443 check\n") == []
    assert found(f"{HEAD}backend b\n server a 192.0.2.1:6443 check disabled\n") == []


@pytest.mark.parametrize("check", ["tcp-check\n tcp-check send GET\\ /readyz\\r\\n\n tcp-check expect string ok", "external-check"])
def test_a_check_that_expects_an_answer_can_see_silence(check: str) -> None:
    text = f"{HEAD}backend b\n option {check}\n default-server check on-marked-down shutdown-sessions\n"
    assert found(f"{text} server a 192.0.2.1:6443\n server b 192.0.2.2:6443\n") == []


def test_idle_timeouts_are_named_as_no_mitigation() -> None:
    text = f"{HEAD}backend b\n timeout server 50s\n server a 192.0.2.1:6443 check\n server b 192.0.2.2:6443 check\n"
    finding = next(f for f in examine(facts(text)).findings if f.id == "HAP001")
    assert "timeout server 50s does not help" in finding.why


def test_a_tunnel_timeout_is_the_one_that_counts_in_tcp_mode() -> None:
    text = f"{HEAD}backend b\n timeout server 5s\n timeout tunnel 1h\n option httpchk GET /readyz\n default-server check check-ssl verify none\n"
    servers = " server a 192.0.2.1:6443\n server b 192.0.2.2:6443\n"
    assert "HAP006" not in {name for name, _, _ in found(text + servers)}
    assert ("HAP006", "WARN", 10) in found(text.replace("tunnel 1h", "tunnel 20s") + servers)


@pytest.mark.parametrize("line", ["on-marked-down shutdown-sessions", "check inter 1s"])
def test_the_fix_says_where_the_words_go(line: str) -> None:
    text = f"{HEAD}backend b\n default-server {line}\n server a 192.0.2.1:3306 check\n server b 192.0.2.2:3306 check\n"
    for finding in examine(facts(text)).findings:
        if finding.id == "HAP001":
            assert finding.fix == "haproxy.cfg:9: add to this default-server:\n    on-marked-down shutdown-sessions"


@pytest.mark.parametrize("path", sorted((CASES[0].parents[1] / "rendered").glob("*.cfg")), ids=lambda path: path.name)
def test_what_we_render_ourselves_has_nothing_in_it(path: Path) -> None:
    assert found(path.read_text()) == []


@pytest.mark.parametrize(
    ("route", "wanted"),
    [
        ("use_backend open if { nbsrv(api) eq 0 }", []),
        ("acl dead nbsrv(api) lt 1\n use_backend open if dead", []),
        ("use_backend open if { src 192.0.2.1 }", ["HAP003"]),
        ("use_backend open if { nbsrv(api) eq 0 }\nfrontend g\n bind :8443\n default_backend open", ["HAP003"]),
    ],
)
def test_a_last_resort_without_checks_fails_open(route: str, wanted: list[str]) -> None:
    good = " option httpchk GET /readyz\n default-server check check-ssl verify none on-marked-down shutdown-sessions\n"
    servers = " server a 192.0.2.1:6443\n server b 192.0.2.2:6443\n"
    text = f"{HEAD}frontend f\n bind :6443\n {route}\n default_backend api\nbackend api\n{good}{servers}backend open\n{servers}"
    if "frontend g" in route:
        text = text.replace(" default_backend open\n default_backend api", " default_backend open\nfrontend h\n bind :6444\n default_backend api")
    assert [name for name, _, _ in found(text)] == wanted


LINES = st.sampled_from(
    [
        "a-directive-of-tomorrow on 5",
        "option not-known-yet",
        "filter spoe engine x",
        "# check on-marked-down",
        "stick on src",
        "acl x path_beg /check",
        "",
        "source 192.0.2.9",
    ]
)


@settings(max_examples=25)
@given(st.sampled_from(CASES), st.lists(st.tuples(st.integers(1, 200), LINES), min_size=1, max_size=4))
def test_directives_that_nobody_knows_change_nothing(case: Path, extra: list[tuple[int, str]]) -> None:
    lines = case.read_text().splitlines()
    first = [(f.id, f.severity, f.object, f.what) for f in examine(facts("\n".join(lines))).findings]
    for at, line in extra:
        lines.insert(min(at, len(lines)), f"    {line}")
    assert [(f.id, f.severity, f.object, f.what) for f in examine(facts("\n".join(lines))).findings] == first


def finding(name: str, severity: Severity, subject: str, line: int = 0) -> Finding:
    return Finding(name, severity, subject, "", "", "", "", (), Place("f", line) if line else None)


def test_worst_first_and_what_belongs_together_stays_together() -> None:
    many = [
        finding("HAP014", Severity.INFO, "a", 9),
        finding("HAP004", Severity.WARN, "b", 5),
        finding("HAP002", Severity.UNKNOWN, "z"),
        finding("HAP001", Severity.HIGH, "a", 8),
        finding("HAP008", Severity.HIGH, "c", 1),
    ]
    assert [f.id for f in in_order(many)] == ["HAP008", "HAP001", "HAP014", "HAP004", "HAP002"]


def test_what_counts_as_failure() -> None:
    unknown, info, warn = (finding("X", severity, "o") for severity in (Severity.UNKNOWN, Severity.INFO, Severity.WARN))
    assert not is_failure([unknown, info], Severity.WARN)
    assert is_failure([warn], Severity.WARN)
    assert not is_failure([warn], Severity.HIGH)
    assert not is_failure([unknown], Severity.INFO)
    assert is_failure([unknown], Severity.UNKNOWN)


def test_what_was_not_looked_at_is_said_and_what_could_not_be_read_is_unknown() -> None:
    text = f"{HEAD}backend b\n server a 192.0.2.1:80\n"
    ids = {name for many, _ in examine(facts(text)).not_judged for name in many}
    assert ids == {"HAP002", "HAP009", "HAP010", "HAP011", "HAP012", "HAP013", "HAP015", "NOD001"}
    deaf = HaproxyFacts(readings=facts(text).readings, runtime=Unknown("permission denied"))
    unknown = [f for f in examine(deaf).findings if f.severity is Severity.UNKNOWN]
    assert {f.id for f in unknown} == {"HAP002", "HAP011", "HAP012", "HAP013", "HAP015"}
    assert all(f.evidence == "permission denied" for f in unknown)


def test_only_and_skip_take_beginnings() -> None:
    text = "global\nbackend b\n server a 192.0.2.1:6443\n server b 192.0.2.1:6443\n"
    assert {f.id for f in examine(facts(text), only=["HAP003"]).findings} == {"HAP003"}
    assert {f.id for f in examine(facts(text), skip=["HAP003"]).findings} == {"HAP007"}
    assert examine(facts(text), skip=["HAP"]).findings == ()


def test_every_check_has_its_page_and_its_number() -> None:
    assert list(BY_ID) == [f"HAP{n:03}" for n in range(1, 16)] + ["NOD001"] + [f"VRP{n:03}" for n in (*range(1, 13), *range(15, 19), 20)]
    for check in CHECKS:
        page = check.markdown()
        assert page.startswith(f"# {check.id}: ")
        for part in (check.page.what, check.page.why, check.page.fix, check.page.others):
            assert len(part.split()) > 4, check.id


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("global\n stats socket ${RUN_DIR}/lb.sock level admin\n", []),
        ("global\n stats socket ${WHERE} level admin\n", []),
        ("global\n stats socket ${HOST}:9999 level admin\n", [("HAP008", "WARN", 2)]),
        ("global\n stats socket *:${PORT} level admin\n", [("HAP008", "HIGH", 2)]),
        ("global\n stats socket /x level admin\nlisten s\n mode http\n bind ${HOST}:80\n stats admin if TRUE\n", [("HAP008", "WARN", 6)]),
        ("global\n stats socket /x level admin\nlisten s\n mode http\n bind :80\n stats admin unless FALSE\n", [("HAP008", "HIGH", 6)]),
        ("global\n stats socket /x level admin\nlisten s\n mode http\n bind :80\n stats admin if TRUE inside\n", [("HAP008", "WARN", 6)]),
        ("global\n stats socket /x level admin\nlisten s\n mode http\n bind :80 ssl crt c ca-file a verify required\n stats admin if TRUE\n", []),
        ("global\n stats socket /x level admin\nlisten s\n mode http\n bind :80 ssl crt c verify optional\n stats admin if TRUE\n", [("HAP008", "HIGH", 6)]),
    ],
)
def test_what_a_variable_may_hide_is_never_called_high(text: str, wanted: list[tuple[str, str, int]]) -> None:
    assert found(text) == wanted


@pytest.mark.parametrize(
    ("uri", "blind"),
    [
        ("/readyz", False), ("/readyz?verbose", False), ("/livez/etcd", False), ("/healthz", False), ("/readyz?exclude=etcd-readiness", False),
        ("/livez/ping", True), ("/healthz/ping", True), ("/readyz?verbose&exclude=etcd", True), ("/version", True),
    ],
)  # fmt: skip
def test_a_path_that_is_answered_without_etcd(uri: str, *, blind: bool) -> None:
    server = "192.0.2.1:6443 check check-ssl on-marked-down shutdown-sessions fall 1"
    text = f"{HEAD}backend b\n option httpchk GET {uri}\n server a {server}\n server b {server}\n"
    assert found(text) == ([("HAP003", "HIGH", 9)] if blind else [])
