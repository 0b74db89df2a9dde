"""Read what the checks of keepalived need: the files that a configuration includes, and its check scripts where they are here. Changes nothing."""

from __future__ import annotations

import glob
import itertools
import stat
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from edgekeeper.doctor.facts import KeepalivedFacts, ScriptFile
from edgekeeper.engines.haproxy.cfg import Source as Named
from edgekeeper.engines.keepalived.cfg import hosts
from edgekeeper.engines.keepalived.cfg_section import includes
from edgekeeper.engines.keepalived.cfg_values import Host, Included, Source
from edgekeeper.errors import EdgekeeperError
from edgekeeper.host.files import read_text

MOST_FILES = 200
DEEPEST = 8
MOST_WILDCARDS = 3
"""Parts of a pattern's path that may have wildcards: more would walk over a whole file system."""
LARGEST = 2**20
LARGEST_SCRIPT = 65536


def collect_vips(named: Sequence[Named]) -> KeepalivedFacts:
    """The facts of some hosts, one main file each (or several hosts in one file, by its ``@NAME`` lines)."""
    loaded = [(one, _Includes()) for one in named]
    sources = [(one, seen.source(one.name, one.text, (Path(one.name).resolve(),))) for one, seen in loaded]
    inner = {file for _, seen in loaded for file in seen.files}
    mains = [source for one, source in sources if Path(one.name).resolve() not in inner]  # named as a file of its own, and included too
    found = tuple(host for source in mains for host in hosts(source))
    return KeepalivedFacts(found, {key: file for host in found for key, file in _scripts(host)})


@dataclass(slots=True)
class _Includes:
    """The files that one configuration includes, as they are found."""

    files: set[Path] = field(default_factory=set)

    def source(self, name: str, text: str, chain: tuple[Path, ...]) -> Source:
        """A file with everything that it includes."""
        return Source(name, text, {number: self._included(pattern, chain) for number, _, pattern in itertools.islice(includes(text), MOST_FILES)})

    def _included(self, pattern: str, chain: tuple[Path, ...]) -> Included:
        if len(chain) > DEEPEST:
            return Included(why=f"include {pattern}: files include each other more than {DEEPEST} deep; it was not read")
        if "{" in pattern or "\0" in pattern or sum("*" in part or "?" in part for part in pattern.split("/")) > MOST_WILDCARDS:
            return Included(why=f"include {pattern}: this pattern is not looked up; what it names was not read")
        found = sorted(itertools.islice(glob.iglob(pattern, root_dir=chain[-1].parent), MOST_FILES + 1))  # noqa: PTH207 - as keepalived: no ``**``, no hidden files
        if not found:
            return Included(why=f"include {pattern} names no file here; keepalived would start without it")
        out: list[Source] = []
        why: str | None = None
        for name in found:
            path = (chain[-1].parent / name).resolve()
            if path in chain:
                why = f"include {pattern}: {name} includes itself; it was not read again"
            elif len(self.files) >= MOST_FILES:
                why = f"include {pattern}: more than {MOST_FILES} files; the rest was not read"
            else:
                self.files.add(path)
                try:
                    out.append(self.source(str(path), read_text(path, LARGEST, tolerant=True), (*chain, path)))
                except EdgekeeperError as err:
                    why = f"include {pattern}: {err}"
        return Included(tuple(out), why)


def _scripts(host: Host) -> list[tuple[tuple[str, str], ScriptFile]]:
    """The check scripts of a host: beside the file that names them, as in a copy of its folder, or where they are named."""
    out = []
    for script in host.scripts.values():
        if not script.argv or not script.argv[0].startswith("/") or "\0" in script.argv[0]:
            continue
        real = Path(script.argv[0])
        beside = Path(script.place.file).parent / real.name
        for path in (beside, real):
            try:
                text = read_text(path, LARGEST_SCRIPT, tolerant=True)
            except EdgekeeperError:  # not here, a program too large to be a script, or a folder: then its command line alone is judged
                continue
            out.append(((script.place.file, script.argv[0]), ScriptFile(text, _writers(path) if path == real else None)))
            break
    return out


def _writers(path: Path) -> str | None:
    """Who else than root may change it."""
    try:
        found = path.stat()
    except OSError:
        return None
    if found.st_mode & stat.S_IWOTH:
        return "anybody"
    return "its group" if found.st_mode & stat.S_IWGRP and found.st_gid != 0 else None
