"""What the annotations of an object ask for its hosts, each checked on its own. Pure.

A bad value costs its own key only: its default counts, and a remark tells so. What decides who may reach a host is more than a
preference: of an allow list the readable entries count as long as there is one (that is narrower than asked for, never wider); an allow
list without any, a block list with an unreadable entry, and an ``enabled`` that is neither true nor false *hold* the object's hosts:
those that are not there are not created, those that are there stay as they are. ``none`` is how a list says that there shall be no
restriction; an empty text is a mistake, since a template that lost its value writes one.
"""

from __future__ import annotations

import difflib
import ipaddress
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any, Final

from edgekeeper.expose.countries import COUNTRIES
from edgekeeper.expose.kinds import Claim, Options, Policy, Remark
from edgekeeper.expose.names import quoted
from edgekeeper.model.text import printable

STATUS: Final = "expose-status"
"""The annotation that edgekeeper itself writes."""
KNOWN: Final = (
    "enabled",
    "listen-port",
    "proxy-protocol",
    "request-timeout",
    "idle-timeout",
    "allow-cidrs",
    "block-cidrs",
    "allow-countries",
    "block-countries",
    "delete-policy",
    "adopt",
    "force-delete",
)
MOST_NETWORKS: Final = 200
"""More in one list are refused by the mesh's API (422), as are more than 50 countries."""
MOST_COUNTRIES: Final = 50
LONGEST_MS: Final = 3_600_000
_SHOWN = 60
_MOST_UNKNOWN = 5

_DURATION = re.compile(r"([0-9]{1,7}(?:\.[0-9]{1,3})?)(ms|s|m|h)")
_UNITS_MS = {"ms": 1, "s": 1000, "m": 60_000, "h": 3_600_000}


@dataclass(frozen=True, slots=True)
class Read:
    """What an object's annotations say: its options, whether it wants to be published at all, and what must be told of them."""

    options: Options
    enabled: bool
    remarks: tuple[Remark, ...]


_SILENT: Final = Read(Options(), enabled=True, remarks=())


def read(claim: Claim, prefix: str) -> Read:
    """The options of one object; annotations of other prefixes are not looked at."""
    said = {key.removeprefix(f"{prefix}/"): value for key, value in sorted(claim.annotations.items()) if key.startswith(f"{prefix}/")}
    if not said:
        return _SILENT
    reader = _Reader(claim, prefix, said)
    enabled = reader.flag("enabled", default=True, hold=True)
    options = Options(
        listen_port=reader.one("listen-port", _port, "a port (1 to 65535)", "the config's port counts"),
        proxy_protocol=reader.one("proxy-protocol", _boolean, "true or false", "the config's setting counts"),
        request_timeout=reader.one("request-timeout", _duration, "a duration of 1ms to 1h, like 30s", "none is asked for"),
        idle_timeout=reader.one("idle-timeout", _duration, "a duration of 1ms to 1h, like 30s", "none is asked for"),
        allowed_cidrs=reader.listed("allow-cidrs", network, MOST_NETWORKS, "networks", allow=True),
        blocked_cidrs=reader.listed("block-cidrs", network, MOST_NETWORKS, "networks", allow=False),
        allowed_countries=reader.listed("allow-countries", country, MOST_COUNTRIES, "countries", allow=True),
        blocked_countries=reader.listed("block-countries", country, MOST_COUNTRIES, "countries", allow=False),
        delete=reader.one("delete-policy", _policy, "sync or keep", "keep counts, so that no mistake deletes anything", bad="keep") or "sync",
        adopt=reader.flag("adopt", default=False),
        force=reader.flag("force-delete", default=False),
    )
    reader.unknown()
    if reader.holds:
        options = replace(options, hold="; ".join(reader.holds))
    return Read(options, enabled, tuple(reader.remarks))


def go_duration(milli: int) -> str:
    """Milliseconds as Go writes a duration, which is how the mesh's API gives it back: ``30s``, ``1m30s``, ``1h0m0s``, ``250ms``."""
    if milli < 1000:
        return f"{milli}ms" if milli else "0s"
    minutes, rest = divmod(milli, 60_000)
    seconds = f"{rest // 1000}.{rest % 1000:03d}".rstrip("0").rstrip(".") + "s"
    hours, minutes = divmod(minutes, 60)
    return f"{hours}h{minutes}m{seconds}" if hours else f"{minutes}m{seconds}" if minutes else seconds


def duration_ms(text: str) -> int | None:
    """Milliseconds of a duration as Go or edgekeeper writes it; None when it is none (or finer than a millisecond)."""
    parts = _DURATION.findall(text)
    if not parts or "".join(number + unit for number, unit in parts) != text:
        return None
    total = sum(round(float(number) * 1000) * _UNITS_MS[unit] for number, unit in parts)
    return total // 1000 if total % 1000 == 0 else None


