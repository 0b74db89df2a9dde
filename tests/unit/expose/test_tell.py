from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

import pytest

from edgekeeper.expose.kinds import Origin, Remark
from edgekeeper.expose.news import next_due
from edgekeeper.expose.tell import FORBIDDEN_S, Teller
from edgekeeper.kube.errors import Absent, Forbidden, Invalid
from edgekeeper.kube.objects import Ingress

ORIGIN = Origin("Ingress", "shop", "web", "u", 1.0)


class Clock:
    now = 100.0

    def monotonic(self) -> float:
        return self.now

    def wall(self) -> float:
        return 1_796_000_000.9


class Server:
    """Stands for the API: writes down what it is asked, and fails as told."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, Any]] = []
        self.fails: Exception | None = None
        self.shut = ""

    async def create(self, obj: Any) -> None:
        self.said("create", obj)

    async def patch(self, kind: Any, name: str, body: Any, *, namespace: str) -> None:
        self.said("patch", body)

    def said(self, verb: str, what: Any) -> None:
        self.asked.append((verb, what))
        if self.fails is not None:
            raise self.fails
        if self.shut and what.metadata.namespace == self.shut:
            msg = f"namespace {self.shut} is being terminated"
            raise Forbidden(msg)


@pytest.fixture
def server() -> Server:
    return Server()


def teller_on(server: Server) -> Teller:
    return Teller(server, Clock(), prefix="edgekeeper.io", kind_of=lambda name: Ingress if name == "Ingress" else None)


async def every_event(teller: Teller) -> list[float]:
    return [await teller._attempt("Events", teller._event(name), 1.0, teller._book[name].remark.origin.namespace) for name in list(teller._book)]


def test_a_missing_right_is_told_once_and_so_is_its_return(server, caplog):
    async def story() -> None:
        teller = teller_on(server)
        server.fails = Forbidden("may not create events")
        teller.remark([Remark(ORIGIN, "BadHost", "x")])
        with caplog.at_level("INFO", "edgekeeper"):
            pauses = [await every_event(teller) for _ in range(4)]
            assert pauses == [[1.0], [1.0], [1.0], [FORBIDDEN_S]]
            assert [record.event for record in caplog.records] == ["expose.untold"]
            assert teller.untold
            server.fails = None
            assert await every_event(teller) == [1.0]
            assert [record.event for record in caplog.records] == ["expose.untold", "expose.told"]
            assert (teller.untold, teller.events) == ("", 1)

    asyncio.run(story())


@pytest.mark.parametrize("failure", [Invalid("too long"), Absent("no such object")])
def test_what_can_never_be_written_is_not_tried_for_ever(server, failure):
    async def story() -> None:
        teller = teller_on(server)
        server.fails = failure
        teller.status({ORIGIN: {"www.example": "active"}}, lambda _: "")
        teller.remark([Remark(ORIGIN, "BadHost", "x")])
        await teller._attempt("status annotations", teller._annotate(ORIGIN, teller._queue[ORIGIN]), 1.0, "shop")
        await every_event(teller)
        assert not teller._queue
        assert len(server.asked) == 2
        assert not [name for name in teller._book if teller._book[name].wrote is None]

    asyncio.run(story())


def test_an_event_is_on_one_line_whatever_an_object_is_called(server):
    async def story() -> None:
        teller = teller_on(server)
        teller.remark([Remark(ORIGIN, "BadHost", "a\n\x1b[2Jb" * 400)])
        await every_event(teller)
        (_, event), = server.asked  # fmt: skip
        assert event.message.isprintable()
        assert event.involvedObject.apiVersion == "networking.k8s.io/v1"
        assert event.metadata.namespace == "shop"

    asyncio.run(story())


def test_a_namespace_that_takes_no_events_holds_up_no_other(server):
    async def story() -> None:
        teller = teller_on(server)
        going, well = replace(ORIGIN, namespace="going"), replace(ORIGIN, namespace="well")
        teller.remark([Remark(going, "BadHost", "x"), Remark(going, "BadHost", "y"), Remark(well, "Published", "z", warning=False)])
        server.shut = "going"
        for _ in range(2):
            name = next_due(teller._book, 0.0, teller._closed("Events"))
            await teller._attempt("Events", teller._event(name), 1.0, teller._book[name].remark.origin.namespace)
        assert [what.metadata.namespace for _, what in server.asked] == ["going", "well"]
        assert next_due(teller._book, 0.0, teller._closed("Events")) is None
        teller._clock.now += FORBIDDEN_S + 1
        assert next_due(teller._book, 0.0, teller._closed("Events")) is not None

    asyncio.run(story())
