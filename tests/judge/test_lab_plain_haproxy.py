"""The baseline of the drills is a configuration that every HAProxy takes without a word."""

from __future__ import annotations

import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from edgekeeper.lab.engines import SUITES, prefix
from edgekeeper.lab.plain_haproxy import Plain, Service, config

pytestmark = pytest.mark.engine
SERVERS = (("cp1", "127.0.0.1:6443"), ("cp2", "127.0.0.2:6443"))
API = Service("api", "127.0.0.1:16443", SERVERS)
WEB = Service("web", "127.0.0.1:18080", SERVERS, mode="http", check="http")


@pytest.mark.parametrize("suite", SUITES)
@pytest.mark.parametrize("plain", [Plain((API, WEB), ""), Plain((replace(API, check="tcp"),), "", directive=True, inter="1s", fall=2)], ids=["guide", "tcp"])
def test_haproxy_takes_it(suite: str, plain: Plain, tmp_path: Path) -> None:
    file = tmp_path / "haproxy.cfg"
    file.write_text(config(replace(plain, socket=str(tmp_path / "admin.sock"))))
    told = subprocess.run([prefix() / suite / "bin" / "haproxy", "-c", "-f", file], capture_output=True, text=True, timeout=10, check=False)
    assert told.returncode == 0, told.stderr
    assert "WARNING" not in told.stderr
