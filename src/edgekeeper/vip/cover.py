"""The cover of a VIP: its address once more on the loopback interface, where it answers clients and claims nothing on the wire.

Not on keepalived's own interface: keepalived compares addresses without their prefix length and leaves
MASTER when any copy there disappears, and the kernel refuses a second IPv6 copy (both measured). While a
cover is up ``arp_ignore`` is at least 1 on the VIP's interface, else this node would go on answering ARP for
an address that it has on ``lo``; IPv6 needs no such help, the kernel answers solicitations only for
addresses of the interface that is asked.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path

from edgekeeper.errors import EdgekeeperError
from edgekeeper.host import addresses, sysctl
from edgekeeper.host.files import read_text, write_text
from edgekeeper.log import WARNING, Event, emit

LOOPBACK = "lo"
SILENT = 1
"""The ``arp_ignore`` of an interface that answers for its own addresses only."""


class Covers:
    """All covers of this node. What is up is written down before it is put up, so that the next supervisor takes stale ones away."""

    def __init__(self, folder: Path) -> None:
        self._record = folder / "covers.json"
        self._up: dict[str, str] = {}
        self._arp: dict[str, int] = {}
        self._theirs: set[str] = set()

    def __contains__(self, ip: str) -> bool:
        return ip in self._up

    def put(self, ip: str, interface: str) -> str | None:
        """Put a cover up; a sentence when it cannot be."""
        try:
            if ":" not in ip and interface not in self._arp:
                before = sysctl.arp_ignore(interface)
                if max(before, sysctl.arp_ignore("all")) < 1:
                    self._arp[interface] = before
                    self._save()
                    sysctl.set_arp_ignore(interface, SILENT)
            before_up = set(self._up)
            self._up[ip] = interface
            self._save()
            if not addresses.add(LOOPBACK, ip, _length(ip), host_scope=True) and ip not in before_up:
                self._theirs.add(ip)  # somebody had it there already, and keeps it
                self._save()
        except EdgekeeperError as err:
            if ip not in self._up:
                self._arp.pop(interface, None)  # it was not set, and must be asked for again next time
            self.take(ip)
            return f"{ip} cannot be covered: {err}"
        return None

    def take(self, ip: str) -> None:
        """Take a cover down, and the interface's ``arp_ignore`` back to what it was after the last one."""
        interface = self._up.pop(ip, None)
        try:
            if ip in self._theirs:
                self._theirs.discard(ip)
            else:
                addresses.remove(LOOPBACK, ip, _length(ip))
            if interface is not None and interface in self._arp and not any(i == interface and ":" not in other for other, i in self._up.items()):
                self._restored(interface)
        except EdgekeeperError as err:
            emit(Event.VIP_COVER_STUCK, f"the cover of {ip} cannot be taken away: {err}; try: ip addr del {ip}/{_length(ip)} dev lo", level=WARNING)
        self._save()

    def found(self, wanted: Iterable[str]) -> tuple[str, ...]:
        """What a former supervisor left: covers of ``wanted`` addresses are taken over (said here), all others go."""
        try:
            record = json.loads(read_text(self._record))
            self._up = {str(ip): str(interface) for ip, interface in record["up"].items()}
            self._arp = {str(interface): int(value) for interface, value in record["arp_ignore"].items()}
            self._theirs = {str(ip) for ip in record.get("theirs", ())}
        except (EdgekeeperError, ValueError, KeyError, TypeError, AttributeError):
            self._up, self._arp, self._theirs = {}, {}, set()
            return ()
        keep = tuple(ip for ip in self._up if ip in set(wanted))
        for ip in [ip for ip in self._up if ip not in keep]:
            self.take(ip)
        if not self._up:
            for interface in list(self._arp):
                self._restore(interface)
            self._save()
        return keep

    def _restored(self, interface: str) -> None:
        """Back to what it was, unless somebody has set it to something else meanwhile."""
        before = self._arp.pop(interface)
        if sysctl.arp_ignore(interface) == SILENT:
            sysctl.set_arp_ignore(interface, before)

    def _restore(self, interface: str) -> None:
        try:
            self._restored(interface)
        except EdgekeeperError as err:
            emit(Event.VIP_COVER_STUCK, f"arp_ignore of {interface} is not restored: {err}", level=WARNING)

    def _save(self) -> None:
        try:
            write_text(self._record, json.dumps({"up": self._up, "arp_ignore": self._arp, "theirs": sorted(self._theirs)}), sync=False)
        except EdgekeeperError as err:  # a full /run: the cover is needed all the same
            emit(Event.INTERNAL_ERROR, f"the record of covers is not up to date: {err}", level=WARNING)


def _length(ip: str) -> int:
    return 128 if ":" in ip else 32
