"""The real keepalived's check for the tests of this folder: each time in a network namespace of its own, which has the interfaces that are named."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from tests.fakes.keepalived import INTERFACES

from edgekeeper.engines.keepalived.engine import KeepalivedEngine
from edgekeeper.engines.keepalived.features import parse
from edgekeeper.engines.keepalived.seat import Seat
from edgekeeper.engines.keepalived.topology import Topology

SUITES = {"2.2.7": "1.7", "2.3.3": "1.9", "2.3.4": "2.1"}
"""keepalived's versions lie beside these of dnsdist."""
NEWEST = os.environ.get("EDGEKEEPER_KEEPALIVED", "")
"""A keepalived of 2.4 or later, where there is one: Debian has none."""

_UNSHARE = ("unshare", "--net") if os.geteuid() == 0 else ("unshare", "--user", "--map-root-user", "--net")
_WITHIN = 'for name in $1; do ip link add "$name" type veth peer name "other$((n += 1))" || exit 99; done; shift; exec "$@"'


class Keepalived:
    """One version of keepalived."""

    def __init__(self, path: Path, folder: Path) -> None:
        told = subprocess.run([path, "--version"], capture_output=True, text=True, timeout=10, check=True)
        self.features = parse(told.stdout + told.stderr)
        self.engine = KeepalivedEngine(self.features, str(path))
        self.folder = folder

    def check(self, topology: Topology) -> tuple[str | None, str]:
        """What the real validator says of the files, as the product reads it, and its own words."""
        return self.ask(self.engine.files(topology, Seat(str(self.folder))))

    def ask(self, files: dict[str, str]) -> tuple[str | None, str]:
        """The same for any files."""
        for name, text in files.items():
            (self.folder / name).write_text(text, encoding="utf-8")
        argv = [*_UNSHARE, "sh", "-c", _WITHIN, "sh", " ".join(("eth1.80", *INTERFACES)), *self.engine.check_argv(str(self.folder))]
        done = subprocess.run(argv, capture_output=True, text=True, timeout=20, check=False)
        assert done.returncode != 99, f"no interfaces could be made: {done.stderr}"
        return self.engine.judge(done.returncode, done.stdout + done.stderr), done.stdout + done.stderr
