"""Names are looked up without holding up anybody: one thread a name, whoever waits."""

from __future__ import annotations

import asyncio
import socket
import threading
import time
from typing import Any

import pytest

from edgekeeper.probe import lookup
from edgekeeper.probe.lookup import known, literal, places


def test_an_address_is_not_looked_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_a, **_k: pytest.fail("it was"))
    assert asyncio.run(places("192.0.2.1", 53)) == [(socket.AF_INET, ("192.0.2.1", 53))]
    assert asyncio.run(places("2001:db8::1", 53)) == [(socket.AF_INET6, ("2001:db8::1", 53, 0, 0))]
    assert literal("edge.example", 53) is None


def test_many_questions_wait_for_one_look_and_the_next_ones_look_again(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    go = threading.Event()

    def look(host: str, port: int, **_: Any) -> list[Any]:
        asked.append(host)
        go.wait(5)
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", ("192.0.2.7", port))]

    monkeypatch.setattr(socket, "getaddrinfo", look)

    async def story() -> None:
        waiting = [asyncio.create_task(places("edge.example", 1)) for _ in range(50)]
        await asyncio.sleep(0)
        waiting[0].cancel()  # its deadline: the others wait on
        await asyncio.sleep(0)
        go.set()
        found = await asyncio.gather(*waiting, return_exceptions=True)
        assert [one for one in found[1:] if one != [(socket.AF_INET, ("192.0.2.7", 1))]] == []
        await places("edge.example", 1)

    asyncio.run(story())
    assert len(asked) == 2


def test_who_asks_later_does_not_wait_for_a_look_that_hangs(monkeypatch: pytest.MonkeyPatch) -> None:
    go, asked = threading.Event(), []

    def look(_host: str, port: int, **_: Any) -> list[Any]:
        asked.append(port)
        if len(asked) == 1:
            go.wait(5)
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", ("192.0.2.7", port))]

    monkeypatch.setattr(socket, "getaddrinfo", look)
    monkeypatch.setattr(lookup, "SHARED_S", -1.0)

    async def story() -> None:
        first = asyncio.create_task(places("edge.example", 1))
        await asyncio.sleep(0)
        assert await asyncio.wait_for(places("edge.example", 1), 2) == [(socket.AF_INET, ("192.0.2.7", 1))]
        assert not first.done()
        go.set()
        assert await first

    asyncio.run(story())


def test_what_is_known_in_time_is_known_and_the_rest_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    go = threading.Event()

    def look(host: str, port: int, **_: Any) -> list[Any]:
        if host == "hangs.example":
            go.wait(5)
        if host != "edge.example":
            raise socket.gaierror(socket.EAI_NONAME, host)
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", ("192.0.2.7", port))]

    monkeypatch.setattr(socket, "getaddrinfo", look)
    found = known(["hangs.example", "nosuch.example", "edge.example", "192.0.2.9", "edge.example"], 0.1)
    assert {host: address[0] for host, (_, address) in found.items()} == {"edge.example": "192.0.2.7", "192.0.2.9": "192.0.2.9"}
    go.set()


def test_no_such_name_is_told_to_all_and_a_hanging_resolver_holds_up_no_end(monkeypatch: pytest.MonkeyPatch) -> None:
    go = threading.Event()

    def look(host: str, port: int, **_: Any) -> list[Any]:
        if host == "hangs.example":
            go.wait(5)
        raise socket.gaierror(socket.EAI_NONAME, f"{host} {port}")

    monkeypatch.setattr(socket, "getaddrinfo", look)

    async def story() -> None:
        with pytest.raises(socket.gaierror):
            await places("edge.example", 1)
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(places("hangs.example", 1), 0.01)

    began = time.monotonic()
    asyncio.run(story())
    assert time.monotonic() - began < 2
    go.set()
