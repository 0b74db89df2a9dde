"""What a role wraps around the steps that its clients could feel: a cover that is up before the engine is touched."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from enum import StrEnum


class Step(StrEnum):
    """What is about to happen to the engine."""

    START = "start"
    RELOAD = "reload"
    STOP = "stop"


Shield = Callable[[Step], AbstractAsyncContextManager[None]]


def unshielded(step: Step) -> AbstractAsyncContextManager[None]:  # noqa: ARG001 - the shape of a shield
    """For a role whose clients do not feel it, or are looked after elsewhere."""
    return contextlib.nullcontext()
