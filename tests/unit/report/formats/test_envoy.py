from __future__ import annotations

import pytest

from edgekeeper.report import kinds
from edgekeeper.report.formats.base import Context
from edgekeeper.report.formats.envoy import Envoy
from edgekeeper.report.formats.stamps import utc
from edgekeeper.report.kinds import Request, Skip

AT = utc(2026, 9, 7, 4, 55, 12.25)
DEFAULT = '[2026-09-07T04:55:12.250Z] "GET /a HTTP/2" {code} {flags} 0 2099 12 11 "{xff}" "{agent}" "0f3c" "git.example" "198.51.100.18:3000"'
ISTIO = (
    '[2026-09-07T04:55:12.250Z] "GET /a HTTP/2" {code} {flags} via_upstream - "-" 0 2099 12 11 "{xff}" "{agent}" "0f3c" "git.example" '
    '"198.51.100.18:3000" outbound|80||git.example 192.0.2.5:40 198.51.100.1:80 192.0.2.9:44 - default'
)


def parse(text: str, code: int = 200, flags: str = "-", xff: str = "192.0.2.41", agent: str = "git/2") -> object:
    line = text.format(code=code, flags=flags, xff=xff, agent=agent).encode()
    found = Envoy().parse(line, Context())
    assert Envoy().likes(line) == isinstance(found, Request)
    return found


@pytest.mark.parametrize("text", [DEFAULT, ISTIO])
def test_a_line_of_either_format(text: str) -> None:
    assert parse(text) == Request(AT, 0.012, 200, router="git.example", client="192.0.2.41")
    assert parse(text, agent='a" "b" "forged.example" "c') == Request(AT, 0.012, 200, router="git.example", client="192.0.2.41")


@pytest.mark.parametrize(
    ("code", "flags", "expected"),
    [
        (503, "UH", (None, 503, "no endpoint")),
        (503, "UF,URX", (None, 503, "no connection")),
        (503, "URX,UF", (None, 503, "no connection")),
        (504, "UT", (None, 504, "timed out")),
        (404, "NR", (None, 404, "no route")),
        (503, "UO", (None, 503, "the proxy")),
        (503, "-", (None, 503, "the application")),
        (0, "DC", (None, 499, "the client left")),
        (0, "UF", (True, 0, "no connection")),
        (0, "-", (False, 0, "")),
    ],
)
def test_the_flags_say_why(code: int, flags: str, expected: tuple[bool | None, int, str]) -> None:
    found = parse(DEFAULT, code, flags)
    assert isinstance(found, Request)
    assert (found.bad, found.status, found.cause) == expected


def test_of_a_forwarded_list_only_the_last_was_not_written_by_the_client() -> None:
    found = parse(DEFAULT, xff="203.0.113.9, 192.0.2.41")
    assert isinstance(found, Request)
    assert found.client == "192.0.2.41"


def test_what_is_not_envoys() -> None:
    assert Envoy().parse(b"[2026-11-30 17:41:33.123][12][info][main] starting", Context()) is None
    assert parse('[2026-09-07T04:55:12.250Z] "GET" 200 - 1 2 3 4 "x" "y"') == Skip(kinds.NOT_THIS_FORMAT)
    assert parse("") == Skip(kinds.NOT_THIS_FORMAT)
    assert Envoy().parse(DEFAULT.replace("09-07", "09-31").format(code=200, flags="-", xff="-", agent="").encode(), Context()) == Skip(kinds.NO_TIME)
