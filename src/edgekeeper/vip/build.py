"""Which keepalived is installed, and the pair of engine and hands that speaks to it."""

from __future__ import annotations

import getpass
import pwd
import shutil
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from edgekeeper.config.vip import Vips
from edgekeeper.engines.keepalived.engine import KeepalivedEngine
from edgekeeper.engines.keepalived.features import Features, parse
from edgekeeper.engines.keepalived.hands import KeepalivedHands
from edgekeeper.errors import MissingError
from edgekeeper.host.files import write_text
from edgekeeper.host.process import run

DEADLINE_S = 10.0
CHECK_DEADLINE_S = 20.0
SCRIPT_USER = "keepalived_script"


@dataclass(frozen=True, slots=True)
class Build:
    """A keepalived: what it can do, what it knows, and how it is touched."""

    features: Features
    engine: KeepalivedEngine
    hands: KeepalivedHands


async def detect(vips: Vips, folder: Path) -> Build:
    """Ask the program for its version; MissingError when it is not there or not keepalived. Its files will lie in ``folder``."""
    found = shutil.which(vips.engine.binary)
    if found is None:
        msg = f"{vips.engine.binary} is not installed here; install keepalived (apt-get install keepalived), or name it in vip.engine.binary"
        raise MissingError(msg)
    done = await run([found, "--version"], DEADLINE_S)
    features = parse(done.output)
    return Build(features, KeepalivedEngine(features, found), KeepalivedHands(str(folder)))


async def ask(build: Build, files: Mapping[str, str]) -> str | None:
    """Why keepalived's own validator refuses these files, or None; the folder that they lie in is removed again."""
    with tempfile.TemporaryDirectory(prefix="edgekeeper-check-") as folder:
        for name, text in files.items():
            write_text(Path(folder) / name, text, sync=False)
        done = await run(build.engine.check_argv(folder), CHECK_DEADLINE_S)
    return build.engine.judge(done.code, done.output)


def script_user(vips: Vips) -> str:
    """Who runs the track script and the FIFO reader."""
    if vips.engine.script_user is not None:
        return vips.engine.script_user
    try:
        return pwd.getpwnam(SCRIPT_USER).pw_name
    except KeyError:
        return getpass.getuser()


def program() -> tuple[str, ...]:
    """The words that start this edgekeeper again: keepalived runs no shell and knows no PATH."""
    beside = Path(sys.executable).parent / "edgekeeper"
    if beside.exists():
        return (str(beside),)
    found = shutil.which("edgekeeper")
    return (str(Path(found).resolve()),) if found else (sys.executable, "-m", "edgekeeper")
