"""What moves a VIP when its service dies: nothing (VRP007), late (VRP008), never (VRP009), a blind check (VRP012), a check through the VIP (VRP018). Pure."""

from __future__ import annotations

from collections.abc import Iterator

from edgekeeper.doctor.check import NO_VIP_LINTER, Check, Needs, Page
from edgekeeper.doctor.checks.vip_words import below, change, listed, setting
from edgekeeper.doctor.facts import KeepalivedFacts
from edgekeeper.doctor.vips import Fault, Node, Watched, faults, nodes, routers, watched
from edgekeeper.engines.keepalived.cfg_values import OWNER, Script
from edgekeeper.engines.keepalived.detection import Move
from edgekeeper.model.finding import Finding, Severity
from edgekeeper.model.time import format_duration

BUDGET_S = 5.0
"""How long a dead service may keep its VIP before it is told; the vip role's own default."""

VRP007_PAGE = Page(
    what="""
An instance that tracks nothing that looks at a service: no `track_script`, `track_file` or `track_process`, neither itself nor in its sync group. Not told where the same file balances the VIP
itself (`virtual_server`) or routes with it (`virtual_routes`); a WARN where something else is tracked (an interface, BFD), where a sync group spans interfaces as a router's does, or notify scripts start and stop the service.
""",
    why="keepalived moves a VIP when the host or keepalived dies. A service that died alone keeps its VIP for ever, and every client asks a host that does not answer.",
    fix="""
```text
vrrp_script chk_dns {
    script "/usr/local/bin/edgekeeper vip probe --dns 127.0.0.1:53 --qname health.example."
    interval 1
    timeout 1
    fall 3
    rise 2
    weight 0
}
```

and `track_script { chk_dns }` in the instance.
""",
    others=f"`keepalived -t` accepts it. {NO_VIP_LINTER}",
)
VRP008_PAGE = Page(
    what="""
The sum from the death of a service to the move of its VIP, by the settings in force, over 5 s; for one that fails at once, and for one that hangs. With I the interval, T what the last look takes, P the
time from look to look (I, or as many of them as a look is longer than) it is from `(fall - 1) x P + T` to `I + (fall - 1) x P + T`, and then the skew of the host that takes over where failure means FAULT (weight 0);
where it only lowers the priority, two to three adverts and the skew. Also: a timeout longer than the interval; fractions of a second, as INFO; a script by a relative path, or one at hand that others than root may change.
""",
    why="""
"interval 3, fall 10, weight -2" reads like three seconds. Measured with priorities 101 and 100: 31.3 s when the check fails at once, 34.3 s when it hangs for its two. A look that is still running when the next is due
is not started again: a hang with a timeout as long as the interval takes twice as long as the figures say (2.3.4).
""",
    fix="""
```text
    interval 1
    timeout 1
    fall 3
    weight 0
```

with a check that gives up by itself after 900 ms: at most 4.9 s. Intervals of less than a second need keepalived 2.3.2; before it a fraction is an error, and one second is taken.
""",
    others=f"`keepalived -t` accepts it. {NO_VIP_LINTER}",
)
VRP009_PAGE = Page(
    what="""
A check whose failure cannot move the VIP: the owner's priority and the weight together are no less than the best priority of the others; every other host has `nopreempt`; the owner has priority 255; or the check's
program ends with 0 when keepalived ends it at its timeout (`dig` does), so that a hang counts as a success. Judged only where the files of the other hosts are given.
""",
    why="""
The check runs, fails, is logged, and the VIP stays with the dead service until somebody looks. A backup takes over only from an owner whose priority is lower than its own, and with `nopreempt` not even then (measured:
`weight -20` with `nopreempt`, and `weight -2` with priorities ten apart: not moved).
""",
    fix="`weight 0`, which is the default: a failure is FAULT, and the owner lets go at once whatever the priorities are.",
    others=f"`keepalived -t` accepts it. {NO_VIP_LINTER}",
)
VRP012_PAGE = Page(
    what="""
A track script that a service which hangs passes: it only looks whether a process is there (`killall -0`, `pidof`, `pgrep`, `systemctl is-active`) or a port is open, it only connects (`nc -z`, `/dev/tcp`), or it asks with
`curl` without `-f` or without `--max-time`; a `vrrp_track_process` alone. The script's text is read when the file is here, else only its command line is judged; other languages than the shell's are not judged.
""",
    why="""
A service that hangs has its process, its port, and takes connections: the kernel does that for it. What clients see is silence. `curl` without `-f` passes on a 500, and without `--max-time` it
waits until keepalived ends it.
""",
    fix="""
Ask what clients ask, with a limit below keepalived's timeout:

```text
    script "/usr/bin/curl -sfk --max-time 0.9 -o /dev/null https://127.0.0.1:6443/readyz"
    script "/usr/local/bin/edgekeeper vip probe --dns 127.0.0.1:53 --qname health.example."
```
""",
    others=f"`keepalived -t` does not read scripts. {NO_VIP_LINTER}",
)
VRP018_PAGE = Page(
    what="A track script that asks one of the VIPs of its own configuration, other than only where this host holds it (`ip addr | grep VIP`).",
    why="""
On a backup the VIP is the other host: it judges the owner, not itself. At a cold start nobody has the VIP, every check fails and every host is in FAULT for ever; one wedged owner takes the healthy backup down with it (both
measured).
""",
    fix="Ask the service of this host, at `127.0.0.1` or the host's own address. The VIP itself is watched from elsewhere.",
    others=f"`keepalived -t` does not look. {NO_VIP_LINTER}",
)


