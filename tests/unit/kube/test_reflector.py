from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from typing import Any

import pytest
from tests.fakes.kubeapi import FOR_EVER, Stub, answer, expired_line, ingress, line, listing, status
from tests.fakes.turned import Still

from edgekeeper.kube.objects import Ingress
from edgekeeper.kube.reflector import PROVING_S, Reflector


def host(obj: Ingress) -> str | None:
    found = obj.spec.rules[0].host if obj.spec and obj.spec.rules else None
    return None if found == "hidden.example" else found


class Told:
    """A copy that runs on a script of answers, and what it looked like at each change."""

    def __init__(self, *answers: Any, project: Callable[[Ingress], str | None] = host, **times: float) -> None:
        self.clock = Still()
        self.stub = Stub(*answers)
        self.looks: list[dict[str, str]] = []
        self.copy = Reflector(self.stub.api(**times), Ingress, clock=self.clock, project=project, changed=self._look, chance=lambda: 0.0)

    def _look(self) -> None:
        self.looks.append({name: value for (_, name), value in self.copy.items.items()})
        self.clock.now += 1

    async def run(self, until: Callable[[], bool]) -> None:
        running = asyncio.create_task(self.copy.run())
        async with asyncio.timeout(5):
            while not until():  # noqa: ASYNC110 -- each turn of the loop is a step of the copy
                await asyncio.sleep(0)
        running.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await running

    def questions(self) -> list[str]:
        asked = [request.url.params for request in self.stub.asked]
        return [f"watch {one['resourceVersion']}" if "watch" in one else "version" if one.get("limit") == "1" else "list" for one in asked]


def test_a_list_and_the_events_after_it():
    told = Told(
        lambda: listing(ingress("a", "1"), ingress("h", "2", "hidden.example")),
        lambda: answer(
            line("ADDED", ingress("b", "11", "b.example")),
            line("MODIFIED", ingress("a", "12", "hidden.example")),
            line("BOOKMARK", {"metadata": {"resourceVersion": "20"}}),
            line("DELETED", ingress("h", "21", "hidden.example")),
            line("DELETED", ingress("b", "22", "b.example")),
            FOR_EVER,
        ),
    )
    asyncio.run(told.run(lambda: len(told.looks) == 4))
    assert told.looks == [{"a": "a.example"}, {"a": "a.example", "b": "b.example"}, {"b": "b.example"}, {}]
    assert (told.copy.told, told.copy.lists, told.copy.synced, told.copy.why) == (4, 1, True, "")


def test_a_change_of_what_is_not_kept_is_not_told():
    told = Told(lambda: listing(ingress("a", "1")), lambda: answer(line("MODIFIED", ingress("a", "12"))), lambda: answer(FOR_EVER))
    asyncio.run(told.run(lambda: len(told.stub.asked) == 3))
    assert told.looks == [{"a": "a.example"}]
    assert told.questions() == ["list", "watch 10", "watch 12"]


def test_an_empty_cluster_is_told_once():
    told = Told(listing, lambda: answer(FOR_EVER))
    asyncio.run(told.run(lambda: len(told.stub.asked) == 2))
    assert told.looks == [{}]


@pytest.mark.parametrize("gone", [lambda: answer(expired_line()), lambda: answer(status(410, "too old"), status=410)], ids=["in the stream", "at once"])
def test_what_was_deleted_while_the_version_expired_is_told(gone):
    told = Told(
        lambda: listing(ingress("a", "1"), ingress("b", "2")),
        gone,
        lambda: listing(ingress("b", "2"), ingress("c", "30"), version="31"),
        lambda: answer(FOR_EVER),
    )
    asyncio.run(told.run(lambda: len(told.stub.asked) == 4))
    assert told.looks == [{"a": "a.example", "b": "a.example"}, {"b": "a.example", "c": "a.example"}]
    assert told.questions() == ["list", "watch 10", "list", "watch 31"]


def test_a_server_that_is_back_and_has_forgotten_is_asked_for_the_list_without_another_pause():
    down = OSError("down")
    told = Told(listing, down, down, listing, lambda: answer(expired_line()), listing, lambda: answer(FOR_EVER))
    asyncio.run(told.run(lambda: len(told.stub.asked) == 7))
    assert told.questions() == ["list", "watch 10", "version", "version", "watch 10", "list", "watch 10"]
    assert told.stub.times[5] - told.stub.times[4] < 0.1


