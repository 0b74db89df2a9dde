"""A service of another mode, which is deleted and made anew: whatever happens between the two, nothing that was set in it is lost."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

import pytest

from edgekeeper.errors import LockHeldError, MissingError, StepFailedError
from edgekeeper.expose import body
from edgekeeper.expose.apply import _unbroken, apply
from edgekeeper.expose.kinds import Service

from .written import Journal, Mesh, action, api, http, made, only, run

# another mode ---------------------------------------------------------------------------------


def test_a_service_of_another_mode_is_deleted_and_made_anew_with_its_restrictions():
    mesh = Mesh(http())
    assert run([action("migrate", "a", http())], mesh)[0].done
    assert mesh.done == [("DELETE", "a"), ("POST", "a")]
    now = mesh.there["id-a"].raw
    assert (now["mode"], now["auth"], now["access_restrictions"]) == ("tls", {}, {"allowed_cidrs": ["192.0.2.0/24"]})


@pytest.mark.parametrize("error", [api("invalid", 422), api("broken"), MissingError("nobody is there")])
def test_when_making_it_fails_the_one_before_is_put_back_as_it_was(error):
    errors = [error]
    mesh = Mesh(http(), fails=lambda method, host: errors.pop() if method == "POST" and errors else None)
    (outcome,) = run([action("migrate", "a", http())], mesh)
    assert (outcome.kind, mesh.done) == (getattr(error, "kind", "unreachable"), [("DELETE", "a"), ("POST", "a"), ("POST", "a")])
    assert outcome.why.endswith("the service before was put back")
    back = mesh.there["id-a"].raw
    assert {key: back[key] for key in http().raw if key not in body.ONLY_ANSWERED} == {
        key: value for key, value in http().raw.items() if key not in body.ONLY_ANSWERED
    }


def test_what_cannot_be_put_back_either_is_told_whole():
    journal = Journal()
    mesh = Mesh(http(), fails=only("POST", api("broken")))
    (outcome,) = run([action("migrate", "a", http())], mesh, journal=journal)
    assert outcome.kind == "lost"
    assert "the next pass makes it anew" in outcome.why
    assert "192.0.2.0/24" in journal.entries[0].why
    assert mesh.there == {}


@pytest.mark.parametrize("lost", [["DELETE"], ["POST"], ["DELETE", "POST"]])
@pytest.mark.parametrize("carried_out", [True, False])
def test_an_answer_that_is_lost_between_the_two_loses_no_service(lost, carried_out):
    class Losing(Mesh):
        async def _call(self, method: str, host: str) -> None:
            if method == "POST" and f"id-{host}" in self.there:
                raise api("taken", 409)
            await super()._call(method, host)

        async def create(self, body: Mapping[str, Any], /) -> Service:
            await self._lose("POST", super().create(body))
            return made("a")

        async def remove(self, service_id: str, /) -> bool:
            await self._lose("DELETE", super().remove(service_id))
            return True

        async def _lose(self, method: str, act: Any) -> None:
            if method not in lost:
                await act
                return
            lost.remove(method)
            if carried_out:
                await act
            act.close()
            raise api("broken", unsure=True)

    lost = list(lost)
    mesh = Losing(http())
    (outcome,) = run([action("migrate", "a", http())], mesh)
    assert mesh.there["id-a"].raw["access_restrictions"] == {"allowed_cidrs": ["192.0.2.0/24"]}
    assert outcome.kind in {"", "broken", "taken"}


def test_who_is_cancelled_between_the_two_ends_after_both_and_says_so():
    journal, mesh = Journal(), Mesh(http())
    mesh.turns = 10

    async def story() -> None:
        task = asyncio.create_task(apply([action("migrate", "a", http()), action("create", "b")], mesh, journal, concurrency=1, may=lambda: None))
        while ("DELETE", "a") not in mesh.done:  # noqa: ASYNC110 - it takes turns of the loop, not time
            await asyncio.sleep(0)
        for _ in range(2):  # the second one is a person's second Ctrl-C
            task.cancel()
            await asyncio.sleep(0)
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(story())
    assert mesh.done == [("DELETE", "a"), ("POST", "a")]
    assert mesh.there["id-a"].raw["mode"] == "tls"
    assert [entry.decision for entry in journal.entries] == ["act"]


def test_what_must_not_be_broken_off_is_not_however_often_it_is_cancelled():
    async def story() -> None:
        go, ended = asyncio.Event(), []

        async def act() -> None:
            await go.wait()
            ended.append(True)

        task = asyncio.create_task(_unbroken(act()))
        for _ in range(3):
            await asyncio.sleep(0)
            task.cancel()
        await asyncio.sleep(0)
        assert not task.done()
        go.set()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert ended

    asyncio.run(story())


def test_one_that_cannot_be_deleted_is_left_as_it_is():
    mesh = Mesh(http(), fails=only("DELETE", api("broken")))
    (outcome,) = run([action("migrate", "a", http())], mesh)
    assert (outcome.kind, mesh.done) == ("broken", [("DELETE", "a")])
    assert mesh.there["id-a"] == http()


class Shelf:
    """What a migration keeps until it is there again; every change is in ``seen`` beside the calls of the mesh."""

    def __init__(self, mesh: Mesh, *, full: bool = False) -> None:
        self.mesh, self.full = mesh, full
        self.kept: dict[str, Any] = {}

    def __call__(self, host: str, raw: Mapping[str, Any] | None) -> None:
        if raw is None:
            self.kept.pop(host, None)
            return
        if self.full:
            msg = "the disk is full"
            raise StepFailedError(msg)
        assert self.mesh.done == []  # before anything is deleted
        self.kept[host] = raw


def test_what_is_about_to_be_deleted_is_kept_until_it_is_there_again():
    for fails, stays in (
        (lambda *_: None, False),
        (only("DELETE", api("not_allowed", 403)), False),
        (only("DELETE", LockHeldError("the lead is lost")), False),
        (only("POST", api("broken")), True),
        (only("POST", api("taken", 409)), False),
    ):
        mesh = Mesh(http(), fails=fails)
        shelf = Shelf(mesh)
        run([action("migrate", "a", http())], mesh, keep=shelf)
        assert shelf.kept == ({"a": http().raw} if stays else {})
    mesh = Mesh()
    shelf = Shelf(mesh)
    shelf.kept["a"] = http().raw
    run([action("create", "a")], mesh, keep=shelf)
    assert shelf.kept == {}


def test_what_cannot_be_kept_is_not_deleted():
    mesh = Mesh(http())
    (outcome,) = run([action("migrate", "a", http())], mesh, keep=Shelf(mesh, full=True))
    assert (outcome.done, outcome.why, mesh.done) == (False, "the disk is full", [])
