"""Passwords that protect nothing (VRP010, VRP017), scripts as root and multicast by mistake (VRP015), ignored VIPs (VRP016), a file that is not whole (VRP020). Pure."""

from __future__ import annotations

from collections.abc import Iterator

from edgekeeper.doctor.check import NO_VIP_LINTER, Check, Needs, Page
from edgekeeper.doctor.checks.vip_words import below, listed
from edgekeeper.doctor.facts import KeepalivedFacts
from edgekeeper.doctor.vips import nodes
from edgekeeper.engines.keepalived.cfg_values import PASS_LENGTH, Host
from edgekeeper.model.finding import Finding, Place, Severity

MOST_PROBLEMS = 5

VRP010_PAGE = Page(
    what="`authentication` with VRRP version 3 or with IPv6 `AH`, where it is ignored; an `auth_pass` of more than 8 characters; and, as INFO, that `PASS` is sent in clear text.",
    why="""
Version 3 has no authentication: keepalived says a line, ignores it, and whoever wrote it believes that the adverts are protected. Of a password only 8 characters count, and everybody on the segment reads them in every advert:
it keeps apart two clusters that were set up with one VRID by mistake, and nobody else.
""",
    fix="Take it away; `auth_hmac` (keepalived 2.4) or a firewall that lets protocol 112 in from the peers only.",
    others=f"`keepalived -t` says that it ignores or shortens it, and exits 5 for version 3. {NO_VIP_LINTER}",
)
VRP015_PAGE = Page(
    what="""
Scripts without `enable_script_security`; with it, neither `script_user` nor a `user` in the script, so that everything hangs on whether a user `keepalived_script` exists; `unicast_src_ip` or `unicast_peer` without any peer.
""",
    why="""
Without script security the check runs as root even where others may change it or a folder above it: 2.3 and later call that a security violation (`-t` exits 6). A unicast keyword without a peer falls back to
multicast, with a line that it is deprecated: the adverts go where nobody listens, and both hosts become MASTER.
""",
    fix="""
```text
global_defs {
    enable_script_security
    script_user keepalived_script
}
```

and a list of peers wherever `unicast_src_ip` stands, with `unicast_fault_no_peer`.
""",
    others=f"`keepalived -t` says both; a start goes on. {NO_VIP_LINTER}",
)
VRP016_PAGE = Page(
    what="A VIP of another address family than the instance, which is that of the first address in it (source, peer or VIP).",
    why="keepalived says a line and leaves it out: one of the two addresses that the service is published with is nowhere.",
    fix="An instance of its own for IPv6 with the same VRID, or `virtual_ipaddress_excluded`, which may hold both families.",
    others=f"`keepalived -t` says it and exits 5, which a start does not mind. {NO_VIP_LINTER}",
)
VRP017_PAGE = Page(
    what="Adverts that nothing protects: no `auth_hmac` in an instance. One line a host, and only INFO: before keepalived 2.4 there was nothing better than a firewall.",
    why="Whoever can send on the segment can send an advert of priority 255: the VIP is theirs with the next one, and so is what clients send there.",
    fix="keepalived 2.4 and later: `auth_hmac` with a key file in every instance. Before: unicast with `check_unicast_src`, and a firewall that lets protocol 112 in from the peers only.",
    others=f"`keepalived -t` accepts it. {NO_VIP_LINTER}",
)
VRP020_PAGE = Page(
    what="An `include` that names no file, or one that cannot be read; braces that do not match; a configuration that is longer than was read.",
    why="""
A plain `include` of a file that is not there is no error for keepalived: it says one line, and starts without it. After a brace too few, everything that follows is unknown to it; it says so, starts, and becomes MASTER without
the checks that stood there (measured).
""",
    fix="Write the brace; or `includer`, with which a missing file is an error. Start keepalived only where `keepalived -t` exits 0 and says nothing.",
    others=f"`keepalived -t` tells of braces and exits 5, and of a missing file in one line, with exit 0. {NO_VIP_LINTER}",
)


def auth(facts: KeepalivedFacts) -> Iterator[Finding]:
    """VRP010."""
    for node in nodes(facts):
        instance = node.instance
        if instance.auth is None:
            continue
        place = instance.at("auth_pass" if instance.pass_length else "authentication")
        ignored = instance.version == 3 or (instance.auth == "AH" and instance.family == 6)
        long = instance.pass_length > PASS_LENGTH
        what = (
            "its authentication is ignored: VRRP version 3 has none"
            if ignored
            else f"only {PASS_LENGTH} of the {instance.pass_length} characters of auth_pass count"
            if long
            else "its password is sent in clear text, in every advert"
        )
        yield Finding(
            id="VRP010",
            severity=Severity.WARN if ignored or long else Severity.INFO,
            object=node.object,
            what=what,
            evidence=f"auth_type {instance.auth}, version {instance.version}",
            why="the adverts are not protected as the file reads" if ignored or long else "it tells clusters apart, and protects from nobody on the segment",
            fix=f"{instance.at('authentication').text()}: take the block away"
            if ignored
            else f"{place.text()}: write at most {PASS_LENGTH} characters, the same on all hosts"
            if long
            else f"{place.text()}: nothing to do, or a firewall for protocol 112",
            place=place,
        )


