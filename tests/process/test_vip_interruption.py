"""kill -9 of the supervisor at every step of a drain, of a reload and of a stop.

Whatever the step: the VIP is answered throughout, what lies on disk belongs together and the real validator accepts it, and the next supervisor
ends within seconds with one owner, without covers, with the settings of the interface and the weights as they should be. Two versions of
keepalived beside each other, every fourth step each; together every second one.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from edgekeeper.engines.keepalived.engine import KeepalivedEngine
from edgekeeper.engines.keepalived.features import parse
from edgekeeper.errors import EdgekeeperError
from edgekeeper.supervise.stage import Stage

from .test_interruption import EVERY, WRAPPER
from .vipnodes import DNS, PEER, SUITES, WEB, Pair, Pairs, pairs

pytestmark = [pytest.mark.root, pytest.mark.engine]
NODE, OTHER = PEER
WITHIN_S = 5.0
"""From the start of the next supervisor until nothing of the interruption is left."""


@pytest.fixture(scope="module")
def both() -> Iterator[Pairs]:
    if os.geteuid() != 0:
        pytest.fail("these tests make network namespaces; run them as root")
    with pairs() as made:
        yield made


def _drain(made: Pair) -> None:
    def ask() -> None:
        with contextlib.suppress(EdgekeeperError, OSError):  # the supervisor dies over it
            made.ask(NODE, "drain", "dns")

    threading.Thread(target=ask).start()


def _reload(made: Pair) -> None:
    before = made.status(NODE)["engine"]["digest"]
    for interval in (5, 6):  # the one that it is not
        made.write(NODE, script={"interval": interval, "fall": 1, "rise": 1})
        if before != _wanted(made):
            break
    made.hup(NODE)
