"""Let a Loki count, or fetch its lines: whichever is less."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeVar

import msgspec

from edgekeeper.errors import EdgekeeperError, MissingError, UsageError
from edgekeeper.host.files import read_text
from edgekeeper.host.http import Client, Response
from edgekeeper.host.tls import NOBODY, Trust
from edgekeeper.report import loki_plan as plan
from edgekeeper.report import loki_said as said
from edgekeeper.report.book import Book
from edgekeeper.report.document import Window
from edgekeeper.report.formats.traefik import TraefikJson
from edgekeeper.report.ingest.entries import Entries
from edgekeeper.report.loki_plan import Entry, Question
from edgekeeper.report.rules import Rules

T = TypeVar("T")
_TRAEFIK = TraefikJson()

FETCHED = 50_000
"""Lines up to which an access log is fetched as it is: ten pages, and the figures are as exact as those of a file."""
_AT_ONCE = 4
_DEADLINE_S = 70.0
"""Of one question; Loki itself gives up after a minute by default."""
PAUSES_S = (1.0, 3.0, 8.0)
"""Before the same question is asked again, where a moment may help."""
_ANSWER = 64 * 2**20
"""Bytes of one answer; a page of 5,000 lines of 1 KiB takes 6 MiB, a matrix of 500 series of 3,600 points up to 36."""
_TOKEN = 64 * 2**10
_SERIES_S = 1800
"""Routes are the same in each minute: a time as short as this, and too many series in it, is not divided further."""
_SAMPLE = 20
_AROUND_S = 600.0
"""What happened so long before and after the window is fetched too (where lines are)."""


@dataclass(frozen=True, slots=True)
class Store:
    """Where it is and how it is asked. ``tenant`` is its X-Scope-OrgID; the token is read again for each question's header."""

    url: str
    token_file: Path | None = None
    tenant: str | None = None
    trust: Trust = NOBODY

    def headers(self) -> dict[str, str]:
        """What goes with each question; UsageError when the token cannot be used."""
        found = {"Accept": "application/json"}
        if self.tenant:
            found["X-Scope-OrgID"] = self.tenant
        if self.token_file is not None:
            token = read_text(self.token_file, _TOKEN).strip()
            if not token or not token.isascii() or not token.isprintable() or " " in token:
                msg = f"{self.token_file} holds no token: one line of printable ASCII is expected; nothing is asked"
                raise UsageError(msg)
            found["Authorization"] = f"Bearer {token}"
        return found


def counted(
    store: Store,
    query: str,
    window: Window,
    rules: Rules,
    *,
    name: str = "loki",
    baseline: Window | None = None,
    zone: str = "",
    fetched: int = FETCHED,
    progress: Callable[[str], None] | None = None,
) -> Book:
    """A book of what the streams of ``query`` hold in the window and in the baseline (as long right before it when not said).

    Its source is called ``name``; that of each machine whose lines were fetched, ``name MACHINE``. UsageError: the query is no selector, or
    the token none. MissingError: it does not answer, with what it said and what helps.
    """
    if not store.url.startswith(("http://", "https://")):
        msg = f"--loki {store.url[:80]!a} is no address; write http://HOST:3100 or https://HOST"
        raise UsageError(msg)
    before = baseline or Window(2 * window.begin - window.end, window.begin)
    spans = _joined([before, window])
    store = replace(store, url=store.url.rstrip("/"))
    work = _Work(store, plan.selector(query), rules, name, fetched, zone, progress or (lambda _: None))
    return asyncio.run(work.book(spans))


def _joined(windows: Iterable[Window]) -> list[Window]:
    """Windows that touch as one."""
    found: list[Window] = []
    for one in sorted(windows, key=lambda w: w.begin):
        if found and one.begin <= found[-1].end:
            found[-1] = Window(found[-1].begin, max(found[-1].end, one.end))
        else:
            found.append(one)
    return found


