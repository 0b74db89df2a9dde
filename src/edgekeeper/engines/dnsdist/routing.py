"""Which query goes to which pool: the rules in their order, each with a stable name and id. Pure."""

from __future__ import annotations

from dataclasses import dataclass, field

from edgekeeper.config.dns import Dns
from edgekeeper.config.secret import SecretSource
from edgekeeper.engines.dnsdist.names import AUTHORITATIVE, RESOLVER, forward_pool, identify
from edgekeeper.errors import UsageError

_SECRET_LENGTH = 32


@dataclass(frozen=True, slots=True)
class Rule:
    """A query rule. ``kind``: alive, restartable, refuse, secret, suffix, or default.

    alive: the question that dnsdist answers itself, whatever its members do (see ``model.selfname``).
    refuse: transfers, NOTIFY and UPDATE unless the client is in ``sources``. suffix: names under
    ``suffixes`` but not under ``but`` go to ``pool``. secret: ``text`` goes into TLV 224.
    """

    name: str
    id: str
    kind: str
    pool: str = ""
    suffixes: tuple[str, ...] = ()
    but: tuple[str, ...] = ()
    sources: tuple[str, ...] = ()
    text: str = field(default="", repr=False)


def secret(dns: Dns, said: str | None) -> str:
    """The PROXY protocol secret as members must get it, or empty; UsageError when it could not reach them byte for byte."""
    if not isinstance(dns.proxy_protocol, SecretSource):
        return ""
    text = (said or "").rstrip("\r\n")
    if not text:
        msg = "proxy_protocol names a secret, but it is empty; members that want it would answer nothing"
        raise UsageError(msg)
    if not all("!" <= char <= "~" and char not in "\"'" for char in text):
        msg = "the PROXY protocol secret has a space, a quote or a character that is not printable ASCII; it could not reach the members byte for byte"
        raise UsageError(msg)
    if len(text) < _SECRET_LENGTH:
        msg = f"the PROXY protocol secret has {len(text)} characters; use at least {_SECRET_LENGTH}"
        raise UsageError(msg)
    return text


def rules(dns: Dns, zones: tuple[str, ...], forwards: tuple[str, ...], text: str, *, retry: bool) -> tuple[Rule, ...]:
    """The rules in their order; the deepest of a zone and what is forwarded beneath it wins. ``text`` is the secret, or empty."""
    both = sorted(set(zones) & set(forwards))
    if both:
        msg = f"{both[0]} is both a zone of the members and forwarded; keep one of the two"
        raise UsageError(msg)
    out = [_rule("alive", "alive")]
    if retry:
        out.append(_rule("restartable", "restartable"))
    out.append(_rule("refuse-transfers", "refuse", sources=tuple(dns.transfer_sources)))
    if text:
        out.append(_rule("proxy-secret", "secret", text=text))
    for zone in sorted(forwards, key=lambda name: (-name.count("."), name)):  # the deepest first
        beneath = tuple(other for other in zones if under(other, zone))
        out.append(_rule(f"forward-{zone}", "suffix", pool=forward_pool(zone), suffixes=(zone,), but=beneath))
    if zones:
        out.append(_rule(AUTHORITATIVE, "suffix", pool=AUTHORITATIVE, suffixes=zones))
    out.append(_rule(RESOLVER, "default", pool=RESOLVER))
    return tuple(out)


def _rule(name: str, kind: str, **parts: str | tuple[str, ...]) -> Rule:
    return Rule(name=name, id=identify(f"rule {name}"), kind=kind, **parts)  # type: ignore[arg-type]


def under(name: str, zone: str) -> bool:
    """Whether ``name`` is strictly beneath ``zone``; both absolute and lower-case."""
    return name != zone and (zone == "." or name.endswith("." + zone))
