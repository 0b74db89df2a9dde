"""Writes docs/figures.md, and the table in README.md, from the JSON of `edgekeeper drill run` and a benchmark's table; see script/figures."""

from __future__ import annotations

import json
import math
import sys
from pathlib import Path
from typing import Any

from edgekeeper.model.time import Span

HEAD = """# Figures: what was promised, and what was measured

Written by `script/figures` from real runs; do not edit. Every drill runs in network namespaces of its own, with real engines: clients ask
all the time, something breaks, and the clients' own records say what was lost. "Plain" is the same fault in the same minute on the same
machine, without edgekeeper, with the configuration that a user would write. Outages are intervals: the truth lies between the bounds.

"""
COSTS = "What edgekeeper itself costs"
ENGINES = {"dockerd": "Docker", "keepalived": "keepalived", "haproxy": "HAProxy", "dnsdist": "dnsdist", "kube-apiserver": "Kubernetes"}
"""In the order of the page."""
BESIDE = {engine: f"plain {title}" for engine, title in ENGINES.items()} | {
    "dockerd": "the scripts of the field",
    "kube-apiserver": "the field's controller",
}
"""What stands beside edgekeeper in the README's tables."""
ABOUT = {
    "dockerd": """A small proxy runs in a container of a real Docker daemon; clients open a connection for each request, twenty a second. It wedges on command and writes the line that tells of it. Beside it ("plain") stand
the scripts of the field: a follower that greps the log, restarts at the first line and then waits for its cooldown (600 s, or 60 s), and a URL watchdog with three rounds of 60 s. Where plain says "at
least", its clients had no answer until the end of the run.
""",
    "keepalived": """Two or three nodes and a client on one bridge. The client asks 500 questions a second of the VIP (50 where only the length of an outage counts), from many ports;
who holds the VIP is read from the kernel of each node 50 times a second or more. Plain keepalived has what a user would write: priorities 200 and 190, `nopreempt`, a check each second
that gives up after 0.9 s, `fall 3`; where a case says so, the settings of kubeadm's guide. "Moves" counts changes of the owner.
""",
    "haproxy": """Three control-plane servers stand behind HAProxy in TCP mode. A warm client keeps one HTTP/2 connection over TLS, gives a request 4 s, keeps the
connection after a missed deadline and leaves it only when a PING is not acknowledged, as Kubernetes clients do; fresh clients open a
connection for each request. Plain HAProxy is configured in the manner of kubeadm's guides: `option httpchk` over TLS, `inter 2s fall 3`, idle
timeouts of an hour, no `on-marked-down` (where a case says that it has the directive, it has it), reloaded with SIGUSR2. Where plain says "at
least", its clients had no answer until the end of the run.
""",
    "dnsdist": """A client asks 500 questions a second (200 UDP source ports, every name new). Plain dnsdist has `chashed` with weight 100 and health checks every
second, and is restarted for every change. (With `leastOutstanding` a plain dnsdist loses one or two questions to a dead member instead of
hundreds; the price is the members' warm caches.) "Unanswered" means no good answer within 3 s unless the row says otherwise.
""",
    "kube-apiserver": """`edgekeeper expose run` beside a real kube-apiserver with its etcd, a fake of NetBird's management API that behaves as its source says, a TLS passthrough proxy that follows it, and a TLS server behind that.
Clients ask the published hosts through the proxy all the time, over fresh connections and over kept ones. "Plain" is a controller with the habits of one in the field: it takes for its own what leads to
its network, writes only the fields that it knows, deletes at once what is not in the list, and ends a pass at the first error. Its passes are 5 s apart here instead of 60 s, unless the case says so. In the drills of HAProxy and dnsdist the members are in a
cluster (or are its API servers), and plain is the plain engine.
""",
}
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
README_LB = (
    ("lb-blackhole/defaults", "a server becomes a black hole: longest time that a client hung"),
    ("lb-blackhole-after-reload/defaults", "the same, for sessions of before a reload, the one directive set"),
    ("lb-guard/down", "the same, a HAProxy that may not be touched: `lb guard` beside it, from DOWN on"),
    ("lb-all-slow/defaults", "all servers answer checks late: from a cut to the next answer"),
    ("lb-maint/defaults", "a server is put in MAINT: clients still on it"),
    ("lb-taken-port/defaults", "a reload with a listener whose port is taken: requests lost"),
    ("lb-reload-down/defaults", "a reload while a server hangs: requests lost"),
    ("lb-reloads/defaults", "a thousand reloads under load: requests lost"),
    ("lb-supervisor-killed/killed", "edgekeeper itself is killed: requests lost"),
)
README_WATCH = (
    ("watch-wedge/hang", "a proxy in a container wedges (a hang): from the wedge until a client is answered"),
    ("watch-wedge/refuse", "the same, it refuses connections"),
    ("watch-wedge/quiet", "the same hang, and no line tells of it"),
    ("watch-wedge-in-cooldown/defaults", "it wedges again 30 s after it was cured"),
    ("watch-forged-lines/healthy", "clients forge a thousand lines: restarts of the healthy service"),
    ("watch-management-down/wedged", "it wedges while its management is away: restarts that would leave it dark"),
    ("watch-pair/both", "two members wedge together: times that both were being restarted at once"),
)
README_VIP = (
    ("vip-drained/nopreempt", "a VIP is drained for maintenance: questions lost"),
    ("vip-stopped/defaults", "the supervisor, with keepalived, is stopped: questions lost"),
    ("vip-stopped/by-somebody", "somebody stops keepalived: longest time without an answer"),
    ("vip-service-dead/defaults", "the service behind the VIP is killed: longest time without an answer"),
    ("vip-service-blackhole/defaults", "it hangs (a black hole): longest time without an answer"),
    ("vip-kubeadm/hangs", "the same with the settings of kubeadm's guide"),
    ("vip-keepalived-killed/defaults", "keepalived is killed (-9) on the owner: two nodes hold the VIP for"),
    ("vip-resumed/defaults", "a frozen owner wakes up: times that the VIP moved"),
    ("vip-killed/defaults", "the owner's machine dies, advert 1 s (the protocol's own limit is 3.0 s)"),
    ("vip-killed/advert-100ms", "the same, advert 100 ms"),
)
README_DNS = (
    ("dns-member-killed/defaults", "a member is killed"),
    ("dns-member-frozen/defaults", "a member freezes (a black hole)"),
    ("dns-member-killed-dot/dot-killed", "a member is killed, clients over DNS over TLS"),
    ("dns-member-changed/defaults", "a member leaves, another joins"),
    ("dns-engine-restarted/overlap", "dnsdist must be restarted (a listener added)"),
    ("dns-bad-config/defaults", "a mistake in the configuration"),
    ("dns-supervisor-killed/defaults", "edgekeeper itself is killed"),
)
README_EXPOSE = (
    ("expose-empty-list/defaults", "the label is lost on 19 of 20 Ingresses for a moment: services deleted"),
    ("expose-empty-list/fresh-etcd", "the API server comes back with an empty etcd: services deleted"),
    ("expose-two-owners/defaults", "two clusters share the mesh: writes in fifteen seconds without a change"),
    ("expose-restrictions/defaults", "the target moves under an allow-list of the dashboard: strangers let in"),
    ("expose-rate-limit/defaults", "sixty hosts come under NetBird's rate limit: hosts that are never published"),
    ("expose-restrictions/changes", "an Ingress changes: until it is written, 95 %"),
    ("expose-two-owners/killed", "the edgekeeper that leads is killed: until the other writes"),
    (
        "lb-kubelet/defaults",
        "a kube-apiserver freezes behind HAProxy (beside: plain HAProxy): until a watch, a lease, kubectl and an HTTP/2 client are served again",
    ),
    ("dns-deployment-rolled/defaults", "the DNS members are pods, and their Deployment is rolled: questions lost"),
)
IN_KUBERNETES = ("lb-kubelet", "dns-deployment-rolled")
"""Drills of other engines that belong to the part about Kubernetes."""
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
    parts = _parts(page.read_text(encoding="utf-8")) if page.exists() else {}
    for engine, title in ENGINES.items():
        some = [d for d in drills if _part(d["drill"], d) == engine]
        if some:
            parts[title] = f"{ABOUT[engine]}\n{_summary(some)}{_pages(some)}"
    if costs:
        parts[COSTS] = f"From `benchmarks/bench.py`, on the same machine.\n\n{costs}"
    page.write_text(HEAD + "\n".join(f"# {title}\n\n{parts[title].strip()}\n" for title in (*ENGINES.values(), COSTS) if title in parts), encoding="utf-8")
    readme = Path("README.md")
    if readme.exists():
        text = readme.read_text(encoding="utf-8")
        before, _, rest = text.partition(BEGIN)
        _, _, after = rest.partition(END)
        if after:
            readme.write_text(f"{before}{BEGIN}\n{_readme(drills, rest.partition(END)[0])}{END}{after}", encoding="utf-8")
    return 0