def unwatched(facts: KeepalivedFacts) -> Iterator[Finding]:
    """VRP007."""
    for node in nodes(facts):
        instance, host = node.instance, node.host
        if any(one.is_service for one in watched(facts, node)):
            continue
        if "virtual_routes" in instance.flags or (instance.own_vips & host.balanced) or (host.balanced and not instance.own_vips):
            continue
        missing = [t for t in host.tracked(instance) if t.kind in {"script", "file", "process"}]
        ignored = [t.name for t in missing if t.name in host.scripts or (t.kind, t.name) in host.watches]
        mild = (bool(host.tracked(instance)) or _routes(node)) and not missing
        kinds = ", ".join(sorted({t.kind for t in host.tracked(instance)}))
        tracks = f"tracks {kinds} only" if kinds and not missing else "no track_script, track_file or track_process"
        if ignored:
            tracks = f"{listed(ignored)}: ignored, because weights do not count in a sync group without sync_group_tracking_weight"
        elif missing:
            tracks = f"{listed([t.name for t in missing])}: not in this configuration"
        yield Finding(
            id="VRP007",
            severity=Severity.WARN if mild or (instance.notify and not missing) else Severity.HIGH,
            object=node.object,
            what="nothing watches the service behind this VIP",
            evidence=tracks,
            why="a service that died alone keeps its VIP for ever: only the death of the host or of keepalived moves it",
            fix=f"{missing[0].place.text()}: track something that is there, with weight 0"
            if missing
            else f"{instance.place.text()}: give it a track_script (see the page)",
            place=missing[0].place if missing else instance.place,
        )


def _routes(node: Node) -> bool:
    """Whether it looks like a router's: in one sync group with an instance on another interface."""
    members = {name for group in node.host.groups_of(node.instance) for name in group.members}
    return len({instance.interface for instance in node.host.instances if instance.name in members}) > 1


def late(facts: KeepalivedFacts) -> Iterator[Finding]:
    """VRP008."""
    for router in routers(facts):
        for fault in faults(facts, router):
            if not fault.fails.is_never and _slowest(fault) > BUDGET_S:
                yield _late(fault)
    for host in facts.hosts:
        for script in host.scripts.values():
            yield from _careless(facts, script)


def _slowest(fault: Fault) -> float:
    return max(move.most_s for move in (fault.fails, fault.hangs) if move is not None and not move.is_never)


def _span(move: Move) -> str:
    return f"{move.least_s:.1f} to {move.most_s:.1f} s"


def _late(fault: Fault) -> Finding:
    script = fault.script
    hung = fault.hangs is not None and not fault.hangs.is_never
    evidence = f"a service that fails at once: {_span(fault.fails)} ({fault.fails.text})"
    if hung and fault.hangs is not None:
        evidence += f"; one that hangs: {_span(fault.hangs)} ({fault.hangs.text})"
    if not fault.known:
        evidence += "; whether its weight moves anything at all the files of the other hosts tell"
    long = [f"    {name} {value}" for name, value in _figures(script)]
    return Finding(
        id="VRP008",
        severity=Severity.WARN,
        object=fault.watched.node.object,
        what=f"a dead service keeps its VIP for up to {format_duration(round(_slowest(fault), 1))}: {script.name}",
        evidence=evidence,
        why="until then every client of the VIP asks a service that does not answer",
        fix=f"{script.place.text()}: in {script.name}, write:\n" + "\n".join(long),
        place=script.at("interval"),
    )


