"""The journald source against a real journald, in namespaces of its own."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path

import pytest

from .test_full_disk import ROOTED

COUNT = 2000


@pytest.mark.root
@pytest.mark.skipif(not ROOTED, reason="in a chroot, whose root is no mount, there is no private mount namespace to be had")
def test_no_line_is_missed_or_told_twice_over_rotation_and_restarts(tmp_path: Path) -> None:
    if not Path("/usr/lib/systemd/systemd-journald").exists():
        pytest.fail("systemd-journald is not installed here; apt-get install systemd", pytrace=False)
    program = Path(__file__).with_name("journaled.py")
    inside = f'mount -t tmpfs none /run && exec "{sys.executable}" "{program}" "{tmp_path}" {COUNT}'
    began = time.time()
    done = subprocess.run(
        ["unshare", "--mount", "--propagation", "private", "--pid", "--fork", "--kill-child", "--mount-proc", "sh", "-c", inside],
        capture_output=True, text=True, timeout=50, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    said = json.loads((tmp_path / "told.json").read_text(encoding="utf-8"))
    *counted, two, odd, several, long, started = said["got"]
    assert counted == [str(number) for number in range(COUNT)]
    assert (two, odd, several, long) == ("two lines", "no \xff\x01 text", "first second", "L" * 20_000)
    assert started == "Started."
    assert began <= said["sights"][-1][2] <= time.time()
    assert any("SIGKILL" in why for seeing, why, _ in said["sights"] if not seeing)
    assert "250 ms" in said["sights"][-1][1]
