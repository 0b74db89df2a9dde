from __future__ import annotations

import json

from edgekeeper.report import kinds
from edgekeeper.report.formats.base import Context
from edgekeeper.report.formats.sessions import LbSessions, ShowSess
from edgekeeper.report.formats.stamps import utc
from edgekeeper.report.kinds import Kind, Mark, Skip

AT = utc(2026, 11, 29, 20, 33, 46)
LINE = (
    b"0x7f8364046880: proto=tcpv4 src=192.0.2.41:57976 fe=k8s-api be=cp srv=cp-2 ts=00 epoch=0 age=16s calls=3 rate=0 cpu=0 lat=0 "
    b"rq[f=848000h,i=0,an=00h,rx=44s,wx=,ax=] rp[f=80048000h,i=0,an=00h,rx=44s,wx=,ax=] scf=[8,0h,fd=14] scb=[8,1h,fd=15] exp=44s rc=0 c_exp="
)


def test_a_dump_is_dated_by_the_line_before_it_or_by_its_file() -> None:
    context = Context(until=AT + 100, node="lb-1")
    first = ShowSess().parse(LINE, context)
    assert ShowSess().parse(b"# at 2026-11-29T20:33:46Z", context) is None
    second = ShowSess().parse(LINE, context)
    assert isinstance(first, Mark)
    assert isinstance(second, Mark)
    assert (first.at, second.at) == (AT + 100, AT)
    assert (second.kind, second.object, second.node) == (Kind.PINNED, "cp/cp-2", "lb-1")
    assert second.data == {"client": "192.0.2.41", "age_s": 16.0, "down": None}


def test_lines_that_are_no_session_with_a_server() -> None:
    assert ShowSess().parse(LINE.replace(b"be=cp srv=cp-2", b"be=<NONE> srv=<none>"), Context()) is None
    assert ShowSess().parse(b"", Context()) is None
    assert ShowSess().parse(b"total: 3", Context()) == Skip(kinds.NOT_THIS_FORMAT)


def test_our_own_listing_says_which_servers_are_down() -> None:
    row = {"client": "192.0.2.41:57976", "host": "192.0.2.41", "backend": "cp", "server": "cp-2", "age_s": 16.5, "pinned": True, "why": "down"}
    line = b"    " + json.dumps(row).encode() + b","
    found = LbSessions().parse(line, Context(until=AT))
    assert isinstance(found, Mark)
    assert found.data == {"client": "192.0.2.41", "age_s": 16.5, "down": True}
    assert LbSessions().likes(line)
    for other in (b'{"schema": 1,', b'  "sessions": [', b"}", line.replace(b"true", b"1")):
        assert LbSessions().parse(other, Context(until=AT)) is None
