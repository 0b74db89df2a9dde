from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgekeeper.engines.haproxy.logline import DEBUG, ERROR, INFO, WARNING, parse_log


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("[NOTICE]   (42) : New worker (43) forked", (INFO, "New worker (43) forked")),
        ("[WARNING]  (42) : Exiting Master process...", (WARNING, "Exiting Master process...")),
        ("[ALERT]    (42) : Binding [x:9] for frontend a: cannot bind socket", (ERROR, "Binding [x:9] for frontend a: cannot bind socket")),
        ("[DIAG]     (42) : config : x", (DEBUG, "config : x")),
        ("Server web/web-a is DOWN, reason: Layer7 timeout", (WARNING, "Server web/web-a is DOWN, reason: Layer7 timeout")),
        ("Server web/web-a is UP, reason: Layer7 check passed", (INFO, "Server web/web-a is UP, reason: Layer7 check passed")),
        ("backend web has no server available!", (WARNING, "backend web has no server available!")),
        ("127.0.0.1:5 [30/Nov/2026] web-in web/<NOSRV> -1/-1/0 0 SC", (INFO, "127.0.0.1:5 [30/Nov/2026] web-in web/<NOSRV> -1/-1/0 0 SC")),
    ],
)
def test_level_and_text(line: str, found: tuple[int, str]) -> None:
    assert parse_log(line + "\n") == found


@pytest.mark.parametrize(
    "line",
    [
        "",
        "  ",
        "[WARNING]  (43) : Server web/web-a is DOWN, reason: Layer7 timeout",
        "[WARNING]  (43) : Health check for server web/web-a succeeded",
        "[WARNING]  (43) : Proxy web-in stopped (cumulated conns: FE: 294, BE: 0).",
        "Proxy web-in stopped (cumulated conns: FE: 294, BE: 0).",
        "[NOTICE]   (42) : haproxy version is 3.2.26-1",
        "[NOTICE]   (42) : path to executable is /usr/sbin/haproxy",
        "[WARNING]  (42) : Former worker (43) exited with code 0 (Exit)",
    ],
)
def test_what_another_line_says_too_or_each_reload_says_is_left_out(line: str) -> None:
    assert parse_log(line) is None


def test_a_worker_that_did_not_end_well_is_told() -> None:
    assert parse_log("[WARNING]  (42) : Former worker (43) exited with code 139 (Segmentation fault)") is not None


@given(st.text())
def test_any_line_is_read(line: str) -> None:
    found = parse_log(line)
    assert found is None or (found[0] in (DEBUG, INFO, WARNING, ERROR) and found[1])
