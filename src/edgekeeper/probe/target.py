"""What to ask, as a URL: ``dns://SERVER/NAME?type=TXT``, ``tcp://HOST:PORT``, ``tls://``, ``https://``, ``icmp://HOST``. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal
from urllib.parse import SplitResult, parse_qsl, urlsplit

from edgekeeper.config.kinds import check_domain, check_host
from edgekeeper.errors import UsageError
from edgekeeper.probe.packet import TYPES, encode_name

Kind = Literal["dns", "tcp", "http", "icmp"]
Transport = Literal["udp", "tcp", "tls", "icmp"]
_TRANSPORTS: dict[str, Transport] = {"udp": "udp", "tcp": "tcp", "tls": "tls"}
_PORTS = {"udp": 53, "tcp": 53, "tls": 853, "http": 80, "https": 443}
_EXAMPLES = (
    "dns://192.0.2.53/health.example?type=TXT, tcp://192.0.2.60:6443, tls://192.0.2.60:6443?sni=api.example, https://edge.example/ping, icmp://192.0.2.1"
)


@dataclass(frozen=True, slots=True)
class Target:
    """One thing to ask. ``url`` is as the user wrote it; ``path`` is a request target, or a domain name for DNS.

    ``ok`` are HTTP status codes that count as good beside 200 to 399.
    """

    url: str
    kind: Kind
    host: str
    port: int
    transport: Transport
    path: str = ""
    qtype: str = "A"
    sni: str = ""
    verify: bool = True
    ok: tuple[int, ...] = ()

    @property
    def authority(self) -> str:
        """``host:port`` for a Host header, the port left out where it is the scheme's own."""
        host = f"[{self.host.partition('%')[0]}]" if ":" in self.host else self.host
        usual = 443 if self.transport == "tls" else 80
        return host if self.port == usual else f"{host}:{self.port}"


def parse(url: str) -> Target:
    """Read one target; UsageError says what is wrong and how to write it."""
    shown = ascii(url[:80])
    if not url.isprintable() or " " in url:
        raise _wrong(shown, "it holds spaces or characters that cannot be seen")
    try:
        parts = urlsplit(url)
        host = check_host((parts.hostname or "").replace("%25", "%"))  # the scope of a link-local address, as RFC 6874 writes it
        port = parts.port
    except ValueError as err:
        raise _wrong(shown, str(err)) from None
    if parts.username is not None:
        raise _wrong(shown, "a user name or password has no place in it")
    match parts.scheme:
        case "dns":
            return _dns(url, shown, parts, host, port)
        case "tcp" | "tls":
            return _tcp(url, shown, parts, host, port)
        case "http" | "https":
            return _http(url, shown, parts, host, port)
        case "icmp":
            _options(shown, parts.query, ())
            if port is not None or parts.path.strip("/"):
                raise _wrong(shown, "icmp:// takes a host and nothing else")
            return Target(url, "icmp", host, 0, "icmp")
        case _:
            raise _wrong(shown, f"the scheme {parts.scheme!r} is unknown" if parts.scheme else "the scheme is missing")


def _dns(url: str, shown: str, parts: SplitResult, host: str, port: int | None) -> Target:
    options = _options(shown, parts.query, ("type", "transport", "sni", "verify"))
    if not parts.path.strip("/"):
        raise _wrong(shown, "the name to ask for is missing behind the server")
    try:
        name = check_domain(parts.path.removeprefix("/"))
        encode_name(name)
    except (ValueError, UnicodeError) as err:
        raise _wrong(shown, str(err)) from None
    qtype = options.get("type", "A").upper()
    if qtype not in TYPES or qtype == "AXFR":
        raise _wrong(shown, f"the type {qtype} cannot be asked for; it is one of {', '.join(sorted(set(TYPES) - {'AXFR'}))}")
    transport = _TRANSPORTS.get(options.get("transport", "udp"))
    if transport is None:
        raise _wrong(shown, f"the transport {options['transport']!r} is none of udp, tcp, tls")
    sni, verify = _tls_options(shown, options, host)
    return Target(url, "dns", host, port or _PORTS[transport], transport, name, qtype, sni, verify)


def _tcp(url: str, shown: str, parts: SplitResult, host: str, port: int | None) -> Target:
    options = _options(shown, parts.query, ("sni", "verify") if parts.scheme == "tls" else ())
    if port is None:
        raise _wrong(shown, "the port is missing")
    if parts.path.strip("/"):
        raise _wrong(shown, f"{parts.scheme}:// takes no path")
    sni, verify = _tls_options(shown, options, host)
    return Target(url, "tcp", host, port, "tls" if parts.scheme == "tls" else "tcp", sni=sni, verify=verify)


def _http(url: str, shown: str, parts: SplitResult, host: str, port: int | None) -> Target:
    options = _options(shown, parts.fragment, ("ok", "sni", "verify"))
    path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    if not path.isascii():
        raise _wrong(shown, "the path has characters that must be percent-encoded")
    codes = [c for c in options.get("ok", "").split(",") if c]
    if not all(c.isascii() and c.isdigit() and 100 <= int(c) <= 599 for c in codes):
        raise _wrong(shown, f"ok={options['ok']} is not a list of HTTP status codes like 401,403")
    sni, verify = _tls_options(shown, options, host)
    transport: Transport = "tls" if parts.scheme == "https" else "tcp"
    return Target(url, "http", host, port or _PORTS[parts.scheme], transport, path, sni=sni, verify=verify, ok=tuple(int(c) for c in codes))


def _tls_options(shown: str, options: dict[str, str], host: str) -> tuple[str, bool]:
    try:
        sni = check_host(options["sni"]) if "sni" in options else host
    except ValueError as err:
        raise _wrong(shown, str(err)) from None
    if options.get("verify", "yes") not in {"yes", "no"}:
        raise _wrong(shown, "verify is yes or no")
    return sni, options.get("verify", "yes") == "yes"


def _options(shown: str, text: str, known: tuple[str, ...]) -> dict[str, str]:
    found = parse_qsl(text, keep_blank_values=True)
    for name, _ in found:
        if name not in known:
            raise _wrong(shown, f"the option {name!r} is unknown" + (f"; it takes {', '.join(known)}" if known else ""))
    return dict(found)


def _wrong(shown: str, why: str) -> UsageError:
    return UsageError(f"{shown} is not a target: {why}; write {_EXAMPLES}")