class _Work:
    """One reading of one store."""

    def __init__(self, store: Store, streams: str, rules: Rules, name: str, fetched: int, zone: str, progress: Callable[[str], None]) -> None:
        self.store, self.streams, self.rules, self.name, self.fetched, self.zone, self.progress = store, streams, rules, name, fetched, zone, progress
        self.page = plan.PAGE
        self.free = asyncio.Semaphore(_AT_ONCE)
        self.path = f"{store.url} {streams}"
        self.pauses_s = PAUSES_S

    async def book(self, spans: list[Window]) -> Book:
        """Look at some lines, then count or fetch."""
        async with Client(self.store.trust, connections=_AT_ONCE, limit=_ANSWER) as client:
            self.client = client
            lines = 0
            for span in spans:
                lines += self._decoded(said.count, (await self._ask(plan.count_path(self.streams, span.begin, span.end))).text)
            if lines > self.fetched and await self._is_traefik(spans):
                return await self._count(spans)
            return await self._fetch(_joined(Window(s.begin - _AROUND_S, s.end + _AROUND_S) for s in spans))

    async def _is_traefik(self, spans: list[Window]) -> bool:
        """Whether the first lines are an access log of Traefik in JSON: what can be counted there without fetching it."""
        for span in reversed(spans):
            path = plan.page_path(self.streams, round(span.begin * plan.NANO), round(span.end * plan.NANO), _SAMPLE)
            sample = self._decoded(said.entries, (await self._ask(path)).text)
            if sample:
                return 2 * sum(_TRAEFIK.likes(entry.line.encode("utf-8", "replace")) for entry in sample) > len(sample)
        return False

    async def _fetch(self, spans: list[Window]) -> Book:
        entries = Entries(self.name, self.path, self.rules, spans[-1].end, self.zone)
        torn = 0
        for span in spans:
            pages = plan.Pages(round(span.begin * plan.NANO), round(span.end * plan.NANO), self.page)
            while not pages.done:
                pages.limit = self.page
                for entry in pages.take(await self._page(pages)):
                    entries.take(entry)
                self.progress(f"Loki: {entries.lines} lines")
            torn += pages.torn
        book = entries.book()
        if torn:
            for source in book.sources.values():
                source.warnings.append(f"{torn} times more than {self.page} lines have the same nanosecond: of those some were not read")
        return book

    async def _page(self, pages: plan.Pages) -> list[Entry]:
        """A page; a store that allows fewer entries is asked for as many as it allows from then on."""
        while True:
            answer = await self._ask(plan.page_path(self.streams, pages.at_ns, pages.end_ns, pages.limit), plain=True)
            if answer.status == 200:
                return self._decoded(said.entries, answer.text)
            fewer = said.page_limit(answer.status, answer.text)
            if fewer is None or fewer >= pages.limit:
                raise self._refused(answer)
            self.page = pages.limit = fewer

    async def _count(self, spans: list[Window]) -> Book:
        counts = said.Counts()
        asked = [q for span in spans for q in plan.access_questions(self.streams, span.begin, span.end, self.rules)]
        done = 0

        async def one(question: Question) -> None:
            nonlocal done
            await self._answer(question, counts)
            done += 1
            self.progress(f"Loki: {done} of {len(asked)} questions")

        try:
            async with asyncio.TaskGroup() as group:
                for question in asked:
                    group.create_task(one(question))
        except ExceptionGroup as several:
            raise next((e for e in several.exceptions if isinstance(e, EdgekeeperError)), several) from None
        return said.book(counts, self.name, self.path, self.rules)

    async def _answer(self, question: Question, counts: said.Counts) -> None:
        """One question; in two halves where the store finds it too much."""
        async with self.free:
            answer = await self._ask(question.path, plain=True)
        if answer.status == 200:
            try:
                counts.take(question, answer.text)
            except (ValueError, msgspec.DecodeError) as err:
                raise self._strange(err) from None
            return
        halves = question.slice.halves()
        few = said.is_about_series(answer.text) and question.slice.end - question.slice.begin <= _SERIES_S
        if len(halves) < 2 or few or not said.is_too_much(answer.status, answer.text):
            raise self._refused(answer)
        for half in halves:
            await self._answer(question.again(half), counts)

    async def _ask(self, path: str, *, plain: bool = False) -> Response:
        """One answer, asked again where a moment may help; ``plain`` leaves a refusal to the caller."""
        pauses = iter(self.pauses_s)
        while True:
            try:
                answer = await self.client.request("GET", self.store.url + path, deadline_s=_DEADLINE_S, headers=self.store.headers())
            except MissingError as err:  # it names the whole question, in which nobody finds the address
                why = str(err).rpartition("did not answer")[2].strip(": ") or str(err)
                msg = f"{self.store.url} did not answer ({why}); no report is made: is --loki its address, and can it be reached from here?"
                raise MissingError(msg) from err
            if answer.status == 200:
                return answer
            pause = next(pauses, None)
            if pause is None or not said.is_passing(answer.status) or (plain and said.is_too_much(answer.status, answer.text)):
                break
            self.progress(f"Loki answered {answer.status}; asked again in {pause:.0f} s")
            await asyncio.sleep(pause)
        if plain:
            return answer
        raise self._refused(answer)

    def _decoded(self, decode: Callable[[str], T], text: str) -> T:
        try:
            return decode(text)
        except (ValueError, msgspec.DecodeError) as err:
            raise self._strange(err) from None

    def _refused(self, answer: Response) -> EdgekeeperError:
        return MissingError(f"{self.store.url}: {said.refusal(answer.status, answer.text)}; no report is made")

    def _strange(self, err: Exception) -> EdgekeeperError:
        return MissingError(f"{self.store.url} answered what is not of Loki's interface ({str(err)[:120]}); is --loki its address up to /loki?")
