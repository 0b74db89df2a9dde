"""A name server of a few lines for tests: answers from a table, over UDP, and misbehaves when told to."""

from __future__ import annotations

import socket
import threading

import dns.flags
import dns.message
import dns.rcode
import dns.rrset


class NameServer:
    """``records``: (name, type) to texts; anything else of a known name is empty, an unknown name is NXDOMAIN. ``mode``: normal, servfail, silent."""

    def __init__(self) -> None:
        self.records: dict[tuple[str, str], list[str]] = {}
        self.mode = "normal"
        self.broken: set[tuple[str, str]] = set()
        self.asked = 0
        self._socket = socket.socket(type=socket.SOCK_DGRAM)
        self._socket.bind(("127.0.0.1", 0))
        self.listen = f"127.0.0.1:{self._socket.getsockname()[1]}"
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def _serve(self) -> None:
        while True:
            data, who = self._socket.recvfrom(4096)
            if data == b"end":
                return
            self.asked += 1
            if self.mode != "silent":
                self._socket.sendto(self._answer(dns.message.from_wire(data)).to_wire(), who)

    def _answer(self, asked: dns.message.Message) -> dns.message.Message:
        found = dns.message.make_response(asked)
        found.flags |= dns.flags.RA
        question = asked.question[0]
        name, kind = str(question.name).lower(), dns.rdatatype.to_text(question.rdtype)
        if self.mode == "servfail" or (name, kind) in self.broken:
            found.set_rcode(dns.rcode.SERVFAIL)
        elif (name, kind) in self.records:
            found.answer.append(dns.rrset.from_text(name, 1, "IN", kind, *self.records[name, kind]))
        elif name not in {each for each, _ in self.records}:
            found.set_rcode(dns.rcode.NXDOMAIN)
        return found

    def close(self) -> None:
        """End it."""
        host, _, port = self.listen.rpartition(":")
        with socket.socket(type=socket.SOCK_DGRAM) as last:
            last.sendto(b"end", (host, int(port)))
        self._thread.join(5)
        self._socket.close()
