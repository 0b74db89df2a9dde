"""Read what the checks of HAProxy need: files and a running HAProxy's socket, each under a deadline of its own. Changes nothing."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from edgekeeper.doctor.facts import HaproxyFacts, HaproxyRuntime, Unknown
from edgekeeper.doctor.recognise import is_keepalived, why_not
from edgekeeper.engines.haproxy.admin import Admin
from edgekeeper.engines.haproxy.cfg import Source, readings
from edgekeeper.engines.haproxy.look import look, with_sessions
from edgekeeper.errors import EdgekeeperError, UsageError
from edgekeeper.host.files import read_text
from edgekeeper.ports import Clock

SOCKET_S = 5.0


@dataclass(frozen=True, slots=True)
class Named:
    """The configurations that some paths name: each HAProxy's, in its files, and keepalived's main files, one a host."""

    haproxy: tuple[tuple[Source, ...], ...] = ()
    keepalived: tuple[Source, ...] = ()


def configurations(paths: Iterable[str | Path]) -> Named:
    """The texts of the files, put together as HAProxy would: files are one configuration, as for ``haproxy -f A -f B``.

    A folder stands for its ``*.cfg`` by name (``haproxy -f FOLDER``), and for those of its ``*.conf`` that are keepalived's. Where
    several of HAProxy's files have a ``global`` section they belong to different hosts, and each is read by itself; so is each file
    of keepalived. Errors: MissingError when one cannot be read, UsageError when one is of neither.
    """
    folders: list[tuple[Source, ...]] = []
    alone: list[Source] = []
    vips: list[Source] = []
    for path in map(Path, paths):
        if path.is_dir():
            of_haproxy, of_keepalived = _inside(path)
            folders += [of_haproxy] if of_haproxy else []
            vips += of_keepalived
            continue
        source = _source(path)
        (vips if is_keepalived(source.text) else alone).append(source)
    if sum(_has_global(source) for source in alone) > 1:
        found = (*folders, *((source,) for source in alone))
    else:
        found = (*folders, tuple(alone)) if alone else tuple(folders)
    return Named(found, tuple(vips))


def _source(file: Path) -> Source:
    text = read_text(file, tolerant=True)
    why = why_not(str(file), text)
    if why is not None:
        raise UsageError(why)
    return Source(str(file), text)


def _has_global(source: Source) -> bool:
    return any(line.split()[:1] == ["global"] for line in source.text.split("\n"))


async def collect(found: Sequence[Source], *, socket: str | None, api_backends: Iterable[str], clock: Clock) -> HaproxyFacts:
    """The facts of one configuration, with the runtime when ``socket`` is given. What cannot be read is Unknown with its reason."""
    runtime = None if socket is None else await running(socket)
    version = None if not isinstance(runtime, HaproxyRuntime) else _version(runtime.info.version)
    return HaproxyFacts(
        readings=readings(found, version=version) if found else (),
        runtime=runtime,
        mtimes={source.name: written for source in found if (written := _written(source.name)) is not None},
        api_backends=frozenset(api_backends),
        now=clock.wall(),
    )


async def running(socket: str) -> HaproxyRuntime | Unknown:
    """What the HAProxy behind a stats socket or a master socket says, old workers too."""
    try:
        async with asyncio.timeout(SOCKET_S):
            picture = await look(Admin(socket))
    except EdgekeeperError as err:
        return Unknown(str(err))
    except TimeoutError:
        return Unknown(f"{socket} gave no full answer within {SOCKET_S:g} s; the process may be frozen")
    try:
        async with asyncio.timeout(SOCKET_S):
            picture = await with_sessions(picture, sizes=bool(picture.old))  # with where they are connected to: a reload may have moved a server
    except EdgekeeperError as err:
        return HaproxyRuntime(socket, picture.info, picture.stats, Unknown(str(err)), picture.blind)
    except TimeoutError:
        return HaproxyRuntime(socket, picture.info, picture.stats, Unknown(f"the list of sessions took longer than {SOCKET_S:g} s"), picture.blind)
    return HaproxyRuntime(socket, picture.info, picture.stats, picture.sessions, picture.blind)


def _inside(folder: Path) -> tuple[tuple[Source, ...], list[Source]]:
    files = [file for file in sorted(folder.iterdir()) if not file.name.startswith(".")]
    of_haproxy = tuple(_source(file) for file in files if file.suffix == ".cfg")
    texts = ((file, read_text(file, tolerant=True)) for file in files if file.suffix == ".conf" and file.is_file())
    of_keepalived = [Source(str(file), text) for file, text in texts if is_keepalived(text)]
    if not of_haproxy and not of_keepalived:
        msg = f"{folder} is a folder without files *.cfg, and without a *.conf of keepalived; name the file"
        raise UsageError(msg)
    return of_haproxy, of_keepalived


def _written(name: str) -> float | None:
    try:
        return Path(name).stat().st_mtime
    except OSError:
        return None


def _version(text: str) -> tuple[int, ...] | None:
    numbers = text.partition("-")[0].split(".")
    return tuple(int(n) for n in numbers) if all(n.isdigit() for n in numbers) and text else None
