"""Ask an engine's own validator about files that no supervisor has staged, as ``check`` and ``render --check`` do."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from pathlib import Path

from edgekeeper.host.files import write_text
from edgekeeper.host.process import run
from edgekeeper.ports import Engine

CHECK_DEADLINE_S = 20.0
"""The validator's deadline, whoever asks: it takes 15 to 60 ms on dnsdist; far more means that the machine is ill."""


async def refusal_of(engine: Engine, files: Mapping[str, str]) -> str | None:
    """Why the engine's own validator refuses these files, or None; the folder that they lie in is removed again.

    StepFailedError when it does not end within CHECK_DEADLINE_S, MissingError when it cannot be run.
    """
    with tempfile.TemporaryDirectory(prefix="edgekeeper-check-") as folder:
        for name, text in files.items():
            write_text(Path(folder) / name, text, sync=False)
        done = await run(engine.check_argv(folder), CHECK_DEADLINE_S)
    return engine.judge(done.code, done.output)
