"""A probe's id in the path of any access log is a mark that two clocks share; nothing else is."""

from __future__ import annotations

import pytest

from edgekeeper.report.formats import recognise
from edgekeeper.report.formats.base import Context
from edgekeeper.report.kinds import Kind, Mark, Request

LINES = {
    "traefik-json": '{{"ClientAddr":"192.0.2.7:4000","DownstreamStatus":200,"Duration":2000000,"RequestPath":"{path}","RouterName":"a@file","StartUTC":"2026-09-07T04:55:10.5Z"}}',
    "traefik-clf": '192.0.2.7 - - [07/Sep/2026:04:55:10 +0000] "GET {path} HTTP/2.0" 200 9 "-" "curl" 7 "a@file" "http://192.0.2.9:80" 2ms',
    "combined": '192.0.2.7 - - [07/Sep/2026:04:55:10 +0000] "GET {path} HTTP/1.1" 200 9 "-" "curl"',
    "haproxy": '192.0.2.7:4000 [07/Sep/2026:04:55:10.500] in apps/s1 0/0/1/2/3 200 9 - - ---- 1/1/0/0/0 0/0 "GET {path} HTTP/1.1"',
    "envoy": '[2026-09-07T04:55:10.500Z] "GET {path} HTTP/1.1" 200 - 0 9 2 1 "192.0.2.7" "curl" "id" "a.example" "192.0.2.9:80"',
}


def parsed(name: str, path: str) -> list[object]:
    line = LINES[name].format(path=path).encode()
    kind = recognise([line])
    assert kind is not None
    assert kind.name == name
    found = kind.parse(line, Context(source="edge"))
    return list(found) if isinstance(found, list) else [found]


@pytest.mark.parametrize("name", LINES)
def test_the_id_of_a_probe_is_a_mark_beside_the_request(name: str) -> None:
    request, mark = parsed(name, "/ready?x=1&kp=edge-1-17")
    assert isinstance(request, Request)
    assert isinstance(mark, Mark)
    assert (mark.kind, mark.object, mark.at, mark.data) == (Kind.CLOCK, "edge-1-17", request.start, {"side": "logged"})
    assert mark.stamp_s == (1.0 if name in {"traefik-clf", "combined"} else mark.stamp_s)
    assert mark.source == "edge"


@pytest.mark.parametrize("path", ["/", "/kp=1", "/?skp=1", "/?kp=", f"/?kp={'a' * 65}"])
@pytest.mark.parametrize("name", LINES)
def test_what_only_looks_like_one_is_none(name: str, path: str) -> None:
    assert [type(one) for one in parsed(name, path)] == [Request]
