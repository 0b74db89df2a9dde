"""The baseline: the ``haproxy.cfg`` that a user would write for a control plane without edgekeeper. Pure.

In the manner of the guides for kubeadm's high availability: TCP mode, an HTTP check of the health
path over TLS every 2 s with fall 3, idle timeouts long enough for watches, a stats socket, nothing
about what becomes of the sessions of a server that is down. ``directive`` adds the one line.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Service:
    """One frontend with its backend ``<name>-servers``. ``check`` is ``https``, ``http`` or ``tcp`` (a mere connect); None: none."""

    name: str
    listen: str
    servers: tuple[tuple[str, str], ...]
    mode: str = "tcp"
    check: str | None = "https"
    path: str = "/readyz"


@dataclass(frozen=True, slots=True)
class Plain:
    """What a plain config says. ``inter`` and ``timeouts`` in HAProxy's own spelling; ``socket`` is the stats socket's path."""

    services: tuple[Service, ...]
    socket: str
    directive: bool = False
    inter: str = "2s"
    fall: int = 3
    idle: str = "1h"


def config(plain: Plain) -> str:
    """The text of ``haproxy.cfg``."""
    lines = [
        "global",
        "    log stderr format raw local0 notice",
        f"    stats socket {_word(plain.socket)} mode 600 level admin",
        "",
        "defaults",
        "    log global",
        "    option dontlognull",
        "    option redispatch",
        "    retries 3",
        "    timeout connect 5s",
        "    timeout queue 20s",
        "    timeout http-request 10s",
        f"    timeout client {plain.idle}",
        f"    timeout server {plain.idle}",
    ]
    for service in plain.services:
        lines += ["", f"frontend {_word(service.name)}", f"    mode {service.mode}", f"    bind {service.listen}"]
        lines += [f"    default_backend {_word(service.name)}-servers", "", f"backend {_word(service.name)}-servers", f"    mode {service.mode}"]
        lines.append("    balance roundrobin")
        if service.check in {"https", "http"}:
            lines += [f"    option httpchk GET {_word(service.path)}", "    http-check expect status 200"]
        lines.append(f"    default-server {' '.join(_defaults(plain, service))}".rstrip())
        lines += [f"    server {_word(name)} {address}" for name, address in service.servers]
    return "\n".join(lines) + "\n"


def _defaults(plain: Plain, service: Service) -> Sequence[str]:
    words = []
    if service.check is not None:
        words += ["check", "inter", plain.inter, "fall", str(plain.fall)]
    if service.check == "https":
        words += ["check-ssl", "verify", "none"]
    if plain.directive:
        words += ["on-marked-down", "shutdown-sessions"]
    return words or ["weight", "1"]


def _word(text: str) -> str:
    """A word as it is; ValueError for what HAProxy would read as more than one, or as something else."""
    if not text or any(c.isspace() or c in "\"'\\#$;" for c in text):
        msg = f"{text!r} is no word for haproxy.cfg; use letters, digits, dots, dashes and slashes"
        raise ValueError(msg)
    return text