def network(text: str) -> str:
    """A network in its one form, a bare address as the network of itself; ValueError says what is wrong (the API refuses host bits)."""
    address, _, _ = text.partition("/")
    if "%" in text or not address:
        msg = "is not a network like 192.0.2.0/24"
        raise ValueError(msg)
    try:
        found = ipaddress.ip_network(text, strict=False)
    except ValueError:
        msg = "is not a network like 192.0.2.0/24"
        raise ValueError(msg) from None
    if ipaddress.ip_address(address) != found.network_address:
        msg = f"has host bits set; write {found} or {address}"
        raise ValueError(msg)
    if "/" in text and not text.rpartition("/")[2].isdigit():
        msg = "is not a network like 192.0.2.0/24; write the length of its prefix"
        raise ValueError(msg)
    if found.version == 6 and found.network_address.ipv4_mapped is not None and found.prefixlen >= 96:
        msg = "is IPv4 inside IPv6, which no client's address is; write it as IPv4"
        raise ValueError(msg)
    return str(found)


def country(text: str) -> str:
    """A country's code in capitals; ValueError says what is wrong."""
    code = text.upper()
    if code not in COUNTRIES:
        msg = "is not a country's code (ISO 3166-1 alpha-2: GB, not UK)" if code == "UK" else "is not a country's code (ISO 3166-1 alpha-2, like DE)"
        raise ValueError(msg)
    return code


def _boolean(text: str) -> bool:
    found = {"true": True, "false": False}.get(text.lower())
    if found is None:
        raise ValueError
    return found


def _port(text: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) <= 5 and 1 <= int(text) <= 65535):
        raise ValueError
    return int(text)


def _duration(text: str) -> str:
    milli = duration_ms(text)
    if milli is None or not 1 <= milli <= LONGEST_MS:
        raise ValueError
    return go_duration(milli)


def _policy(text: str) -> Policy:
    if text == "sync":
        return "sync"
    if text == "keep":
        return "keep"
    raise ValueError


class _Reader:
    """The annotations of one object while they are read: what was wrong is collected."""

    def __init__(self, claim: Claim, prefix: str, said: dict[str, str]) -> None:
        self.claim = claim
        self.prefix = prefix
        self.said = said
        self.remarks: list[Remark] = []
        self.holds: list[str] = []

    def one(self, key: str, parse: Callable[[str], Any], wanted: str, instead: str, bad: Any = None) -> Any:
        """The value of a key; None when it is not said, ``bad`` when it cannot be read."""
        text = self.said.get(key)
        if text is None:
            return None
        try:
            return parse(text.strip())
        except ValueError:
            self.bad(key, f"{quoted(text, _SHOWN)} is not {wanted}; {instead}")
            return bad

    def flag(self, key: str, *, default: bool, hold: bool = False) -> bool:
        """A key that is true or false."""
        missing = object()
        instead = "the hosts are held: not created, and left as they are" if hold else f"{str(default).lower()} counts"
        value = self.one(key, _boolean, "true or false", instead, missing)
        if value is missing and hold:
            self.holds.append(f"{self.prefix}/{key} is neither true nor false")
        return default if value is None or value is missing else bool(value)

    def listed(self, key: str, parse: Callable[[str], str], most: int, what: str, *, allow: bool) -> tuple[str, ...] | None:
        """A list of networks or countries, each once, in one order; None when it is not said or not to be used."""
        text = self.said.get(key)
        if text is None:
            return None
        if text.strip().lower() == "none":
            return ()
        good: set[str] = set()
        wrong: list[str] = []
        items = [item for item in (part.strip() for part in text.split(",", 4 * most)) if item]
        for item in items:
            try:
                good.add(parse(item))
            except ValueError as err:
                wrong.append(f"{quoted(item, _SHOWN)} {err}")
        if not items:
            wrong.append("it is empty (write none for no restriction)")
        elif len(good) > most:
            wrong.append(f"it names more than {most} {what}, which the API refuses")
        elif not wrong:
            return _in_order(good)
        more = f", and {len(wrong) - 1} more" if len(wrong) > 1 else ""
        if allow and good and len(good) <= most:
            self.bad(key, f"{wrong[0]}{more}; only the other {len(good)} are let in")
            return _in_order(good)
        self.bad(key, f"{wrong[0]}{more}; the hosts are held: not created, and left as they are")
        self.holds.append(f"{self.prefix}/{key} cannot be read in full" if good else f"{self.prefix}/{key} cannot be read")
        return None

    def unknown(self) -> None:
        """Tell of keys that edgekeeper does not know, with the nearest that it does."""
        strange = [key for key in self.said if key not in KNOWN and key != STATUS]
        for key in strange[:_MOST_UNKNOWN]:
            near = difflib.get_close_matches(key[:100], KNOWN, 1, 0.6)
            hint = f"did you mean {near[0]}?" if near else f"known are {', '.join(KNOWN)}"
            self.remarks.append(Remark(self.claim.origin, "UnknownAnnotation", f"{self.prefix}/{printable(key, _SHOWN)} is not known and does nothing; {hint}"))

    def bad(self, key: str, what: str) -> None:
        self.remarks.append(Remark(self.claim.origin, "BadAnnotation", f"{self.prefix}/{key}: {what}"))


def _in_order(found: Iterable[str]) -> tuple[str, ...]:
    """The same list for the same set, so that another order in the annotation changes nothing."""
    return tuple(sorted(found, key=lambda item: (":" in item, item)))
