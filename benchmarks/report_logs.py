"""Makes a day of Traefik's access log in JSON, with outages planted in it, and its truth: what a report must find in it.

``python benchmarks/report_logs.py FILE [LINES]`` writes the log to FILE and the truth to FILE.truth. The same lines each time: all chance
is seeded. 24 h, 12 routes, four classes of clients, three nodes taken out one after the other; each takes eight routes with it for 30 to
90 s, in which they answer 503 at once (no endpoint) or 502 after a while (no connection).
"""

from __future__ import annotations

import json
import random
import sys
from collections import Counter
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from report_child import CLASSES

LINES = 2_000_000
DAY_S = 86400.0
BEGIN = 1788739200.0  # 2026-09-07 00:00 UTC
_NAMES = ("gitea", "grafana", "music", "wordpress", "photos", "home", "shelly", "vault", "ci", "chat", "files", "wiki")
ROUTERS = tuple(f"websecure-{n}-{n}-{n}-example@kubernetes" for n in _NAMES)
_SHARE = (0.70, 0.14, 0.07, 0.09)
_ROLLS = (24_910.0, 25_310.0, 25_720.0)  # three nodes, in the morning
_AGENTS = ("Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/140.0.0.0 Safari/537.36", "git/2.47.0", "curl/8.14.1", "okhttp/5.1.0")
_FIELDS = (
    '{"ClientAddr":"%s:%d","ClientHost":"%s","ClientPort":"%d","ClientUsername":"-","DownstreamContentSize":%d,"DownstreamStatus":%d,"Duration":%d,'
    '"OriginContentSize":%d,"OriginDuration":%d,"OriginStatus":%d,"Overhead":%d,"RequestAddr":"%s","RequestContentSize":0,"RequestCount":%d,'
    '"RequestHost":"%s","RequestMethod":"GET","RequestPath":"%s","RequestPort":"-","RequestProtocol":"HTTP/2.0","RequestScheme":"https","RetryAttempts":0,'
    '"RouterName":"%s"%s,"StartLocal":"%s+02:00","StartUTC":"%sZ","TLSCipher":"TLS_AES_128_GCM_SHA256","TLSVersion":"1.3","entryPointName":"websecure",'
    '"level":"info","msg":"","request_User-Agent":"%s","time":"%s+02:00"}\n'
)


@dataclass
class Truth:
    """What is in the log. ``cells`` is router, minute and how many 5xx; ``outages`` are router, begin and end, in seconds since 1970."""

    lines: int = 0
    statuses: Counter[str] = field(default_factory=Counter)
    cells: Counter[str] = field(default_factory=Counter)
    classes: Counter[str] = field(default_factory=Counter)
    outages: list[tuple[str, float, float]] = field(default_factory=list)

    def text(self) -> str:
        """As JSON, sorted."""
        return json.dumps({k: dict(sorted(v.items())) if isinstance(v, Counter) else v for k, v in vars(self).items()})


def _planted(chance: random.Random) -> list[tuple[int, float, float]]:
    """Eight routes of each roll: which, from when, until when (seconds of the day)."""
    found = []
    for roll in _ROLLS:
        for router in chance.sample(range(len(ROUTERS)), 8):
            begin = roll + chance.uniform(0, 120)
            found.append((router, begin, begin + chance.uniform(30, 90)))
    return found


def _stamps(at: float, ahead: float = 0.0) -> str:
    whole = int(at + ahead)
    return datetime.fromtimestamp(BEGIN + whole, UTC).strftime("%Y-%m-%dT%H:%M:%S")


def write(path: Path, lines: int = LINES, seed: int = 20260907) -> Truth:
    """Write the log; the truth comes back and lies beside it."""
    chance = random.Random(seed)  # noqa: S311 - the same each time, on purpose
    planted = _planted(chance)
    truth = Truth(outages=[(ROUTERS[r], BEGIN + a, BEGIN + b) for r, a, b in planted])
    hosts = {name: [n.rpartition(".")[0] + f".{i}" for n in nets for i in _range(nets[0])] for name, nets in CLASSES.items()}
    waiting: list[tuple[float, str]] = []
    busiest = [1.0 / (1 + i) ** 0.5 for i in range(len(ROUTERS))]
    names = list(CLASSES)
    with path.open("w", encoding="ascii", buffering=2**20) as out:
        for number in range(lines):
            at = int(DAY_S * (number + chance.random()) / lines * 1e6) / 1e6
            router = chance.choices(range(len(ROUTERS)), busiest)[0]
            group = chance.choices(names, _SHARE)[0]
            host = chance.choice(hosts[group])
            down = next((p for p in planted if p[0] == router and p[1] <= at < p[2]), None)
            took = int(min(30.0, chance.lognormvariate(-4.5, 1.2)) * 1e9)
            status = chance.choices((200, 304, 404, 302, 499, 500), (880, 60, 40, 17.9, 2, 0.1))[0]
            service = f',"ServiceAddr":"198.51.100.{router + 1}:3000","ServiceName":"{ROUTERS[router]}","ServiceURL":"http://198.51.100.{router + 1}:3000"'
            if down is not None:
                status, took = (503, 190_342) if chance.random() < 0.8 else (502, int(min(3.0, (down[2] - at)) * 1e9))
                service = "" if status == 503 else service
            minute = int((BEGIN + at) // 60)
            truth.lines += 1
            truth.statuses[f"{status}"] += 1
            truth.classes[f"{group} {status}"] += 1
            if status >= 500:
                truth.cells[f"{ROUTERS[router]} {minute}"] += 1
            waiting.append((at + took / 1e9, _line(chance, number, at, router, host, status, took, service)))
            if len(waiting) > 2000:  # as a proxy writes: when a request ends
                waiting.sort()
                out.writelines(line for _, line in waiting[:1000])
                del waiting[:1000]
        waiting.sort()
        out.writelines(line for _, line in waiting)
    path.with_name(path.name + ".truth").write_text(truth.text())
    return truth


def _range(network: str) -> range:
    return range(129, 254) if ".128/" in network else range(1, 126) if network.endswith("/25") else range(1, 254)


def _line(chance: random.Random, number: int, at: float, router: int, host: str, status: int, took: int, service: str) -> str:
    port = chance.randrange(1024, 65535)
    size = int(chance.expovariate(1 / 8000))
    site = ROUTERS[router].split("-")[1] + ".example"
    path = f"/api/v1/things/{chance.randrange(10**6)}/parts?page={chance.randrange(100)}&sort=name&token={chance.getrandbits(96):024x}"
    fraction = f".{round(at % 1 * 1e6):06d}{chance.randrange(400):03d}"
    utc, local = _stamps(at), _stamps(at, 7200)
    return _FIELDS % (
        host, port, host, port, size, status, took, size, max(0, took - 40_000), status, 40_000, site, number + 1,
        site, path, ROUTERS[router], service, local + fraction, utc + fraction, _AGENTS[number % 4], local,
    )  # fmt: skip


def main() -> int:
    """Write a log and its truth."""
    args: list[Any] = sys.argv[1:]
    truth = write(Path(args[0]), int(args[1]) if len(args) > 1 else LINES)
    sys.stdout.write(f"{truth.lines} lines, {sum(truth.cells.values())} 5xx in {len(truth.cells)} cells, {len(truth.outages)} outages\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
