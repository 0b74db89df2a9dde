"""Whose a port is, asked of the kernel: our own listeners, other people's, and those on another address of the same port."""

from __future__ import annotations

import os
import socket
import subprocess
import sys

import pytest

from edgekeeper.host import owner, sockdiag

HOLD = "import socket,sys; s=socket.create_server((sys.argv[1],int(sys.argv[2]))); print('ok', flush=True); sys.stdin.read()"


def test_a_port_is_ours_only_when_everybody_in_the_way_is_us() -> None:
    with socket.create_server(("127.0.0.1", 0)) as mine:
        port = mine.getsockname()[1]
        me = os.getpid()
        assert owner.owns(me, "127.0.0.1", port, "tcp")
        assert not owner.owns(me, "127.0.0.2", port, "tcp")
        assert owner.holder("127.0.0.1", port, "tcp") == me
        assert owner.all_his([me], "127.0.0.1", port, "tcp")
        assert owner.all_his([me], "0.0.0.0", port, "tcp")
        assert not owner.all_his([me], "127.0.0.2", port, "tcp"), "nothing is in the way there"
        assert not owner.all_his([], "127.0.0.1", port, "tcp")
        other = subprocess.Popen([sys.executable, "-c", HOLD, "127.0.0.2", str(port)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        try:
            assert other.stdout is not None
            assert other.stdout.readline() == "ok\n"
            assert owner.holder("127.0.0.2", port, "tcp") == other.pid
            assert owner.all_his([me], "127.0.0.1", port, "tcp")
            assert not owner.all_his([me], "0.0.0.0", port, "tcp"), "one on another address is in the way of all of them"
            assert owner.all_his([me, other.pid], "0.0.0.0", port, "tcp")
        finally:
            other.communicate()


def test_a_connection_is_no_listener() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        with socket.create_connection(("127.0.0.1", port)) as client, server.accept()[0]:
            there = client.getsockname()[1]
            assert owner.holder("127.0.0.1", there, "tcp") is None
            assert not owner.all_his([os.getpid()], "127.0.0.1", there, "tcp")


def test_a_listener_is_found_with_one_look_at_the_kernels_table(monkeypatch: pytest.MonkeyPatch) -> None:
    """The table has a row for each connection: read for each process anew it stopped a busy machine's supervisor for seconds."""
    read: list[int] = []
    table = owner._table

    def counted(pid: int, name: str, port: int) -> list[list[str]]:
        read.append(pid)
        return table(pid, name, port)

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


@pytest.mark.parametrize("host", ["127.0.0.1", "::1", "0.0.0.0", "::"])
@pytest.mark.parametrize("kind", ["tcp", "udp"])
def test_netlink_and_the_tables_of_proc_say_the_same(host: str, kind: str) -> None:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM if kind == "tcp" else socket.SOCK_DGRAM) as bound:
        bound.bind((host, 0))
        if kind == "tcp":
            bound.listen()
        port = bound.getsockname()[1]
        name = f"{kind}6" if ":" in host else kind
        asked, listed = owner._diagnosed(name, port), owner._listed(os.getpid(), name, port)
        assert [(row[1], row[3], row[9]) for row in asked] == [(row[1], row[3], row[9]) for row in listed]
        assert len(asked) == 1
        assert owner.owns(os.getpid(), host, port, kind)
        assert owner.all_his([os.getpid()], host, port, kind)
    assert not owner.owns(os.getpid(), host, port, kind)


def test_where_the_kernel_does_not_tell_the_tables_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*_: object) -> list[sockdiag.Bound]:
        raise OSError(2, "No such file or directory")

    monkeypatch.setattr(sockdiag, "sockets", refused)
    with socket.create_server(("127.0.0.1", 0)) as mine:
        assert owner.owns(os.getpid(), "127.0.0.1", mine.getsockname()[1], "tcp")