def _parts(page: str) -> dict[str, str]:
    """The page's parts by their titles: what is not measured now stays as it was."""
    found = {}
    for part in page.split("\n# ")[1:] if page.startswith("# ") else ():
        title, _, text = part.partition("\n")
        found[title] = text
    return found


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


def _engine(case: dict[str, Any]) -> tuple[str, str]:
    """The engine of a case and its version."""
    engine = next(engine for engine in ENGINES if engine in case["engines"])  # a joint drill belongs to the first
    return engine, case["engines"][engine]


def _part(drill: str, case: dict[str, Any]) -> str:
    """The engine under whose title a drill stands."""
    return "kube-apiserver" if drill in IN_KUBERNETES else _engine(case)[0]


def _version(drill: str, case: dict[str, Any]) -> str:
    """The version of its engine, with the engine's name where the title has another one's."""
    engine, version = _engine(case)
    return version if _part(drill, case) == engine else f"{ENGINES[engine]} {version}"


def _summary(drills: list[dict[str, Any]]) -> str:
    lines = ["| version | promises kept | broken |", "| --- | --- | --- |"]
    by_version: dict[str, list[dict[str, Any]]] = {}
    for title, case in _cases(drills):
        by_version.setdefault(_version(title.partition("/")[0], case), []).extend(case["promises"] or [{"kept": False}])
    for version, promises in sorted(by_version.items(), key=lambda item: (item[0].rpartition(" ")[0], _numbers(item[0].rpartition(" ")[2]))):
        kept = sum(p["kept"] for p in promises)
        lines.append(f"| {version} | {kept} of {len(promises)} | {len(promises) - kept} |")
    return "\n".join(lines) + "\n\n"


