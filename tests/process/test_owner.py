"""Who listens on a port, as the kernel says it."""

from __future__ import annotations

import os
import socket

import pytest

from edgekeeper.host import owner


def test_a_listener_is_found_with_one_look_at_the_kernels_table(monkeypatch: pytest.MonkeyPatch) -> None:
    """The table has a row for each connection: read for each process anew it stopped a busy machine's supervisor for seconds."""
    read: list[int] = []
    table = owner._table

    def counted(pid: int, name: str) -> list[list[str]]:
        read.append(pid)
        return table(pid, name)

    monkeypatch.setattr(owner, "_table", counted)
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        port = listener.getsockname()[1]
        assert owner.holder("127.0.0.1", port, "tcp") == os.getpid()
        assert len(read) == 1
        assert owner.owns(os.getpid(), "127.0.0.1", port, "tcp")
        assert not owner.owns(os.getppid(), "127.0.0.1", port, "tcp")
    assert owner.holder("127.0.0.1", port, "tcp") is None
