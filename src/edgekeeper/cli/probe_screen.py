"""The live table of ``edgekeeper probe`` on a terminal."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING

from edgekeeper.cli.output import colour
from edgekeeper.model.text import printable

if TYPE_CHECKING:
    from rich.table import Table

    from edgekeeper.meter.kept import Kept
    from edgekeeper.meter.live import Recent
    from edgekeeper.meter.record import Recording

EVERY_S = 0.25
_STYLES = {"OUT": "bold red", "lost": "red", "slow": "yellow", "ok": "green"}


async def painted(meter: asyncio.Task[None], kept: Kept, recent: Recent, recording: Recording | None) -> None:
    """Draw four times a second until the meter ends; when this is cancelled, so is the meter."""
    import sys

    from rich.console import Console
    from rich.live import Live

    screen = Console(file=sys.stderr, no_color=not colour(sys.stderr), highlight=False)
    with Live(console=screen, auto_refresh=False, transient=True, vertical_overflow="ellipsis") as live:
        try:
            while not meter.done():
                live.update(_table(kept, recent, recording, screen.width), refresh=True)
                await asyncio.wait({meter}, timeout=EVERY_S)
        finally:
            meter.cancel()
            await asyncio.wait({meter})
    meter.result()


def _table(kept: Kept, recent: Recent, recording: Recording | None, width: int) -> Table:
    from rich.table import Table
    from rich.text import Text

    from edgekeeper.meter.live import HEAD, rows

    drawn = Table(
        box=None,
        pad_edge=False,
        padding=(0, 1, 0, 0),
        header_style="bold",
        expand=False,
        caption=printable(recording.why) if recording and recording.why else None,
    )
    narrow = width < 110
    for head in HEAD:
        if not (narrow and head == "LONGEST"):
            drawn.add_column(head, overflow="fold" if head in {"TARGET", "LAST ERROR"} else "ellipsis", no_wrap=head not in {"TARGET", "LAST ERROR"})
    for cells in rows(kept, recent, time.monotonic()):
        shown = [Text(printable(cell), style=_STYLES.get(cell, "") if i == 1 else "") for i, cell in enumerate(cells) if not (narrow and HEAD[i] == "LONGEST")]
        drawn.add_row(*shown)
    return drawn
