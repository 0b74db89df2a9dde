"""Host names as they are published, and names as they are shown. Pure."""

from __future__ import annotations

import ipaddress
import re

from edgekeeper.model.text import printable

_NAME = re.compile(r"(?=.{1,253}\Z)(?:[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?\.)*[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?")


def canonical_host(host: str) -> str:
    """As the proxy compares names: lower-case, without a final dot."""
    return host.strip().lower().removesuffix(".")


def host_name(text: str) -> str:
    """A host as it is published: lower-case, without a final dot; ValueError ``REASON: sentence`` says why it cannot be."""
    if not text.isascii():  # before anything else: the small letter of one that is not ASCII may be (the Kelvin sign's is k)
        return _refuse("BadHost", f"{quoted(text)} is not ASCII; it is not published: write its xn-- form")
    name = canonical_host(text)
    if not name:
        return _refuse("NoHost", "a rule for all hosts names none; it is not published")
    if "*" in name:
        return _refuse("WildcardHost", f"{quoted(text)} is a wildcard, which the mesh accepts and never matches; it is not published: name each host")
    if _is_address(name):
        return _refuse("BadHost", f"{quoted(text)} is an address, not a name; it is not published")
    if not _NAME.fullmatch(name):
        return _refuse("BadHost", f"{quoted(text)} is not a host name (letters, digits and dashes between dots); it is not published")
    return name


def quoted(text: str, limit: int = 100) -> str:
    """Text from outside, in quotes that it cannot leave, on one line and cut."""
    return '"' + printable(text, limit).replace('"', "'") + '"'


def _refuse(reason: str, sentence: str) -> str:
    msg = f"{reason}: {sentence}"
    raise ValueError(msg)


def _is_address(name: str) -> bool:
    """An address, or a name whose last label is a number, which resolvers and browsers take for one."""
    if ":" not in name:
        return name.rpartition(".")[2].isdecimal()
    try:
        ipaddress.ip_address(name.strip("[]"))
    except ValueError:
        return False
    return True
