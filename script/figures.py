"""Writes docs/figures.md, and the table in README.md, from the JSON of `edgekeeper drill run` and a benchmark's table; see script/figures."""

from __future__ import annotations

import json
import math
import sys
from pathlib import Path
from typing import Any

from edgekeeper.model.time import Span

HEAD = """# Figures: what was promised, and what was measured

Written by `script/figures` from real runs; do not edit. Every drill runs in network namespaces of its own: a client asks 500 questions a
second (200 UDP source ports, every name new), something breaks, and the client's own records say what was lost. "Plain" is the same fault
in the same minute on the same machine behind dnsdist with the configuration that a user would write: `chashed` with weight 100 and health
checks every second, restarted for every change. (With `leastOutstanding` a plain dnsdist loses one or two questions to a dead member
instead of hundreds; the price is the members' warm caches.) "Unanswered" means no good answer within 3 s unless the row says otherwise.
Outages are intervals: the truth lies between the bounds.

"""
WHY: dict[tuple[str, str], str] = {
    ("dns-member-killed", "1."): "dnsdist 1.x cannot ask a second member; what was under way to the dead one is lost",
    ("dns-member-frozen", "1."): "dnsdist 1.x cannot ask a second member; what was under way to the dead one is lost",
    ("dns-member-killed-dot", "1."): "dnsdist 1.x cannot ask a second member: over TCP a refused connection ends the client's",
    (
        "dns-engine-restarted",
        "2.",
    ): "the kernel frees an ending process's memory before it closes its sockets; what arrives in between is lost. steer loses none",
    ("dns-member-killed-dot", "2."): "dnsdist looks at its TCP timeouts once a second, so 1 s is 1 to 2 s, and the second try comes after it",
    ("dns-member-kinds/default-question", ""): "pdns-recursor answers a.root-servers.net. from its own root hints; ask a name of your own with a short TTL",
    ("dns-member-kinds/own-question", ""): "pdns-recursor keeps a SERVFAIL for a name for 60 s (packetcache-servfail-ttl), also for the name that health asks",
}
"""Why a promise is not reached, by drill (or drill/case) and the beginning of the engine's version."""
README_ROWS = (
    ("dns-member-killed/defaults", "a member is killed"),
    ("dns-member-frozen/defaults", "a member freezes (a black hole)"),
    ("dns-member-killed-dot/dot-killed", "a member is killed, clients over DNS over TLS"),
    ("dns-member-changed/defaults", "a member leaves, another joins"),
    ("dns-engine-restarted/overlap", "dnsdist must be restarted (a listener added)"),
    ("dns-bad-config/defaults", "a mistake in the configuration"),
    ("dns-supervisor-killed/defaults", "edgekeeper itself is killed"),
)
BEGIN, END = "<!-- figures: written by script/figures from the drills, do not edit -->", "<!-- end of figures -->"


def main() -> int:
    """Write both pages."""
    page, *sources = (Path(word) for word in sys.argv[1:])
    drills: list[dict[str, Any]] = []
    costs = "".join(source.read_text(encoding="utf-8") for source in sources if source.suffix == ".md")
    for source in sources:
        if source.suffix == ".md":
            continue
        found = json.loads(source.read_text(encoding="utf-8"))
        for drill in found if isinstance(found, list) else [found]:
            _take(drills, drill)
    bench = f"\n## What edgekeeper itself costs\n\nFrom `benchmarks/bench.py`, on the same machine.\n\n{costs}" if costs else ""
    page.write_text(HEAD + _summary(drills) + _pages(drills) + bench, encoding="utf-8")
    readme = Path("README.md")
    if readme.exists():
        text = readme.read_text(encoding="utf-8")
        before, _, rest = text.partition(BEGIN)
        _, _, after = rest.partition(END)
        if after:
            readme.write_text(f"{before}{BEGIN}\n{_readme(drills)}{END}{after}", encoding="utf-8")
    return 0


def _take(drills: list[dict[str, Any]], new: dict[str, Any]) -> None:
    """Add a drill's result; a case that was measured before (with fewer runs, say) is replaced."""
    for old in drills:
        if old["drill"] == new["drill"] and old["engines"] == new["engines"]:
            again = {case["case"]: case for case in new["cases"]}
            old["cases"] = [again.pop(case["case"], case) for case in old["cases"]] + list(again.values())
            return
    drills.append(new)


def _cases(drills: list[dict[str, Any]]) -> list[tuple[str, dict[str, Any]]]:
    return [(f"{d['drill']}/{c['case']}", c) for d in drills for c in d["cases"] if not c["skipped"]]


