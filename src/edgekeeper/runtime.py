"""What every role's ``run`` shares: one loop, signals that only enqueue, one lock, an orderly end."""

from __future__ import annotations

import asyncio
import contextlib
import signal
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Protocol

from edgekeeper.errors import EdgekeeperError
from edgekeeper.host.files import locked, make_folder
from edgekeeper.log import ERROR, Event, emit

RETRY_S = 5.0
"""A watcher that failed is started again after this long."""


class Role(Protocol):
    """What the runtime asks of a role."""

    async def run(self) -> None:
        """Do the role's work until ``end`` was called."""

    def end(self, *, leave: bool) -> None:
        """End it: stop the engine, or leave it for the next supervisor."""

    def reload(self) -> None:
        """Read the config again."""


@contextlib.contextmanager
def alone(run_dir: str, role: str, state_dir: str | None = None) -> Iterator[Path]:
    """The role's folder below ``run_dir``, held by this process alone, as is the one below ``state_dir``; LockHeldError when it is not.

    Both: a run_dir may be wiped while its lock is held, and another config may name the same state_dir, whose engine would then
    have two masters.
    """
    make_folder(run_dir, 0o755, ours=False)
    folder = make_folder(Path(run_dir) / role)
    with contextlib.ExitStack() as held:
        held.enter_context(locked(folder / "lock", f"edgekeeper {role} with run_dir {run_dir}"))
        if state_dir is not None and Path(state_dir).resolve() != Path(run_dir).resolve():
            make_folder(state_dir, 0o755, ours=False)
            held.enter_context(locked(make_folder(Path(state_dir) / role) / "lock", f"edgekeeper {role} with state_dir {state_dir}"))
        yield folder


async def run(role: Role) -> None:
    """Run a role with its signals: TERM and INT stop, QUIT leaves the engine, HUP reloads, USR1 and USR2 do nothing."""
    loop = asyncio.get_running_loop()

    def heard(number: signal.Signals, what: str, act: Callable[[], None]) -> None:
        emit(Event.SIGNAL_RECEIVED, f"{number.name}: {what}")
        act()

    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, heard, number, "stopping the engine", lambda: role.end(leave=False))
    loop.add_signal_handler(signal.SIGQUIT, heard, signal.SIGQUIT, "leaving the engine running", lambda: role.end(leave=True))
    loop.add_signal_handler(signal.SIGHUP, heard, signal.SIGHUP, "reading the config again", role.reload)
    for number in (signal.SIGUSR1, signal.SIGUSR2):
        loop.add_signal_handler(number, heard, number, "ignored, it would kill the engine", lambda: None)
    await role.run()


async def kept_alive(name: str, work: Callable[[], Awaitable[None]], failed: Callable[[str | None], None]) -> None:
    """Run a watcher for ever: what it raises is told and tried again, because the engine must not suffer for it.

    ``failed`` is told why, and None once the work is done, or has gone on for as long as a pause lasts.
    """
    loop = asyncio.get_running_loop()
    while True:
        well = loop.call_later(RETRY_S, failed, None)
        try:
            await work()
            failed(None)
            return
        except EdgekeeperError as err:
            failed(f"{name} failed: {err}; trying again in {RETRY_S:g} s")
        except Exception as err:  # noqa: BLE001 - a bug in a watcher must not end the supervisor
            emit(Event.INTERNAL_ERROR, f"{name} failed: {type(err).__name__}: {err}; trying again in {RETRY_S:g} s", level=ERROR)
            failed(f"{name} failed: {type(err).__name__}; trying again in {RETRY_S:g} s")
        finally:
            well.cancel()
        await asyncio.sleep(RETRY_S)
