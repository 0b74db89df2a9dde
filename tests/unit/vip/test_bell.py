"""Waiting for something about the VIPs to be so."""

from __future__ import annotations

import asyncio

from edgekeeper.vip.bell import Bell


def test_a_ring_makes_everybody_look_again_at_once() -> None:
    async def work() -> None:
        bell, so = Bell(), False
        waits = [asyncio.create_task(bell.until(lambda: so, 5, every_s=5)) for _ in range(3)]
        await asyncio.sleep(0)
        bell.ring()
        await asyncio.sleep(0)
        assert not any(wait.done() for wait in waits), "it was rung for something else"
        so = True
        bell.ring()
        assert await asyncio.wait_for(asyncio.gather(*waits), 1) == [True, True, True]

    asyncio.run(work())


def test_what_is_so_already_needs_no_ring_and_a_deadline_ends_the_wait() -> None:
    async def work() -> None:
        assert await Bell().until(lambda: True, 0)
        assert not await Bell().until(lambda: False, 0)
        assert not await Bell().until(lambda: False, 0.01, every_s=5)

    asyncio.run(work())


def test_it_is_looked_at_now_and_then_without_a_ring() -> None:
    async def work() -> None:
        looks = iter((False, False, True))
        assert await asyncio.wait_for(Bell().until(lambda: next(looks), 5, every_s=0.001), 1)

    asyncio.run(work())


def test_a_ring_while_nobody_waits_is_no_ring_for_later() -> None:
    async def work() -> None:
        bell, looks = Bell(), 0

        def look() -> bool:
            nonlocal looks
            looks += 1
            return False

        bell.ring()
        assert not await bell.until(look, 0.01, every_s=5)
        assert looks == 2, "once at the beginning, once at the end"

    asyncio.run(work())