def _pages(drills: list[dict[str, Any]]) -> str:
    out = []
    names = list(dict.fromkeys(d["drill"] for d in drills))
    for name in names:
        rows = []
        for title, case in sorted((c for c in _cases(drills) if c[0].partition("/")[0] == name), key=lambda c: (c[0], _numbers(_engine(c[1])[1]))):
            rows += _rows(title, case)
        head = "| case | version | promise | allowed | measured | plain | gain | kept | longest outage |\n| --- | --- | --- | --- | --- | --- | --- | --- | --- |\n"
        notes = sorted({_why(t, _engine(c)[1]) for t, c in _cases(drills) if t.startswith(name + "/") and not c["kept"]} - {""})
        out.append(f"## {name}\n\n{head}" + "\n".join(rows) + "\n" + "".join(f"\nNot reached: {note}.\n" for note in notes))
    return "\n".join(out)


def _rows(title: str, case: dict[str, Any]) -> list[str]:
    version = _version(title.partition("/")[0], case)
    if not case["promises"]:
        return [f"| {title.partition('/')[2]} | {version} | could not be run | | | | | no | {case['why']} |"]
    out = []
    for number, promise in enumerate(case["promises"]):
        plain = _plain(case, promise) if case["baseline"] else None
        seen = any("unanswered_3s" in run or "unanswered" in run for run in case["figures"])
        outage = (_outage(case["outage"]) if seen else "-") if number == 0 else ""
        over = f", {promise['over']} of {case['runs']}" if case["runs"] > 1 else ""
        cells = (
            title.partition("/")[2] if number == 0 else "",
            version if number == 0 else "",
            f"{promise['what']}{over}",
            f"{_number(promise['limit'])} {promise['unit']}",
            _number(promise["measured"]),
            f"at least {_number(plain)}" if _open(case, promise["unit"]) else _number(plain),
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
    figure = _FIGURES.get(promise["what"]) or promise.get("figure")
    seen = sorted(run[figure] for run in case["baseline"]["figures"] if figure in run) if figure else []
    return seen[len(seen) // 2] if seen else None


def _open(case: dict[str, Any], unit: str) -> bool:
    """Whether the plain side's times end with the run: some of its clients had no answer any more."""
    return unit == "s" and bool(case["baseline"]) and any(run.get("unserved") for run in case["baseline"]["figures"])


def _readme(drills: list[dict[str, Any]], before: str) -> str:
    """One table an engine; that of an engine that was not measured now stays as it was."""
    old = {engine: next((t.strip() + "\n" for t in before.split("\n\n") if f"| {words} |" in t), "") for engine, words in BESIDE.items()}
    new = {
        "dockerd": _readme_table(drills, "dockerd", "Docker {}", README_WATCH),
        "keepalived": _readme_table(drills, "keepalived", "keepalived {}", README_VIP),
        "haproxy": _readme_table(drills, "haproxy", "HAProxy {}", README_LB),
        "dnsdist": _readme_table(drills, "dnsdist", "dnsdist {}, questions lost", README_DNS),
        "kube-apiserver": _readme_table(drills, "kube-apiserver", "Kubernetes {}", README_EXPOSE),
    }
    return "\n".join(table for engine in ENGINES if (table := new[engine] or old[engine]))


def _readme_table(drills: list[dict[str, Any]], engine: str, head: str, wanted: tuple[tuple[str, str], ...]) -> str:
    newest = dict(sorted((c for c in _cases(drills) if _part(c[0].partition("/")[0], c[1]) == engine), key=lambda c: _numbers(_engine(c[1])[1])))
    versions = {_engine(c)[1] for c in newest.values() if _engine(c)[0] == engine}
    lines = []
    for title, words in wanted:
        case = newest.get(title)
        if case is None or not case["runs"]:
            continue
        headline = case["headline"]
        unit = "" if headline.get("unit", "queries") != "s" else " s"
        share = f" of {_number(case['asked'])}" if headline.get("unit", "queries") in {"queries", "requests"} else unit
        plain = "-" if headline["plain"] is None else f"{'at least ' if _open(case, unit.strip()) else ''}{_number(headline['plain'])}{unit}"
        lines.append(f"| {words} | {plain} | {_number(headline['product'])}{share} |")
    if not lines:
        return ""
    title = head.format(", ".join(sorted(versions)))
    return f"| what happens, {title} | {BESIDE[engine]} | kept by edgekeeper |\n| --- | --- | --- |\n" + "\n".join(lines) + "\n"


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
    if plain == 0:
        return "-"  # a cut, say, is what frees a client: plain HAProxy makes none
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
