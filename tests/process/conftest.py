"""Engines that more than one file of tests needs."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from .dockers import Docker


@pytest.fixture(scope="module")
def docker() -> Iterator[Docker]:
    """The newest Docker daemon, shared by the tests of one file: each names its containers after itself."""
    made = daemon()
    yield made
    made.close()


@pytest.fixture
def dockers() -> Iterator[Callable[..., Docker]]:
    """Daemons of a test's own: ``dockers("debian12", {"live-restore": True})``."""
    made: list[Docker] = []

    def make(suite: str = "testing", more: dict[str, Any] | None = None) -> Docker:
        made.append(daemon(suite, more))
        return made[-1]

    yield make
    for one in made:
        one.close()


def daemon(suite: str = "testing", more: dict[str, Any] | None = None) -> Docker:
    if os.geteuid() != 0:
        pytest.fail("a Docker daemon needs root; leave these tests out with -m 'not root'")
    return Docker(suite, more)
