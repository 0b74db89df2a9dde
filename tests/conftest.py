"""What more than one folder of tests needs: golden files and their renderer, and where the real engines are."""

from __future__ import annotations

import difflib
import os
import signal
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from hypothesis import HealthCheck, settings

signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background job ignores it, and so would all that tests start

# How long data takes to make says what else the machine does.
settings.register_profile("every change", max_examples=30, deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("deep", max_examples=1000, deadline=None)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "every change"))

TESTS = Path(__file__).resolve().parent
CASES = TESTS / "golden" / "dnsdist"

VERSIONS = {
    "1.7": "dnsdist 1.7.3 (Lua 5.1.4 [LuaJIT 2.1.0-beta3])\nEnabled features: cdb dns-over-tls(openssl) dns-over-https(DOH) dnscrypt ebpf fstrm "
    "ipcipher libsodium lmdb outgoing-dns-over-https(nghttp2) protobuf re2 recvmmsg/sendmmsg snmp systemd \n",
    "1.9": "dnsdist 1.9.16 (Lua 5.1.4 [LuaJIT 2.1.1737090214])\nEnabled features: AF_XDP cdb dns-over-tls(openssl) dns-over-https(nghttp2) dnscrypt "
    "ebpf fstrm ipcipher libedit libsodium lmdb protobuf re2 recvmmsg/sendmmsg snmp systemd \n",
    "2.1": "dnsdist 2.1.3 (Lua 5.1.4 [LuaJIT 2.1.1761786044])\nEnabled features: AF_XDP cdb dns-over-tls(gnutls openssl) dns-over-https(nghttp2) "
    "dnscrypt ebpf fstrm ipcipher ipcrypt2 libedit libsodium lmdb protobuf re2 recvmmsg/sendmmsg snmp systemd yaml \n",
}
"""What ``dnsdist --version`` says in Debian 12, 13 and testing."""

WITH_QUIC = VERSIONS["2.1"].replace(" dnscrypt", " dns-over-quic dns-over-http3 dnscrypt")
"""What a build with QUIC adds; Debian has none."""

SUITES = {"1.7": "debian12", "1.9": "debian13", "2.1": "testing"}
FORMS = {"1.7": ("1.7", "lua"), "1.9": ("1.9", "lua"), "2.1": ("2.1", "yaml"), "2.1-lua": ("2.1", "lua")}
"""Folder of a golden case to the version and the renderer."""


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--update-golden", action="store_true", help="rewrite the golden files from what the code renders now")


BETWEEN = frozenset({"1.9", "3.0", "2.3.3", "debian13"})
"""Engines between the oldest and the newest, by the names that tests give them: judged with ``EK_ENGINES=all`` (before a release), not with each change."""


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if os.environ.get("EK_ENGINES") == "all":
        return
    between = [
        item for item in items if "unit" not in item.path.parts and BETWEEN & {str(v) for v in getattr(getattr(item, "callspec", None), "params", {}).values()}
    ]
    items[:] = [item for item in items if item not in set(between)]
    config.hook.pytest_deselected(items=between)


class Golden:
    """Compares rendered files with those of a folder: the same names, the same bytes, none missing, none left over."""

    def __init__(self, *, update: bool) -> None:
        self._update = update

    def check(self, folder: Path, files: Mapping[str, str]) -> None:
        """Fail with a diff where they differ; with ``--update-golden`` write them instead."""
        if self._update:
            folder.mkdir(parents=True, exist_ok=True)
            for left in {item.name for item in folder.iterdir()} - files.keys():
                (folder / left).unlink()
            for name, text in files.items():
                (folder / name).write_text(text, encoding="utf-8")
        there = {item.name for item in folder.iterdir()} if folder.is_dir() else set()
        assert there == set(files), f"{folder.parent.name}/{folder.name}: other files than rendered: {sorted(there ^ set(files))}"
        for name, text in files.items():
            kept = (folder / name).read_text(encoding="utf-8")
            if kept != text:
                lines = difflib.unified_diff(kept.splitlines(keepends=True), text.splitlines(keepends=True), f"golden/{name}", f"rendered/{name}")
                pytest.fail("".join(lines), pytrace=False)


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> Golden:
    return Golden(update=request.config.getoption("--update-golden"))


class Case(NamedTuple):
    """A golden case: the topology and seat of one form."""

    topology: Any
    seat: Any
    features: Any
    renderer: str


def forms_of(case: Path) -> tuple[str, ...]:
    """The forms that a case is rendered in."""
    text = (case / "case.yaml").read_text(encoding="utf-8")
    return ("2.1",) if "quic: true" in text else tuple(FORMS)


def load_case(case: Path, form: str) -> Case:
    """Read ``case.yaml`` and build it for one form."""
    from ruamel.yaml import YAML  # noqa: PLC0415 - only these tests pay for it

    from edgekeeper.config.root import Root  # noqa: PLC0415
    from edgekeeper.engines.dnsdist.features import parse  # noqa: PLC0415
    from edgekeeper.engines.dnsdist.seat import make  # noqa: PLC0415
    from edgekeeper.engines.dnsdist.topology import Certificate, build  # noqa: PLC0415
    from edgekeeper.model.backend import Member  # noqa: PLC0415

    tree = YAML(typ="safe").load((case / "case.yaml").read_text(encoding="utf-8"))

    def member(text: str) -> Member:
        name, _, rest = text.rpartition("=")
        host, _, port = rest.rpartition(":")
        return Member(name, host.strip("[]"), int(port))

    version, renderer = FORMS[form]
    features = parse(WITH_QUIC if tree.get("quic") else VERSIONS[version])
    dns = Root.model_validate({"dns": tree["dns"]}).dns
    assert dns is not None
    topology = build(
        dns,
        tuple(member(text) for text in tree["members"]),
        tuple(tree.get("zones", ())),
        features,
        proxy_secret=tree.get("secret"),
        forward={zone: tuple(member(text) for text in texts) for zone, texts in tree.get("forward", {}).items()},
        certificate=Certificate(**tree["certificate"]) if "certificate" in tree else None,
    )
    return Case(topology, make((5199, 8083, 5399), bytes(range(128))), features, renderer)


@pytest.fixture
def dnsdist_case() -> Callable[[Path, str], Case]:
    return load_case


def engine_path(version: str, program: str = "dnsdist") -> Path:
    """A real engine that ``script/engines`` put in place; a missing one fails the test."""
    prefix = Path(os.environ.get("EDGEKEEPER_ENGINES") or Path.home() / ".cache" / "edgekeeper" / "engines")
    path = prefix / SUITES[version] / "bin" / program
    if not path.is_file():
        pytest.fail(f"{program} of {SUITES[version]} is not at {path}; run script/engines", pytrace=False)
    return path


@pytest.fixture
def real_engine() -> Callable[[str], Path]:
    return engine_path
