"""A report as one gets it after a night: 24 outages on 12 routers in three drains, everything that can be drawn, and hostile names on request."""

from __future__ import annotations

import math
import random
from dataclasses import replace

from edgekeeper.model.time import Span
from edgekeeper.report.document import Bar, Clock, Figure, Hurt, Point, Report, Row, Series, Smoke, Table, Timeline, Window

BEGIN = 1788756480.0  # 2026-09-07 04:48:00 UTC
END = BEGIN + 24 * 60
ROUTERS = (
    "gitea",
    "home-assistant",
    "shelly-manager",
    "immich",
    "openbao",
    "grafana",
    "music-assistant",
    "crowdsec-lapi",
    "wordpress",
    "woodpecker",
    "paperless",
    "syncthing",
)
DRAINS = (("n1", 250, 560), ("n2", 620, 930), ("n3", 960, 1290))
HOSTILE = (
    "</title></svg></style><script>alert(1)</script>",
    '" onload="alert(1)',
    "' style='background:url(//evil.example/x)' x='",
    "<img src=x onerror=alert(1)>",
    "<!-- --> ]]> <?php ?>",
    "| a | b |\n| --- | --- |",
    "[click](javascript:alert(1)) ![x](https://evil.example/p.png)",
    "`code` ~~~ **bold** _it_ $x$",
    "@everyone https://evil.example www.evil.example someone@evil.example",
    "\x1b[2J\x1b]0;owned\x07\u202egnp.exe\u2066\x00\ud800",
    "# heading\n- item\n1. item\n> quote",
    "&lt;b&gt; &amp; &#60;script&#62;",
    "javascript:alert(1)",
    "x" * 600,
    "",
)


def hurts(seed: int = 7) -> tuple[Hurt, ...]:
    """Two of each router, each in one drain; one that never ended, one known only from above."""
    chance = random.Random(seed)
    out = []
    for i, router in enumerate(ROUTERS):
        for k in (i % 3, (i + 1) % 3):
            node, begin, end = DRAINS[k]
            first = BEGIN + begin + chance.uniform(10, end - begin - 120)
            least = chance.uniform(25, 80)
            slack = chance.uniform(1, 14)
            full = (i + k) % 5 != 0
            group = "lan" if i % 3 else "public"
            cause = f"drain of {node}" if k != 1 or i % 2 else f"drain of {node}; no endpoint, then no connection until the volume was attached"
            requests = chance.randrange(3, 60)
            out.append(
                Hurt(
                    router,
                    group,
                    Span(least, least + slack),
                    first,
                    first + least,
                    requests,
                    cause,
                    full,
                    "traefik-1",
                    first - slack / 2,
                    first + least + slack / 2,
                )
            )
    out[5] = replace(out[5], span=Span(0.0, 4.0), last_bad=out[5].first_bad, requests=1, earliest=out[5].first_bad - 2, latest=out[5].first_bad + 2)
    out[-1] = replace(out[-1], span=Span(41.0, math.inf), latest=None, cause="")
    return tuple(sorted(out, key=lambda h: h.first_bad))


def bar_of(hurt: Hurt) -> Bar:
    """As a figure draws it."""
    sure = hurt.span.min_s > 0
    early = hurt.earliest if hurt.earliest is not None else -math.inf
    late = hurt.latest if hurt.latest is not None else math.inf
    label = f"{hurt.span.brief()}, {hurt.cause}" if hurt.cause else hurt.span.brief()
    return Bar(early, late, label, "bad" if hurt.full else "warn", hurt.first_bad if sure else None, hurt.last_bad if sure else None)


def timeline(outages: tuple[Hurt, ...], begin: float = BEGIN, end: float = END) -> Timeline:
    """Drains, outages by router, the edge, BGP, VRRP, watchdogs."""
    rows = [
        Row(
            "nodes",
            node,
            (Bar(BEGIN + b, BEGIN + e, f"{node}: {17 + b % 7} pods moved", "work"),),
            (Point(BEGIN + b + 140, "rebooting", "down"), Point(BEGIN + e - 60, "Ready", "up")),
        )
        for node, b, e in DRAINS
    ]
    rows += [Row("routes", router, tuple(bar_of(h) for h in outages if h.router == router)) for router in ROUTERS]
    rows += [
        Row("edge", "https://edge-1.example/", (Bar(BEGIN + 431, BEGIN + 514, "40 s to 80 s", "bad", BEGIN + 440, BEGIN + 490),)),
        Row(
            "edge",
            "https://edge-2.example/",
            (Bar(BEGIN + 433, BEGIN + 511, "42 s to 78 s", "bad", BEGIN + 442, BEGIN + 492), Bar(BEGIN + 1100, BEGIN + 1104, "less than 4 s", "bad")),
        ),
    ]
    rows += [
        Row("BGP", f"gw-1: 192.0.2.{10 + i}", (Bar(BEGIN + b + 135, BEGIN + b + 184, f"down {47 + i}.0 s", "warn", BEGIN + b + 135, BEGIN + b + 184),))
        for i, (_, b, _) in enumerate(DRAINS)
    ]
    rows += [
        Row("VRRP", "VI_dns on n1", (), (Point(BEGIN + 385, "FAULT", "down"), Point(BEGIN + 540, "BACKUP", "note"))),
        Row("VRRP", "VI_dns on n2", (), (Point(BEGIN + 385.3, "MASTER", "up"), Point(BEGIN + 755, "BACKUP", "note"), Point(BEGIN + 760, "FAULT", "down"))),
        Row(
            "watchdogs",
            "proxy on edge-1",
            (),
            (Point(BEGIN + 490, "restarted", "act"), Point(BEGIN + 790, "held back: 278 s after the last", "hold"), Point(BEGIN + 1100, "restarted", "act")),
        ),
        Row("watchdogs", "proxy on edge-2", (), (Point(BEGIN + 488, "restarted", "act"), Point(BEGIN + 792, "held back", "hold"))),
    ]
    return Timeline(begin, end, tuple(rows))


