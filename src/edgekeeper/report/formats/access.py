"""What the access logs have in common: addresses, causes, numbers. Pure."""

from __future__ import annotations

import re

from edgekeeper.report.formats.base import Parsed
from edgekeeper.report.kinds import Kind, Mark, Request, Skip

GONE = 499
"""The status of a client that gave up waiting, where the log has one (nginx, Traefik); others are given it here."""

NO_ENDPOINT = "no endpoint"
"""Nothing was there to ask: no ready endpoint, no server up."""
NO_CONNECTION = "no connection"
"""There was something, and it could not be connected to or broke off its answer."""
TIMED_OUT = "timed out"
APPLICATION = "the application"
"""The answer is that of the application itself."""
PROXY = "the proxy"
"""The proxy refused for a reason of its own."""
LEFT = "the client left"
NO_ROUTE = "no route"


_OWN_WORDS = re.compile(
    rb"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d[^ \t]{0,16}[ \t](?:TRC|DBG|INF|WRN|ERR|FTL|PNC|debug|info|warn(?:ing)?|error|fatal)[ \t]"  # Traefik v3, Istio
    rb'|time="[^"]{1,40}" level='  # Traefik v2
    rb"|\d{4}/\d\d/\d\d \d\d:\d\d:\d\d \[[a-z]{2,8}\] "  # nginx
    rb"|[IWEF]\d{4} \d\d:\d\d:\d\d\.\d{6} +\d{1,9} [^ \]]{1,128}:\d{1,6}\] "  # the controller of ingress-nginx
    rb"|\[\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{3}\]\[\d{1,9}\]\[[a-z]{2,8}\]",  # Envoy
    re.ASCII,
)


_PROBE = re.compile(rb"[?&]kp=([A-Za-z0-9._-]{1,64})(?![A-Za-z0-9._-])")


def shared(found: Request | Skip | None, line: bytes, source: str, stamp_s: float) -> Parsed:
    """What was read, and beside it the mark of a probe of ours: the id that is in the path (``kp=``), which the prober wrote down too.

    ``line`` is the path, or a line in which nothing that a client wrote comes before it; ``stamp_s`` how coarse the stamps of the log are.
    """
    if b"kp=" not in line or not isinstance(found, Request):
        return found
    match = _PROBE.search(line)
    if match is None:
        return found
    return [found, Mark(found.start, Kind.CLOCK, match[1].decode(), "answered a probe", source, stamp_s=stamp_s, data={"side": "logged"})]


def own_words(line: bytes) -> bool:
    """Whether the line is of the proxy's own log: a container's log has both, and such a line is no access that was lost."""
    return _OWN_WORDS.match(line) is not None


def address(text: str) -> str:
    """The address of ``192.0.2.1:40126``, ``[2001:db8::1]:40126``, ``2001:db8::1:40126`` (HAProxy), ``192.0.2.1``; "" where it is none.

    Nothing but what an address may be made of comes through.
    """
    if not text or len(text) > 64:
        return ""
    if text[0] == "[":
        text = text[1:].partition("]")[0]
    elif ":" in text:
        text = text.rpartition(":")[0]
    return plain(text)


def plain(text: str) -> str:
    """The address when the text is one without a port (a zone is cut off); "" otherwise."""
    text = text.partition("%")[0]
    if not text or len(text) > 45 or text.strip("0123456789abcdefABCDEF:.") or not ("." in text or ":" in text):
        return ""
    return text


def status_of(text: str) -> int | None:
    """A status of three digits."""
    return int(text) if len(text) == 3 and text.isascii() and text.isdigit() and text[0] != "0" else None


def seconds(text: str) -> float | None:
    """Seconds as nginx writes them: ``0.004``."""
    whole, dot, part = text.partition(".")
    if not whole.isascii() or not whole.isdigit() or len(whole) > 12 or (dot and not (part.isascii() and part.isdigit() and len(part) <= 9)):
        return None
    return float(text)
