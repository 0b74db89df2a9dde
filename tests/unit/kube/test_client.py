from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Coroutine
from typing import Any

import httpx2
import pytest
from tests.fakes.kubeapi import BREAKS, FOR_EVER, SERVER, Stub, answer, expired_line, ingress, line, listing, status

from edgekeeper.errors import EdgekeeperError
from edgekeeper.kube.errors import Expired, Forbidden, Unreachable
from edgekeeper.kube.objects import EndpointSlice, Ingress, Pod

OTHERS = ("http://192.0.2.2:6443", "http://192.0.2.3:6443")


def run(story: Coroutine[Any, Any, Any]) -> Any:
    return asyncio.run(story)


async def seen(events: AsyncGenerator[tuple[str, Any], None]) -> tuple[list[tuple[str, str]], EdgekeeperError | None]:
    """What a watch gave, and how it ended."""
    got = []
    try:
        async for what, obj in events:
            got.append((what, obj.metadata.resourceVersion))
    except EdgekeeperError as err:
        return got, err
    return got, None


def watched(*parts: Any, kind: Any = Ingress, **times: float) -> tuple[list[tuple[str, str]], EdgekeeperError | None]:
    return run(seen(Stub(lambda: answer(*parts)).api(**times).watch(kind, version="1")))


def test_a_watch_gives_events_and_bookmarks_and_ends_in_good_order():
    one, two = line("ADDED", ingress("a", "2")), line("BOOKMARK", {"metadata": {"resourceVersion": "9"}})
    assert watched(one, two) == ([("ADDED", "2"), ("BOOKMARK", "9")], None)
    assert watched(one[:20], one[20:] + two[:5], two[5:], b"\n") == ([("ADDED", "2"), ("BOOKMARK", "9")], None)
    assert watched() == ([], None)


def test_a_watch_of_slices_takes_null_for_no_endpoints():
    parts = line("MODIFIED", {"addressType": "IPv4", "metadata": {"name": "s", "namespace": "n", "resourceVersion": "5"}, "endpoints": None})
    assert watched(parts, kind=EndpointSlice) == ([("MODIFIED", "5")], None)


@pytest.mark.parametrize(
    ("last", "kind", "words"),
    [
        (expired_line(), Expired, "too old resource version"),
        (b'{"type":"ADDED","object":{"meta', Unreachable, "middle of an event"),
        (b'{"type":"ADDED"}\n', Unreachable, "cannot be read"),
        (b"<html>504</html>\n", Unreachable, "cannot be read"),
        (line("ERROR", {"message": "etcdserver: leader changed", "code": 500}), Unreachable, "leader changed"),
        (BREAKS, Unreachable, "peer closed connection"),
    ],
)
def test_what_came_before_a_watch_went_wrong_is_true(last, kind, words):
    got, err = watched(line("ADDED", ingress("a", "2")), last)
    assert got == [("ADDED", "2")]
    assert isinstance(err, kind)
    assert words in str(err)


def test_a_silent_watch_has_lost_its_server():
    got, err = watched(line("ADDED", ingress("a", "2")), FOR_EVER, silence_s=0.01)
    assert got == [("ADDED", "2")]
    assert "did not answer within 0.01 s" in str(err)


def test_a_version_that_is_refused_at_once_is_expired_too():
    stub = Stub(lambda: answer(status(410, "The resourceVersion for the provided watch is too old."), status=410))
    assert isinstance(run(seen(stub.api().watch(Ingress, version="1")))[1], Expired)


def test_a_watch_asks_for_bookmarks_a_window_and_the_version():
    stub = Stub(answer)
    run(seen(stub.api().watch(Ingress, namespace="shop", labels="a=b", version="41", window_s=3)))
    asked = stub.asked[0].url
    assert asked.path == "/apis/networking.k8s.io/v1/namespaces/shop/ingresses"
    assert dict(asked.params) == {"watch": "true", "resourceVersion": "41", "allowWatchBookmarks": "true", "timeoutSeconds": "3", "labelSelector": "a=b"}


def test_a_list_is_read_in_pages_and_is_full_or_an_error():
    stub = Stub(lambda: listing(ingress("a", "1"), go_on="token="), lambda: listing(ingress("b", "2"), version="12"))
    listed = run(stub.api().list(Ingress, chunk=1))
    assert [one.metadata.name for one in listed.items] == ["a", "b"]
    assert listed.version == "12"
    assert [request.url.params.get("continue") for request in stub.asked] == [None, "token="]
    failing = Stub(lambda: listing(ingress("a", "1"), go_on="token="), lambda: answer(b"", status=500))
    with pytest.raises(Unreachable):
        run(failing.api().list(Ingress))


