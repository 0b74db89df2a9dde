"""A Loki that counts: the documented interface over lines in memory, with its limits and the ways in which it refuses.

Understands the few shapes of LogQL that are asked of it and refuses the rest as it would refuse what it cannot parse. ``told`` are answers
to give first (status, text), ``asked`` what was asked.
"""

from __future__ import annotations

import asyncio
import functools
import ipaddress
import json
import re
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qs, urlsplit

NANO = 1_000_000_000
_ADDRESS = re.compile(r"^\[?([^]]*?)\]?(:[0-9]+)?$")


@dataclass
class Loki:
    """``lines`` are (nanoseconds, labels, line); limits as Loki has them."""

    lines: list[tuple[int, dict[str, str], str]]
    entries: int = 5000
    series: int = 500
    points: int = 11_000
    longest_s: int | None = None
    """A question about more is too much."""
    token: str | None = None
    told: list[tuple[int, str]] = field(default_factory=list)
    asked: list[dict[str, str]] = field(default_factory=list)
    at_once: int = 0
    most_at_once: int = 0

    def answer(self, path: str, head: dict[str, str]) -> tuple[int, str]:
        """Status and text."""
        parts = urlsplit(path)
        asked = {key: value[0] for key, value in parse_qs(parts.query).items()}
        self.asked.append({"path": parts.path, **asked})
        if self.told:
            return self.told.pop(0)
        if self.token is not None and head.get("authorization") != f"Bearer {self.token}":
            return 401, "no org id"
        try:
            if parts.path == "/loki/api/v1/query":
                return 200, self._instant(asked)
            if parts.path == "/loki/api/v1/query_range":
                return self._range(asked)
        except _ParseError as err:
            return 400, f"parse error at line 1, col 1: syntax error: unexpected {err}"
        return 404, "404 page not found"

    def _instant(self, asked: dict[str, str]) -> str:
        _, by, run, length = _metric(asked["query"])
        end = int(asked["time"])
        found = sum(1 for at, labels, line in self.lines if end - length < at <= end and run(labels, line) is not None)
        result = [{"metric": {}, "value": [end / NANO, str(found)]}] if found else []
        assert not by
        return json.dumps({"status": "success", "data": {"resultType": "vector", "result": result, "stats": {}}})

    def _range(self, asked: dict[str, str]) -> tuple[int, str]:
        start, end = int(asked["start"]), int(asked["end"])
        if asked["query"].startswith("{"):
            return self._streams(asked, start, end)
        what, by, run, length = _metric(asked["query"])
        step = int(asked["step"].removesuffix("s")) * NANO
        if (end - start) // step > self.points:
            return 400, "exceeded maximum resolution of 11,000 points per timeseries. Try increasing the value of the step parameter"
        if self.longest_s is not None and end - start > self.longest_s * NANO:
            return 400, "the query would read too many bytes (query: 200 GB, limit: 150 GB); consider adding more specific stream selectors"
        series: dict[tuple[str, ...], dict[int, float]] = {}
        for at, labels, line in self.lines:
            found = run(labels, line) if start - length < at <= end else None
            first = start + -(-(at - start) // step) * step  # the first step that is not before it
            for moment in range(max(start, first), min(end, at + length - 1) + 1, step) if found is not None else ():
                if moment - length < at <= moment:
                    values = series.setdefault(tuple(found[name] for name in by), {})
                    values[moment] = max(values.get(moment, 0.0), found["took"]) if what == "max" else values.get(moment, 0.0) + 1
        if len(series) > self.series:
            return 400, f"maximum number of series ({self.series}) reached for a single query; consider reducing query cardinality"
        result = [
            {
                "metric": dict(zip(by, key, strict=True)),
                "values": [[at // NANO, f"{value:g}" if what == "sum" else repr(value)] for at, value in sorted(v.items())],
            }
            for key, v in series.items()
        ]
        return 200, json.dumps({"status": "success", "data": {"resultType": "matrix", "result": result, "stats": {}}})

    def _streams(self, asked: dict[str, str], start: int, end: int) -> tuple[int, str]:
        limit = int(asked["limit"])
        if limit > self.entries:
            return 400, f"max entries limit per query exceeded, limit > max_entries_limit_per_query ({limit} > {self.entries})"
        run = _pipeline(asked["query"])
        found = [one for one in sorted(self.lines, key=lambda e: e[0]) if start <= one[0] < end and run(one[1], one[2]) is not None][:limit]
        streams: dict[str, Any] = {}
        for at, labels, line in found:
            streams.setdefault(json.dumps(labels, sort_keys=True), {"stream": labels, "values": []})["values"].append([str(at), line])
        return 200, json.dumps({"status": "success", "data": {"resultType": "streams", "result": list(streams.values()), "stats": {}}})


class _ParseError(Exception):
    pass


def _metric(query: str) -> tuple[str, list[str], Callable[[dict[str, str], str], dict[str, Any] | None], int]:
    match = re.fullmatch(r"sum(?: by \((?P<by>[a-z_, ]+)\) | ?)\(count_over_time\((?P<of>.*) \[(?P<n>\d+)(?P<unit>s|m)\]\)\)", query, re.DOTALL)
    what = "sum"
    if match is None:
        match = re.fullmatch(r"max_over_time\((?P<of>.*) \[(?P<n>\d+)(?P<unit>s|m)\]\) by \((?P<by>[a-z_, ]+)\)", query, re.DOTALL)
        what = "max"
    if match is None:
        raise _ParseError(query[:20])
    return what, [n for n in (match["by"] or "").split(", ") if n], _pipeline(match["of"]), int(match["n"]) * (60 if match["unit"] == "m" else 1) * NANO


@functools.lru_cache(maxsize=100)
def _pipeline(text: str) -> Callable[[dict[str, str], str], dict[str, Any] | None]:
    """What a line becomes: its labels, or None when it is filtered out."""
    match = re.match(r"\s*\{([^}]*)\}", text)
    if match is None:
        raise _ParseError(text[:20])
    wanted = dict(re.findall(r'([a-z_]+)="([^"]*)"', match[1]))
    stages = [s.strip() for s in re.split(r"\s\|(?=[ =~])", text[match.end() :].strip() and " " + text[match.end() :].strip()) if s.strip()]

    known: dict[tuple[str, str], dict[str, Any] | None] = {}

    def run(labels: dict[str, str], line: str) -> dict[str, Any] | None:
        key = (str(labels), line)
        if key not in known:
            known[key] = first(labels, line)
        return known[key]

    def first(labels: dict[str, str], line: str) -> dict[str, Any] | None:
        if any(labels.get(key) != value for key, value in wanted.items()):
            return None
        found: dict[str, Any] = dict(labels)
        for stage in stages:
            if not _stage(stage, line, found):
                return None
        return found

    for stage in stages:
        _stage(stage, "", {})  # what is not understood is refused, with or without lines
    return run


def _stage(stage: str, line: str, found: dict[str, Any]) -> bool:
    if stage.startswith("= `"):
        return stage[3:-1] in line
    if stage.startswith("json "):
        try:
            data = _fields(line)
            found.update({name: str(data[key]) for name, key in re.findall(r'([a-z_]+)="([A-Za-z]+)"', stage) if isinstance(data.get(key), str | int)})
        except (ValueError, AttributeError):
            found["__error__"] = "JSONParserErr"
        return True
    if stage == '__error__=""':
        return not found.get("__error__")
    if stage.startswith("label_format ek_client="):
        match = _ADDRESS.match(found.get("ek_client", ""))
        found["ek_client"] = match[1] if match else found.get("ek_client", "")
        return True
    if stage == "unwrap ek_took":
        found["took"] = float(found.get("ek_took", "nan"))
        return True
    if stage == 'ek_status != ""':
        return bool(found.get("ek_status"))
    if number := re.fullmatch(r"ek_status (<|>=) (\d+)", stage):
        status = found.get("ek_status", "")
        return status.isdecimal() and (int(status) < int(number[2]) if number[1] == "<" else int(status) >= int(number[2]))
    tests = [re.fullmatch(r'ek_client (!?=) ip\("([^"]+)"\)', one) for one in stage.split(" or ")]
    if not all(tests):
        raise _ParseError(stage[:40])
    return any((test[1] == "=") is _within(found.get("ek_client", ""), test[2]) for test in tests if test is not None)


@functools.lru_cache(maxsize=20_000)
def _fields(line: str) -> Any:
    return json.loads(line)


@functools.lru_cache(maxsize=1000)
def _within(address: str, network: str) -> bool:
    try:
        return ipaddress.ip_address(address) in ipaddress.ip_network(network)
    except ValueError:
        return False


@asynccontextmanager
async def serving(loki: Loki) -> AsyncIterator[str]:
    """Its address, while it answers."""

    async def one(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while request := (await reader.readline()).decode():
                head = {}
                while (line := (await reader.readline()).decode().strip()) != "":
                    key, _, value = line.partition(":")
                    head[key.lower()] = value.strip()
                loki.at_once += 1
                loki.most_at_once = max(loki.most_at_once, loki.at_once)
                await asyncio.sleep(0)
                status, text = loki.answer(request.split(" ")[1], head)
                loki.at_once -= 1
                body = text.encode()
                writer.write(f"HTTP/1.1 {status} X\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body)
                await writer.drain()
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()

    server = await asyncio.start_server(one, "127.0.0.1", 0)
    async with server:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
