"""What holds for every format of events: nothing that a log holds can break one, or reach a terminal."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.fakes.eventlines import context

from edgekeeper.report.formats import FORMATS, MIXED, Format, by_name, recognise
from edgekeeper.report.formats.bgp import FRR, GOBGP
from edgekeeper.report.formats.bird import BIRD
from edgekeeper.report.formats.cnpg import CNPG
from edgekeeper.report.formats.drill import DRILL
from edgekeeper.report.formats.journal import JOURNAL
from edgekeeper.report.formats.keepalived import KEEPALIVED, KEEPALIVED_FIFO
from edgekeeper.report.formats.kubectl import KUBECTL
from edgekeeper.report.formats.kubeevents import K8S_EVENTS
from edgekeeper.report.formats.kubeleases import K8S_LEASES
from edgekeeper.report.formats.netbird import NETBIRD
from edgekeeper.report.formats.probe import PROBE_RECORD
from edgekeeper.report.formats.told import LINE_MOST
from edgekeeper.report.formats.watchdog import WATCHDOG
from edgekeeper.report.kinds import NOT_TEXT, REASONS, Mark, Skip

LINES: dict[Format, bytes] = {
    FRR: b"2026/09/07 06:34:06.764 BGP: [PXVXG-TFNNT] %ADJCHANGE: neighbor 192.0.2.6(n1) in vrf default Down BGP Notification send",
    GOBGP: b'time="2026-09-07T06:34:06Z" level=info msg="Peer Down" Key=192.0.2.1 Reason=read-failed State=BGP_FSM_ESTABLISHED Topic=Peer',
    BIRD: b"2026-09-07 06:34:04.454 <TRACE> gw1: State changed to stop",
    KEEPALIVED: b"Mon Sep  7 06:35:03 2026: (VI_dns) Entering BACKUP STATE",
    KEEPALIVED_FIFO: b'2026-09-07T06:35:13.845 INSTANCE "VI_dns" FAULT 200',
    KUBECTL: b'2026-09-07T06:35:13Z error when evicting pods/"a-0" -n "b" (will retry after 5s): Cannot evict',
    K8S_EVENTS: b'{"kind":"Event","involvedObject":{"kind":"Pod","name":"a","namespace":"b"},"reason":"Killing","message":"m","lastTimestamp":"2026-09-07T04:52:41Z"}',
    K8S_LEASES: b'{"kind":"List","items":['
    b'{"kind":"Lease","metadata":{"name":"n1","namespace":"kube-node-lease"},"spec":{"holderIdentity":"n1","renewTime":"2026-09-07T04:52:41.2Z"}},'
    b'{"kind":"Lease","metadata":{"name":"n1","namespace":"kube-node-lease"},"spec":{"holderIdentity":"n1","renewTime":"2026-09-07T04:53:41.2Z"}}]}',
    CNPG: b'{"ts":"2026-09-07T04:52:42Z","msg":"Failing over","newPrimary":"tr-pg-2","controllerKind":"Cluster"}',
    NETBIRD: b"2026-09-07T07:11:26.508Z WARN client/client.go:126: couldn't fetch peer state: AAAA=",
    WATCHDOG: b'Sep 07 06:52:08 edge-1 x-watchdog[811]: fingerprint "f" seen, restart suppressed: cooldown 300s, last restart 41s ago',
    JOURNAL: b'{"schema":1,"ts":"2026-09-07T04:52:41.250Z","node":"e","role":"watch","event":"watch.cured","object":"p","decision":"act","why":"w","data":{"step":"s"}}',
    PROBE_RECORD: b'{"schema": 1, "ts": 1788756761.2, "target": "t", "conn": "fresh", "sent": 1.0, "done": 2.0, "ok": true, "id": "x"}',
    DRILL: b'{"schema": 1, "drill": "d", "cases": [{"case": "c", "timeline": [{"at_s": 1.0, "what": "w"}]}]}',
}


def read(form: Format, line: bytes) -> list[object]:
    found = form.parse(line, context(envelope_at=7.0))
    return found if isinstance(found, list) else [found]


@pytest.mark.parametrize("form", LINES, ids=lambda form: form.name)
def test_each_is_recognised_as_itself_and_nothing_else(form: Format) -> None:
    line = LINES[form]
    assert [one.name for one in FORMATS if one.likes(line)] == [form.name]
    assert recognise([line]) is form
    assert by_name(form.name) is form
    assert any(isinstance(one, Mark) or one is not None for one in read(form, line))


@given(data=st.data())
@settings(max_examples=25)
def test_no_bytes_break_a_format(data: st.DataObject) -> None:
    form = data.draw(st.sampled_from(list(LINES)))
    line = bytearray(LINES[form])
    for _ in range(data.draw(st.integers(0, 4))):
        at = data.draw(st.integers(0, len(line)))
        line[at : at + data.draw(st.integers(0, 6))] = data.draw(
            st.binary(max_size=6) | st.sampled_from((b'"', b"{", b"}", b"\x1b[2J", b"\n", b"9" * 5000, b"<script>"))
        )
    for one in (form, MIXED):
        one.likes(bytes(line))
        for item in read(one, bytes(line)):
            if isinstance(item, Mark):
                shown = (item.object, item.what, item.node, *item.data.values())
                assert all(len(word) <= 256 and word.isprintable() for word in shown if isinstance(word, str))
            elif isinstance(item, Skip):
                assert item.reason in REASONS


@pytest.mark.parametrize("form", LINES, ids=lambda form: form.name)
def test_lines_without_end_and_without_sense(form: Format) -> None:
    line = LINES[form]
    for one in (b"", b"\0" * 100, b"\xff\xfe" + line, line + b" " + b"x" * LINE_MOST * 4, line + b"\0", b"(" * LINE_MOST, b"[" * 200_000, b'{"a":' * 100_000):
        form.likes(one)
        read(form, one)


def test_binary_in_a_line_of_text_is_counted() -> None:
    assert read(FRR, LINES[FRR] + b"\0") == [Skip(NOT_TEXT)]


def test_a_machine_s_whole_log_is_mixed() -> None:
    syslog = [
        b"Sep  7 06:34:06 gw-1 bgpd[812]: [PXVXG-TFNNT] %ADJCHANGE: neighbor 192.0.2.6(n1) in vrf default Down",
        b"Sep  7 06:35:07 gw-1 Keepalived_vrrp[12]: (VI_dns) Entering MASTER STATE",
        b"Sep  7 06:35:08 gw-1 cron[12]: nothing",
        b"Sep  7 06:35:09 gw-1 Keepalived_vrrp[12]: (VI_dns) Entering BACKUP STATE",
    ]
    assert recognise(syslog) is MIXED
    around = context()
    found = [MIXED.parse(line, around) for line in syslog]
    assert [one.object if isinstance(one, Mark) else one for one in found] == ["192.0.2.6", "VI_dns", None, "VI_dns"]
    assert recognise([*[syslog[1]] * 40, syslog[0]]) is KEEPALIVED


def test_a_machine_s_log_whose_first_lines_say_nothing_is_mixed_too() -> None:
    dull = [b"Sep  7 06:34:%02d gw-1 systemd[1]: Started a session." % n for n in range(50)]
    assert recognise(dull) is MIXED
    assert recognise([b"Started a session."] * 50) is None
    assert recognise([b"Started a session."] * 50, journal=True) is MIXED
    assert recognise([*dull[:10], *[LINES[WATCHDOG]] * 20]) is WATCHDOG


def test_a_program_that_an_envelope_names_is_read_as_what_it_is() -> None:
    around = context(envelope_at=1000.0)
    for line, tag in ((b"(VI_dns) Entering MASTER STATE", "Keepalived_vrrp"), (b"gw1: Received: Hold timer expired", "bird"), (b"Stopping", "Keepalived_vrrp")):
        around.tag = tag
        found = MIXED.parse(line, around)
        assert found is not None, (line, tag)
    around.tag = "somebody"
    assert MIXED.parse(b"Stopping", around) is None
