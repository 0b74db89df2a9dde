"""Each member probes the others: a node's way to its own address is not the way of its clients, and stays well into a wedge."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

from edgekeeper.watch.seams import Answer, Asker
from edgekeeper.watch.siblings import Place
from edgekeeper.watch.siblingsay import Seen, SiblingView

HEARD_S = 3.0
"""When no sibling that asks has been heard for so long, this node asks itself."""

OUTSTANDING = 4
"""Rounds under way for one sibling at the same time: a service that hangs is asked again before the timeout."""

_PACES = frozenset({"armed", "wanted", "curing", "proving"})


class OnBehalf:
    """Asks the services of the siblings, each by its own targets, for ever; ``told`` goes into the status.

    Each ``every_s``, and while a sibling is armed or wants a cure each ``confirm_every_s``, while it proves one each ``proof_every_s``.
    ``timeout_s`` is that of one round.
    """

    def __init__(self, place: Place, askers: Mapping[str, Asker], *, every_s: float, confirm_every_s: float, proof_every_s: float, timeout_s: float) -> None:
        self._place = place
        self._askers = askers
        self._every_s = every_s
        self._confirm_every_s = confirm_every_s
        self._proof_every_s = proof_every_s
        self._timeout_s = timeout_s
        self._found: dict[str, Answer] = {}

    async def follow(self) -> None:
        """Ask for ever."""
        async with asyncio.TaskGroup() as group:
            for i, (node, asker) in enumerate(self._askers.items()):
                group.create_task(self._follow(node, asker, i / len(self._askers) * self._every_s, group))

    async def _follow(self, node: str, asker: Asker, delay_s: float, group: asyncio.TaskGroup) -> None:
        await asyncio.sleep(delay_s)  # not all at once
        clock = self._place.siblings.clock
        under_way: set[asyncio.Task[None]] = set()
        while True:
            asked = clock.monotonic()
            if len(under_way) < OUTSTANDING:
                task = group.create_task(self._ask(node, asker))
                under_way.add(task)
                task.add_done_callback(under_way.discard)
            while (left := asked + self._period_s(node) - clock.monotonic()) > 0:
                await self._place.siblings.news(left)  # which may say that it is armed by now

    async def _ask(self, node: str, asker: Asker) -> None:
        answer = await asker.ask()
        if not answer.known or answer.stale(self._place.siblings.clock.monotonic(), self._timeout_s):
            return
        before = self._found.get(node)
        if before is None or answer.asked > before.asked:
            self._found[node] = answer
        if answer.well:
            self._place.answers[node] = max(answer.asked, self._place.answers.get(node, answer.asked))

    def _period_s(self, node: str) -> float:
        view = self._place.siblings.views.get(node)
        states = {watch.state for watch in view.of(self._place.group)} if view is not None else set()
        if "proving" in states:
            return self._proof_every_s
        return self._confirm_every_s if states & _PACES else self._every_s

    def told(self) -> dict[str, Any]:
        """What was found, by node: the last round's answer, its age, and a number that no other round has."""
        now = self._place.siblings.clock.monotonic()
        return {
            node: {"ok": answer.well, "age_s": round(max(0.0, now - answer.asked), 3), "why": answer.why, "round": int(answer.asked * 1000)}
            for node, answer in self._found.items()
        }


class PeerAsker:
    """The service of this node as its siblings find it; an ``Asker``. ``who`` is the sibling that is asked, ``peer`` any of them.

    An answer comes late by nature: ``timeout_s`` is how old one may be. Where no sibling that asks is heard, this node asks itself,
    and the answer says so.
    """

    def __init__(self, place: Place, own: Asker, who: str = "peer", *, every_s: float = 1.0, timeout_s: float = 1.0) -> None:
        self._place = place
        self._own = own
        self._who = who
        self._patience_s = timeout_s
        self._rounds: dict[tuple[str, int], float] = {}
        self._given = float("-inf")
        self.timeout_s = every_s + timeout_s + HEARD_S

    async def ask(self) -> Answer:
        """The freshest answer of a sibling, waited for as long as a round may take; the one before when there is none newer; never raises."""
        clock = self._place.siblings.clock
        deadline = clock.monotonic() + self._patience_s
        while True:
            now = clock.monotonic()
            found = self._freshest(now)
            if found is not None and (found.asked > self._given or now >= deadline):
                self._given = max(self._given, found.asked)
                return found
            if found is None and (now >= deadline or self._unheard(now)):
                answer = await self._own.ask()
                return Answer(answer.well, f"{self._silence(now)}, so this node asked itself: {answer.why}", answer.asked, answer.known)
            await self._place.siblings.news(deadline - now)

    def _freshest(self, now: float) -> Answer | None:
        found = [answer for view in self._views() for answer in self._told(view, now)]
        return max(found, key=lambda answer: answer.asked, default=None)

    def _views(self) -> list[SiblingView]:
        return [view for name, view in self._place.siblings.views.items() if self._who in {"peer", name}]

    def _told(self, view: SiblingView, now: float) -> list[Answer]:
        """What a sibling says of this node. A round keeps the time that it was first read with: seen twice, it is one answer."""
        if view.asked is None or view.answered is None or now - view.answered > HEARD_S:
            return []
        answers: list[Answer] = []
        for watch in view.of(self._place.group):
            seen: Seen | None = watch.seen.get(self._place.siblings.node)
            if seen is None:
                continue
            key = (view.node, seen.round)
            asked = self._rounds.get(key, view.asked - seen.age_s)
            self._rounds = {k: at for k, at in self._rounds.items() if now - at < 2 * self.timeout_s} | {key: asked}
            if now - asked <= self.timeout_s:
                answers.append(Answer(seen.ok, f"asked by {view.node}: {seen.why}", asked))
        return answers

    def _unheard(self, now: float) -> bool:
        return all(now - (view.since if view.answered is None else view.answered) > HEARD_S for view in self._views())

    def _silence(self, now: float) -> str:
        who = "no sibling tells" if self._who == "peer" else f"{self._who} does not tell"
        last = max((view.answered for view in self._views() if view.answered is not None), default=None)
        return f"{who} how this node answers" + (f" (none was heard for {now - last:.1f} s)" if last is not None and now - last > HEARD_S else "")
