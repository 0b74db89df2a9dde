"""The role while another one holds the Lease."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any, cast

from tests.fakes.journal import Journal
from tests.fakes.turned import TurnedClock, turned

from edgekeeper.expose.role import ExposeRole


def test_what_the_last_pass_has_raised_is_not_told_by_one_that_does_not_lead_any_more():
    async def story() -> None:
        ground: Any = SimpleNamespace(node="edge-a", clock=TurnedClock(), journal=Journal())
        role = ExposeRole(cast("Any", None), ground)
        role.seen.leads, role.seen.last = True, cast("Any", "a pass")
        role.alarms.set("deletions", "5 of 6 services would go")
        election: Any = SimpleNamespace(leads=True, holder="edge-a_1", me="edge-a_1", why="we hold the Lease")
        following = asyncio.create_task(role._follow_lease(election))
        await asyncio.sleep(5)
        assert "deletions" in role.alarms.raised
        role.seen.leads = election.leads = False
        await asyncio.sleep(5)
        assert "deletions" in role.alarms.raised, "nobody else leads yet"
        election.holder = "edge-b_1"
        await asyncio.sleep(5)
        assert not role.alarms.raised
        assert role.seen.last is None
        following.cancel()

    turned(story())
