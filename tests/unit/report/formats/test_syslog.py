from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from edgekeeper.report.formats import syslog
from edgekeeper.report.formats.base import Context
from edgekeeper.report.formats.stamps import utc
from edgekeeper.report.formats.syslog import Head

AT = utc(2026, 11, 29, 20, 33, 29)


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("Nov 29 20:33:29 lb-1 haproxy[13498]: hello", Head(AT, 1.0, "lb-1", "haproxy", "hello")),
        ("<134>Nov 29 20:33:29 haproxy[13498]: hello", Head(AT, 1.0, "", "haproxy", "hello")),
        ("Nov 29 20:33:29.250000 lb-1 haproxy[13498]: hello: you", Head(AT + 0.25, 1e-6, "lb-1", "haproxy", "hello: you")),
        ("2026-11-29T21:33:29.250+01:00 lb-1 Keepalived_vrrp[1]: (VI) x", Head(AT + 0.25, 1e-3, "lb-1", "Keepalived_vrrp", "(VI) x")),
        ("2026-11-29T21:33:29+0100 lb-1 bgpd[1]: x", Head(AT, 1.0, "lb-1", "bgpd", "x")),
        ("<30>1 2026-11-29T20:33:29.25Z lb-1 haproxy 13498 - - hello", Head(AT + 0.25, 1e-2, "lb-1", "haproxy", "hello")),
        ('<30>1 2026-11-29T20:33:29Z lb-1 haproxy - id [a b="x]y\\""][c] \ufeffhello', Head(AT, 1.0, "lb-1", "haproxy", "hello")),
        ("<30>1 - - app - - - hello", Head(None, 1.0, "", "app", "hello")),
    ],
)
def test_every_dress_of_syslog(line: str, expected: Head) -> None:
    found = syslog.head(line, Context(until=AT))
    assert found is not None
    assert found._replace(stamp_s=0) == expected._replace(stamp_s=0)
    assert found.stamp_s == pytest.approx(expected.stamp_s)


@pytest.mark.parametrize(
    "line",
    [
        "2026-09-07T07:11:26.508Z WARN client/internal/routemanager/client.go:126: couldn't",
        "2026/11/29 20:33:49.961 BGP: [N9HHH-F8H1M] %ADJCHANGE: neighbor 192.0.2.6(Unknown) in vrf default Up",
        "Sun Nov 29 20:35:03 2026: (VI_dns) Entering BACKUP STATE",
        "192.0.2.41:52562 [29/Nov/2026:20:33:29.834] web apps/app-1 0/0/0/1/1 200 116",
        "<30>1 2026-11-29T20:33:29Z lb-1 haproxy - id [never closed",
    ],
)
def test_what_is_no_syslog(line: str) -> None:
    assert syslog.head(line, Context(until=AT)) is None


@settings(max_examples=40)
@given(st.text(max_size=60), st.sampled_from(["", "Nov 29 20:33:29 ", "<30>1 - - app - - ", "<30>1 - - app - - [a "]))
def test_nothing_raises(text: str, start: str) -> None:
    syslog.head(start + text, Context())
