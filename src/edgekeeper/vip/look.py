"""One look at the local service behind a VIP: whether it is well, what stands behind it is ill, or it is dead itself.

Used by the track script and, in threads, by edgekeeper's own prober. Synchronous and lean; whatever
happens, it is over at its deadline.
"""

from __future__ import annotations

import os
import select
import socket
import time
from typing import NamedTuple

from edgekeeper.host import lean
from edgekeeper.model.selfname import SELF_NAME, SELF_TYPE
from edgekeeper.model.text import printable
from edgekeeper.vip import dialogue, question
from edgekeeper.vip.evidence import Sample

_SERVERS = "/api/v1/servers/localhost"
_FORWARD = "forward-"
"""Pools of our dns role whose members are not this service's own: they answer for one forwarded zone."""
_SHORTEST_API_S = 0.01
_TRIES = 3
"""A question is sent so many times within the deadline: one that a full buffer has lost is no silence."""
_MOST_BODY = 8 * 2**20

COUNT_S = 1.0
"""A look over the API costs dnsdist 3 ms of processor, one over DNS 0.2 ms (1.7.3 to 2.1.3, measured 2026-11-30): five a second would be 2 % of a core,
and too few members move a VIP only once a peer has said that it has more."""

_counts: dict[tuple[str, str], tuple[float, int | str]] = {}


class Target(NamedTuple):
    """What is asked: ``kind`` is dns, tcp or http; ``address`` is host:port.

    dns asks for ``name`` and ``qtype``; ``api`` and ``api_key_file`` lead to dnsdist's count of usable members, of which
    ``require`` are wanted. http asks ``url``.
    """

    kind: str
    address: str
    name: str = ""
    qtype: str = "A"
    api: str = ""
    api_key_file: str = ""
    require: int = 0
    url: str = ""


def look(target: Target, deadline_s: float) -> Sample:
    """Ask once. Over within ``deadline_s``; never raises: what could not be asked at all is ``blind``."""
    began = time.monotonic()
    end = began + deadline_s
    place = target.url if target.kind == "http" else target.address
    try:
        if target.kind == "dns":
            return _dns(target, began, end)
        if target.kind == "tcp":
            dialogue.connect(target.address, socket.SOCK_STREAM, end).close()
            return Sample("good", f"{place} takes connections")
        return _http(target, end)
    except (ConnectionRefusedError, ConnectionResetError, BrokenPipeError, dialogue.ClosedError) as err:
        return Sample("dead", f"{place} is dead: {_why(err)}")
    except TimeoutError:
        return Sample("silent", f"{place} did not answer within {deadline_s * 1000:.0f} ms")
    except OSError as err:
        if err.errno in dialogue.BLIND or err.errno is None or isinstance(err, socket.gaierror):
            return Sample("blind", f"{place} could not be asked: {_why(err)}")
        return Sample("dead", f"{place} is dead: {_why(err)}")
    except Exception as err:  # noqa: BLE001 - a mistake of ours must not take a VIP from every node
        return Sample("blind", f"{place} could not be asked: {type(err).__name__} {_why(err)}")


def _why(err: Exception) -> str:
    return printable(str(getattr(err, "strerror", None) or err), 200)


def _dns(target: Target, began: float, end: float) -> Sample:
    """The question and the engine's own, at once: any answer to either shows that the engine lives."""
    asked = (question.section(target.name, target.qtype), question.section(SELF_NAME, SELF_TYPE))
    ids = tuple(int.from_bytes(os.urandom(2), "big") for _ in asked)
    sock = dialogue.connect(target.address, socket.SOCK_DGRAM, end)
    try:
        code, alive = _exchange(sock, asked, ids, began, end)
    finally:
        sock.close()
    what = f"{target.address} {target.name} {target.qtype}"
    took = f"within {(end - began) * 1000:.0f} ms"
    if code in (question.NOERROR, question.NXDOMAIN):
        sample = Sample("good", f"{what}: {question.said(code)}")
    elif code is not None:
        sample = Sample("members", f"{what}: {question.said(code)}; the server lives, what it asks does not")
    elif alive:
        sample = Sample("members", f"{what}: no answer {took}; the server lives, what it asks does not")
    else:
        return Sample("silent", f"{what}: {target.address} answers nothing {took}")
    return _counted(target, sample, end) if target.api else sample


