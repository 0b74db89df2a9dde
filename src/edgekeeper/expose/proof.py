"""The proof from outside: a ClientHello with the host's name to the proxy's public address; the answer must be a certificate for that host.

The mesh's own status says ``active`` as soon as a route is in the proxy's table, whether or not anybody can be reached, and nothing
resets it when the proxy goes away. Each proxy behind a name has its own luck, so each address is asked.
"""

from __future__ import annotations

import asyncio
import ipaddress
import re
import ssl
import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from ipaddress import IPv4Address, IPv6Address
from typing import Final

from cryptography import x509

from edgekeeper.config.kinds import split_host_port
from edgekeeper.errors import EdgekeeperError
from edgekeeper.model.text import printable
from edgekeeper.probe.target import Target
from edgekeeper.probe.wire import Wire, open_wire, plain_words

_ECHO_MOST: Final = 64 * 1024
_WORD: Final = re.compile(r"[0-9A-Fa-f.:]{2,60}")
_PRIVATE: Final = tuple(
    map(ipaddress.ip_network, ("10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "127.0.0.0/8", "169.254.0.0/16", "fc00::/7", "fe80::/10", "::1/128"))
)
_MESH: Final = ipaddress.ip_network("100.64.0.0/10")
"""Addresses of NetBird's own mesh: a backend that sees one of them does not see its clients."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What one address answered: whether the host is proved there, why not, and after how many milliseconds. ``seen``: the client's address as the backend saw it."""

    address: str
    ok: bool
    why: str
    ms: float | None = None
    seen: str | None = None


@dataclass(frozen=True, slots=True)
class Proof:
    """All addresses of a host together."""

    host: str
    answers: tuple[Answer, ...]
    why: str = ""

    @property
    def ok(self) -> bool:
        """Whether every address answers as it should, and there is one."""
        return bool(self.answers) and all(one.ok for one in self.answers)

    @property
    def text(self) -> str:
        """The proof in one sentence."""
        if not self.answers:
            return self.why
        bad = [one for one in self.answers if not one.ok]
        if bad:
            return "; ".join(f"{one.address}: {one.why}" for one in bad)
        slowest = max(one.ms or 0.0 for one in self.answers)
        where = self.answers[0].address if len(self.answers) == 1 else f"all {len(self.answers)} addresses"
        return f"answers in {slowest:.0f} ms ({where})"


async def prove(host: str, at: Sequence[str], port: int, timeout_s: float, echo_path: str | None = None) -> Proof:
    """Ask every address (``host:port`` each; those of the host's own name on ``port`` when none is given). Never raises for what the world does."""
    places = list(at)
    if not places:
        from edgekeeper.membership.dns import addresses  # noqa: PLC0415 - a resolver is a fifth of a start; a config with addresses needs none

        try:
            async with asyncio.timeout(timeout_s):
                found = await addresses(host)
        except (EdgekeeperError, TimeoutError) as err:
            return Proof(host, (), f"its addresses cannot be looked up: {err if isinstance(err, EdgekeeperError) else 'no answer'}")
        if not found:
            return Proof(host, (), "it has no address in the DNS; point it to the proxy")
        places = [f"[{address}]:{port}" if ":" in address else f"{address}:{port}" for address in found]
    return Proof(host, tuple(await asyncio.gather(*(_ask(host, place, timeout_s, echo_path) for place in places))))


@lru_cache(maxsize=1)
def _unverified() -> ssl.SSLContext:
    """One for all questions: the names in the certificate are judged here, and loading the system's CAs for each host costs 17 ms of processor."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context


async def _ask(host: str, place: str, timeout_s: float, echo_path: str | None) -> Answer:
    name, port = split_host_port(place)
    target = Target(f"tls://{place}?sni={host}", "tcp", name, port, "tls", sni=host, verify=False)
    wire: Wire | None = None
    begun = time.monotonic()
    try:
        async with asyncio.timeout(timeout_s):
            wire = await open_wire(target, _unverified())
            ms = (time.monotonic() - begun) * 1000
            shown = wire.writer.get_extra_info("ssl_object").getpeercert(binary_form=True)
            wrong = not_for(shown, host)
            if wrong is not None:
                return Answer(place, False, wrong, ms)
            if echo_path is None:
                return Answer(place, True, "", ms)
            own = str(wire.writer.get_extra_info("sockname")[0])
            return _judge(place, ms, own, await _echo(wire, host, echo_path))
    except (OSError, ssl.SSLError, TimeoutError, asyncio.IncompleteReadError, ValueError) as err:
        return Answer(place, False, plain_words(err))
    except Exception as err:  # noqa: BLE001 - whatever a stranger's certificate does to a library (one extension twice, say), other hosts are proved all the same
        return Answer(place, False, f"its certificate cannot be read: {type(err).__name__} {printable(str(err), 100)}")
    finally:
        if wire is not None:
            await wire.close()


def not_for(certificate: bytes | None, host: str) -> str | None:
    """Why a certificate (DER) is not one for this host, or None when it is."""
    if not certificate:
        return "no certificate was shown"
    found = x509.load_der_x509_certificate(certificate)
    try:
        names = found.extensions.get_extension_for_class(x509.SubjectAlternativeName).value.get_values_for_type(x509.DNSName)
    except x509.ExtensionNotFound:
        names = []
    if any(_covers(name.lower(), host) for name in names):
        return None
    told = ", ".join(printable(name, 80) for name in names[:3]) or "no name at all"
    return f"the certificate is for {told}: something else than the backend answers (is listen_port the port that the proxy listens on?)"


def _covers(name: str, host: str) -> bool:
    first, _, rest = host.partition(".")
    return name == host or (name.startswith("*.") and bool(first) and name[2:] == rest)


async def _echo(wire: Wire, host: str, path: str) -> str:
    wire.writer.write(f"GET {path} HTTP/1.1\r\nHost: {host}\r\nUser-Agent: edgekeeper\r\nAccept: */*\r\nConnection: close\r\n\r\n".encode("ascii"))
    read = bytearray()
    while len(read) < _ECHO_MOST and (chunk := await wire.reader.read(8192)):
        read += chunk
    head, _, body = bytes(read).partition(b"\r\n\r\n")
    status = head.split(b" ", 2)[1:2]
    if status != [b"200"]:
        msg = f"the echo path answered {printable(head.splitlines()[0].decode('latin-1') if head else 'nothing', 60)}"
        raise ValueError(msg)
    return body.decode("utf-8", "replace")


def _judge(place: str, ms: float, own: str, told: str) -> Answer:
    """What the backend's answer says about the client's address: it must be this one's, or one that a NAT between may have given it."""
    seen = [address for word in _WORD.findall(told) if (address := _address(word)) is not None]
    if not seen:
        return Answer(place, False, "the echo path's answer holds no address", ms)
    if _address(own) in seen:
        return Answer(place, True, "", ms, own)
    inner = next((one for one in seen if one in _MESH), None)
    if inner is not None:
        return Answer(
            place, False, f"the backend sees {inner}, an address of the mesh, and not its clients: it does not take the PROXY protocol", ms, str(inner)
        )
    outer = next((one for one in seen if not _inside(one)), None)
    if outer is None or not _inside(ipaddress.ip_address(own)):
        first = outer or seen[0]
        why = f"the backend sees {first} and not {own}, which is this client: it does not take the PROXY protocol, or something between does not hand it on"
        return Answer(place, False, why, ms, str(first))
    return Answer(place, True, f"the backend sees {outer}; this machine's own address is {own} (is there NAT between?)", ms, str(outer))


def _inside(address: IPv4Address | IPv6Address) -> bool:
    """Whether it is one of a private network, which a NAT makes another of."""
    return any(address in network for network in _PRIVATE)


def _address(word: str) -> IPv4Address | IPv6Address | None:
    """The address in a word, which may have a port behind it or end a sentence."""
    for text in (word, word.rstrip(".:"), word.rpartition(":")[0]):
        try:
            return ipaddress.ip_address(text)
        except ValueError:
            continue
    return None
