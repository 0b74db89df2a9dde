"""The head of an HTTP answer."""

from __future__ import annotations

import pytest

from edgekeeper.probe.http import parse_head


def test_status_and_headers() -> None:
    assert parse_head(b"HTTP/1.1 503 Service Unavailable\r\nContent-Length: 3\r\nX-A:b\r\n\r\n") == (503, {"content-length": "3", "x-a": "b"})
    assert parse_head(b"HTTP/1.0 200\r\n\r\n") == (200, {})


@pytest.mark.parametrize("head", [b"\r\n\r\n", b"SSH-2.0-x\r\n\r\n", b"HTTP/1.1 abc\r\n\r\n", b"HTTP/2 200\r\n\r\n"])
def test_what_is_not_http(head: bytes) -> None:
    with pytest.raises(ValueError, match="not HTTP"):
        parse_head(head)