def scripts(facts: KeepalivedFacts) -> Iterator[Finding]:
    """VRP015."""
    for host in facts.hosts:
        yield from _as_root(host)
    for node in nodes(facts):
        instance = node.instance
        if instance.unicast and not instance.peers:
            faulted = "unicast_fault_no_peer" in instance.flags
            yield Finding(
                id="VRP015",
                severity=Severity.WARN,
                object=node.object,
                what="unicast without any peer: it " + ("is in FAULT and never gets its VIP" if faulted else "falls back to multicast"),
                evidence="unicast_src_ip or unicast_peer, and no peer",
                why="the others do not hear it, or nobody takes the VIP" if faulted else "where multicast does not pass, both hosts become MASTER",
                fix=below(instance.at("unicast_src_ip"), node.object, "unicast_peer {", "    ADDRESS-OF-EACH-OTHER-HOST", "}"),
                place=instance.at("unicast_src_ip" if "unicast_src_ip" in instance.places else "unicast_peer"),
            )


def _as_root(host: Host) -> Iterator[Finding]:
    used = {tracked.name for instance in host.instances for tracked in host.tracked(instance) if tracked.kind == "script"}
    run = [script for script in host.scripts.values() if script.name in used]
    if not run:
        return
    settings = host.settings
    anonymous = [script.name for script in run if script.user is None]
    if settings.script_security and (settings.script_user is not None or not anonymous):
        return
    place = settings.place or run[0].place
    missing = ["enable_script_security"] if not settings.script_security else []
    missing += ["script_user keepalived_script"] if settings.script_user is None and anonymous else []
    inside = settings.place is not None
    yield Finding(
        id="VRP015",
        severity=Severity.WARN,
        object=f"global_defs of {host.name}",
        what="check scripts run as root, whoever may change them" if not settings.script_security else "which user runs the check scripts hangs on the host",
        evidence=f"{listed(sorted(script.name for script in run))}; no {' and no '.join(word.split()[0] for word in missing)}",
        why="2.3 and later call it a security violation; whoever may write the script is root"
        if not settings.script_security
        else "without a user keepalived_script the scripts are left out, and nothing watches the service",
        fix=below(place, "global_defs", *missing) if inside else _new_block(place, missing),
        place=place,
    )


def _new_block(place: Place, lines: list[str]) -> str:
    return "\n".join((f"{place.text()}: before this line, add:", "    global_defs {", *(f"        {line}" for line in lines), "    }"))


def left_out(facts: KeepalivedFacts) -> Iterator[Finding]:
    """VRP016."""
    for node in nodes(facts):
        instance = node.instance
        for vip in instance.vips:
            if vip.family is not None and vip.family != instance.family:
                yield Finding(
                    id="VRP016",
                    severity=Severity.WARN,
                    object=node.object,
                    what=f"the VIP {vip.text} is ignored: this instance is of IPv{instance.family}",
                    evidence=vip.text,
                    why="keepalived leaves it out with one line in its log: the address is nowhere",
                    fix=f"{vip.place.text()}: move it to an instance of its own, or into virtual_ipaddress_excluded",
                    place=vip.place,
                )


def open_adverts(facts: KeepalivedFacts) -> Iterator[Finding]:
    """VRP017."""
    for host in facts.hosts:
        bare = [instance for instance in host.instances if not instance.hmac]
        if bare:
            yield Finding(
                id="VRP017",
                severity=Severity.INFO,
                object=f"global_defs of {host.name}",
                what="whoever is on the segment can take the VIPs",
                evidence=f"no auth_hmac in {listed([instance.name for instance in bare])}",
                why="an advert of priority 255 is believed from anybody"
                if any(not i.peers for i in bare)
                else "an advert is believed from whoever can send from a peer's address",
                fix=f"{bare[0].place.text()}: with keepalived 2.4, add auth_hmac; before it, let protocol 112 in from the peers only",
                place=bare[0].place,
            )


def broken(facts: KeepalivedFacts) -> Iterator[Finding]:
    """VRP020."""
    told: set[tuple[Place, str]] = set()
    for host in facts.hosts:
        for problem in host.problems[:MOST_PROBLEMS]:
            if (problem.place, problem.text) in told:
                continue
            told.add((problem.place, problem.text))
            yield Finding(
                id="VRP020",
                severity=Severity.HIGH if problem.severe else Severity.WARN,
                object=f"file {problem.place.file or host.name}",
                what=problem.text,
                evidence="as the file was read here",
                why="keepalived starts all the same, without what it did not find or understand: a check, a VIP",
                fix=f"{(problem.place if problem.place.line else Place(host.files[0], 0)).text()}: mend it; start only where `keepalived -t` exits 0 and says nothing",
                place=problem.place,
            )


CHECKS = (
    Check("VRP010", Severity.WARN, "A password that protects nothing", Needs.VIPS, VRP010_PAGE, auth),
    Check("VRP015", Severity.WARN, "Check scripts as root; unicast without peers", Needs.VIPS, VRP015_PAGE, scripts),
    Check("VRP016", Severity.WARN, "A VIP of another address family is ignored", Needs.VIPS, VRP016_PAGE, left_out),
    Check("VRP017", Severity.INFO, "Nothing protects the adverts", Needs.VIPS, VRP017_PAGE, open_adverts),
    Check("VRP020", Severity.HIGH, "The configuration is not whole", Needs.VIPS, VRP020_PAGE, broken),
)