def _exchange(sock: socket.socket, asked: tuple[bytes, bytes], ids: tuple[int, ...], began: float, end: float) -> tuple[int | None, bool]:
    """The RCODE of the answer to the question, None without one, and whether there was any answer."""
    alive, due, every = False, began, (end - began) / _TRIES
    while (now := time.monotonic()) < end:
        if now >= due:
            due += every
            for ident, section in list(zip(ids, asked, strict=True))[: 1 if alive else 2]:
                dialogue.send(sock, question.packet(ident, section))
        if not dialogue.ready(sock, select.POLLIN, min(due, end)):
            continue
        try:
            raw = sock.recv(4096)
        except BlockingIOError:
            continue
        code = question.rcode(raw, ids[0], asked[0])
        if code is not None:
            return code, True
        alive = alive or question.rcode(raw, ids[1], asked[1]) is not None
    return None, alive


def _counted(target: Target, sample: Sample, end: float) -> Sample:
    """The sample with the members that dnsdist can use; one whose API does not answer is judged by its DNS alone."""
    if dialogue.left(end) < _SHORTEST_API_S:
        return sample
    usable = _usable(target, end)
    if isinstance(usable, str):
        return sample._replace(why=f"{sample.why}; usable members unknown: {usable}")
    if usable < target.require and sample.kind == "good":
        return Sample("members", f"{sample.why}, but {usable} usable members of {target.require} wanted", usable)
    return sample._replace(why=f"{sample.why}; {usable} usable members", usable=usable)


def _usable(target: Target, end: float) -> int | str:
    """How many members the engine can use, or why that is not known; asked anew each ``COUNT_S``."""
    place = (target.api, target.api_key_file)
    until, known = _counts.get(place, (0.0, ""))
    if time.monotonic() >= until:
        try:
            known = usable_servers(_servers(target, end))
        except (OSError, ValueError) as err:
            known = _why(err)
        _counts[place] = (time.monotonic() + COUNT_S, known)
    return known


def _servers(target: Target, end: float) -> bytes:
    key = lean.within(f"read {target.api_key_file}", lambda: lean.read(target.api_key_file, 4096), dialogue.left(end)).strip()
    if not key or not all(33 <= byte <= 126 for byte in key):
        msg = f"{target.api_key_file} holds no key"
        raise ValueError(msg)
    place = dialogue.url(target.api)
    place = place._replace(path=place.path.rstrip("/") + _SERVERS)
    answer = dialogue.ask(place, end, b"X-API-Key: " + key + b"\r\n", version=b"1.0", limit=_MOST_BODY, whole=True)
    if answer.status != 200:
        msg = f"its API answers {answer.status or 'something that is no HTTP'}"
        raise ValueError(msg)
    return answer.body


def usable_servers(body: bytes) -> int:
    """How many servers dnsdist gives queries to, by its API's JSON; ValueError when that is none. Those of forwarded zones do not count."""
    import json  # noqa: PLC0415 - 3 ms of a start, for targets with an API only

    tree = json.loads(body)
    servers = tree.get("servers") if isinstance(tree, dict) else None
    if not isinstance(servers, list):
        msg = "its API's answer names no servers"
        raise ValueError(msg)  # noqa: TRY004 - what was read is wrong, not its type here
    return sum(1 for server in servers if isinstance(server, dict) and str(server.get("state")).lower() == "up" and not _forwards(server.get("pools")))


def _forwards(pools: object) -> bool:
    return isinstance(pools, list) and bool(pools) and all(str(pool).startswith(_FORWARD) for pool in pools)


def _http(target: Target, end: float) -> Sample:
    place = dialogue.url(target.url)
    try:
        answer = dialogue.ask(place, end)
    except OSError as err:
        if type(err).__name__ not in ("SSLError", "SSLCertVerificationError"):
            raise
        return Sample("members", f"{target.url}: no TLS: {_why(err)}")
    if answer.status is None:
        return Sample("members", f"{target.url} answers something that is no HTTP")
    if 200 <= answer.status < 400:
        return Sample("good", f"{target.url} answers {answer.status}")
    if answer.status == 503 and drains(answer.head, answer.body):
        return Sample("draining", f"{target.url} says that it was told to drain")
    return Sample("members", f"{target.url} answers {answer.status}")


def drains(head: bytes, body: bytes) -> bool:
    """Whether a 503 says that its service was told to drain: in the header ``Edgekeeper-State``, or in words."""
    for line in head.lower().split(b"\r\n"):
        name, _, value = line.partition(b":")
        if name.strip() == b"edgekeeper-state":
            return value.strip() in (b"draining", b"lameduck")
    return any(word in body[:4096].lower() for word in (b"draining", b"lameduck"))
