from __future__ import annotations

import asyncio

from edgekeeper.config.expose import Expose
from edgekeeper.expose.kinds import Claim, Origin, Place, Snapshot
from edgekeeper.expose.sources.together import Together, sources_of
from edgekeeper.host.clock import SystemClock


def expose(**more) -> Expose:
    said = {"owner": "home", "netbird": {"url": "https://netbird.example", "token_env": "T"}, "targets": {"default": "192.0.2.1", "x": {"service": "a/b"}}}
    return Expose.model_validate({**said, **more})


class Fixed:
    def __init__(self, snapshot: Snapshot) -> None:
        self.said = snapshot
        self.news = asyncio.Event()

    def snapshot(self) -> Snapshot:
        return self.said

    async def changed(self) -> None:
        await self.news.wait()
        self.news.clear()


def test_several_sources_are_whole_only_together_and_count_the_lists_that_all_have_read():
    one = Fixed(Snapshot((Claim(Origin("File", "", "a.example"), ("a.example",)),), {}, 7, whole=True))
    two = Fixed(Snapshot((), {"x": Place("192.0.2.9", 443)}, 3, whole=False, why="w", stale_s=4.0, service_cidr="192.0.2.0/24", absent=("TLSRoute",)))
    made = Together([one, two], expose()).snapshot()
    assert (made.lists, made.whole, made.why, made.stale_s, made.service_cidr, made.absent) == (3, False, "w", 4.0, "192.0.2.0/24", ("TLSRoute",))
    assert made.places == {"default": Place("192.0.2.1", 443), "x": Place("192.0.2.9", 443)}
    assert not made.unplaced
    alone = Together([one], expose()).snapshot()
    assert (alone.lists, alone.whole, set(alone.places), set(alone.unplaced)) == (7, True, {"default"}, {"x"})
    assert not Together([], expose()).snapshot().whole


def test_news_of_either_wakes_and_none_is_lost():
    async def story() -> None:
        one, two = Fixed(Snapshot((), {}, 0, whole=True)), Fixed(Snapshot((), {}, 0, whole=True))
        both = Together([one, two], expose())
        two.news.set()
        await both.changed()
        waiting = asyncio.create_task(both.changed())
        await asyncio.sleep(0)
        assert not waiting.done()
        one.news.set()
        await waiting

    asyncio.run(story())


def test_a_file_with_a_mistake_keeps_what_the_last_whole_one_said(tmp_path):
    path = tmp_path / "hosts.yaml"
    config = expose(sources={"ingress": False, "file": str(path)}, targets={"default": "192.0.2.1"})

    async def story() -> None:
        made = sources_of(config, SystemClock())
        assert not await made.relist()
        assert not made.snapshot().whole
        path.write_text("hosts: [a.example]\n")
        assert await made.relist()
        assert (made.snapshot().whole, made.snapshot().lists) == (True, 1)
        path.write_text("hosts: ['*.example']\n")
        assert not await made.relist()
        now = made.snapshot()
        assert ([claim.hosts for claim in now.claims], now.whole, now.lists) == ([("a.example",)], False, 1)
        assert "wildcard" in now.why

    asyncio.run(story())