def _figures(script: Script) -> tuple[tuple[str, str], ...]:
    return ("interval", "1"), ("timeout", "1"), ("fall", str(min(script.fall, 3))), ("weight", "0")


def _careless(facts: KeepalivedFacts, script: Script) -> Iterator[Finding]:
    told: list[tuple[str, str, str, str]] = []
    if script.timeout_s is not None and script.timeout_s > script.interval_s:
        told.append(
            (
                "timeout",
                f"its timeout is longer than its interval: {script.name}",
                f"timeout {script.timeout_s:g}, interval {script.interval_s:g}",
                "while one look runs the next is left out: a hang takes longer than interval x fall says",
            )
        )
    if script.argv and not script.argv[0].startswith(("/", "$", "<")):
        told.append(
            (
                "script",
                f"its program is named without its path: {script.name}",
                script.command,
                "which program that is depends on keepalived's PATH, and on its version",
            )
        )
    found = facts.file_of(script)
    if found is not None and found.writers is not None:
        told.append(
            (
                "script",
                f"its program may be changed by {found.writers}: {script.name}",
                script.argv[0],
                "whoever may write it runs commands as its user, usually root",
            )
        )
    fraction = next(
        (name for name, value in (("interval", script.interval_s), ("timeout", script.timeout_s)) if value is not None and value != int(value)), None
    )
    if fraction is not None:
        place = script.at(fraction)
        yield Finding(
            id="VRP008",
            severity=Severity.INFO,
            object=f"vrrp_script {script.name}",
            what=f"its {fraction} is a fraction: {script.name}",
            evidence=" ".join((fraction, f"{script.interval_s if fraction == 'interval' else script.timeout_s:g}")),
            why="before keepalived 2.3.2 that is an error: another figure counts, a second or the interval",
            fix=f"{place.text()}: whole seconds, where hosts may have an older keepalived",
            place=place,
        )
    for name, what, evidence, why in told:
        place = script.at(name)
        fix = (
            change(place, f"timeout {script.interval_s:g}")
            if name == "timeout"
            else f"{place.text()}: give its whole path, owned by root and writable by nobody else"
        )
        yield Finding(
            id="VRP008", severity=Severity.WARN, object=f"vrrp_script {script.name}", what=what, evidence=evidence, why=why, fix=fix, place=place
        )  # fmt: skip


def stuck(facts: KeepalivedFacts) -> Iterator[Finding]:
    """VRP009."""
    for router in routers(facts):
        for fault in faults(facts, router):
            one, script = fault.watched, fault.script
            failed = fault.fails.is_never
            if not failed and (fault.hangs is None or not fault.hangs.is_never):
                continue
            move = fault.fails if failed or fault.hangs is None else fault.hangs
            weighted = bool(one.weight) and failed
            yield Finding(
                id="VRP009",
                severity=Severity.HIGH,
                object=one.node.object,
                what=f"a service that {'fails' if failed else 'hangs'} never moves its VIP: {script.name}",
                evidence=_signed(one, move),
                why="the check fails, is logged, and the VIP stays with the dead service" if failed else "what hangs is ended by keepalived and counts as well",
                fix=_unweighted(one, script)
                if weighted
                else f"{script.at('script').text()}: run it under `timeout 0.9`, or with a limit below {script.limit_s:g} s of its own",
                place=one.tracked.place if one.tracked.weight is not None and weighted else script.at("weight" if weighted else "script"),
            )
        if len(router.nodes) == 1:
            yield from _unjudged(facts, router.nodes[0])


def _signed(one: Watched, move: Move) -> str:
    return f"priority {one.node.instance.priority}, weight {one.weight}: {move.text}" if one.weight else move.text


def _unweighted(one: Watched, script: Script) -> str:
    if one.node.instance.priority == OWNER:
        return setting(one.node, "priority", "254")
    if one.tracked.weight is not None:
        return change(one.tracked.place, f"{script.name} weight 0")
    return change(script.at("weight"), "weight 0") if "weight" in script.places else below(script.place, script.name, "weight 0")


