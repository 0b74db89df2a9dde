"""kill -9 of the supervisor at every step of a drain, of a reload and of a stop.

Whatever the step: the VIP is answered throughout, what lies on disk belongs together and the real validator accepts it, and the next supervisor
ends within seconds with one owner, without covers, with the settings of the interface and the weights as they should be. Two versions of
keepalived take the steps in turns, beside each other; with ``EK_INTERRUPT_EVERY=1`` both take them all.
"""

from __future__ import annotations

import asyncio
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

from edgekeeper.engines.keepalived.dump import Dump
from edgekeeper.engines.keepalived.engine import KeepalivedEngine
from edgekeeper.engines.keepalived.features import parse
from edgekeeper.engines.keepalived.hands import KeepalivedHands
from edgekeeper.engines.keepalived.seat import Seat
from edgekeeper.errors import EdgekeeperError
from edgekeeper.supervise.stage import Stage

from .test_interruption import EVERY, WRAPPER
from .vipnodes import DNS, PEER, SCRIPT, SUITES, WEB, Pair, Pairs, pairs

pytestmark = [pytest.mark.root, pytest.mark.engine]
NODE, OTHER = PEER
FIRST = 3
"""Where few steps are tried: with it the one between a drain's weight and its record is among them."""
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

    threading.Thread(target=ask, daemon=True).start()


def _reload(made: Pair) -> None:
    made.write(NODE, script={**SCRIPT, "interval": 11 - _interval(made)})
    made.hup(NODE)


def _stop(made: Pair) -> None:
    made.runs[NODE].send_signal(signal.SIGTERM)


def _drained(made: Pair) -> bool:
    row = made.rows(NODE).get("dns", {})
    return row.get("drained") is True and not row["shadow"] and not row["held"]


def _reloaded(made: Pair) -> bool:
    """Whether the change is in force: said, on disk, and held by keepalived itself."""
    status, folder = made.status(NODE), str(made.role(NODE))
    if not any(word in status.get("last_decision", "") for word in ("is in force", "unchanged")) or f"interval {_interval(made)}\n" not in _current(made)[1]:
        return False
    held = asyncio.run(KeepalivedHands(folder).ask(Seat(folder), status["engine"]["pid"]))
    return isinstance(held, Dump) and f"Interval = {_interval(made)} sec" in (Path(Seat(folder).dumps) / "keepalived.data").read_text()


def _stopped(made: Pair) -> bool:
    return made.runs[NODE].poll() is not None


SCENARIOS: dict[str, tuple[Callable[[Pair], None], Callable[[Pair], bool]]] = {
    "drain": (_drain, _drained),
    "reload": (_reload, _reloaded),
    "stop": (_stop, _stopped),
}


def _interval(made: Pair) -> int:
    return int(json.loads(made.config(NODE).read_text())["vip"]["script"]["interval"])


def _current(made: Pair) -> tuple[Stage, str]:
    stage = Stage(made.home(NODE) / "state" / "vip", readonly=True)
    return stage, (stage.current_path / "keepalived.conf").read_text()


def _files_belong_together(made: Pair) -> None:
    stage, _ = _current(made)
    link = stage.current_path.readlink()
    assert stage.read(link.name) is not None, f"{link} is damaged"
    told = subprocess.run([made.binary, "--version"], capture_output=True, text=True, check=True, timeout=10)
    engine = KeepalivedEngine(parse(told.stdout + told.stderr), str(made.binary))
    argv = made.net.argv(NODE, list(engine.check_argv(str(stage.current_path))))
    checked = subprocess.run(argv, capture_output=True, text=True, check=False, timeout=20)
    assert engine.judge(checked.returncode, checked.stdout + checked.stderr) is None


def _start(made: Pair, kill_at: int) -> Path:
    """A supervisor that kills itself at this step, counted from when the file exists; where it writes its steps."""
    mark = made.home(NODE) / f"go-{time.monotonic_ns()}"
    made.run(NODE, wrapper=WRAPPER, env={"EK_GO": str(mark), "EK_KILL_AT": str(kill_at), "EK_STEPS": f"{mark}.steps"})
    return mark


