"""The baseline: the configuration that a user would write for dnsdist without edgekeeper. Pure.

Lua, because every version reads it. ``chashed`` with weight 100 and health checks every second:
what field report A ran before (consistent hashing keeps the members' caches warm); with
``leastOutstanding`` a plain dnsdist loses only one or two queries to a dead member, and the caches
with it. Same ports, same members, same question for health as the product's config in the same drill.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Plain:
    """What a plain config says: listeners, members as (name, address), certificate paths."""

    listen: tuple[str, ...]
    members: tuple[tuple[str, str], ...]
    health_name: str = "health.example."
    health_type: str = "TXT"
    policy: str = "chashed"
    dot: tuple[str, ...] = ()
    certificate: str = ""
    key: str = ""
    acl: tuple[str, ...] = ("198.51.100.0/24", "127.0.0.0/8")
    must_resolve: bool = True
    reuseport: bool = False
    console_port: int = 0
    console_key: str = ""


def config(plain: Plain) -> str:
    """The text of ``dnsdist.conf``."""
    share = ", reusePort=true" if plain.reuseport else ""
    lines = [
        'setSecurityPollSuffix("")',
        "setACL({" + _strings(plain.acl) + "})",
        f"setServerPolicy({plain.policy})",
        *(f"addLocal({_quoted(address)}{', {' + share[2:] + '}' if share else ''})" for address in plain.listen),
        *(f"addTLSLocal({_quoted(a)}, {_quoted(plain.certificate)}, {_quoted(plain.key)}, {{provider={_quoted('openssl')}{share}}})" for a in plain.dot),
    ]
    if plain.console_port:
        lines += [f"setKey({_quoted(plain.console_key)})", f"controlSocket({_quoted(f'127.0.0.1:{plain.console_port}')})"]
    for name, address in plain.members:
        lines.append(
            f"newServer({{address={_quoted(address)}, name={_quoted(name)}, weight=100, checkName={_quoted(plain.health_name)}, "
            f"checkType={_quoted(plain.health_type)}, checkInterval=1, checkTimeout=1000, maxCheckFailures=2, rise=2, mustResolve={str(plain.must_resolve).lower()}}})"
        )
    return "\n".join(lines) + "\n"


def _strings(values: Sequence[str]) -> str:
    return ", ".join(_quoted(v) for v in values)


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'
