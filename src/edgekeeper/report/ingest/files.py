"""Which files are meant: folders, patterns, rotated sets; and what a source is called after its file."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from edgekeeper.errors import MissingError

_NOT_LOGS = frozenset({".css", ".gif", ".html", ".jpg", ".js", ".md", ".parquet", ".pdf", ".png", ".svg", ".toml", ".yaml", ".yml"})
_MOST = 10_000
"""Files that one word may stand for."""
_PACKED = re.compile(r"\.(?:gz|xz|zst|zstd)$")
_ROTATED = re.compile(r"(?:\.\d{1,5}|[-.]\d{4}-?\d\d-?\d\d(?:[-T_]\d{2,6}(?:\.\d+)?)?|\.old)$")


def expand(words: Sequence[str]) -> list[str]:
    """The files that words stand for: a file, ``-``, a folder (its files and those of its folders), a pattern with ``*``.

    MissingError for a word that stands for nothing. Of a folder, what cannot be a log (pages, pictures, hidden files) is left out.
    """
    found: dict[str, None] = {}
    for word in words:
        paths = [word] if word == "-" or Path(word).exists() else _matching(word)
        if not paths:
            msg = f"{word} does not exist; nothing is read"
            raise MissingError(msg)
        for path in paths:
            found |= dict.fromkeys(_within(Path(path)) if path != "-" and Path(path).is_dir() else [path])
    return list(found)


def _matching(pattern: str) -> list[str]:
    path = Path(pattern)
    plain = next((i for i, part in enumerate(path.parts) if any(c in part for c in "*?[")), len(path.parts))
    if plain == len(path.parts):
        return []
    return sorted(str(p) for p in Path(*path.parts[:plain]).glob("/".join(path.parts[plain:])))


def _within(folder: Path) -> list[str]:
    try:
        root = folder.resolve()
        inside = sorted(p for p in folder.rglob("*") if _may_be_a_log(p, folder) and p.resolve().is_relative_to(root))
    except OSError as err:
        msg = f"folder {folder} cannot be read: {err.strerror or err}"
        raise MissingError(msg) from err
    if not inside or len(inside) > _MOST:
        what = "has no logs" if not inside else f"has more than {_MOST} files; name the ones that matter"
        msg = f"folder {folder} {what}"
        raise MissingError(msg)
    return [str(p) for p in inside]


def _may_be_a_log(path: Path, folder: Path) -> bool:
    return path.is_file() and path.suffix.lower() not in _NOT_LOGS and not any(part.startswith(".") for part in path.relative_to(folder).parts)


def stem(path: str) -> str:
    """The name that all files of a rotated set share: ``access.log`` of ``/var/log/access.log.2.gz``."""
    if path == "-":
        return "stdin"
    name = _PACKED.sub("", Path(path).name)
    return _ROTATED.sub("", name) or name


def names(paths: Sequence[str]) -> list[str]:
    """A name for each path: its stem, with its folder before it where files of several folders have the same."""
    stems = [stem(p) for p in paths]
    folders: dict[str, set[Path]] = {}
    for path, name in zip(paths, stems, strict=True):
        folders.setdefault(name, set()).add(Path(path).parent)
    named = []
    for path, name in zip(paths, stems, strict=True):
        mine, kin = Path(path).parent, folders[name]
        parts = list(mine.parts)
        depth = next((d for d in range(1, len(parts) + 1) if sum(list(o.parts)[-d:] == parts[-d:] for o in kin) == 1), 0) if len(kin) > 1 else 0
        named.append("/".join((*(part.strip("/") for part in parts[len(parts) - depth :]), name)) if depth else name)
    return named
