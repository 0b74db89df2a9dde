from __future__ import annotations

import time

import pytest

from edgekeeper.engines.keepalived.cfg_health import LONGEST, Look, look
from edgekeeper.engines.keepalived.cfg_values import Script
from edgekeeper.model.finding import Place


def seen(command: str, text: str | None = None) -> Look:
    return look(Script("s", Place("f", 1), tuple(command.split())), text)


@pytest.mark.parametrize(
    ("command", "kind", "limit", "blind"),
    [
        ("killall -0 haproxy", "process", None, True),
        ("/usr/bin/systemctl is-active --quiet nginx", "process", None, True),
        ("/bin/kill -0 `cat /run/x.pid`", "process", None, True),
        ("nc -z -w 1 127.0.0.1 80", "connect", 1, True),
        ("/usr/bin/curl -sfk --max-time 2 https://127.0.0.1:6443/readyz", "ask", 2, False),
        ("curl -fsSLm1.5 http://127.0.0.1/", "ask", 1.5, False),
        ("curl -s -m 2 http://127.0.0.1/", "ask", 2, True),
        ("curl -f http://127.0.0.1/", "ask", None, True),
        ("timeout -k 1 0.9 dig @127.0.0.1 x.example", "ask", 0.9, False),
        ("dig +time=2 +tries=2 @127.0.0.1 x.example", "ask", 4, False),
        ("/usr/bin/edgekeeper vip probe --tcp 127.0.0.1:6443", "ask", 0.9, False),
        ("/opt/check.pl", "other", None, False),
    ],
)
def test_a_command_line(command: str, kind: str, limit: float | None, blind: bool) -> None:
    found = seen(command)
    assert (found.kind, found.limit_s, bool(found.blind)) == (kind, limit, blind)


def test_a_script_is_read_with_its_variables() -> None:
    text = '#!/bin/sh\nVIP=192.0.2.10\n# curl -f --max-time 1 http://192.0.2.99/\ncurl -sk --max-time 2 "https://$VIP:6443/" || exit 1\n'
    found = seen("/etc/keepalived/check.sh", text)
    assert (found.kind, found.limit_s, found.asked) == ("ask", 2, {"192.0.2.10"})
    guarded = text + "if ip -4 addr show | grep -q $VIP; then :; fi\n"
    assert seen("/x", guarded).asked == frozenset()
    assert "without -f" in found.blind[0]


@pytest.mark.parametrize(
    ("text", "kind", "blind"),
    [
        ("#!/bin/bash\nif ! pidof haproxy; then exit 1; fi\n", "process", True),
        ("#!/bin/bash\nexec 3<>/dev/tcp/127.0.0.1/53\n", "connect", True),
        ('#!/bin/sh\n[ "$(curl -s -m 1 -o /dev/null -w %{http_code} http://127.0.0.1/)" = 200 ]\n', "ask", False),
        ("#!/bin/sh\npidof nginx || exit 1\ncurl -sf -m 1 http://127.0.0.1/\n", "ask", False),
        ("#!/usr/bin/python3\nimport os\nos.system('pidof x')\n", "other", False),
        ("#!/bin/sh\necho nothing known\n", "other", False),
    ],
)
def test_what_a_script_passes_on(text: str, kind: str, blind: bool) -> None:
    found = seen("/x", text)
    assert (found.kind, bool(found.blind)) == (kind, blind)


def test_only_what_keepalived_itself_ends_ends_well() -> None:
    assert seen("/usr/bin/dig +time=1 @127.0.0.1 x.example").may_end_well
    assert not seen("timeout 0.9 dig +time=1 @127.0.0.1 x.example").may_end_well
    assert not seen("/x", "#!/bin/sh\ndig +time=1 @127.0.0.1 x.example\n").may_end_well


@pytest.mark.parametrize("text", ["ip a ", "curl | ", "${A}", "A=B\n", "(" * 3, "1:", "/dev/tcp/"])
def test_a_long_script_is_read_in_no_time(text: str) -> None:
    began = time.process_time()
    seen("/x", "#!/bin/sh\nA=" + "b" * 300 + "\n" + text * (LONGEST // len(text)))
    assert time.process_time() - began < 1