def _unjudged(facts: KeepalivedFacts, node: Node) -> Iterator[Finding]:
    weighted = [one for one in watched(facts, node) if one.weight and one.script is not None and not one.reverse]
    if weighted and node.instance.priority != OWNER:
        yield Finding(
            id="VRP009",
            severity=Severity.UNKNOWN,
            object=node.object,
            what="cannot tell whether a failed check ever moves its VIP",
            evidence=f"{listed([f'{one.tracked.name} weight {one.weight}' for one in weighted])}; the priorities of the other hosts are not known",
            why="a weight moves a VIP only where it brings the owner below another host; weight 0 always does",
            fix="give the files of all hosts at once",
            place=node.instance.place,
        )


def blind(facts: KeepalivedFacts) -> Iterator[Finding]:
    """VRP012."""
    for host in facts.hosts:
        told: set[str] = set()
        for instance in host.instances:
            node = Node(host, instance)
            watching = [one for one in watched(facts, node) if one.is_service]
            asks = [one for one in watching if one.tracked.kind == "file" or (one.look is not None and not one.look.blind)]
            for one in watching:
                if one.script is not None and one.look is not None and one.look.blind and one.script.name not in told:
                    told.add(one.script.name)
                    yield _blind(one, one.script, one.look.blind, helped=bool(asks))
            if watching and all(one.tracked.kind == "process" for one in watching):
                yield Finding(
                    id="VRP012",
                    severity=Severity.WARN,
                    object=node.object,
                    what="only the process of the service is watched, which one that hangs has",
                    evidence=f"track_process {listed([one.tracked.name for one in watching])}",
                    why="a service that hangs keeps its VIP for ever",
                    fix=f"{instance.place.text()}: give it a track_script that asks the service too",
                    place=watching[0].tracked.place,
                )


def _blind(one: Watched, script: Script, why: tuple[str, ...], *, helped: bool) -> Finding:
    mild = helped or (one.look is not None and one.look.kind == "ask" and len(why) == 1)
    curl = '"/usr/bin/curl -sfk --max-time 0.9 -o /dev/null URL"'
    return Finding(
        id="VRP012",
        severity=Severity.WARN if mild else Severity.HIGH,
        object=f"vrrp_script {script.name}",
        what="this check passes on a service that hangs" if one.look is None or one.look.kind != "ask" else "this check does not see every dead service",
        evidence=f"{script.command}: {'; '.join(why)}",
        why="clients of the VIP see silence, and the VIP stays",
        fix=f"{script.at('script').text()}: ask what clients ask, with a limit below {script.limit_s:g} s, such as:\n    script {curl}",
        place=script.at("script"),
    )


def circular(facts: KeepalivedFacts) -> Iterator[Finding]:
    """VRP018."""
    vips = {vip.ip for node in nodes(facts) for vip in (*node.instance.vips, *node.instance.excluded) if vip.ip is not None}
    for host in facts.hosts:
        told: set[str] = set()
        for instance in host.instances:
            for one in watched(facts, Node(host, instance)):
                if one.script is None or one.look is None or one.script.name in told or not (through := sorted(one.look.asked & vips)):
                    continue
                told.add(one.script.name)
                yield Finding(
                    id="VRP018",
                    severity=Severity.HIGH,
                    object=f"vrrp_script {one.script.name}",
                    what=f"it asks {listed(through)}, a VIP that it protects",
                    evidence=one.script.command,
                    why="on a backup it judges the owner; at a cold start nobody has the VIP, so every host is in FAULT and nobody ever gets it",
                    fix=f"{one.script.at('script').text()}: ask 127.0.0.1 or the host's own address instead of {listed(through)}",
                    place=one.script.at("script"),
                )


CHECKS = (
    Check("VRP007", Severity.HIGH, "Nothing watches the service behind a VIP", Needs.VIPS, VRP007_PAGE, unwatched),
    Check("VRP008", Severity.WARN, "A dead service keeps its VIP for long", Needs.VIPS, VRP008_PAGE, late),
    Check("VRP009", Severity.HIGH, "A failed check never moves the VIP", Needs.VIPS, VRP009_PAGE, stuck),
    Check("VRP012", Severity.HIGH, "A check that passes on a service that hangs", Needs.VIPS, VRP012_PAGE, blind),
    Check("VRP018", Severity.HIGH, "A check through the VIP that it protects", Needs.VIPS, VRP018_PAGE, circular),
)
