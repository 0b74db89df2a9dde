"""Errors in plain words."""

from __future__ import annotations

import asyncio
import socket
import ssl

import pytest

from edgekeeper.probe.wire import plain_words


@pytest.mark.parametrize(
    ("err", "words"),
    [
        (TimeoutError(), "timed out"),
        (ConnectionRefusedError(111, "Connection refused"), "refused"),
        (ConnectionResetError(), "connection ended"),
        (asyncio.IncompleteReadError(b"", 2), "connection ended"),
        (socket.gaierror(-2, "Name or service not known"), "no such name"),
        (OSError(113, "No route to host"), "no route to host"),
        (ssl.SSLError(1, "x"), "TLS: "),
    ],
)
def test_words(err: BaseException, words: str) -> None:
    assert plain_words(err).startswith(words)
