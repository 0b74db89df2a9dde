"""The certificate of the encrypted listeners: renewed as Kubernetes does it, without a failed handshake; a bad pair hurts nobody."""

from __future__ import annotations

import socket
import ssl
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Self

import pytest

from edgekeeper.lab.certs import SERVER_NAME, Authority

from .edge import Edge, dnsdist, until


class Mount:
    """An edge with DoT, whose certificate lies in a folder mounted as a Secret is."""

    def __init__(self, folder: Path) -> None:
        self.authority = Authority(folder)
        self.folder = self.authority.mount()
        self.edge = Edge(folder, dnsdist())
        self.edge.extra = f"  tls: {{dir: {self.folder}, dot: ['127.0.0.1:{self.edge.spare}']}}\n"
        self.edge.write_config()
        self.context = ssl.create_default_context(cafile=str(self.authority.ca_file))

    def shown(self) -> bytes:
        """The certificate that a client is shown, verified."""
        with socket.create_connection(("127.0.0.1", self.edge.spare), 3) as plain, self.context.wrap_socket(plain, server_hostname=SERVER_NAME) as wrapped:
            found = wrapped.getpeercert(binary_form=True)
            assert found is not None
            return found

    def wanted(self) -> bytes:
        """The certificate in the folder."""
        return ssl.PEM_cert_to_DER_cert((self.folder / "tls.crt").read_text())


@pytest.fixture
def mount(tmp_path: Path) -> Iterator[Mount]:
    made = Mount(tmp_path)
    try:
        made.edge.start_members()
        yield made
    finally:
        made.edge.close()


class Handshakes:
    """Shakes hands without a pause."""

    def __init__(self, mount: Mount) -> None:
        self.mount, self.done, self.failed = mount, 0, []  # type: Mount, int, list[str]
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join(10)

    def _run(self) -> None:
        while not self._stop.is_set():
            try:
                self.mount.shown()
                self.done += 1
            except OSError as err:
                self.failed.append(str(err))


def test_a_flipped_secret_is_shown_without_a_restart_and_without_a_failed_handshake(mount: Mount) -> None:
    mount.edge.run()
    pid = mount.edge.wait_ready()["engine"]["pid"]
    assert mount.shown() == mount.wanted()
    with Handshakes(mount) as clients:
        for _ in range(2):
            before = mount.shown()
            mount.authority.rotate(mount.folder)
            until(lambda: mount.shown() == mount.wanted(), "the new one is shown", 8)
            assert mount.shown() != before
            until(lambda: "is in force" in mount.edge.status()["last_decision"], "and in force")
    assert clients.failed == []
    assert clients.done > 10
    assert mount.edge.status()["engine"]["pid"] == pid


def test_a_key_of_another_certificate_changes_nothing_also_over_a_restart(mount: Mount, tmp_path: Path) -> None:
    run = mount.edge.run()
    mount.edge.wait_ready()
    good = mount.shown()
    bad = mount.authority.issue()
    (bad / "tls.key").write_bytes((mount.authority.issue() / "tls.key").read_bytes())
    new = mount.folder / "..new"
    new.symlink_to(bad)
    new.rename(mount.folder / "..data")
    alarm = until(lambda: mount.edge.status()["alarms"].get("certificate"), "it is an alarm")
    assert "does not belong to the certificate" in alarm
    assert "the one before stays in use" in alarm
    assert mount.shown() == good
    run.terminate()
    run.wait(20)
    mount.edge.run()
    mount.edge.wait_ready()
    assert mount.shown() == good
    mount.authority.rotate(mount.folder)
    until(lambda: mount.shown() == mount.wanted(), "a good one is taken again", 10)
    until(lambda: "does not belong" not in mount.edge.status()["alarms"].get("certificate", ""), "and the alarm is cleared")
