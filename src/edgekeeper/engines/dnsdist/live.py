"""What changes without a restart, and the console commands that change it. Pure.

The commands are idempotent: each says what shall be, and sending the list twice, or to an engine
that was changed half-way, ends the same. A member whose options change is added before the old one
goes, and keeps its status; rules come when the members are there that they send to. Nobody is taken out
of service by these commands: that is a step of its own, when all of them are done and others are
seen to be up (``hands``), so that no query finds its pool empty in between.
"""

from __future__ import annotations

import hashlib
from dataclasses import replace

from edgekeeper.engines.dnsdist import functions, lua
from edgekeeper.engines.dnsdist.features import Features
from edgekeeper.engines.dnsdist.quote import lua_string, lua_value
from edgekeeper.engines.dnsdist.topology import Backend, Listener, Pool, Topology
from edgekeeper.ports import Change, Cost


def change(old: Topology, new: Topology) -> Change:
    """What getting from ``old`` to ``new`` costs, the kind of change, and why."""
    restart = _restart(old, new)
    if restart is not None:
        return restart
    kinds = _live_kinds(old, new)
    if not kinds:
        return Change(Cost.NOTHING, "other", "nothing changed")
    return Change(Cost.LIVE, kinds[0][0], "; ".join(why for _, why in kinds))


def commands(old: Topology, new: Topology, features: Features) -> tuple[str, ...]:
    """The console commands that bring the difference into a running engine."""
    out: list[str] = []
    if old.enforce_identity != new.enforce_identity:
        out.append(f"{functions.ENFORCE} = {lua_value(new.enforce_identity)}")
    if old.acl != new.acl:
        out.append(f"setACL({lua_value(list(new.acl))})")
    out += [f"setPoolServerPolicy({pool.policy}, {lua_string(pool.name)})" for pool in new.pools if pool not in old.pools]
    before, after = _by_name(old), _by_name(new)
    for name, backend in after.items():
        if before.get(name) != backend:
            same = name in before and before[name].address == backend.address
            out.append(_put(backend, features, same=same))
    out += [f"ek_remove({lua_string(name)})" for name in before if name not in after]
    if before != after:
        out.append(f"ek_hope({staying(old, new)})")
    if old.rules != new.rules:
        out.append(lua.rules(new))
    if _digests(old) != _digests(new):
        out.append("reloadAllCertificates()")
    return (functions.HELPERS, *out) if out else ()


def staying(old: Topology, new: Topology) -> str:
    """The argument of ``ek_hope``: the names that stay, pool by pool, of each pool that had or gets a member that changes."""
    before, after = _by_name(old), _by_name(new)
    changed = [backend for one, other in ((before, after), (after, before)) for name, backend in one.items() if other.get(name) != backend]
    touched = sorted({pool for backend in changed for pool in backend.pools})
    sets = (tuple(backend.name for backend in new.backends if pool in backend.pools) for pool in touched)
    return lua_value([list(names) for names in dict.fromkeys(sets) if names])


def _put(backend: Backend, features: Features, *, same: bool) -> str:
    made = lua.server(backend, features)
    mark = hashlib.sha256(made.encode()).hexdigest()[:16]
    return f"ek_put({lua_string(backend.name)}, {lua_value(same)}, {lua_string(mark)}, function() return {made} end)"


def _restart(old: Topology, new: Topology) -> Change | None:
    if _places(old) != _places(new):
        return Change(Cost.RESTART, "listeners", "dnsdist opens listeners at its start only")
    for what, was, shall in (
        ("the dynamic blocks", old.guard, new.guard),
        ("the eBPF maps", old.ebpf, new.ebpf),
        ("the tuning", old.tuning, new.tuning),
        ("the pools", _fixed_pools(old), _fixed_pools(new)),
    ):
        if was != shall:
            return Change(Cost.RESTART, "other", f"dnsdist reads {what} at its start only")
    before = _by_name(old)
    judged = [backend.name for backend in new.backends if backend.identity and before.get(backend.name) != backend]
    if judged:
        return Change(Cost.RESTART, "membership", f"dnsdist takes the identity check of {judged[0]} at its start only")
    return None


def _live_kinds(old: Topology, new: Topology) -> list[tuple[str, str]]:
    out = []
    if old.backends != new.backends:
        before, after = _by_name(old), _by_name(new)
        added, gone = len(after.keys() - before.keys()), len(before.keys() - after.keys())
        changed = sum(1 for name in after if name in before and before[name] != after[name])
        out.append(("membership", f"members: {added} added, {gone} removed, {changed} changed"))
    if old.rules != new.rules:
        out.append(("zones", "routing rules changed"))
    if _digests(old) != _digests(new):
        out.append(("certificates", "a certificate changed"))
    if old.enforce_identity != new.enforce_identity:
        out.append(("other", f"identity is {'' if new.enforce_identity else 'not '}enforced now"))
    if old.acl != new.acl:
        out.append(("other", "the ACL changed"))
    return out


def _by_name(topology: Topology) -> dict[str, Backend]:
    return {backend.name: backend for backend in topology.backends}


def _fixed_pools(topology: Topology) -> tuple[Pool, ...]:
    return tuple(pool for pool in topology.pools if not pool.name.startswith("forward-"))


def _places(topology: Topology) -> tuple[Listener, ...]:
    def place(listener: Listener) -> Listener:
        certificate = listener.certificate
        return replace(listener, certificate=replace(certificate, digest="")) if certificate else listener

    return tuple(place(listener) for listener in topology.listeners)


def _digests(topology: Topology) -> tuple[str, ...]:
    return tuple(listener.certificate.digest for listener in topology.listeners if listener.certificate)
