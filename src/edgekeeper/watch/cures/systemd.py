"""Restart a systemd unit, and see that it runs afterwards."""

from __future__ import annotations

import asyncio
import re

from edgekeeper.errors import EdgekeeperError, StepFailedError, UsageError
from edgekeeper.host import process
from edgekeeper.model.text import printable

_UNIT = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.@:\\-]{0,253}")
"""What may stand in a unit's name, without what systemctl takes for a pattern."""
_ASK_S = 5.0
_SETTLE_S = 0.2
_UNDER_WAY = ("activating", "reloading", "deactivating")


class SystemdCure:
    """``systemctl restart UNIT``, within a deadline in seconds. A ``seams.Cure``; UsageError for what is no unit's name.

    systemd itself goes on with a restart that takes longer: a unit has 90 s to stop unless it says otherwise.
    """

    def __init__(self, unit: str, *, deadline_s: float = 120.0, systemctl: str = "systemctl") -> None:
        if not _UNIT.fullmatch(unit) or unit.partition(".")[0].endswith("@"):
            msg = f"{unit!r} is not the name of a unit that can be restarted; write it like netbird.service"
            raise UsageError(msg)
        self.name = f"systemd restart {unit}"
        self._unit = unit
        self._deadline_s = deadline_s
        self._systemctl = systemctl

    async def ready(self, *, ours: bool, since: float) -> str | None:  # noqa: ARG002 - systemd's own starts are seen by the probe
        """Whether systemd answers, and nobody has stopped the unit."""
        try:
            _, state = await self._ask("is-active", _ASK_S)
        except EdgekeeperError as err:
            return str(err)
        stopped = state == "inactive" and not ours
        return f"{self._unit} is inactive: somebody stopped it; that is no wedge, so start it yourself" if stopped else None

    async def apply(self) -> str | None:
        """Restart it; None when it runs afterwards, else the sentence that says why not."""
        loop = asyncio.get_running_loop()
        end = loop.time() + self._deadline_s
        try:
            code, said = await self._ask("restart", self._deadline_s)
            if code:
                return f"systemctl restart {self._unit} failed: {said or f'exit {code}'}"
            while True:
                _, state = await self._ask("is-active", _ASK_S)
                if state not in _UNDER_WAY or loop.time() >= end:
                    break
                await asyncio.sleep(_SETTLE_S)
        except StepFailedError:
            return f"systemctl did not end in time for {self._unit} (it is given {self._deadline_s:g} s); systemd may go on with the restart"
        except EdgekeeperError as err:
            return str(err)
        return None if state == "active" else f"{self._unit} was restarted and is {state or 'in no state that systemd tells'} now"

    async def _ask(self, verb: str, deadline_s: float) -> tuple[int, str]:
        ended = await process.run([self._systemctl, "--no-ask-password", "--no-pager", verb, "--", self._unit], deadline_s)
        lines = [line.strip() for line in ended.output.splitlines() if line.strip()]
        return ended.code, printable(lines[0], 200) if lines else ""
