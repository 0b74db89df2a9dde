"""Lines that a real Docker daemon kept, read as a report reads them: from its file, and as ``docker logs --timestamps`` prints them."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from edgekeeper.report.ingest.read import Input, read
from edgekeeper.report.kinds import Kind, Mark
from edgekeeper.report.rules import Rules

from .dockers import Docker

pytestmark = [pytest.mark.root, pytest.mark.engine, pytest.mark.timeout(90)]

SAYS = r"""
import sys, time
out = sys.stdout.buffer
def say(line):
    out.write(line + b"\n"); out.flush()
stamp = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime()).encode()
say(b"2026-09-07T06:58:01.123Z WARN client/routemanager/client.go:126: couldn't fetch peer state: AAAA=")
say(b'level=info msg="Peer Down" Key=192.0.2.1 Reason=dying Topic=Peer subsys=bgp-control-plane')
say(b'time="' + stamp + b'Z" level=info msg="Peer Up" Key=192.0.2.2 Topic=Peer')
say(b"x" * 40000 + b' level=info msg="Peer Up" Key=192.0.2.3 Topic=Peer')
say(b'level=info \xff\xfe msg="Peer Up" Key=192.0.2.4 Topic=Peer')
"""


@pytest.fixture
def docker() -> Iterator[Docker]:
    made = Docker()
    yield made
    made.stop()


def test_what_a_container_said_with_the_daemon_s_times(docker: Docker, tmp_path: Path) -> None:
    begun = time.time()
    ident = docker.run("speaker", SAYS).strip()
    docker("wait", "speaker")
    ended = time.time()
    printed = tmp_path / "printed.log"
    printed.write_text(docker("logs", "--timestamps", "speaker"), encoding="utf-8", errors="surrogateescape")
    kept = docker.daemon.folder / "data" / "containers" / ident / f"{ident}-json.log"
    told: dict[str, list[Mark]] = {}
    for name, path in (("kept", kept), ("printed", printed)):
        book = read([Input(str(path), name=name)], Rules(), jobs=1)
        assert book.sources[name].format == "mixed", book.sources
        assert not book.sources[name].skipped
        told[name] = book.marks
        fingerprint, down, up = book.marks[:3]
        assert (fingerprint.kind, fingerprint.at) == (Kind.FINGERPRINT, 1788764281.123)  # its own time, which is finer and far away
        assert (down.kind, down.object, down.stamp_s) == (Kind.BGP_DOWN, "192.0.2.1", 0.001)
        assert down.at is not None
        assert begun <= down.at <= ended
        assert up.at is not None
        assert down.at <= up.at <= ended  # whole seconds in the line, nanoseconds around it
        assert (up.stamp_s, up.object) == (0.001, "192.0.2.2")
    assert [(m.kind, m.object, m.at) for m in told["kept"]] == [(m.kind, m.object, m.at) for m in told["printed"]]
    assert [m.object for m in told["kept"][1:]] == ["192.0.2.1", "192.0.2.2", "192.0.2.4"]