def test_who_asks_once_asks_every_server_until_one_answers_and_changes_nothing_at_a_second_one():
    away = (httpx2.ConnectError("refused"), lambda: answer(FOR_EVER))
    first, none, writing = Stub(*away, listing), Stub(*away, lambda: answer(b"", status=503)), Stub(*away, lambda: answer(b"{}"))
    times = {"servers": OTHERS, "timeout_s": 0.01}
    assert not run(first.api(**times).list(Ingress)).items
    with pytest.raises(Unreachable):
        run(none.api(**times).list(Ingress))
    assert [str(request.url.host) for request in none.asked] == ["192.0.2.1", "192.0.2.2", "192.0.2.3"]
    with pytest.raises(Unreachable):
        run(writing.api(**times).delete(Pod, "a", namespace="shop"))
    assert len(writing.asked) == 1


def test_pages_that_expire_are_followed_by_one_list_of_all():
    stub = Stub(
        lambda: listing(ingress("a", "1"), go_on="t"), lambda: answer(status(410, "expired"), status=410), lambda: listing(ingress("b", "2"), ingress("c", "3"))
    )
    assert [one.metadata.name for one in run(stub.api().list(Ingress)).items] == ["b", "c"]
    assert "limit" not in stub.asked[2].url.params


def test_a_silent_server_is_followed_by_the_next_one_in_turn_under_the_name_that_the_certificate_has():
    stub = Stub(listing, httpx2.ConnectError("refused"), lambda: answer(FOR_EVER), lambda: answer(b"", status=503), listing)

    async def story() -> list[str]:
        api = stub.api(servers=OTHERS, name="api.example", timeout_s=0.01)
        await api.list(Ingress)
        for _ in range(3):
            with pytest.raises(Unreachable):
                await api.list(Ingress)
        await api.list(Ingress)
        await api.list(Ingress)
        return [str(request.url.host) for request in stub.asked]

    assert run(story()) == ["192.0.2.1", "192.0.2.1", "192.0.2.2", "192.0.2.3", "192.0.2.1", "192.0.2.1"]
    assert {request.extensions["sni_hostname"] for request in stub.asked} == {"api.example"}


def test_an_answer_that_we_do_not_like_is_no_reason_to_ask_another_server():
    stub = Stub(lambda: answer(status(403, "no"), status=403))

    async def story() -> str:
        api = stub.api(servers=OTHERS)
        with pytest.raises(Forbidden):
            await api.list(Ingress)
        return api.server

    assert run(story()) == SERVER


def test_at_one_address_no_other_is_asked():
    stub = Stub(httpx2.ConnectError("refused"))

    async def story() -> None:
        api = stub.api(servers=OTHERS).at(OTHERS[1])
        for _ in range(2):
            with pytest.raises(Unreachable, match=r"192\.0\.2\.3"):
                await api.get(Pod, "a", namespace="n")

    run(story())


class Renewed:
    """A login whose token is another one when it was refused."""

    def __init__(self) -> None:
        self.tokens = 0

    async def header(self, *, fresh: bool = False) -> str:
        self.tokens += fresh
        return f"Bearer t{self.tokens}"


@pytest.mark.parametrize("ask", ["list", "watch"])
def test_a_refused_token_is_renewed_once(ask):
    async def story(stub: Stub) -> list[str]:
        api = stub.api(login=Renewed())
        if ask == "list":
            await api.list(Ingress)
        elif (err := (await seen(api.watch(Ingress, version="1")))[1]) is not None:
            raise err
        return [request.headers["Authorization"] for request in stub.asked]

    assert run(story(Stub(lambda: answer(b"{}", status=401), listing if ask == "list" else answer))) == ["Bearer t0", "Bearer t1"]
    stub = Stub(lambda: answer(b"{}", status=401))
    with pytest.raises(Forbidden, match="does not know who asks"):
        run(story(stub))
    assert len(stub.asked) == 2


def test_nothing_is_one_answer_and_a_kind_that_is_not_there_another():
    assert run(Stub(lambda: answer(status(404, "not found"), status=404)).api().get(Pod, "a", namespace="n")) is None


def test_a_name_is_quoted():
    stub = Stub(lambda: answer(b"{}"))
    run(stub.api().get(Pod, "a?dryRun=All#x", namespace="n"))
    assert stub.asked[0].url.raw_path == b"/api/v1/namespaces/n/pods/a%3FdryRun%3DAll%23x"


def test_an_answer_that_is_too_long_is_not_kept(monkeypatch):
    monkeypatch.setattr("edgekeeper.kube.client._MOST", 10)
    monkeypatch.setattr("edgekeeper.kube.client._LINE_MOST", 10)
    with pytest.raises(Unreachable, match="more than 10 bytes"):
        run(Stub(lambda: answer(b"x" * 8, b"x" * 8)).api().list(Ingress))
    assert "more than 10 bytes" in str(watched(b"x" * 8, b"x" * 8)[1])