def classes(minutes: int = 54, seed: int = 3) -> tuple[Series, ...]:
    """Four classes of clients; the smallest goes dark, and not by failing."""
    chance = random.Random(seed)
    begin = END - 60 * minutes
    out = []
    for name, usual in (("lan", 160), ("public", 4), ("mesh", 31), ("monitoring", 12)):
        rows: list[tuple[float, int | None, int]] = []
        for i in range(minutes):
            at = begin + 60 * i
            n: int | None = max(0, round(chance.gauss(usual, usual**0.5 if usual > 4 else 0)))
            drained = any(BEGIN + b <= at < BEGIN + e for _, b, e in DRAINS)
            bad = round((n or 0) * chance.uniform(0, 0.15)) if drained and name in {"lan", "mesh"} else 0
            if name == "public" and 37 <= i <= 38:
                n = 0
            if name == "monitoring" and i < 6:
                n, bad = None, 0
            rows.append((at, n, bad))
        out.append(Series(name, tuple(rows), "asks once a minute from each of two proxies" if name == "public" else ""))
    return tuple(out)


def smokes(slots: int = 72, seed: int = 5) -> tuple[Smoke, ...]:
    """Two probes: one goes dark, one only slow."""
    chance = random.Random(seed)
    out = []
    for name, dark in (("https://edge-1.example/ (fresh)", True), ("dns://192.0.2.53/health.example (udp)", False)):
        rows: list[tuple[float, float | None, float | None, float]] = []
        for i in range(slots):
            median = chance.uniform(0.010, 0.014) * (8 if 20 <= i < 24 else 1) * (1 if dark else 0.1)
            failed = 1.0 if dark and 21 <= i <= 23 else 0.25 if dark and i == 24 else 0.0
            rows.append((BEGIN + 20 * i, None if failed == 1 else median, None if failed == 1 else median * chance.uniform(1.3, 4), failed))
        out.append(Smoke(name, tuple(rows)))
    return tuple(out)


