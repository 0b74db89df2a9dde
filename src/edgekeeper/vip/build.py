"""Which keepalived is installed, and the pair of engine and hands that speaks to it."""

from __future__ import annotations

import getpass
import pwd
import shutil
import sys
from dataclasses import dataclass
from pathlib import Path

from edgekeeper.config.vip import Vips
from edgekeeper.engines.keepalived.engine import KeepalivedEngine
from edgekeeper.engines.keepalived.features import Features, parse
from edgekeeper.engines.keepalived.hands import KeepalivedHands
from edgekeeper.host.process import installed, run

DEADLINE_S = 10.0
SCRIPT_USER = "keepalived_script"


@dataclass(frozen=True, slots=True)
class Build:
    """A keepalived: what it can do, what it knows, and how it is touched."""

    features: Features
    engine: KeepalivedEngine
    hands: KeepalivedHands


async def detect(vips: Vips, folder: Path) -> Build:
    """Ask the program for its version; MissingError when it is not there or not keepalived. Its files will lie in ``folder``."""
    found = installed(vips.engine.binary, "keepalived", "keepalived", "vip.engine.binary")
    done = await run([found, "--version"], DEADLINE_S)
    features = parse(done.output)
    return Build(features, KeepalivedEngine(features, found), KeepalivedHands(str(folder)))


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