def _ready(made: Pair) -> None:
    """The node owns the VIP and could hand it over."""
    if made.until(lambda: made.rows(NODE).get("dns"), f"{NODE} tells its status")["drained"]:
        made.ask(NODE, "undrain", "dns")
    made.until(made.settled, "both nodes stand")
    if made.owner() != NODE:
        made.until(lambda: made.believes_able(OTHER), f"{OTHER} has heard that {NODE} could take it")
        made.rebalance(OTHER, "dns")
        made.until(made.settled, f"{NODE} owns it")
    made.until(lambda: made.believes_able(NODE), f"{NODE} has heard that {OTHER} could take it")


def _over(made: Pair, done: Callable[[Pair], bool], mark: Path, number: int) -> bool:
    """Whether it has killed itself, or was done in fewer steps than the undisturbed one: a wait that came to nothing has none."""
    if made.runs[NODE].poll() is not None:
        return True
    return done(made) and len(Path(f"{mark}.steps").read_text().splitlines()) < number


def _healed(made: Pair) -> bool:
    """Whether nothing of an interruption is left."""
    status = made.status(NODE)
    rows = {row["name"]: row for row in status.get("vips", ())}
    if set(rows) != {"dns", "web"} or status["alarms"] or not status["engine"]["running"]:
        return False
    weighed = all(row["state"] == "FAULT" and row["weight"] == 300 if row["drained"] else row["weight"] <= 2 for row in rows.values())
    one_each = all(len(made.holders(ip)) == 1 for ip in (DNS, WEB))
    clean = not made.covers(NODE) and made.arp_ignore(NODE) == 0 and not any(row["shadow"] for row in rows.values())
    record = json.loads((made.role(NODE) / "engine.json").read_text())
    return weighed and one_each and clean and not record["applying"] and record["serving"] is not None


def _told(made: Pair, name: str) -> None:
    act, done = SCENARIOS[name]
    made.end(NODE, signal.SIGQUIT)
    mark = _start(made, 0)
    _ready(made)
    mark.touch()
    act(made)
    made.until(lambda: done(made), f"the undisturbed {name} is done")
    steps = Path(f"{mark}.steps").read_text().splitlines()
    assert len(steps) > 8, steps
    if name != "stop":
        made.end(NODE, signal.SIGQUIT)
    turn, turns = (list(SUITES).index(made.version), len(SUITES)) if EVERY > 1 else (0, 1)
    numbers = range(min(EVERY, FIRST) + turn * EVERY, len(steps) + 1, EVERY * turns)
    mark = _start(made, numbers[0])
    for number, after in zip(numbers, [*numbers[1:], 0], strict=True):
        where = f"{name} of keepalived {made.version} killed at {steps[number - 1]}"
        _ready(made)
        with made.load() as load:
            mark.touch()
            act(made)
            made.until(lambda mark=mark, number=number: _over(made, done, mark, number), f"{where}: it is")
            made.runs[NODE].kill()
            assert made.runs[NODE].wait(10) in (-signal.SIGKILL, 0 if name == "stop" else -signal.SIGKILL), f"{where}\n{made.all_said()}"
            _files_belong_together(made)
            mark = _start(made, after)
            made.until(lambda: _healed(made), f"{where}: nothing of it is left", WITHIN_S)
            if name == "reload":
                made.until(lambda: done(made), f"{where}: the next supervisor brings the change into force")
        _files_belong_together(made)
        assert load.lost == [], f"{where}\n{made.all_said()}"
        print(where, file=sys.stderr)  # noqa: T201 - seen when it fails, or with -s


@pytest.mark.timeout(900)
@pytest.mark.parametrize("name", SCENARIOS)
def test_a_killed_supervisor_leaves_nothing_that_the_next_one_does_not_mend(both: Pairs, name: str) -> None:
    both.each(lambda made: _told(made, name))