def demo() -> Report:
    """All of it."""
    outages = hurts()
    counts = Table(
        ("Route", "Status", "Requests", "Share"),
        (*((r, "503" if i != 2 else "502", str(56 - 4 * i), f"{1.65 - 0.12 * i:.2f} %") for i, r in enumerate(ROUTERS)), ("sum", "", "185", "5.46 %")),
    )
    figures = (
        Figure("TIME", "What happened when", "33 spans and 14 events in 24 rows, on one axis", timeline=timeline(outages)),
        Figure(
            "F1",
            "Failed requests by route",
            "185 of 3,391 requests failed (5.46 %), on 12 of 14 routes",
            table=counts,
            notes=("Every line that the proxy numbered has arrived (3,391 of 3,391).",),
        ),
        Figure(
            "F2",
            "Against the quiet time before",
            "0 of 3,402 requests failed before: less than 0.09 % at 95 % confidence; all 185 failures belong to this roll",
        ),
        Figure(
            "F3",
            "By the minute and class of clients",
            "public had no request in 2 minutes where 4 each were expected (they are probes with a schedule: the edge was dark)",
            multiples=classes(),
        ),
        Figure("F5", "The edge", "all members were dark for 40 s to 78 s; any of them for 40 s to 88 s", smoke=smokes()),
        Figure(
            "F6",
            "Moved twice",
            "10 of 41 pods moved twice, which cost 212 s to 331 s of outage",
            table=Table(("Workload", "Moves", "Outage in the later ones"), (("ha/ha-pg", "2", "31 s to 44 s"), ("wp/wordpress-mariadb", "2", "38 s to 41 s"))),
        ),
        Figure(
            "F8",
            "BGP sessions",
            "each node's session was down 47 s to 51 s, and none of it carried traffic",
            notes=("The routes had been withdrawn 12 s before.",),
        ),
        Figure("F10", "Fingerprint", "no line of a watchdog's log was among the inputs", measured=False),
        Figure("F13", "Clocks", "edge-1 is 183.2 s to 183.6 s behind the clock of the ingress"),
    )
    return Report(
        verdict="12 routes failed 24 times during three drains, the longest for 1 min 18 s to 1 min 31 s (immich, drain of n2); the public edge was dark for 40 s to 78 s at n1.",
        can_judge=True,
        window=Window(BEGIN, END, "first cordon - 60 s to last uncordon + 300 s"),
        baseline=Window(BEGIN - 1440, BEGIN, "as long, right before"),
        figures=figures,
        outages=outages,
        clocks=(
            Clock("ingress", 0.0, 0.0, 0.0, "the clock of reference"),
            Clock("edge-1", 183.2, 183.6, 183.4, "30 probes with an id, both ways"),
            Clock("gw-1", None, 0.412, 0.412, "7 BGP notifications, one way", moved=True),
        ),
        skipped={"truncated": 2, "not text": 1},
        lines=8214,
        sources=(
            {
                "name": "traefik-1",
                "path": "traefik-1.log",
                "format": "traefik-json",
                "node": "ingress",
                "lines": 7012,
                "skipped": {"truncated": 2},
                "zone": "",
                "stamp_s": 0.0,
                "first": BEGIN - 1440,
                "last": END,
                "shift_s": 0.0,
                "warnings": [],
            },
            {
                "name": "gw-1",
                "path": "bgpd.log",
                "format": "frr",
                "node": "gw-1",
                "lines": 202,
                "skipped": {"not text": 1},
                "zone": "+02:00",
                "stamp_s": 1.0,
                "first": BEGIN,
                "last": END - 3,
                "shift_s": 0.412,
                "warnings": ["stamps have no zone; read as +02:00"],
            },
        ),
        not_measured=("woodpecker-agent had no request in the window", "Fingerprint: no line of a watchdog's log was among the inputs"),
        title="Roll of 2026-09-07",
    )


def hostile(names: tuple[str, ...] = HOSTILE) -> Report:
    """The same shape where everything that can come from a log is hostile, numbers included."""

    def name(i: int) -> str:
        return names[i % len(names)]

    numbers = (BEGIN + 60, BEGIN + 300, math.inf, -math.inf, math.nan, 1e300, -1e18, END)
    bars = tuple(
        Bar(numbers[i % 8], numbers[(i + 3) % 8], name(i), name(i + 1) if i % 2 else "warn", numbers[(i + 1) % 8], numbers[(i + 2) % 8]) for i in range(8)
    )
    points = tuple(Point(at, name(i), name(i + 2)) for i, at in enumerate(numbers))
    rows = tuple(Row(name(i), name(i + 1), bars, points) for i in range(len(names)))
    outages = tuple(
        Hurt(name(i), name(i + 1), Span(0.0, math.inf), numbers[i % 8], numbers[(i + 1) % 8], i, name(i + 2), bool(i % 2), name(i + 3))
        for i in range(len(names))
    )
    table = Table((name(0), name(1)), tuple((name(i), name(i + 1)) for i in range(len(names))))
    figures = tuple(
        Figure(
            name(i),
            name(i + 1),
            name(i + 2),
            measured=bool(i % 3),
            table=table,
            notes=(name(i + 3),),
            timeline=Timeline(BEGIN, END, rows) if i == 0 else None,
            multiples=(Series(name(i), ((BEGIN, None, 0), (BEGIN + 60, 0, 0), (BEGIN + 120, 3, 3)), name(i + 1)), Series(name(i), ())) if i == 1 else (),
            smoke=(Smoke(name(i), ((BEGIN, None, None, 1.0), (BEGIN + 20, 0.0, math.inf, math.nan), (BEGIN + 40, 1e-9, 1e9, 0.5))), Smoke(name(i), ()))
            if i == 2
            else (),
            data={name(i): name(i + 1), "n": math.nan, "list": [math.inf, {name(i): None}]},
        )
        for i in range(len(names))
    )
    sources = tuple(
        {"name": name(i), "format": name(i + 1), "lines": name(i), "skipped": name(i), "first": numbers[i % 8], "last": name(i), "warnings": [name(i)]}
        for i in range(len(names))
    )
    return Report(
        name(0),
        False,
        Window(BEGIN, END, name(3)),
        Window(BEGIN - 60, BEGIN, name(4)),
        figures,
        outages,
        (Clock(name(0), math.nan, None, math.inf, name(1)),),
        {name(i): 1 for i in range(len(names))},
        3,
        sources,
        names,
        name(0),
    )
