"""What Docker says about a container, as a value, and how a container is named. Pure.

Shapes as dockerd 20.10.24, 26.1.5 and 28.5.2 answer (read 2026-11-30).
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from edgekeeper.errors import MissingError, UsageError

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,254}")
_STOP_TIMEOUT_S = 10


@dataclass(frozen=True, slots=True)
class Which:
    """Which container is meant: exactly one of its name (or id), its labels (an empty value: whatever it is), or the image that it was made from."""

    name: str | None = None
    label: tuple[tuple[str, str], ...] = ()
    image: str | None = None

    def __post_init__(self) -> None:
        if (bool(self.name), bool(self.label), bool(self.image)).count(True) != 1:
            msg = "a container is named by exactly one of its name, a label, or its image"
            raise UsageError(msg)
        if self.name and not _NAME.fullmatch(self.name):
            msg = f"{self.name!r} cannot be the name of a container (letters, digits, and _ . - after the first)"
            raise UsageError(msg)

    @property
    def text(self) -> str:
        """For a sentence."""
        if self.label:
            return f"container with the label {' and '.join(self._labels())}"
        return f"container {self.name}" if self.name else f"container of the image {self.image}"

    def filters(self) -> str:
        """What the list is asked for, as Docker reads it; empty when it must give all."""
        return json.dumps({"label": self._labels()}) if self.label else ""

    def _labels(self) -> list[str]:
        return [f"{name}={value}" if value else name for name, value in self.label]

    def made_from(self, image: str) -> bool:
        """Whether ``image`` is the one that is meant; without a tag or digest said, any of its tags is."""
        if not self.image:
            return False
        last = self.image.rpartition("/")[2]
        if ":" in last or "@" in last:
            return _plain(image) == _plain(self.image)
        return _plain(image).partition("@")[0].removesuffix(_tag(image)) == _plain(self.image)


def _plain(image: str) -> str:
    """The reference without the registry and folder that Docker adds by itself."""
    return image.removeprefix("docker.io/").removeprefix("library/")


def _tag(image: str) -> str:
    last = image.partition("@")[0].rpartition("/")[2]
    return f":{last.partition(':')[2]}" if ":" in last else ""


@dataclass(frozen=True, slots=True)
class Container:
    """A container as ``inspect`` tells it; ``created`` and ``started`` are Docker's own stamps (of the year 1: never), ``stop_timeout`` is in seconds."""

    id: str
    name: str
    image: str
    status: str
    pid: int
    created: str
    started: str
    tty: bool
    stop_timeout: int
    env: tuple[str, ...]
    labels: tuple[tuple[str, str], ...]


def read(said: Any) -> Container:
    """What ``inspect`` answered; MissingError when it is not the description of a container."""
    try:
        state, config = said["State"], said["Config"]
        timeout = config.get("StopTimeout")
        return Container(
            id=str(said["Id"]),
            name=str(said["Name"]).lstrip("/"),
            image=str(config.get("Image") or ""),
            status=str(state["Status"]),
            pid=int(state.get("Pid") or 0),
            created=str(said.get("Created") or ""),
            started=str(state.get("StartedAt") or ""),
            tty=bool(config.get("Tty")),
            stop_timeout=int(timeout) if timeout is not None else _STOP_TIMEOUT_S,
            env=tuple(str(line) for line in config.get("Env") or ()),
            labels=tuple((str(name), str(value)) for name, value in (config.get("Labels") or {}).items()),
        )
    except (KeyError, TypeError, ValueError, AttributeError) as err:
        msg = f"what Docker says about the container cannot be understood ({type(err).__name__} {err}); it is asked again"
        raise MissingError(msg) from err


def matches(which: Which, item: Mapping[str, Any]) -> bool:
    """Whether this entry of the list is a container that is meant."""
    if which.label:
        labels = item.get("Labels") or {}
        return all(name in labels and value in ("", labels[name]) for name, value in which.label)
    return which.made_from(str(item.get("Image") or ""))
