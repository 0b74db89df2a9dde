"""Server lines, their options, and addresses, as HAProxy reads them. Pure.

An option that is not known here is passed over word by word. The table says how many words follow those that are known, so
that a value is never taken for an option (``cookie check``).
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from edgekeeper.engines.haproxy.cfg_values import Address, Option, Ports, Server
from edgekeeper.model.finding import Place

_WITH_VALUE = """
addr agent-addr agent-inter agent-port agent-send alpn ca-file cc check-alpn check-pool-conn-name check-proto check-sni ciphers ciphersuites
client-sigalgs cookie crl-file crt curves downinter error-limit fall fastinter guid hash-key healthcheck id idle-ping init-addr init-state inter
interface ktls log-bufsize log-proto max-reuse maxconn maxqueue minconn namespace npn observe on-error on-marked-down on-marked-up
pool-conn-name pool-low-conn pool-max-conn pool-purge-delay port proto proxy-v2-options redir resolve-net resolve-opts resolve-prefer
resolvers rise shard sigalgs slowstart sni socks4 source ssl-max-ver ssl-min-ver tcp-md5sig tcp-ut track usesrc verify verifyhost weight ws
"""
_ONE = frozenset(_WITH_VALUE.split())
_TWO = frozenset({"set-proxy-v2-tlv-fmt"})
_FAMILIES = ("ipv4@", "ipv6@", "udp@", "udp4@", "udp6@", "tcp@", "tcp4@", "tcp6@", "mptcp@", "mptcp4@", "mptcp6@", "quic4@", "quic6@", "stream+", "dgram+")
_LOCAL_FAMILIES = {"unix@": "unix", "abns@": "abns", "abnsz@": "abns", "uxdg@": "unix", "uxst@": "unix", "fd@": "fd", "sockpair@": "fd", "rhttp@": "rhttp"}
_PORTS = re.compile(r"([+-]?)(\d{1,5})(?:-(\d{1,5}))?")
_RANGE = re.compile(r"(\d{1,6})(?:-(\d{1,6}))?")
_MOST_SERVERS = 100_000


def address(text: str) -> Address:
    """``192.0.2.1:6443``, ``[2001:db8::1]:53``, ``:443``, ``*:80-90``, ``cp1.example:+1000``, ``/run/x.sock``, ``abns@x``."""
    rest = text
    for prefix, family in _LOCAL_FAMILIES.items():
        if rest.startswith(prefix):
            return Address(text, rest[len(prefix) :], family=family)
    for prefix in _FAMILIES:
        rest = rest.removeprefix(prefix)
    if rest.startswith("/") or ("$" in rest and "/" in rest.rpartition("}")[2]):  # also ${RUN_DIR}/haproxy.sock
        return Address(text, rest, family="unix")
    host, colon, port = ("", "", "") if rest.endswith("]") else rest.rpartition(":")
    if not colon or ("}" in port and "{" not in port):  # the colon inside ${X:-1}
        return Address(text, rest.strip("[]"))
    host = host.strip("[]")
    found = _PORTS.fullmatch(port)
    if found is None:
        return Address(text, host)
    first = int(found[2])
    if found[1]:
        return Address(text, host, shift=first if found[1] == "+" else -first)
    return Address(text, host, ports=_ordered(first, int(found[3] or first)) if first else None)


def _ordered(first: int, last: int) -> Ports:
    return (min(first, last), max(first, last))


def options(words: Sequence[str], place: Place, before: Mapping[str, Option] | None = None) -> dict[str, Option]:
    """The options of a ``server`` or ``default-server`` line on top of those said ``before``."""
    out = dict(before or {})
    at = 0
    while at < len(words):
        name = words[at]
        many = 2 if name in _TWO else 1 if name in _ONE else 0
        value = tuple(words[at + 1 : at + 1 + many])
        at += 1 + len(value)
        if name == "enabled":
            out["disabled"] = Option((), place, off=True)
        elif name.startswith("no-") and name not in _ONE:
            out[name.removeprefix("no-")] = Option((), place, off=True)
        else:
            out[name] = Option(value, place)
    return out


def servers(words: Sequence[str], place: Place, default: Mapping[str, Option]) -> tuple[Server, ...]:
    """The servers of a ``server`` or ``server-template`` line: one, or one that stands for ``count``."""
    kind, *rest = words
    if kind == "server":
        if len(rest) < 2:
            return ()
        return (Server(rest[0], address(rest[1]), place, options(rest[2:], place, default)),)
    if len(rest) < 3:
        return ()
    found = _RANGE.fullmatch(rest[1])
    if found is None:  # a variable: how many is not known, but that there are some is
        return (Server(rest[0], address(rest[2]), place, options(rest[3:], place, default), 2),)
    first, last = (int(found[1]), int(found[2])) if found[2] else (1, int(found[1]))
    count = last - first + 1
    if not 1 <= count <= _MOST_SERVERS:
        return ()
    made = options(rest[3:], place, default)
    where = address(rest[2])
    return (
        tuple(Server(f"{rest[0]}{number}", where, place, made) for number in range(first, last + 1))
        if count <= 256
        else (Server(f"{rest[0]}{first}", where, place, made, count),)
    )
