"""The kinds of values that sections are made of: durations, sizes, addresses, secrets.

Each rejects what it cannot read with a sentence that says how to write it.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Callable
from typing import Annotated, Any, ClassVar, TypeVar

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, WithJsonSchema

from edgekeeper.model.time import parse_duration, parse_size

T = TypeVar("T")

_HOST = re.compile(r"(?=.{1,253}$)(?!-)[A-Za-z0-9_-]{1,63}(?<!-)(\.(?!-)[A-Za-z0-9_-]{1,63}(?<!-))*\.?")
_LABEL = re.compile(r"(?:[\x21-\x2d\x2f-\x5b\x5d-\x7e]|\\\.|\\\d{3}){1,63}")
_SCOPE = re.compile(r"[A-Za-z0-9_.-]{1,15}")  # an interface's name; ipaddress itself takes any text after the %
_NODE = re.compile(r"[A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?")


class Section(BaseModel):
    """A section of the config: frozen, strict, and a stranger to unknown keys."""

    model_config = ConfigDict(frozen=True, strict=True, extra="forbid", validate_default=True)

    short: ClassVar[str] = ""
    """How a section that may also be written as text is described where something else was written."""


def _text(read: Callable[[str], T], kind: str) -> Callable[[Any], Any]:
    def parse(value: Any) -> Any:
        if isinstance(value, str):
            return read(value)
        msg = f"{value!r} is not {kind}"
        raise ValueError(msg)

    return parse


def _duration(value: Any) -> float:
    if isinstance(value, float):  # a default, already in seconds
        return value
    if isinstance(value, int) and not isinstance(value, bool) and value != 0:
        msg = f"{value} has no unit; write {value}s or {value}ms"
        raise ValueError(msg)
    return parse_duration(str(value))


def _size(value: Any) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) else parse_size(str(value))


def split_host_port(text: str, default_port: int | None = None) -> tuple[str, int]:
    """``host:port``, ``[v6]:port``, or, with a default port, a bare host or IPv6 address."""
    if text.startswith("["):
        host, bracket, rest = text[1:].partition("]")
        port = rest.removeprefix(":") if bracket else ""
        if not bracket or (rest and not rest.startswith(":")):
            msg = f"{text!r} is not host:port; write IPv6 as [2001:db8::1]:PORT"
            raise ValueError(msg)
    elif text.count(":") > 1:
        host, port = text, ""
    else:
        host, _, port = text.partition(":")
    if not port:
        if default_port is None:
            msg = f"{text!r} has no port; write {text}:PORT, or [2001:db8::1]:PORT for IPv6"
            raise ValueError(msg)
        return host, default_port
    if not (port.isascii() and port.isdigit() and 1 <= int(port) <= 65535):
        msg = f"{port!r} is not a port (1 to 65535)"
        raise ValueError(msg)
    return host, int(port)


def is_address(host: str) -> bool:
    """Whether ``host`` is an IPv4 or IPv6 literal (with an interface's name after a %, perhaps)."""
    _, percent, scope = host.partition("%")
    if percent and not _SCOPE.fullmatch(scope):
        return False
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True


def check_host(host: str) -> str:
    """A host name or an address literal; anything else is refused (rule: no injection)."""
    if is_address(host):
        return str(ipaddress.ip_address(host))
    if not _HOST.fullmatch(host) or re.fullmatch(r"[\d.]+", host):
        msg = f"{host!r} is neither an address nor a host name"
        raise ValueError(msg)
    return host.lower()


def _listen(text: str) -> str:
    host, port = split_host_port(text)
    if not is_address(host):
        msg = f"{host!r} is not an address; a listener needs one, 0.0.0.0 or [::] for all"
        raise ValueError(msg)
    address = str(ipaddress.ip_address(host))
    return f"[{address}]:{port}" if ":" in address else f"{address}:{port}"


def _network(text: str) -> str:
    if "%" in text:
        msg = f"{text!r} is not a network: an interface's name does not belong there"
        raise ValueError(msg)
    try:
        return str(ipaddress.ip_network(text))
    except ValueError as err:
        msg = f"{text!r} is not a network: {err}"
        raise ValueError(msg) from None


def check_domain(text: str) -> str:
    """A domain name, made absolute and lower-case; no character that could leave its quotes."""
    name = text.lower()
    if name == ".":
        return name
    labels = name.removesuffix(".").split(".")
    if len(name) > 254 or '"' in name or "'" in name or not all(_LABEL.fullmatch(label) for label in labels):
        msg = f"{text!r} is not a domain name"
        raise ValueError(msg)
    return name.removesuffix(".") + "."


def check_node(text: str) -> str:
    """A node's name: letters, digits, dot, dash and underscore, at most 63 characters."""
    if not _NODE.fullmatch(text):
        msg = f"{text!r} is not a node name (letters, digits, '.', '-', '_'; at most 63)"
        raise ValueError(msg)
    return text


_WRITTEN = {"type": "string", "pattern": r"^(0|(\d+(\.\d+)?(ms|s|m|h|d))+)$", "examples": ["90s", "250ms"]}
Duration = Annotated[float, BeforeValidator(_duration), WithJsonSchema(_WRITTEN)]
Size = Annotated[int, BeforeValidator(_size), WithJsonSchema({"type": "string", "examples": ["1MiB"]})]
Listen = Annotated[str, BeforeValidator(_text(_listen, "an address with a port"))]
Host = Annotated[str, BeforeValidator(_text(check_host, "an address or host name"))]
Network = Annotated[str, BeforeValidator(_text(_network, "a network like 192.0.2.0/24"))]
Domain = Annotated[str, BeforeValidator(_text(check_domain, "a domain name"))]
Node = Annotated[str, BeforeValidator(_text(check_node, "a node name"))]
Path = Annotated[str, Field(pattern=r"^[^\x00\n]+$")]
FileName = Annotated[str, Field(pattern=r"^[A-Za-z0-9_][A-Za-z0-9_.-]*$")]
Port = Annotated[int, Field(ge=1, le=65535)]
Items = Annotated[tuple[T, ...], Field(strict=False)]
