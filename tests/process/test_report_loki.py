"""A Loki counts, or its lines are fetched: both ways the figures are those of the file, and what it refuses is told in plain words."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path

import pytest
from tests.fakes.loki import Loki, serving
from tests.replay import report_d, report_d_account

from edgekeeper.errors import EdgekeeperError, MissingError, UsageError
from edgekeeper.report.book import Book
from edgekeeper.report.document import Window
from edgekeeper.report.ingest import loki as ingest
from edgekeeper.report.rules import Group, Rules

WINDOW = Window(*report_d_account.WINDOW)
RULES = Rules(groups=(Group("public", ("127.0.0.1",)), Group("lan", ("198.51.100.0/24", "2001:db8::/32"))))
FILES = report_d.files()
LABELS = {"app": "traefik", "node_name": "n1"}


def entries() -> list[tuple[int, dict[str, str], str]]:
    """Lines of the access log at the time at which they were written: the end of the request."""
    found = []
    for line in FILES["traefik.jsonl"].decode().splitlines():
        said = json.loads(line)
        begin = datetime.fromisoformat(said["StartUTC"][:26] + "+00:00").timestamp()
        found.append((round(begin * 1e9) + said["Duration"], LABELS, line))
    return found


def counted(loki: Loki, query: str = '{app="traefik"}', *, fetched: int = 0, token: Path | None = None, window: Window = WINDOW) -> Book:
    async def work() -> Book:
        async with serving(loki) as url:
            return await asyncio.to_thread(ingest.counted, ingest.Store(url, token), query, window, RULES, fetched=fetched)

    return asyncio.run(work())


def totals(book: Book, window: Sequence[float] = report_d_account.WINDOW) -> dict[tuple[str, str], tuple[int, ...]]:
    return {(lane.router, lane.group): tuple(total) for lane in book.cells.lanes() if any(total := book.cells.total(lane, *window))}


@pytest.fixture(autouse=True)
def _soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ingest, "PAUSES_S", (0.0, 0.0))


def test_what_it_counts_is_what_the_file_holds() -> None:
    loki = Loki(entries())
    book = counted(loki)
    bad = {report_d_account.router(app): count for app, (_, count) in report_d_account.BAD.items()}
    found = totals(book)
    assert {router: total[1] for (router, _), total in found.items() if total[1]} == bad
    assert sum(sum(total[:4]) for total in found.values()) == report_d_account.REQUESTS
    assert sum(sum(total[:4]) for (_, group), total in found.items() if group == "public") == 86
    assert not any(total[1] for total in totals(book, report_d_account.BASELINE).values())
    by_status = {
        (lane.router, status): n for lane in book.cells.lanes() for status, n in book.cells.statuses(lane, *report_d_account.WINDOW).items() if status > 500
    }
    assert by_status == {(report_d_account.router(app), status): count for app, (status, count) in report_d_account.BAD.items()}
    assert book.sources["loki"].lines == len(entries())
    assert not book.sources["loki"].skipped
    assert 1 < loki.most_at_once <= 4


def test_lines_that_are_few_are_fetched_and_as_exact_as_a_file() -> None:
    loki = Loki(entries(), entries=1000)
    book = counted(loki, fetched=100_000)
    assert totals(book) == totals(counted(Loki(entries())))
    assert book.sources["loki n1"].node == "n1"
    assert book.sources["loki n1"].numbers.seen == book.sources["loki n1"].numbers.expected == len(entries())
    limits = [int(asked["limit"]) for asked in loki.asked if "limit" in asked]
    assert limits[0] == 5000
    assert set(limits[1:]) == {1000}  # as many as it allows, from then on


def test_outages_bounded_by_counts_hold_those_of_the_lines() -> None:
    exact, coarse = counted(Loki(entries()), fetched=100_000), counted(Loki(entries()))
    for lane in coarse.cells.lanes():
        mine = next(one for one in exact.cells.lanes() if one[1:] == lane[1:])
        sure, wide = exact.cells.cells(mine), coarse.cells.cells(lane)
        first, last = [c for c in sure if c.bad][:1], [c for c in sure if c.bad][-1:]
        wide_bad = [c for c in wide if c.bad]
        assert bool(first) == bool(wide_bad)
        if first:
            assert wide_bad[0].bad_first_start <= first[0].bad_first_start
            assert wide_bad[0].bad_first_end >= first[0].bad_first_end
            assert wide_bad[-1].bad_last_start <= last[0].bad_last_start + 1e-6
            assert wide_bad[-1].bad_last_end >= last[0].bad_last_end


def test_what_is_no_access_log_is_fetched_line_by_line_around_the_window_too() -> None:
    lines = []
    for name in ("edge-1-netbird.log", "edge-2-netbird.log"):
        labels = {"app": "proxy", "host": name[:6]}
        lines += [(round(datetime.fromisoformat(line[:29]).timestamp() * 1e9), labels, line) for line in FILES[name].decode().splitlines()]
    book = counted(Loki(lines), '{app="proxy"}')
    assert {(s.name, s.node, s.lines) for s in book.sources.values()} == {("loki edge-1", "edge-1", 48), ("loki edge-2", "edge-2", 48)}
    assert sum(mark.kind == "watch.fingerprint" for mark in book.marks) == 6 * 14  # never those of the debug level


def test_a_question_that_is_too_much_is_asked_in_parts() -> None:
    loki = Loki(entries(), longest_s=1200)
    assert totals(counted(loki)) == totals(counted(Loki(entries())))
    assert len(loki.asked) > 30


def test_what_passes_is_asked_again() -> None:
    loki = Loki(entries(), told=[(429, "too many outstanding requests"), (503, "")])
    assert totals(counted(loki)) == totals(counted(Loki(entries())))


@pytest.mark.parametrize(
    ("loki", "query", "kind", "words"),
    [
        (Loki([], token="secret"), '{app="a"}', MissingError, ("refuses", "--loki-token-file")),
        (Loki([], told=[(429, "too many outstanding requests")] * 9), '{app="a"}', MissingError, ("too much to do", "--window")),
        (Loki([], told=[(200, "<html>a portal</html>")]), '{app="a"}', MissingError, ("not of Loki's interface",)),
        (Loki([], told=[(404, "404 page not found")]), '{app="a"}', MissingError, ("no such interface", "--loki")),
        (Loki([]), '{app="a"} | line_format `x`', MissingError, ("does not understand", "--query")),
        (Loki([]), "traefik", UsageError, ("--query", "selector")),
        (Loki(entries(), series=3), '{app="traefik"}', MissingError, ("series", "max_query_series")),
    ],
)
def test_a_refusal_ends_the_reading_with_what_helps(loki: Loki, query: str, kind: type[EdgekeeperError], words: tuple[str, ...]) -> None:
    with pytest.raises(kind) as told:
        counted(loki, query)
    assert all(word in str(told.value) for word in words), str(told.value)


def test_the_token_is_sent_and_told_to_nobody(tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.write_text("secret\n")
    assert totals(counted(Loki(entries(), token="secret"), token=token))
    token.write_text("two words")
    with pytest.raises(UsageError, match="holds no token") as told:
        counted(Loki(entries()), token=token)
    assert "two words" not in str(told.value)


def test_the_whole_roll_out_of_a_loki(tmp_path: Path) -> None:
    """Access log, drains, router and proxies as streams: the command finds what it finds in the files, clocks and all."""
    lines = [(at, {**labels, "node_name": "ingress"}, line) for at, labels, line in entries()]
    for name, content in FILES.items():
        if "/" not in name and name != "traefik.jsonl":
            node, begin = report_d.node_of(name), round(report_d_account.WINDOW[0] * 1e9)
            text = content.decode().splitlines()
            lines += [(begin + number * 10_000_000, {"app": "rest", "file": name, "host": node}, line) for number, line in enumerate(text)]

    async def work() -> str:
        async with serving(Loki(lines)) as url:
            words = ["--loki", url, "--query", '{app="traefik"}', "--query", '{app="rest"}', "--zone", "Europe/Berlin", "--jobs", "1", "-o", "json"]
            words += ["--window", "2026-09-07T04:48Z..05:12Z", "--class", "public=127.0.0.1", "--class", "lan=198.51.100.0/24"]
            command = [sys.executable, "-m", "edgekeeper", "report", *words]
            done = await asyncio.to_thread(subprocess.run, command, capture_output=True, text=True, timeout=50, check=False, cwd=tmp_path)
            assert done.returncode == 0, done.stderr
            return str(done.stdout)

    said = json.loads(asyncio.run(work()))
    figures = {figure["id"]: figure for figure in said["figures"]}
    assert figures["F1"]["data"]["bad_requests"] == 185
    assert figures["F1"]["data"]["requests"] == report_d_account.REQUESTS
    assert {w["name"] for w in figures["F6"]["data"]["workloads"]} == set(report_d_account.TWICE)
    assert [round(gap["min_s"]) for gap in figures["F8"]["data"]["gaps"]] == [50, 47, 51]
    clocks = {clock["node"]: clock["shift_s"] for clock in said["clocks"]}
    assert all(clocks[edge] == pytest.approx(behind, abs=0.5) for edge, behind in report_d_account.BEHIND_S.items())
    assert {source["name"] for source in said["sources"]} == {"loki ingress", "loki-2 gw", "loki-2 admin", "loki-2 edge-1", "loki-2 edge-2"}


def test_a_store_that_is_not_there_is_missing() -> None:
    with pytest.raises(MissingError, match=r"127\.0\.0\.1"):
        ingest.counted(ingest.Store("http://127.0.0.1:1"), '{app="a"}', WINDOW, RULES)


def test_nothing_in_the_window_is_a_book_of_nothing() -> None:
    book = counted(Loki([]))
    assert not book.cells.lanes()
    assert not book.marks
