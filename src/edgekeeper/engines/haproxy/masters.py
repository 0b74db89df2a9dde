"""The master socket that belongs to a worker: read from the command line of its master process."""

from __future__ import annotations

from pathlib import Path


async def masters_of(pid: int) -> str | None:
    """The master socket (``-S``) of the HAProxy that process ``pid`` is the master or a worker of; None when there is none to see.

    The path is one that this process can open: relative ones are taken from the master's folder, and those of a
    container through the master's root. The parent is asked first: a worker has its master's command line, but with
    ``chroot`` (Debian's own haproxy.cfg says it) not its root; the parent of a master is no HAProxy.
    """
    for candidate in (_parent(pid), pid):
        if candidate > 1 and (found := _socket(candidate)) is not None:
            return found
    return None


def workers_of(pid: int) -> tuple[int, ...]:
    """The processes of the HAProxy that ``pid`` is the master or a worker of, the master left out: seen without any socket.

    None where it has no master (it was started without -W and runs alone).
    """
    for master in (pid, _parent(pid)):
        name = _name(master)
        children = _children(master) if master > 1 and name == _name(pid) else []
        if found := [child for child in children if _name(child) == name]:
            return tuple(sorted(found))
    return ()


def socket_argument(words: list[str]) -> str | None:
    """The path (or address) of ``-S`` among the words of a command line, without its options."""
    for place, text in enumerate(words):
        if text == "--":
            return None
        if text == "-S" and place + 1 < len(words) and words[place + 1] and not words[place + 1].startswith("-"):
            return words[place + 1].split(",")[0].removeprefix("unix@")
    return None


def _socket(pid: int) -> str | None:
    try:
        words = [part.decode("utf-8", "replace") for part in Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")]
    except OSError:
        return None
    path = socket_argument(words) if "hap" in Path(words[0]).name else None  # haproxy, hapee-lb: other programs have an -S of their own
    if path is None or "@" in path or (":" in path and "/" not in path):  # abns@, ipv4@, host:port: no file
        return path
    try:
        root = str(Path(f"/proc/{pid}/root").readlink())
        here = path if path.startswith("/") else str(Path(f"/proc/{pid}/cwd").readlink() / path)
    except OSError:
        return path
    if root != "/":
        return f"/proc/{pid}/root{here}"
    # In another mount namespace the root reads as "/" too; the way through /proc reaches it, and is only taken where it must.
    return here if Path(here).exists() else f"/proc/{pid}/root{here}"


def _parent(pid: int) -> int:
    try:
        return int(Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()[1])
    except (OSError, IndexError, ValueError):
        return 0


def _children(pid: int) -> list[int]:
    try:
        return [int(text) for text in Path(f"/proc/{pid}/task/{pid}/children").read_text(encoding="ascii").split()]
    except (OSError, ValueError):
        return []


def _name(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/comm").read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return ""