def test_a_cluster_that_has_lost_the_version_is_listed_anew_however_well_a_watch_goes_on():
    told = Told(
        lambda: listing(ingress("a", "1")),
        OSError("down"),
        lambda: listing(ingress("b", "2"), version="9", go_on="t"),
        lambda: listing(ingress("b", "2"), version="9"),
        lambda: answer(FOR_EVER),
    )
    asyncio.run(told.run(lambda: len(told.stub.asked) == 5))
    assert told.questions() == ["list", "watch 10", "version", "list", "watch 9"]
    assert told.looks == [{"a": "a.example"}, {"b": "a.example"}]


def test_after_some_failures_the_list_is_read_once_however_many_there_were():
    down = OSError("down")
    told = Told(listing, answer, down, down, down, down, lambda: listing(version="20"), answer, lambda: answer(FOR_EVER))
    asyncio.run(told.run(lambda: len(told.stub.asked) == 9))
    assert told.questions() == ["list", "watch 10", "watch 10", "version", "version", "list", "list", "watch 20", "watch 20"]


def test_a_broken_watch_goes_on_from_its_last_event_without_a_list_and_is_proved_by_a_short_one():
    told = Told(listing, lambda: answer(line("ADDED", ingress("a", "11")), b'{"torn'), lambda: listing(version="12"), lambda: answer(FOR_EVER))
    asyncio.run(told.run(lambda: len(told.stub.asked) == 4))
    assert told.questions() == ["list", "watch 10", "version", "watch 11"]
    assert "middle of an event" in told.copy.why
    assert [request.url.params.get("timeoutSeconds") for request in told.stub.asked] == [None, "10", None, str(PROVING_S)]


def test_a_list_that_fails_in_its_middle_changes_nothing():
    told = Told(
        lambda: listing(ingress("a", "1"), ingress("b", "2")),
        lambda: answer(expired_line()),
        lambda: listing(ingress("c", "3"), go_on="t"),
        lambda: answer(b"", status=500),
        lambda: answer(FOR_EVER),
    )
    asyncio.run(told.run(lambda: len(told.stub.asked) == 5))
    assert told.looks == [{"a": "a.example", "b": "a.example"}]
    assert told.copy.why


def test_pages_that_expire_are_followed_by_a_list_in_one_page():
    told = Told(lambda: listing(ingress("a", "1"), go_on="t"), lambda: answer(status(410, "expired"), status=410), listing, lambda: answer(FOR_EVER))
    asyncio.run(told.run(lambda: len(told.stub.asked) == 4))
    assert [request.url.params.get("limit") for request in told.stub.asked[:3]] == ["500", "500", None]


def test_a_page_that_comes_too_slowly_is_followed_by_smaller_ones_until_one_comes():
    """As over a line of which a page of 500 is more than it carries within the deadline."""
    told = Told(lambda: answer(FOR_EVER), lambda: answer(FOR_EVER), listing, lambda: answer(expired_line()), listing, lambda: answer(FOR_EVER), timeout_s=0.01)
    asyncio.run(told.run(lambda: len(told.stub.asked) == 6))
    assert [request.url.params.get("limit") for request in told.stub.asked] == ["500", "166", "55", None, "110", None]


def test_a_kind_that_is_not_installed_is_told_and_takes_nothing_away():
    told = Told(lambda: listing(ingress("a", "1")), lambda: answer(expired_line()), lambda: answer(b"404 page not found", status=404))
    asyncio.run(told.run(lambda: told.copy.absent))
    assert told.looks == [{"a": "a.example"}]


def test_its_age_counts_from_when_the_server_was_last_heard():
    told = Told(listing, lambda: answer(line("ADDED", ingress("a", "11")), FOR_EVER))
    assert told.copy.stale_s() is None
    asyncio.run(told.run(lambda: len(told.looks) == 2))
    told.clock.now += 40
    assert told.copy.stale_s() == 40


def test_what_nobody_foresaw_makes_it_old_instead_of_ending_it(caplog):
    def project(obj: Ingress) -> str | None:
        if obj.metadata is not None and obj.metadata.name == "odd":
            raise KeyError(obj.metadata.name)
        return host(obj)

    told = Told(lambda: listing(ingress("a", "1")), lambda: answer(line("ADDED", ingress("odd", "11"))), listing, lambda: answer(FOR_EVER), project=project)
    asyncio.run(told.run(lambda: len(told.stub.asked) == 4))
    assert (told.looks, "KeyError" in told.copy.why) == ([{"a": "a.example"}], True)
    assert told.questions()[3] == "watch 10"
    assert "KeyError" in caplog.text