def _summary(drills: list[dict[str, Any]]) -> str:
    lines = ["| dnsdist | promises kept | broken |", "| --- | --- | --- |"]
    by_version: dict[str, list[dict[str, Any]]] = {}
    for _, case in _cases(drills):
        by_version.setdefault(case["engines"]["dnsdist"], []).extend(case["promises"] or [{"kept": False}])
    for version, promises in sorted(by_version.items(), key=lambda item: _numbers(item[0])):
        kept = sum(p["kept"] for p in promises)
        lines.append(f"| {version} | {kept} of {len(promises)} | {len(promises) - kept} |")
    return "\n".join(lines) + "\n\n"


def _pages(drills: list[dict[str, Any]]) -> str:
    out = []
    names = list(dict.fromkeys(d["drill"] for d in drills))
    for name in names:
        rows = []
        for title, case in sorted((c for c in _cases(drills) if c[0].partition("/")[0] == name), key=lambda c: (c[0], _numbers(c[1]["engines"]["dnsdist"]))):
            rows += _rows(title, case)
        head = "| case | dnsdist | promise | allowed | measured | plain | gain | kept | longest outage |\n| --- | --- | --- | --- | --- | --- | --- | --- | --- |\n"
        notes = sorted({_why(t, c["engines"]["dnsdist"]) for t, c in _cases(drills) if t.startswith(name + "/") and not c["kept"]} - {""})
        out.append(f"## {name}\n\n{head}" + "\n".join(rows) + "\n" + "".join(f"\nNot reached: {note}.\n" for note in notes))
    return "\n".join(out)


def _rows(title: str, case: dict[str, Any]) -> list[str]:
    version = case["engines"]["dnsdist"]
    if not case["promises"]:
        return [f"| {title.partition('/')[2]} | {version} | could not be run | | | | | no | {case['why']} |"]
    out = []
    for number, promise in enumerate(case["promises"]):
        plain = _plain(case, promise) if case["baseline"] else None
        seen = any("unanswered_3s" in run for run in case["figures"])
        outage = (_outage(case["outage"]) if seen else "-") if number == 0 else ""
        over = f", {promise['over']} of {case['runs']}" if case["runs"] > 1 else ""
        cells = (
            title.partition("/")[2] if number == 0 else "",
            version if number == 0 else "",
            f"{promise['what']}{over}",
            f"{_number(promise['limit'])} {promise['unit']}",
            _number(promise["measured"]),
            _number(plain),
            _gain(promise["measured"], plain),
            "yes" if promise["kept"] else "**no**",
            outage,
        )
        out.append("| " + " | ".join(cells) + " |")
    return out


_FIGURES = {
    "unanswered within 3 s": "unanswered_3s",
    "unanswered within 5 s": "unanswered_5s",
    "the latest answer": "latest_s",
    "restarts of the engine": "engine_restarts",
    "handshakes failed": "failed_handshakes",
    "questions failed once the dead members are out": "failed",
    "answers from the wrong machine": "from_wrong",
    "reconnects that a question needed": "most_tries",
    "unanswered within 3 s more than behind plain dnsdist": "unanswered_3s",
}


def _plain(case: dict[str, Any], promise: dict[str, Any]) -> float | None:
    figure = _FIGURES.get(promise["what"])
    seen = sorted(run[figure] for run in case["baseline"]["figures"] if figure in run) if figure else []
    return seen[len(seen) // 2] if seen else None


def _readme(drills: list[dict[str, Any]]) -> str:
    ordered = sorted(_cases(drills), key=lambda c: _numbers(c[1]["engines"]["dnsdist"]))
    newest = dict(ordered)
    versions = {c["engines"]["dnsdist"] for c in newest.values()}
    lines = [f"| what happens, {', '.join(sorted(versions))}, questions lost | plain dnsdist | kept by edgekeeper |", "| --- | --- | --- |"]
    for title, words in README_ROWS:
        case = newest.get(title)
        if case is None or not case["runs"]:
            continue
        figures, plain = case["headline"]["product"], case["headline"]["plain"]
        asked = _number(case["asked"])
        lines.append(f"| {words} | {_number(plain)} | {_number(figures)} of {asked} |")
    return "\n".join(lines) + "\n"


def _why(title: str, version: str) -> str:
    for (where, begins), note in WHY.items():
        if (title == where or title.partition("/")[0] == where) and version.startswith(begins):
            return f"{title.partition('/')[0]} on {version}: {note}" if begins else note
    return ""


def _gain(product: float | None, plain: float | None) -> str:
    if product is None or plain is None:
        return "-"
    if product == plain:
        return "none"
    return f"{plain / product:.1f}x" if product else f"{_number(plain)} to 0"


def _outage(outage: dict[str, Any]) -> str:
    if outage["max_s"] == 0:
        return "none seen"
    return Span(outage["min_s"], math.inf if outage["max_s"] is None else outage["max_s"]).text()


def _number(value: float | None) -> str:
    if value is None:
        return "-"
    return str(int(value)) if float(value).is_integer() else f"{value:.3g}"


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(n) for n in version.split("."))


if __name__ == "__main__":
    sys.exit(main())
